"""A real daemon under a service manager: what it says on a real notify socket."""

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.integration.host import Host, pid_of, until
from tests.needs import need
from tests.sshd import keygen, need_sshd

QUIET = '[clusters.here]\nkind = "local"\nslurm = false\n'
_PR_SET_MDWE, _PR_MDWE_REFUSE_EXEC_GAIN = 65, 1


@dataclass
class Manager:
    """The end of the notify socket that systemd holds."""

    listening: socket.socket
    heard: list[str] = field(default_factory=list)

    def hear(self) -> list[str]:
        """Every message so far."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.heard.append(self.listening.recv(65536).decode())
        return self.heard

    def statuses(self) -> list[str]:
        return [m.removeprefix("STATUS=") for m in self.hear() if m.startswith("STATUS=")]


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.setblocking(False)
        yield Manager(listening)


@pytest.fixture
def host(tmp_path: Path, manager: Manager) -> Iterator[Host]:
    extra = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
    made = Host(tmp_path / "home", extra=extra)
    made.configure(QUIET)
    yield made
    made.close()


def test_ready_alive_reloading_and_stopping(host: Host, manager: Manager) -> None:
    daemon = host.daemon()
    until(lambda: "READY=1" in manager.hear(), "it is ready")
    assert next(m for m in manager.heard if not m.startswith("STATUS=")) == "READY=1"
    until(lambda: manager.hear().count("WATCHDOG=1") >= 3, "it is alive")
    until(manager.statuses, "it says how it is")
    assert manager.statuses()[-1] == "watching 0 jobs; asleep until there is something to watch"

    process = host.spawn("sleep", "600")
    host.ctl("add", pid_of(process))
    until(lambda: "watching 1 job; next sweep" in manager.statuses()[-1], "it says what it does")

    daemon.signal(signal.SIGHUP)
    until(lambda: manager.hear().count("READY=1") == 2, "the reload is over")
    order = [m for m in manager.heard if not m.startswith(("STATUS=", "WATCHDOG="))]
    assert [m.partition("\n")[0] for m in order] == ["READY=1", "RELOADING=1", "READY=1"]
    at_us = int(order[1].partition("MONOTONIC_USEC=")[2])
    assert at_us > 0

    host.configure("not TOML")
    daemon.signal(signal.SIGHUP)
    until(lambda: manager.hear().count("READY=1") == 3, "a reload that was not taken is over too")

    assert daemon.stop() == 0
    rest = [m for m in manager.hear() if not m.startswith(("STATUS=", "WATCHDOG="))]
    assert rest[-1] == "STOPPING=1\nEXTEND_TIMEOUT_USEC=240000000"


def test_a_loop_that_stands_still_is_not_alive(
    host: Host, manager: Manager, tmp_path: Path
) -> None:
    """The event loop of a real daemon is held up while its other threads go on."""
    hold = (
        "import threading, time\n"
        "from jobmond.daemon import daemon as d\n"
        "from pathlib import Path\n"
        "def hang(self):\n"
        f"    Path({str(tmp_path / 'hangs')!r}).touch()\n"
        f"    while not Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.02)\n"
        "d.Daemon._hang_up = hang\n"
        "from jobmond.__main__ import main; main()"
    )
    process = host.spawn(sys.executable, "-c", hold, "run")
    until(lambda: manager.hear().count("WATCHDOG=1") >= 2, "it is alive")
    process.send_signal(signal.SIGHUP)
    until((tmp_path / "hangs").exists, "the loop stands still")
    before = manager.hear().count("WATCHDOG=1")
    # More than the limit passes on the clock of somebody else: a program that takes that long.
    subprocess.run(["sleep", "0.6"], check=True)
    assert manager.hear().count("WATCHDOG=1") == before
    (tmp_path / "go").touch()
    until(lambda: manager.hear().count("WATCHDOG=1") > before, "it is alive again")


def test_one_that_cannot_start_is_never_ready(host: Host, manager: Manager) -> None:
    host.configure("colour = 7\n")
    assert host.jobmond("run").returncode == 2
    assert manager.hear() == []


def test_it_works_where_memory_is_never_both_written_and_run(host: Host, tmp_path: Path) -> None:
    """MemoryDenyWriteExecute of the unit, by the kernel's own switch for it."""
    program = (
        "import ctypes, os, sys; "
        f"rc = ctypes.CDLL(None).prctl({_PR_SET_MDWE}, {_PR_MDWE_REFUSE_EXEC_GAIN}, 0, 0, 0); "
        "sys.exit(77) if rc else os.execv(sys.argv[1], sys.argv[1:])"
    )
    under = (sys.executable, "-c", program)
    probe = subprocess.run([*under, "/bin/true"], check=False)
    need(probe.returncode != 77, "the kernel has no such switch (Linux 6.3)")
    assert probe.returncode == 0
    need_sshd()
    ssh = keygen(tmp_path / "key")
    host.configure(
        f'[clusters.c]\nkind = "slurm"\nhost = "127.0.0.1"\nport = 1\nidentity_file = "{ssh}"\n'
        f"{QUIET}"
    )
    daemon = host.daemon(under=under)
    process = host.spawn("sleep", "600")
    assert host.ctl("add", pid_of(process)).returncode == 0
    host.until_state(f"here/{pid_of(process)}", "RUNNING")
    assert "refused" in host.ctl("sweep", "--wait", "--cluster", "c").stdout
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.said
