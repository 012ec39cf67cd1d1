"""What one lab is made of: knobs, places and ports, all derived from the test process' pid."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

FIRST_PORT = 10_000
PORTS_PER_LAB = 32
BLOCKS = (32_000 - FIRST_PORT) // PORTS_PER_LAB  # below the kernel's ephemeral range
MAX_NODES = PORTS_PER_LAB - 4
FOLDER_PREFIX = "jobmond-lab-"

_serial = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabOptions:
    """Knobs of a lab.

    `cgroup` None means: where the memory controller of cgroup v1 is mounted and writable, so that
    an over-fed job really ends OUT_OF_MEMORY; without cgroups it ends FAILED 0:9.
    CPUs and memory of a node are fake, so more jobs can run than the machine has cores.
    `accounting` False is a cluster without slurmdbd, where sacct refuses.
    """

    nodes: int = 4
    node_cpus: int = 16
    node_memory_mb: int = 4000
    min_job_age_s: int = 300
    kill_wait_s: int = 2
    slurmd_timeout_s: int = 30
    cgroup: bool | None = None
    accounting: bool = True
    users: int = 2
    max_sessions: int = 10
    max_startups: str = "10:30:100"
    slurm_conf_extra: str = ""
    sshd_config_extra: str = ""
    count_commands: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= MAX_NODES:
            raise ValueError(f"nodes must be between 1 and {MAX_NODES}, not {self.nodes}")


@dataclass(frozen=True, slots=True)
class Ports:
    """A block of ports on 127.0.0.1.

    `lock` is an abstract socket: the block is free again when its process is gone, however it went.
    """

    first: int
    lock: socket.socket = field(repr=False)

    @property
    def sshd(self) -> int:
        return self.first

    @property
    def mariadbd(self) -> int:
        return self.first + 1

    @property
    def slurmdbd(self) -> int:
        return self.first + 2

    @property
    def slurmctld(self) -> int:
        return self.first + 3

    def slurmd(self, node: int) -> int:
        """Port of the `node`-th slurmd, counted from 1."""
        return self.first + 3 + node

    def release(self) -> None:
        self.lock.close()


def reserve_ports(seed: int) -> Ports:
    """The first free block at or after the one that belongs to `seed`.

    Raises RuntimeError when every block is taken.
    """
    for step in range(BLOCKS):
        first = FIRST_PORT + (seed + step) % BLOCKS * PORTS_PER_LAB
        lock = socket.socket(socket.AF_UNIX)
        try:
            lock.bind(f"\0jobmond-lab-ports-{first}")
        except OSError:
            lock.close()
            continue
        if all(map(_bindable, range(first, first + PORTS_PER_LAB))):
            return Ports(first, lock)
        lock.close()
    raise RuntimeError("no free block of ports for a lab")


def _bindable(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@dataclass(frozen=True, slots=True)
class Places:
    """Where a lab keeps its things. `tag` also begins the names of its users and nodes."""

    tag: str
    folder: Path

    @property
    def etc(self) -> Path:
        return self.folder / "etc"

    @property
    def journals(self) -> Path:
        return self.folder / "journals"

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def notes(self) -> Path:
        """One file a daemon with its identity, outside of what the daemons may write."""
        return self.folder / "notes"

    @property
    def ssh(self) -> Path:
        return self.folder / "ssh"

    @property
    def homes(self) -> Path:
        return self.folder / "home"

    @property
    def counting(self) -> Path:
        return self.folder / "counting"

    @property
    def slurm_conf(self) -> Path:
        return self.etc / "slurm.conf"

    @property
    def munge_socket(self) -> Path:
        return self.folder / "munge" / "socket"

    @property
    def owner(self) -> Path:
        return self.folder / "owner"


def next_places() -> Places:
    """Names for the next lab of this process: pid and a serial number."""
    serial = next(_serial)
    folder = Path(tempfile.gettempdir()) / f"{FOLDER_PREFIX}{os.getpid()}-{serial}"
    return Places(f"jm{os.getpid()}x{serial}", folder)


def left_folders() -> Iterator[Path]:
    """Folders of labs on this machine, whoever they belong to."""
    yield from Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*-*")


def cgroup_v1_usable() -> bool:
    """Whether every cgroup v1 controller that Slurm needs is mounted and takes a new group."""
    mounted = {
        option
        for line in Path("/proc/mounts").read_text().splitlines()
        if line.split()[2] == "cgroup"
        for option in line.split()[3].split(",")
    }
    if not {"memory", "freezer", "cpuset", "cpuacct"} <= mounted:
        return False
    trial = Path("/sys/fs/cgroup/memory") / f"jobmond-trial-{os.getpid()}"
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError:
        return False
    return True
