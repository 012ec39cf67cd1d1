"""What following a log costs: the first reading of all of it, and a look after it has grown.

    python -m tests.benchmarks.following 1GiB

Processor time of whole sweeps, with the database and everything that they start, and the bytes
that the log cost on the way.
"""

import asyncio
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from jobmond.model.commit import SweepCommit
from jobmond.model.state import State
from tests.benchmarks.rl_log import pieces, size_of
from tests.integration.test_following import Scene

MORE = 1 << 20
ENDLESS = 1 << 50


@dataclass(frozen=True)
class Spent:
    """`sweeps` together: their processor time and what they moved."""

    sweeps: int
    cpu_s: float
    moved_bytes: int


class Followed:
    """A run whose log is about `size` bytes, and grows."""

    def __init__(self, folder: Path, size: int) -> None:
        self.scene = Scene(folder)
        self.scene.add("7")
        self.path = folder / "7.out"
        self.pieces: Iterator[bytes] = pieces(ENDLESS)
        self.moved_bytes = 0
        self.scene.store.commit = self._noted(self.scene.store.commit)
        self.grow(size)

    def grow(self, size: int) -> None:
        with self.path.open("ab") as out:
            written = 0
            while written < size:
                written += out.write(next(self.pieces))

    def _noted(self, commit: Callable[[SweepCommit], None]) -> Callable[[SweepCommit], None]:
        """`commit`, and what it publishes is kept."""

        def noting(swept: SweepCommit) -> None:
            self.moved_bytes += swept.moved_bytes
            commit(swept)

        return noting

    async def read(self) -> Spent:
        """Sweeps until nothing is left to read."""
        sweeps, began, moved = 0, _cpu_s(), self.moved_bytes
        while sweeps == 0 or self.behind:
            await self.scene.sweep(_7=State.RUNNING)
            sweeps += 1
        return Spent(sweeps, _cpu_s() - began, self.moved_bytes - moved)

    @property
    def behind(self) -> bool:
        training = self.scene.job("7").training
        return training is None or training.behind_bytes > 0


def _cpu_s() -> float:
    """Of this process and of those that it started and that have ended."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in spent)


@dataclass(frozen=True)
class Compared:
    """The first reading of a log, a look after 1 MiB more, and one after nothing more."""

    first: Spent
    later: Spent
    idle: Spent

    @property
    def cpu(self) -> float:
        """What the look cost of what the first reading did, less what sweeps cost anyway."""
        return (self.later.cpu_s - self.idle.cpu_s) / (
            self.first.cpu_s - self.first.sweeps * self.idle.cpu_s
        )

    @property
    def moved(self) -> float:
        return self.later.moved_bytes / self.first.moved_bytes


async def compared(folder: Path, size: int, looks: int = 4) -> Compared:
    """The cheapest of some looks."""
    run = Followed(folder, size)
    first, later, idle = await run.read(), [], []
    for _ in range(looks):
        run.grow(MORE)
        later.append(await run.read())
        idle.append(await run.read())
    return Compared(first, _least(later), _least(idle))


def _least(spent: list[Spent]) -> Spent:
    return min(spent, key=lambda one: one.cpu_s)


def main() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        found = asyncio.run(compared(Path(folder), size_of(sys.argv[1])))
    for name, spent in (
        ("all of it", found.first),
        ("1 MiB more", found.later),
        ("nothing more", found.idle),
    ):
        print(f"| {name} | {spent.sweeps} | {spent.cpu_s:.3f} s | {spent.moved_bytes} |")
    print(f"1 MiB more: {found.cpu:.2%} of the processor time, {found.moved:.2%} of the bytes")


if __name__ == "__main__":
    main()
