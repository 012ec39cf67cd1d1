"""A real iris controller with two workers on loopback, from the packages that it is published in.

Needs Python 3.12 or 3.13 beside this one. The packages are large and go into an environment of
their own, made once and kept in pytest's cache folder.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.live.waiting import wait_for

# The newest pair that was seen to work together: what the first asks for by itself does not.
CONTROLLER = "marin-iris[controller]==0.2.227.dev40316220070"
LOG_SERVICE = "marin-finelog==0.2.71.dev40003900277"
INSTALL_S = 240
START_S = 90
PYTHONS = ("python3.12", "python3.13")

_CHECK = "import sys, venv; sys.exit(not (3, 12) <= sys.version_info < (3, 14))"
_PROGRAM = """
import sys
from iris.cluster.local_cluster import LocalCluster, make_local_cluster_config
config = make_local_cluster_config(2)
config.controller.local.port = int(sys.argv[1])
cluster = LocalCluster(config)
print("up", cluster.start(), flush=True)
for line in sys.stdin:
    if line.strip() == "restart":
        print("up", cluster.restart(), flush=True)
cluster.close()
"""


class NotHere(Exception):
    """Why there can be no controller on this machine."""


def environment(folder: Path) -> Path:
    """The Python of an environment below `folder` that has the packages.

    Raises:
        NotHere: no Python that is new enough, or the packages cannot be installed.
    """
    python = folder / "venv/bin/python"
    made = folder / "made"
    if made.exists() and made.read_text() == CONTROLLER + LOG_SERVICE:
        return python
    base = _python()
    shutil.rmtree(folder / "venv", ignore_errors=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in (
        [base, "-m", "venv", str(folder / "venv")],
        [*pip, CONTROLLER],
        [*pip, "--no-deps", LOG_SERVICE],
    ):
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_S)
        except (subprocess.SubprocessError, OSError) as error:
            said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip()
            raise NotHere(f"iris cannot be installed: {said.rpartition(chr(10))[2]}") from error
    made.write_text(CONTROLLER + LOG_SERVICE)
    return python


def _python() -> str:
    """A Python that runs iris: on PATH, or one that pyenv keeps."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    kept = sorted(root.glob("versions/3.1[23]*/bin/python"))
    for found in (*filter(None, map(shutil.which, PYTHONS)), *map(str, kept)):
        if subprocess.run([found, "-c", _CHECK], capture_output=True, check=False).returncode == 0:
            return found
    raise NotHere("iris needs Python 3.12 or 3.13 beside this one")


class IrisLab:
    """One controller at a port of its own; `start` again after `stop` is one that knows nothing."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._python, self._folder = python, folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._ups = 0

    @property
    def _output(self) -> Path:
        return self._folder / "controller.log"

    def start(self) -> None:
        home = self._folder / "home"  # it writes credentials there
        home.mkdir(exist_ok=True)
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [str(self._python), "-c", _PROGRAM, str(self.port)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env={"HOME": str(home), "PATH": os.environ["PATH"], "NO_PROXY": "127.0.0.1"},
                start_new_session=True,
            )
        self._await_up()

    def restart(self) -> None:
        """Stop the controller and start it again with what it knew."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(b"restart\n")
        self._process.stdin.flush()
        self._await_up()

    def stop(self) -> None:
        """End it with all its workers and what it knew."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _await_up(self) -> None:
        self._ups += 1
        wait_for(self._is_up, START_S, what="the controller", every_s=0.2)

    def _is_up(self) -> bool:
        assert self._process is not None
        said = self._output.read_text(errors="replace")
        if self._process.poll() is not None:
            raise NotHere(f"the controller ended: {said[-500:]}")
        return sum(line.startswith("up ") for line in said.splitlines()) == self._ups

    # -- what its users do ---------------------------------------------------------------------

    def call(self, method: str, question: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(  # loopback
            f"{self.url}/iris.cluster.ControllerService/{method}",
            data=json.dumps(question).encode(),
            headers={"content-type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=30) as answer:
                found: dict[str, Any] = json.load(answer)
        except urllib.error.HTTPError as error:
            return {"status": error.code, **json.load(error)}
        return found

    def submit(self, job: str, code: str, **more: Any) -> dict[str, Any]:
        """Submit Python `code` as `job` (`alice/train`)."""
        small = {"cpuMillicores": 100, "memoryBytes": str(2**30), "diskBytes": str(2**30)}
        plain = {
            "name": f"/{job}",
            "entrypoint": {"runCommand": {"argv": ["python", "-u", "-c", code]}},
            "resources": small,
            "environment": {},
            "replicas": 1,
        }
        return self.call("LaunchJob", {**plain, **more})

    def kill(self, job: str) -> None:
        self.call("TerminateJob", {"jobId": f"/{job}"})

    def state(self, job: str) -> str | None:
        states = self.call("GetJobState", {"jobIds": [f"/{job}"]}).get("states", {})
        found: str | None = states.get(f"/{job}")
        return found and found.removeprefix("JOB_STATE_").lower()

    def until(self, job: str, *states: str, timeout_s: float = 90) -> None:
        wait_for(lambda: self.state(job) in states, timeout_s, what=f"{job} {states}", every_s=0.3)
