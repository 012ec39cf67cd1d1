"""A nel that prints what it is told to, its database, and the folders of its jobs."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jobmond.analysis.links import joined
from jobmond.backends.nel import NelBackend
from jobmond.clock import SystemClock
from jobmond.model.observation import Ask, Poll, Sighting
from tests.doubles import ShellTransport

TRANSCRIPTS = Path(__file__).parent / "transcripts" / "nel"
NOW = datetime(2026, 11, 29, 18, 0, tzinfo=UTC)
OLD = NOW - timedelta(hours=3)
VERSION = "[I 2026-11-29T15:33:05.017] logging\nnemo_evaluator_launcher: 0.2.6"


def transcript(name: str, what: str = "stdout") -> bytes:
    """What a real nel printed."""
    return (TRANSCRIPTS / f"status_{name}.{what}").read_bytes()


@dataclass
class NelScene:
    """A home folder with a database, and a program that stands in for nel.

    `says` maps an id to (stdout, stderr, exit code). `version` is what `--version` prints.
    """

    folder: Path
    says: dict[str, tuple[bytes, bytes, int]] = field(default_factory=dict)
    version: str = VERSION

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def program(self) -> Path:
        return self.folder / "nemo-evaluator-launcher"

    @property
    def calls(self) -> list[str]:
        """Every call of nel, its words."""
        log = self.folder / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def write(self) -> None:
        """Write the program; its answers are files beside it."""
        lines = ["#!/bin/sh", f'echo "$*" >> {self.folder}/calls']
        lines.append(
            f'[ "$1" = --version ] && {{ printf %s {shlex.quote(self.version)}; exit 0; }}'
        )
        for number, (native_id, (out, err, code)) in enumerate(self.says.items()):
            (self.folder / f"{number}.out").write_bytes(out)
            (self.folder / f"{number}.err").write_bytes(err)
            lines.append(
                f'[ "$2" = {native_id} ] && {{ cat {self.folder}/{number}.out;'
                f" cat {self.folder}/{number}.err >&2; exit {code}; }}"
            )
        lines.append(
            'printf \'[{"invocation":"%s","job_id":null,"status":"not_found","data":{}}]\' "$2"'
        )
        self.program.write_text("\n".join(lines) + "\n")
        self.program.chmod(0o755)

    def stub(self, body: str) -> None:
        """A program of its own making."""
        self.program.write_text(f"#!/bin/sh\n{body}\n")
        self.program.chmod(0o755)

    def record(
        self,
        job_id: str,
        data: Mapping[str, Any],
        *,
        executor: str = "slurm",
        at: datetime = OLD,
        home: Path | None = None,
    ) -> None:
        """Append a job to the database, as the launcher does."""
        folder = (home or self.home) / ".nemo-evaluator" / "exec-db"
        folder.mkdir(parents=True, exist_ok=True)
        entry = {
            "invocation_id": job_id.partition(".")[0],
            "job_id": job_id,
            "timestamp": at.timestamp(),
            "executor": executor,
            "data": dict(data),
            "config": {},
        }
        with (folder / "exec.v1.jsonl").open("a") as database:
            database.write(json.dumps(entry) + "\n")

    def launch(self, native_id: str, *rows: Mapping[str, Any], **more: Any) -> None:
        """Jobs of SLURM in the database."""
        for n, row in enumerate(rows):
            self.record(f"{native_id}.{n}", row, **more)

    def backend(self, **options: Any) -> NelBackend:
        """A backend that calls this nel."""
        shell = ShellTransport(HOME=str(self.home), TMPDIR=str(self.folder))
        options = {
            "hosts": frozenset({"cw-dfw-login", "lab"}),
            "command": (str(self.program),),
            "home": str(self.home),
            "grace_s": 600,
        } | options
        return NelBackend(shell, shell, SystemClock(), **options)

    async def poll(self, *ids: str, timeout_s: float = 60, **options: Any) -> Poll:
        """What is known about these invocations, added long ago."""
        asks = [Ask(one, birth=None, added_at=OLD) for one in ids]
        backend = options.pop("backend", None) or self.backend(**options)
        answer: Poll = await backend.poll(asks, since=OLD, now=NOW, timeout_s=timeout_s)
        return answer


def slurm_row(slurm_id: str, folder: Path | str, **more: Any) -> dict[str, Any]:
    """The `data` of a job in SLURM."""
    return {
        "slurm_job_id": slurm_id,
        "remote_rundir_path": str(folder),
        "hostname": "cw-dfw-login",
        "username": "alice",
        "eval_image": "nvcr.io/nvidia/eval-factory/simple-evals:26.03",
    } | more


def settled(own: Sighting, answers: Mapping[str, Sighting], known: Any = ()) -> Sighting:
    """Joined with what SLURM says."""
    return joined(own, known, answers, now=NOW)
