"""nel and the experiment launcher of this host: sources of the cluster that their jobs run on."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from jobmond import registry
from jobmond.backends._by_kind import ByKind
from jobmond.backends._files import FileReader
from jobmond.backends.launcher.logs import LauncherLogs
from jobmond.backends.nel.logs import NelLogs
from jobmond.clock import SystemClock
from jobmond.model.state import Kind
from jobmond.ports import Backend, LogSource, Transport
from jobmond.settings import Settings
from jobmond.settings.clusters import LocalCluster, SlurmCluster


@dataclass(frozen=True, slots=True)
class Launchers:
    """What they are asked through, and how their jobs' logs are read."""

    backends: Mapping[Kind, Backend]
    logs: LogSource


def launchers(
    settings: Settings, name: str, table: SlurmCluster | LocalCluster, far: Transport
) -> Launchers:
    """The two launchers, for jobs on the cluster behind `far`."""
    here = registry.transports["local"]()
    this_host = isinstance(table, LocalCluster) or table.transport == "local"
    hosts = _hosts(name, table)
    nel = registry.backends["nel"](
        here,
        far,
        SystemClock(),
        hosts=hosts,
        this_host=this_host,
        real_name=_real_name(table),
        command=settings.nel.command,
        home=_text(settings.nel.home),
        exec_db=_text(settings.nel.exec_db),
        each_s=settings.nel.timeout.total_seconds(),
        grace_s=settings.grace.total_seconds(),
        offload=asyncio.to_thread,
    )
    launcher = registry.backends["launcher"](
        here,
        hosts=hosts,
        real_name=_real_name(table),
        maps=_maps(settings),
        silent_s=settings.launcher.silent.total_seconds(),
        offload=asyncio.to_thread,
    )
    files = FileReader(far, log_dirs=table.log_dirs, offload=asyncio.to_thread)
    own: dict[Kind, LogSource] = {
        Kind.NEL: NelLogs(files, far),
        Kind.LAUNCHER: LauncherLogs(FileReader(here, offload=asyncio.to_thread), far),
    }
    made = {Kind.NEL: cast(Backend, nel), Kind.LAUNCHER: cast(Backend, launcher)}
    return Launchers(made, ByKind(files, own))


def _maps(settings: Settings) -> tuple[str, ...]:
    """Where `.slurm_jobs` may be: in the launcher's home, above its experiments."""
    home, experiments = settings.launcher.home, settings.launcher.experiments_dir
    if home is None and experiments is None:
        return ("$NEMORUN_HOME/.slurm_jobs",)
    folders = [home] if home else []
    folders += [experiments.parent] if experiments else []
    return tuple(dict.fromkeys(str(folder / ".slurm_jobs") for folder in folders))


def _hosts(name: str, table: SlurmCluster | LocalCluster) -> frozenset[str]:
    """What launchers may call the cluster: by its name, its hosts, and this host's names."""
    named = {name, *(table.host if isinstance(table, SlurmCluster) else ())}
    if isinstance(table, LocalCluster) or table.transport == "local":
        named |= {socket.gethostname(), "localhost", "127.0.0.1", "::1"}
    return frozenset(word.lower() for word in named)


def _real_name(table: SlurmCluster | LocalCluster) -> Callable[[str], str | None]:
    """What ssh_config makes of a host. Blocks: reads files."""
    if isinstance(table, LocalCluster) or table.transport == "local":
        return _none
    return partial(_resolved, table.ssh_config_file)


def _resolved(config: Path | None, host: str) -> str | None:
    from jobmond.transports.ssh.aliases import real_name  # brings asyncssh

    return real_name(host, config)


def _none(host: str) -> str | None:
    return None


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
