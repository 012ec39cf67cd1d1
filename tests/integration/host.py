"""A stranger's account on this host: own home, own state, own daemon, real programs."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0  # a machine that is busy with other things
_SLURM = ("squeue", "sacct", "scontrol", "sinfo", "sbatch")

T = TypeVar("T")


def until(look: Callable[[], T | None], what: str) -> T:
    """What `look` finds once it finds something."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"never happened: {what}")


def programs_without_slurm(folder: Path) -> Path:
    """A PATH of this machine's programs, all but SLURM's."""
    folder.mkdir()
    for source in (Path("/usr/bin"), Path("/bin")):
        for program in source.iterdir():
            link = folder / program.name
            if program.name not in _SLURM and not link.is_symlink():
                link.symlink_to(program)
    return folder


def fake_squeue(folder: Path, script: str) -> Path:
    """`squeue` as a script of the test's."""
    folder.mkdir(exist_ok=True)
    program = folder / "squeue"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return folder


NOT_SET_UP = "echo 'squeue: fatal: Could not establish a configuration source' >&2; exit 1"


@dataclass
class Host:
    """Everything under `home`; `path` is the PATH of every program."""

    home: Path
    path: str = "/usr/bin:/bin"
    extra: Mapping[str, str] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)
    _journals: int = 0

    def __post_init__(self) -> None:
        self.home.mkdir(exist_ok=True)
        (self.home / "run").mkdir(mode=0o700, exist_ok=True)

    @property
    def state(self) -> Path:
        return self.home / ".local/state/jobmond"

    @property
    def socket(self) -> Path:
        return self.home / "run/jobmond/socket"

    @property
    def config(self) -> Path:
        return self.home / ".config/jobmond/config.toml"

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.home / "run"),
            "PATH": self.path,
            "PYTHONPATH": str(ROOT),
            "LANG": "C.UTF-8",
            **self.extra,
        }

    def configure(self, text: str) -> None:
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(text)

    def spawn(self, *words: str, **over: Any) -> "subprocess.Popen[str]":
        """A program that runs on; ended with the test."""
        process = subprocess.Popen(
            words,
            **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "text": True}
            | {"env": self.env, "cwd": self.home}
            | over,
        )
        self._stack.callback(_ended, process)
        return process

    def jobmond(
        self, *words: str, env: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        return self._run("jobmond", words, env)

    def ctl(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return self._run("jobmond.cli.main", words)

    def ctl_spawn(self, *words: str, **over: Any) -> "subprocess.Popen[str]":
        return self.spawn(sys.executable, "-m", "jobmond.cli.main", *words, **over)

    def _run(
        self, module: str, words: Sequence[str], env: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        return self.run(sys.executable, "-m", module, *words, env=env)

    def run(
        self, *words: str, env: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Any program, with this account's environment."""
        return subprocess.run(
            words,
            env=env or self.env,
            cwd=self.home,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def daemon(self, *words: str, under: Sequence[str] = ()) -> "RunningDaemon":
        """Start a daemon, maybe `under` another program, and wait until it answers."""
        self._journals += 1
        journal = self.home / f"journal-{self._journals}"
        with journal.open("w") as out:
            process = self.spawn(
                *under, sys.executable, "-m", "jobmond", "run", *words, stdout=out, stderr=out
            )
        running = RunningDaemon(process, journal)
        until(lambda: running.says("event=ready") or process.poll() is not None, "a daemon starts")
        assert process.poll() is None, running.said
        return running

    def status(self) -> dict[str, Any]:
        done = self.ctl("status", "--json")
        assert done.returncode == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def job(self, ref: str) -> dict[str, Any]:
        return next(job for job in self.status()["jobs"] if job["ref"] == ref)

    def until_state(self, ref: str, state: str) -> dict[str, Any]:
        """The job once it is in `state`."""

        def look() -> dict[str, Any] | None:
            found = [j for j in self.status()["jobs"] if j["ref"] == ref and j["state"] == state]
            return found[0] if found else None

        return until(look, f"{ref} is {state}")

    def news(self, ref: str | None = None) -> list[dict[str, Any]]:
        """Lines of the file sink, in order."""
        file = self.state / "news.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        told = [json.loads(line) for line in lines]
        return [n for n in told if ref is None or (n["job"] or {}).get("ref") == ref]

    def report(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.state / "report.json").read_text())
        return document

    def close(self) -> None:
        self._stack.close()


@dataclass
class RunningDaemon:
    process: "subprocess.Popen[str]"
    journal: Path

    @property
    def said(self) -> str:
        return self.journal.read_text()

    def says(self, text: str) -> int:
        """How many lines of the journal hold `text`."""
        return sum(text in line for line in self.said.splitlines())

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE_S)


def _ended(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def pid_of(process: "subprocess.Popen[str]") -> str:
    return f"pid-{process.pid}"


def is_root() -> bool:
    return os.geteuid() == 0
