"""What systemd is told: that we answer, how things are, and that we are alive."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from jobmond.analysis.visible import visible
from jobmond.model.state import ClusterStatus
from jobmond.sweep.sweep import Result

_FINE = (ClusterStatus.OK, ClusterStatus.INACTIVE)


@dataclass(frozen=True, slots=True)
class Systemd:
    """The service manager that started us; without an address there is none, and nothing is said.

    `watchdog_s` is how long it waits for a sign of life, None where it does not.
    """

    address: str | None = None
    watchdog_s: float | None = None

    @classmethod
    def of(cls, env: Mapping[str, str], *, pid: int) -> "Systemd":
        """As the environment says; a watchdog that is meant for another process is not ours."""
        limit_us = env.get("WATCHDOG_USEC", "")
        ours = env.get("WATCHDOG_PID", str(pid)) == str(pid)
        watched = ours and limit_us.isascii() and limit_us.isdigit() and int(limit_us) > 0
        return cls(env.get("NOTIFY_SOCKET") or None, int(limit_us) / 1e6 if watched else None)

    def ready(self) -> None:
        self._tell("READY=1")

    def status(self, line: str) -> None:
        """One line for `systemctl status`."""
        self._tell(f"STATUS={visible(line)}")

    def reloading(self, *, monotonic_s: float) -> None:
        """The configuration is read again; `ready` says that this is over."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={int(monotonic_s * 1e6)}")

    def stopping(self, *, within_s: float) -> None:
        """The end has begun; it takes no longer than `within_s`, whatever the unit allows."""
        self._tell(f"STOPPING=1\nEXTEND_TIMEOUT_USEC={int(within_s * 1e6)}")

    async def keep_alive(self) -> None:
        """Signs of life while the event loop turns; returns at once where none is wanted."""
        while self.address is not None and self.watchdog_s is not None:
            self._tell("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_s / 2)

    def _tell(self, text: str) -> None:
        if self.address is None:
            return
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        # A manager that is gone or does not listen must not hold up the daemon.
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out,
        ):
            out.sendto(os.fsencode(text), socket.MSG_DONTWAIT, address)


def status_line(
    results: Iterable[Result], *, next_at: datetime | None, trouble: str | None = None
) -> str:
    """How things are, in one line: what does not work first."""
    swept = list(results)
    parts = [trouble] if trouble else []
    parts += [f"{r.cluster} {r.status}" for r in swept if r.status not in _FINE]
    jobs = sum(r.jobs for r in swept)
    parts.append(f"watching {jobs} {'job' if jobs == 1 else 'jobs'}")
    if next_at is None:
        parts.append("asleep until there is something to watch")
    else:
        parts.append(f"next sweep {next_at.astimezone(UTC):%H:%M} UTC")
    return "; ".join(parts)
