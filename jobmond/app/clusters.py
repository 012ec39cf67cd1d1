"""The clusters of a configuration, with what they are asked through."""

import asyncio
import re
import shlex
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import structlog

from jobmond import registry
from jobmond.analysis.benign import Benign
from jobmond.analysis.visible import readable, visible
from jobmond.analysis.worked import InfraLines
from jobmond.app.iris import iris_parts
from jobmond.app.kubernetes import backend, client, logs
from jobmond.app.launchers import launchers
from jobmond.backends._trees import TreeReader
from jobmond.errors import TransportError
from jobmond.model.state import Kind
from jobmond.ports import Backend, LogSource, Transport, TreeSource
from jobmond.settings import Settings
from jobmond.settings.clusters import (
    AnyCluster,
    IrisCluster,
    KubernetesCluster,
    LocalCluster,
    SlurmCluster,
)
from jobmond.sweep.cluster import Cluster, Connection
from jobmond.transports.kube import KubeClient

journal = structlog.get_logger("jobmond.app")

SLURM_PROBE_S = 10.0
_NOT_FOUND = 127  # what a shell says about a program that is not there


def slurm_not_set_up(cluster: str, squeue: str) -> None:
    """Say in the journal that `squeue` is there and fails."""
    journal.warning(
        "squeue is installed and SLURM is not set up: only processes are watched",
        cluster=cluster,
        squeue=squeue,
        remedy="set SLURM up, then reload; or set slurm = true",
    )


@dataclass(frozen=True, slots=True)
class Reach:
    """How a cluster is reached, its logs and its trees of trials read; clusters with equal links
    share a connection.
    """

    connection: Connection
    logs: LogSource
    link: object
    trees: TreeSource | None = None


def _trees(transport: Transport) -> TreeReader:
    return TreeReader(transport, offload=asyncio.to_thread)


