"""A real systemd on a host that was not booted with it: as a user's manager, and as PID 1.

It runs in PID and mount namespaces of its own, with copies or empty folders in place of what it
may change, and in cgroups of its own.
"""

import contextlib
import os
import shutil
import signal
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.integration.host import PATIENCE_S, ROOT, is_root, until
from tests.needs import need

PROGRAM = "/lib/systemd/systemd"
_FIRST = """
set -e
for procs in $CGROUPS; do echo $$ >"$procs" 2>/dev/null || :; done  # a cpuset takes none as it is
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/system
"""
# PID 1 of the namespace is this shell: when it goes, so does everything in there.
_USER = f"{_FIRST}\n{PROGRAM} --user --unit=basic.target\n"
# Nothing of this host but what the unit and the program need; neither its settings in /proc/sys.
_SYSTEM = f"""{_FIRST}
mount --make-rshared /
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mkdir /run/etc
cp -a /etc/. /run/etc
rm -rf /run/etc/systemd/system /run/etc/jobmond
mkdir -p /run/etc/systemd/system
cp -a "$PLACE/etc/jobmond" /run/etc/jobmond
mount --bind /run/etc /etc
mount --bind "$PLACE/units" /lib/systemd/system
mount -t tmpfs tmpfs /var/lib
mount -t tmpfs -o mode=755 tmpfs /opt
mkdir -p /opt/jobmond/bin /opt/jobmond/python /opt/jobmond/site /opt/jobmond/source
mount --bind "$BASE" /opt/jobmond/python
mount --bind "$SITE" /opt/jobmond/site
mount --bind "$SOURCE" /opt/jobmond/source
cp "$PLACE/jobmond" /opt/jobmond/bin/jobmond
exec {PROGRAM} --system --unit=basic.target --log-target=console
"""
# `unit.rendered` refuses a program that a service of the host cannot see: here it is seen.
INSTALLED = "/opt/jobmond/bin/jobmond"
_INSTALLED = """\
#!/bin/sh
export PYTHONHOME=/opt/jobmond/python PYTHONPATH=/opt/jobmond/source:/opt/jobmond/site
export LD_LIBRARY_PATH=/opt/jobmond/python/lib PYTHONDONTWRITEBYTECODE=1
exec /opt/jobmond/python/bin/python3 -m jobmond "$@"
"""


@dataclass
class ServiceManager:
    """`place` is the user's home, or holds `units` and `etc/jobmond` of the host."""

    place: Path
    options: tuple[str, ...]
    process: "subprocess.Popen[bytes]"

    @property
    def env(self) -> dict[str, str]:
        return _env(self.place)

    def inside(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A program in there: systemd answers nobody else."""
        [first] = _children(self.process.pid)
        return subprocess.run(
            ["nsenter", f"--target={first}", "--mount", "--pid", *words],
            env=self.env,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def ctl(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return self.inside("systemctl", *self.options, "--no-pager", *words)

    def shown(self, unit: str, *names: str) -> dict[str, str]:
        """Properties of a unit."""
        done = self.ctl("show", unit, *(f"--property={name}" for name in names))
        assert done.returncode == 0, done.stderr
        pairs = (line.partition("=") for line in done.stdout.splitlines())
        return {name: value for name, _, value in pairs}


def folder() -> Path:
    """A new one, not deep in the tree: the path of a socket must be short."""
    place = Path(tempfile.mkdtemp(prefix="jobmond-sd-"))
    (place / "run").mkdir(mode=0o700)
    return place


@contextlib.contextmanager
def user_manager(place: Path) -> Iterator[ServiceManager]:
    """The manager of a user whose home is `place`. Skips the test where it cannot be had."""
    private = place / "run/systemd/private"
    with _manager(place, _USER, ("--user",), {}) as made:
        until(lambda: private.exists() or made.process.poll() is not None, "systemd starts")
        _need_running(made)
        yield made


@contextlib.contextmanager
def system_manager(place: Path) -> Iterator[ServiceManager]:
    """PID 1 of a host with the units in `place/units` and the program at `INSTALLED`."""
    (place / "jobmond").write_text(_INSTALLED)
    (place / "jobmond").chmod(0o755)
    for target in ("basic", "sysinit", "shutdown", "network-online"):
        (place / f"units/{target}.target").write_text("[Unit]\nDefaultDependencies=no\n")
    env = {"BASE": sys.base_prefix, "SITE": site.getsitepackages()[0], "SOURCE": str(ROOT)}
    for path in env.values():
        need(Path(path).stat().st_mode & 0o005 == 0o005, f"{path} is closed to other users")
    with _manager(place, _SYSTEM, (), {**env, "container": "test"}) as made:

        def answers() -> bool:
            if made.process.poll() is not None:
                return True
            begun = bool(_children(made.process.pid))
            return begun and made.ctl("is-active", "basic.target").returncode == 0

        until(answers, "systemd starts")
        _need_running(made)
        yield made


@contextlib.contextmanager
def _manager(
    place: Path, script: str, options: tuple[str, ...], env: dict[str, str]
) -> Iterator[ServiceManager]:
    need(is_root(), "only root can give systemd a place of its own")
    need(Path(PROGRAM).exists(), f"{PROGRAM} is missing (Debian: systemd)")
    for program in ("systemctl", "unshare", "nsenter"):
        need(program, f"{program} is missing (Debian: systemd, util-linux)")
    groups = _own_cgroups(f"jobmond-test-{os.getpid()}")
    words = ["unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--mount-proc"]
    with (place / "said").open("w") as out:
        process = subprocess.Popen(
            [*words, "sh", "-c", script],
            env={
                **_env(place),
                **env,
                "PLACE": str(place),
                "CGROUPS": " ".join(str(group / "cgroup.procs") for group in groups),
            },
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        yield ServiceManager(place, options, process)
    finally:
        for pid in _children(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait(PATIENCE_S)
        for group in groups:
            until(lambda group=group: _removed(group), "its cgroups are empty")
        shutil.rmtree(place)


def _env(place: Path) -> dict[str, str]:
    return {
        "HOME": str(place),
        "XDG_RUNTIME_DIR": str(place / "run"),
        "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
        "LANG": "C.UTF-8",
    }


def _need_running(made: ServiceManager) -> None:
    said = (made.place / "said").read_text()
    need(made.process.poll() is None, f"systemd does not start here: {said.strip()[-300:]}")


def _own_cgroups(name: str) -> list[Path]:
    """A new group beneath ours in every hierarchy that is mounted."""
    ours: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        ours[controllers] = path
    made = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, at, kind, options, *_ = line.split()
        if kind not in ("cgroup", "cgroup2"):
            continue
        path = ours.get("") if kind == "cgroup2" else _path_of(ours, options)
        if path is None:
            continue
        group = Path(at) / path.lstrip("/") / name
        try:
            group.mkdir()
        except OSError as error:
            need(False, f"no cgroup can be made here: {error.strerror}")
        made.append(group)
    return made


def _path_of(ours: dict[str, str], options: str) -> str | None:
    given = set(options.split(","))
    return next((p for c, p in ours.items() if c and set(c.split(",")) <= given), None)


def _removed(group: Path) -> bool:
    """Removes a cgroup with those in it, once nothing runs there."""
    try:
        for inner in sorted((p for p in group.rglob("*") if p.is_dir()), reverse=True):
            inner.rmdir()
        group.rmdir()
    except OSError:
        return False
    return True


def _children(pid: int) -> list[int]:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(one) for one in found.split()]
