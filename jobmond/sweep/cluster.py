"""One cluster as the sweep sees it: how to ask, how long to wait, whom to adopt."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from jobmond.analysis.acting import Leave
from jobmond.analysis.benign import NOTHING, Benign
from jobmond.analysis.links import LINKED
from jobmond.analysis.worked import NO_LINES, InfraLines
from jobmond.model.state import Kind
from jobmond.ports import Backend, LogSource, TreeSource


class Connection(Protocol):
    """What a cluster is reached through and lets go of in the end, whatever it carries."""

    @property
    def logins(self) -> int:
        """Logins attempted since it was made."""
        ...

    async def close(self) -> None: ...


class Login(Protocol):
    """A transport that stopped after a refusal and can be told to try once more."""

    def retry_login(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Cluster:
    """A configured cluster with everything needed to ask it.

    `backends` maps kinds to the source that answers for them; `logs` reads all their logs in one
    script. `budget_s` bounds one sweep, `tail_bytes` what the end of an ended job's log may cost,
    `failed_bytes` what the log of one that ended badly may,
    `log_read_bytes` how much of one log a sweep looks through for what is new. `discover`
    tracks what nobody registered, `no_kill` says that nothing there is ever cancelled,
    `cancels` that a proved collapse is, elsewhere than under a no-kill. `ckpt_dirs` and `log_dirs`
    are further folders at the far side. All as the configuration and the ops file had it when the
    sweep began. `trees` reads trees of trials, those in `trial_dirs` too; `infra_lines` are lines
    of logs by which checks are told. `link` is how it is reached: clusters with equal ones can
    share a transport.
    """

    name: str
    kind: str
    backends: Mapping[Kind, Backend]
    logs: LogSource
    transports: tuple[Connection, ...]
    active: bool = True
    discover: bool = False
    notes: str | None = None
    benign: Benign = NOTHING
    no_kill: bool = False
    cancels: bool = False
    ckpt_dirs: tuple[str, ...] = ()
    log_dirs: tuple[str, ...] = ()
    budget_s: float = 120.0
    tail_bytes: int = 65536
    failed_bytes: int = 1310720
    log_read_bytes: int = 2**28
    backoff: timedelta = timedelta(minutes=1)
    backoff_max: timedelta = timedelta(hours=1)
    logins_seen: dict[int, int] = field(default_factory=dict)
    link: object = None
    trees: TreeSource | None = None
    trial_dirs: tuple[str, ...] = ()
    infra_lines: InfraLines = NO_LINES

    @property
    def leave(self) -> Leave:
        """What may follow from a collapse here."""
        forbidden = f"no_kill is set for {self.name}" if self.no_kill else None
        return Leave(self.cancels, forbidden)

    @property
    def discovers(self) -> bool:
        """Whether jobs can turn up here that nobody added.

        What launchers have launched turns up where it runs, so that they alone are no reason.
        """
        sources = [b for kind, b in self.backends.items() if kind not in LINKED]
        return self.active and self.discover and any(b.discovers for b in sources)

    def new_logins(self) -> int:
        """Logins attempted since this was last asked."""
        total = 0
        for i, transport in enumerate(self.transports):
            total += transport.logins - self.logins_seen.get(i, 0)
            self.logins_seen[i] = transport.logins
        return total

    async def acted(self) -> bool:
        """Whether the person that a transport waits for has acted, where it can tell without
        contacting the far side."""
        for transport in self.transports:
            acted = getattr(transport, "acted", None)
            if acted is not None and await acted():
                return True
        return False

    def retry_login(self) -> None:
        """Let transports that wait for a person try once more."""
        for transport in self.transports:
            retry = getattr(transport, "retry_login", None)
            if retry is not None:
                retry()

    async def close(self) -> None:
        for transport in self.transports:
            await transport.close()