def _infra_lines(table: AnyCluster) -> InfraLines:
    """The checks that the configuration has lines for."""
    holds = {"tunnel": table.tunnel_lines, "api_base": table.api_base_lines}
    fails = {"tunnel": table.tunnel_down_lines, "api_base": table.api_base_down_lines}
    return InfraLines(
        *({name: [re.compile(one) for one in lines] for name, lines in every.items() if lines}
          for every in (holds, fails))
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Builder:
    """Makes clusters. `watched` are those with tracked SLURM jobs.

    `kept` are clusters that run already: one that is reached the same way goes on with their
    connection, and with whether this host has a SLURM. `not_set_up` is told of one that is
    installed and not used.
    """

    settings: Settings
    state: Path
    watched: Set[str] = frozenset()
    kept: Mapping[str, Cluster] = field(default_factory=dict)
    not_set_up: Callable[[str, str], None] = slurm_not_set_up

    async def all(self, tables: Mapping[str, AnyCluster]) -> dict[str, Cluster]:
        """One runtime a cluster of a kind that has a backend."""
        built = {name: await self.one(name, table) for name, table in tables.items()}
        return {name: cluster for name, cluster in built.items() if cluster is not None}

    async def one(self, name: str, table: AnyCluster) -> Cluster | None:
        """The runtime of one cluster; None where its kind has no backend."""
        if isinstance(table, SlurmCluster):
            return self._slurm_cluster(name, table)
        if isinstance(table, LocalCluster):
            return await self._local_cluster(name, table)
        if isinstance(table, IrisCluster):
            return self._iris_cluster(name, table)
        return self._kubernetes_cluster(name, table)

    def _slurm_cluster(self, name: str, table: SlurmCluster) -> Cluster:
        kind, options = _way(table, self.state)
        link = (kind, tuple(sorted(options.items(), key=lambda item: item[0])))
        old = self.kept.get(name)
        same = old is not None and old.link == link
        transport: Transport
        if old is not None and same:
            transport = cast(Transport, old.transports[0])
        else:
            transport = registry.transports[kind](**options)
        near = launchers(self.settings, name, table, transport)
        kinds = {Kind.SLURM: self._slurm(transport, table), **near.backends}
        made = self._cluster(
            name, table, kinds, Reach(transport, near.logs, link, _trees(transport))
        )
        if old is not None and same:
            made.logins_seen.update(old.logins_seen)
        return made

    async def _local_cluster(self, name: str, table: LocalCluster) -> Cluster:
        here = registry.transports["local"]()
        kinds = {
            Kind.LOCAL: registry.backends["local"](
                here, runs=self.state / "runs", benign=Benign.of(table.benign)
            )
        }
        if await self._asks_slurm(name, table, here):
            kinds[Kind.SLURM] = self._slurm(here, table)
        near = launchers(self.settings, name, table, here)
        link = ("local", table.slurm, table.bin_dir)
        return self._cluster(
            name, table, {**kinds, **near.backends}, Reach(here, near.logs, link, _trees(here))
        )

    def _iris_cluster(self, name: str, table: IrisCluster) -> Cluster:
        made = iris_parts(name, table, grace_s=self.settings.grace.total_seconds())
        reach = Reach(made.http, made.logs, made)
        return self._cluster(name, table, {Kind.IRIS: made.backend}, reach)

    def _kubernetes_cluster(self, name: str, table: KubernetesCluster) -> Cluster:
        old = self.kept.get(name)
        link = (
            table.kind,
            table.kubeconfig,
            table.context,
            table.connect_timeout,
            table.login_timeout,
        )
        same = old is not None and old.link == link
        if old is not None and same:
            api = cast(KubeClient, old.transports[0])
        else:
            api = client(name, table, self.state)
        grace_s = self.settings.grace.total_seconds()
        kinds = {Kind.KUBERNETES: backend(api, table, grace_s=grace_s)}
        made = self._cluster(name, table, kinds, Reach(api, logs(api, table), link))
        if old is not None and same:
            made.logins_seen.update(old.logins_seen)
        return made

    async def _asks_slurm(self, name: str, table: LocalCluster, here: Transport) -> bool:
        if table.slurm != "auto":
            return table.slurm
        # Jobs that are watched there already are not dropped because a program fails today.
        if name in self.watched:
            return True
        if not table.active:
            return False
        found = await slurm_here(here, table.bin_dir)
        if found.wrong is not None:
            self.not_set_up(name, found.wrong)
        return found.asked

    def _cluster(
        self,
        name: str,
        table: AnyCluster,
        kinds: Mapping[Kind, Backend],
        reach: Reach,
    ) -> Cluster:
        settings = self.settings
        backoff_max = settings.backoff_max
        if isinstance(table, LocalCluster):
            # Processes must not wait for a SLURM that is in trouble.
            backoff_max = min(backoff_max, settings.poll_interval)
        return Cluster(
            name=name,
            kind=table.kind,
            backends=kinds,
            logs=reach.logs,
            transports=(reach.connection,),
            active=table.active,
            discover=table.discover,
            notes=table.notes,
            benign=Benign.of(table.benign),
            no_kill=table.no_kill or settings.policy.no_kill,
            cancels=settings.policy.on_collapse == "cancel",
            ckpt_dirs=table.ckpt_dirs,
            log_dirs=table.log_dirs,
            budget_s=table.sweep_budget.total_seconds(),
            tail_bytes=table.log_tail_bytes,
            failed_bytes=table.log_failed_bytes,
            log_read_bytes=table.log_read_bytes,
            backoff=min(settings.backoff_min, backoff_max),
            backoff_max=backoff_max,
            link=reach.link,
            trees=reach.trees,
            trial_dirs=table.trial_dirs,
            infra_lines=_infra_lines(table),
        )

    def _slurm(self, transport: Transport, table: SlurmCluster | LocalCluster) -> Backend:
        made = registry.backends["slurm"](
            transport,
            users=table.users,
            grace_s=self.settings.grace.total_seconds(),
            unknown_after_s=self.settings.lost_after.total_seconds(),
            max_scontrol=table.max_scontrol,
            max_bytes=table.max_answer_bytes,
            bin_dir=table.bin_dir,
            discover=table.discover,
            offload=asyncio.to_thread,
        )
        return cast(Backend, made)


@dataclass(frozen=True, slots=True)
class SlurmHere:
    """Whether SLURM is `asked` on this host. `wrong`: what `squeue` says where it is not set up."""

    asked: bool
    wrong: str | None = None


async def slurm_here(here: Transport, bin_dir: str | None = None) -> SlurmHere:
    """Whether there is a `squeue` that finds its configuration; asks no controller."""
    path = f"PATH={shlex.quote(bin_dir)}:$PATH\n" if bin_dir else ""
    ask = f"{path}command -v squeue >/dev/null || exit {_NOT_FOUND}\nsqueue --version"
    try:
        answer = await here.run(ask.encode(), timeout_s=SLURM_PROBE_S, max_bytes=65536)
    except TransportError:
        return SlurmHere(True)  # no answer is not a no: sweeps will say what is wrong
    if answer.exit_code in (0, _NOT_FOUND):
        return SlurmHere(answer.exit_code == 0)
    return SlurmHere(False, visible(readable(answer.stderr).strip().rpartition("\n")[2]))


def _way(table: SlurmCluster, state: Path) -> tuple[str, dict[str, Any]]:
    """The transport that a table asks for, and its options."""
    if table.transport == "local":
        return "local", {}
    options: dict[str, Any] = {
        "hosts": table.host,
        "user": table.user,
        "port": table.port,
        "identity_file": table.identity_file,
        "known_hosts_file": table.known_hosts_file,
        "ssh_config_file": table.ssh_config_file,
        "proxy_jump": table.proxy_jump,
        "channels": table.max_channels,
        "keepalive_interval_s": table.keepalive.total_seconds(),
    }
    timeout_s = table.connect_timeout.total_seconds()
    if table.transport == "openssh":
        options |= {
            "control_path": table.control_path,
            "control_folder": state,
            "check_timeout_s": timeout_s,
        }
    else:
        options["connect_timeout_s"] = timeout_s
    return table.transport, options
