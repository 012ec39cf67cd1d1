"""Lifecycle of a lab: made from nothing, single daemons stopped and frozen, torn down for good."""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.live import counting, options, processes, slurm
from tests.live.leftovers import clear_orphans, wipe
from tests.live.options import LabOptions, Places
from tests.live.processes import Daemon
from tests.live.sshd import Sshd, generate_key
from tests.live.users import User, create_user
from tests.live.waiting import wait_for

READY_S = 60.0  # for one daemon; far more than it needs, for a machine that is busy
SAFE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LabError(RuntimeError):
    """The lab itself did not do what it was asked; says nothing about jobmond."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said. Bytes that are not UTF-8 come as surrogate escapes."""

    code: int
    out: str
    err: str

    def checked(self) -> Self:
        """Itself; raises LabError unless the exit code is 0."""
        if self.code != 0:
            raise LabError(f"exit code {self.code}: {self.err.strip() or self.out.strip()}")
        return self


class Machine:
    """Real munged, MariaDB, slurmdbd, slurmctld, slurmds and sshd on 127.0.0.1, run as root."""

    def __init__(self, knobs: LabOptions | None = None) -> None:
        self.options = knobs or LabOptions()
        self.places: Places = options.next_places()
        self.cgroup = (
            options.cgroup_v1_usable() if self.options.cgroup is None else self.options.cgroup
        )
        self.users: list[User] = []
        self._daemons: dict[str, Daemon] = {}
        self._started = False

    # -- life ----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()

    def up(self) -> None:
        """Start everything and wait until nodes are idle and sshd listens.

        Raises LabError with the end of the daemons' journals; whatever was started is gone then.
        """
        clear_orphans()
        atexit.register(self.down)
        self._started = True
        try:
            self._make()
            self._boot()
        except BaseException as error:
            journals = self.journal_tails()
            self.down()
            if isinstance(error, (TimeoutError, LabError)):
                raise LabError(f"the lab did not start: {error}\n{journals}") from error
            raise

    def down(self) -> None:
        """Kill all that carries the lab's signs, remove users, cgroups and folder. Idempotent."""
        if not self._started:
            return
        self._started = False
        atexit.unregister(self.down)
        try:
            wipe(self.places.folder)
        finally:
            for daemon in self._daemons.values():
                daemon.kill()  # reaps it
            if hasattr(self, "ports"):
                self.ports.release()

    # -- one daemon ----------------------------------------------------------------------------

    @property
    def daemon_names(self) -> tuple[str, ...]:
        """munged, sshd, mariadbd, slurmdbd, slurmctld, slurmd.n1, slurmd.n2 …"""
        return tuple(self._daemons)

    def daemon(self, name: str) -> Daemon:
        """The process behind a name; raises KeyError for one this lab does not have."""
        return self._daemons[name]

    def stop(self, name: str) -> None:
        """SIGTERM one daemon and wait for its end; sshd takes its sessions with it."""
        daemon = self._daemons[name]
        if name == "sshd":
            self.kill_sessions()
        daemon.stop()

    def kill(self, name: str) -> None:
        """SIGKILL one daemon; a killed slurmd leaves its jobs running, sshd takes its sessions."""
        if name == "sshd":
            self.kill_sessions()
        self._daemons[name].kill()

    def start(self, name: str) -> None:
        """Start one daemon unless it runs, and wait until it answers."""
        daemon = self._daemons[name]
        daemon.start()
        wait_for(self._ready(name), READY_S, what=f"{name} to answer")

    def freeze(self, name: str) -> None:
        """SIGSTOP one daemon; with sshd all its sessions and their commands stand still too."""
        self._daemons[name].freeze()

    def thaw(self, name: str) -> None:
        """Undo `freeze`."""
        self._daemons[name].thaw()

    def running(self, name: str) -> bool:
        """Whether the daemon's process exists, frozen or not."""
        return self._daemons[name].running

    def kill_sessions(self) -> int:
        """SIGKILL every connection's sshd but not the listener; gives how many connections.

        Commands that ran in them live on without anyone to read their output.
        """
        rows = processes.table()
        children = {pid for pid in self._daemons["sshd"].children() if pid in rows}
        listener = self._daemons["sshd"].pid if children else 0
        sessions = {pid for pid in children if rows[pid].name == "sshd"}
        processes.send(sessions, signal.SIGKILL)
        return sum(rows[pid].parent == listener for pid in sessions)

    def journal_tails(self, lines: int = 15) -> str:
        """The last lines of every daemon's journal, for a message about what went wrong."""
        tails = []
        for path in sorted(self.places.journals.glob("*")):
            text = path.read_text(errors="replace").splitlines()[-lines:]
            if text:
                tails.append(f"--- {path.name}\n" + "\n".join(text))
        return "\n".join(tails)

    # -- commands ------------------------------------------------------------------------------

    @property
    def env(self) -> dict[str, str]:
        """Environment in which Slurm's commands on this machine speak to the lab."""
        return {
            "PATH": SAFE_PATH,
            "LC_ALL": "C.UTF-8",
            "SLURM_CONF": str(self.places.slurm_conf),
            "JOBMOND_LAB": str(self.places.folder),
        }

    def env_of(self, user: User) -> dict[str, str]:
        """The same for a program that runs as `user` without ssh; its commands are counted."""
        counted = f"{self.places.counting}/bin:" if self.options.count_commands else ""
        return self.env | {
            "PATH": counted + SAFE_PATH,
            "HOME": str(user.home),
            "USER": user.name,
            "LOGNAME": user.name,
            "SHELL": "/bin/bash",
        }

    def run(
        self,
        argv: Sequence[str],
        *,
        user: User | None = None,
        text: str = "",
        timeout_s: float = 60.0,
    ) -> Answer:
        """Run a command here, as root or as `user`: neither a login nor counted by a wrapper.

        Raises LabError when it takes longer than `timeout_s`.
        """
        who: Mapping[str, object] = {}
        env = self.env
        if user is not None:
            who = {"user": user.uid, "group": user.gid, "extra_groups": [], "cwd": user.home}
            env = self.env_of(user) | {"PATH": SAFE_PATH}
        try:
            done = subprocess.run(
                list(argv),
                input=text.encode(errors="surrogateescape"),
                capture_output=True,
                env=env,
                timeout=timeout_s,
                check=False,
                **who,  # type: ignore[call-overload] # user and group, or nothing
            )
        except subprocess.TimeoutExpired as error:
            raise LabError(f"{argv[0]} took more than {timeout_s:g} s") from error
        return Answer(
            done.returncode,
            done.stdout.decode(errors="surrogateescape"),
            done.stderr.decode(errors="surrogateescape"),
        )

    def add_user(self) -> User:
        """One more unprivileged user with key and home, so that a test can count its own calls."""
        name = f"{self.places.tag}u{len(self.users) + 1}"
        key = self.places.ssh / name
        generate_key(key, name)
        user = create_user(name, self.places.homes, key)
        self.users.append(user)
        self.sshd.write_client_config(self.users)
        if self.options.accounting and self.running("slurmdbd"):
            self._account([user])
        return user

    # -- making --------------------------------------------------------------------------------

    def _make(self) -> None:
        """Folders, keys and every configuration file."""
        places = self.places
        places.folder.mkdir(mode=0o755)
        places.owner.write_text(processes.identity(os.getpid()))
        self.ports = options.reserve_ports(os.getpid())
        for folder in (places.etc, places.journals, places.run, places.notes, places.homes):
            folder.mkdir(mode=0o755)
        host = _loopback_host_name()
        self.plan = slurm.SlurmPlan(self.options, places, self.ports, host, self.cgroup)
        self.sshd = Sshd(places, self.ports.sshd, self.options)
        if self.options.count_commands:
            counting.install_wrappers(places.counting)
        self._write_slurm()
        self.sshd.prepare()
        self._define_daemons()

    def _write_slurm(self) -> None:
        places = self.places
        places.slurm_conf.write_text(self.plan.slurm_conf())
        cgroup = slurm.CGROUP_CONF if self.cgroup else slurm.NO_CGROUP_CONF
        (places.etc / "cgroup.conf").write_text(cgroup)
        (places.etc / "database.sql").write_text(slurm.DATABASE_INIT)
        slurmdbd_conf = places.etc / "slurmdbd.conf"
        slurmdbd_conf.touch(mode=0o600)
        slurmdbd_conf.write_text(self.plan.slurmdbd_conf())
        munge = places.munge_socket.parent
        munge.mkdir(mode=0o755)
        key = munge / "key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(1024))
        for path, owner in ((munge, "munge"), (key, "munge"), (slurmdbd_conf, "slurm")):
            shutil.chown(path, owner, owner)
        for folder in (places.folder / "state", places.journals, places.run):
            folder.mkdir(mode=0o755, exist_ok=True)
            shutil.chown(folder, "slurm", "slurm")
        for number in self.plan.numbers:
            (places.folder / f"spool.{places.tag}n{number}").mkdir(mode=0o755)

    def _define_daemons(self) -> None:
        self._define("munged", self.plan.munged(), as_user="munge")
        self._define("sshd", self.sshd.argv())
        if self.options.accounting:
            self._define("mariadbd", self.plan.mariadbd())
            self._define("slurmdbd", ["/usr/sbin/slurmdbd", "-D"])
        self._define("slurmctld", ["/usr/sbin/slurmctld", "-D"])
        for number, node in zip(self.plan.numbers, self.plan.nodes, strict=True):
            self._define(f"slurmd.n{number}", ["/usr/sbin/slurmd", "-D", "-N", node])

    def _define(self, name: str, argv: list[str], as_user: str | None = None) -> None:
        self._daemons[name] = Daemon(
            name,
            argv,
            output=self.places.journals / f"{name}.out",
            note=self.places.notes / name,
            env=self.env,
            as_user=as_user,
        )

    def _boot(self) -> None:
        """Start in the order of need; users and keys are made while the database installs."""
        database = None
        if self.options.accounting:
            for folder in (self.places.folder / "mysql", self.places.folder / "mysql.tmp"):
                folder.mkdir(mode=0o755)
                shutil.chown(folder, "mysql", "mysql")
            with (self.places.journals / "mariadb-install.out").open("wb") as output:
                database = subprocess.Popen(
                    self.plan.install_database(),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=self.env,
                    start_new_session=True,
                )
        try:
            self._daemons["munged"].start()
            self._daemons["sshd"].start()
            for _ in range(self.options.users):
                self.add_user()
        finally:
            if database is not None:
                database.wait(READY_S)
        if database is not None:
            if database.returncode != 0:
                raise LabError("mariadb-install-db failed")
            self._boot_accounting()
        self._daemons["slurmctld"].start()
        for name in self.daemon_names:
            self._daemons[name].start()
        for name in self.daemon_names:
            self.start(name)

    def _boot_accounting(self) -> None:
        # slurmctld refuses its first start without the database's list of resources.
        for name in ("munged", "mariadbd", "slurmdbd"):
            self.start(name)
        for row in (f"cluster {slurm.CLUSTER}", f"account {slurm.ACCOUNT}"):
            self.run(["sacctmgr", "-iQ", "add", *row.split()]).checked()
        self._account(self.users)

    def _account(self, users: Sequence[User]) -> None:
        if names := ",".join(user.name for user in users):
            self.run(
                ["sacctmgr", "-iQ", "add", "user", names, f"account={slurm.ACCOUNT}"]
            ).checked()

    def _ready(self, name: str) -> Callable[[], bool]:
        """A question that is true once the daemon answers; raises LabError if it died."""
        asking: dict[str, Callable[[], bool]] = {
            "munged": lambda: self._says_yes("munge", "-n", "-S", str(self.places.munge_socket)),
            "sshd": lambda: processes.listening(self.ports.sshd),
            "mariadbd": lambda: self._says_yes(*self.plan.ask_database()),
            "slurmdbd": lambda: (
                processes.listening(self.ports.slurmdbd)
                and self._says_yes("sacctmgr", "-n", "show", "cluster")
            ),
            "slurmctld": lambda: (
                processes.listening(self.ports.slurmctld) and self._says_yes("scontrol", "ping")
            ),
        }

        def answers() -> bool:
            if not self.running(name):
                raise LabError(f"{name} ended by itself")
            if name in asking:
                return asking[name]()
            return self._node_serves(int(name.removeprefix("slurmd.n")))

        return answers

    def _says_yes(self, *argv: str) -> bool:
        return self.run(argv).code == 0

    def _node_serves(self, number: int) -> bool:
        if not processes.listening(self.ports.slurmd(number)):
            return False
        node = self.plan.nodes[number - 1]
        state = self.run(["sinfo", "-h", "-N", "-n", node, "-p", "batch", "-o", "%T"]).out.strip()
        return state in {"idle", "mixed", "allocated", "completing", "draining", "drained"}


def _loopback_host_name() -> str:
    """This host's short name, made to resolve to loopback: the daemons bind to what it means."""
    host = socket.gethostname().split(".")[0]
    try:
        loopback = socket.gethostbyname(host).startswith("127.")
    except OSError:
        loopback = False
    if not loopback:
        with Path("/etc/hosts").open("a") as hosts:
            hosts.write(f"127.0.0.1 {host}\n")
    return host
