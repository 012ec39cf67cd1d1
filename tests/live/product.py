"""The whole product from the outside: its two programs, its files, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from tests.live.lab import Lab, User
from tests.live.machine import SAFE_PATH, Answer
from tests.live.processes import Daemon
from tests.live.waiting import wait_for

ROOT = Path(__file__).parents[2]
READY_S = 60.0
SWEEP_S = 120.0
ASKING_S = 0.3
CLUSTER = "lab"

# A sweep only when a test asks for one, as often as it likes, and never left alone for long.
CALM: Mapping[str, Any] = {
    "poll_interval": "1h",
    "jitter": 0,
    "on_demand_per_hour": 100_000,
    "on_demand_burst": 10_000,
    "backoff_min": "1s",
    "backoff_max": "2s",
}

_serial = count()


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the file sink: the words a test compares, and all of it in `whole`."""

    type: str
    before: str | None
    after: str | None
    whole: Mapping[str, Any]

    @property
    def key(self) -> str:
        return str(self.whole["key"])

    @property
    def ref(self) -> str | None:
        job = self.whole["job"]
        return None if job is None else str(job["ref"])

    @property
    def words(self) -> tuple[str, str | None, str | None]:
        return self.type, self.before, self.after


class Product:
    """One jobmond with folders, socket and database of its own, watching one lab.

    `settings` are top-level keys of the configuration, `cluster` keys of its `[clusters.lab]`.
    """

    def __init__(
        self,
        lab: Lab,
        user: User,
        *,
        settings: Mapping[str, Any] | None = None,
        cluster: Mapping[str, Any] | None = None,
    ) -> None:
        self.lab = lab
        self.user = user
        # Not below pytest's folder: the path of a socket may have no more than 107 bytes.
        self.folder = lab.folder / f"product-{next(_serial)}"
        self.folder.mkdir(mode=0o700)
        for name in ("home", "run"):
            (self.folder / name).mkdir(mode=0o700)
        self.config = self.folder / "config.toml"
        self.config.write_text(self._config(dict(CALM) | dict(settings or {}), cluster or {}))
        self.daemon = Daemon(
            "jobmond",
            self.argv("run"),
            output=self.journal_file,
            note=lab.places.notes / self.folder.name,
            env=self.env,
        )

    # -- what it is made of --------------------------------------------------------------------

    def _config(self, settings: Mapping[str, Any], cluster: Mapping[str, Any]) -> str:
        tops = {
            "agent_logs": str(self.agent_logs),
            "socket": str(self.socket),
        } | settings
        return "\n".join(
            [
                *(f"{key} = {json.dumps(value)}" for key, value in tops.items()),
                "[database]",
                f'url = "sqlite:///{self.folder}/jobmond.db"',
                "[sinks.journal]",
                'kind = "journal"',
                "[sinks.news]",
                'kind = "file"',
                f'path = "{self.news_file}"',
                self.lab.jobmond_cluster_toml(self.user, CLUSTER, **cluster),
            ]
        )

    @property
    def agent_logs(self) -> Path:
        return self.folder / "agent_logs"

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    @property
    def news_file(self) -> Path:
        return self.folder / "news.jsonl"

    @property
    def journal_file(self) -> Path:
        """What the daemon says on its standard output and error."""
        return self.folder / "journal"

    @property
    def env(self) -> dict[str, str]:
        """Environment of both programs; SLURM_CONF also lets a killed lab find them again."""
        return {
            "PATH": SAFE_PATH,
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "SLURM_CONF": str(self.lab.places.slurm_conf),
            "HOME": str(self.folder / "home"),
            "XDG_RUNTIME_DIR": str(self.folder / "run"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_CONFIG_HOME": str(self.folder / "xdg-config"),
            "JOBMOND_SOCKET": str(self.socket),
            "JOBMOND_CONFIG": str(self.config),
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
        }

    def argv(self, *words: str) -> list[str]:
        """Command line of the daemon's program."""
        return [sys.executable, "-m", "jobmond", *words, "--config", str(self.config)]

    def ctl_argv(self, *words: str) -> list[str]:
        """Command line of the client's program."""
        return [sys.executable, "-m", "jobmond.cli.main", *words]

    # -- life ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the daemon and wait until it answers."""
        self.daemon.start()
        wait_for(self._answers, READY_S, what="jobmond to answer", every_s=ASKING_S)

    def _answers(self) -> bool:
        if not self.daemon.running:
            raise RuntimeError(f"jobmond ended by itself:\n{self.journal()[-4000:]}")
        return self.socket.exists() and self.ctl("status", "--json").code == 0

    def stop(self) -> None:
        """SIGTERM, and wait until it has finished the sweep in hand."""
        self.daemon.stop(timeout_s=60.0)

    def kill9(self) -> None:
        """SIGKILL the daemon, as a power cut would."""
        self.daemon.kill()

    def close(self) -> None:
        """End the daemon and print the end of its journal, which pytest shows after a failure."""
        self.stop()
        print(f"--- journal of {self.folder}\n{self.journal()[-8000:]}")

    def journal(self) -> str:
        return self.journal_file.read_text(errors="replace") if self.journal_file.exists() else ""

    # -- jobmonctl -----------------------------------------------------------------------------

    def run(self, argv: Sequence[str], *, text: str = "", timeout_s: float = SWEEP_S) -> Answer:
        """Run one of the programs to its end."""
        done = subprocess.run(
            list(argv),
            input=text.encode(),
            capture_output=True,
            env=self.env,
            cwd=self.folder,
            timeout=timeout_s,
            check=False,
        )
        return Answer(
            done.returncode,
            done.stdout.decode(errors="surrogateescape"),
            done.stderr.decode(errors="surrogateescape"),
        )

    def ctl(self, *words: str, text: str = "", timeout_s: float = SWEEP_S) -> Answer:
        """`jobmonctl …`; look at the exit code yourself."""
        return self.run(self.ctl_argv(*words), text=text, timeout_s=timeout_s)

    def started(self, *words: str, heard: bool = False) -> subprocess.Popen[bytes]:
        """`jobmonctl …` that goes on beside the test.

        Its output is thrown away; what it says is wrong is there to `communicate` where `heard`.
        """
        return subprocess.Popen(
            self.ctl_argv(*words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if heard else subprocess.DEVNULL,
            env=self.env,
            cwd=self.folder,
        )

    def add(self, *jobs: str) -> list[str]:
        """Track these native ids; gives their refs. The sweep it asks for goes on by itself."""
        text = "".join(f"{job}\n" for job in jobs)
        self.ctl("add", "-", "--cluster", CLUSTER, text=text).checked()
        return [ref(job) for job in jobs]

    def sweep(self) -> Answer:
        """One sweep of the cluster, asked by name, to its end; exit code 1 if it did not answer."""
        return self.ctl("sweep", "--wait", "--cluster", CLUSTER)

    def sweep_well(self, times: int = 1) -> None:
        """Sweeps of a cluster that answers."""
        for _ in range(times):
            self.sweep().checked()

    def swept_until(
        self, predicate: Callable[[], Any], timeout_s: float = 60.0, *, what: str = ""
    ) -> None:
        """Sweep again and again until `predicate` holds."""

        def holds() -> bool:
            self.sweep()
            return bool(predicate())

        wait_for(holds, timeout_s, what=what, every_s=ASKING_S)

    def status(self) -> dict[str, Any]:
        """The document of `status --json`."""
        answer = self.ctl("status", "--json")
        if answer.code != 0:
            raise AssertionError(f"status: {answer.code}: {answer.err or answer.out}")
        document: dict[str, Any] = json.loads(answer.out)
        return document

    def jobs(self) -> dict[str, dict[str, Any]]:
        """The jobs of `status --json` by native id; an earlier life has `@` and its birth there."""
        return {job["ref"].removeprefix(f"{CLUSTER}/"): job for job in self.status()["jobs"]}

    def states(self) -> dict[str, str]:
        """State of each job of `status --json` by native id."""
        return {native: job["state"] for native, job in self.jobs().items()}

    def cluster(self) -> dict[str, Any]:
        """The cluster's row of `status --json`."""
        rows: dict[str, dict[str, Any]] = {row["name"]: row for row in self.status()["clusters"]}
        return rows[CLUSTER]

    def last_ok_at(self) -> str | None:
        """When the cluster last answered a sweep; also while the daemon is down."""
        rows = self.report()["clusters"]
        return next((row["last_ok_at"] for row in rows if row["name"] == CLUSTER), None)

    def report(self) -> dict[str, Any]:
        """The document of the last sweep, which stands on disk."""
        document: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        return document

    # -- files ---------------------------------------------------------------------------------

    def events(self) -> list[Event]:
        """Every line of the file sink, in order. A line that is not whole JSON is an error."""
        if not self.news_file.exists():
            return []
        lines = self.news_file.read_bytes().split(b"\n")
        assert lines[-1] == b"", "the file sink ends in the middle of a line"
        found = [json.loads(line) for line in lines[:-1]]
        return [Event(one["type"], one["before"], one["after"], one) for one in found]

    def events_of(self, job: str) -> list[Event]:
        """The events of one job, by native id."""
        return [event for event in self.events() if event.ref == ref(job)]

    def told(self, job: str) -> list[tuple[str, str | None, str | None]]:
        """(type, before, after) of the events of one job."""
        return [event.words for event in self.events_of(job)]

    def cluster_told(self) -> list[tuple[str, str | None, str | None]]:
        """(type, before, after) of the events about the cluster."""
        return [event.words for event in self.events() if event.type == "cluster"]

    def entries(self) -> list[Path]:
        """Every failure entry, sorted; the index of each day is none, nor a draft left behind."""
        return sorted(
            path
            for path in self.agent_logs.rglob("*")
            if path.is_file() and path.name != "INDEX.md" and not path.name.startswith(".")
        )


MakeProduct = Callable[..., Product]


def ref(job: str) -> str:
    """What jobmond calls the job with this native id."""
    return f"{CLUSTER}/{job}"


def doubled(events: Iterable[Event]) -> list[str]:
    """Keys that more than one of the events has."""
    times = Counter(event.key for event in events)
    return [key for key, n in times.items() if n > 1]
