"""Jobs that write the log of a run that was, piece by piece, each when a test says so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.live.lab import Lab, User
from tests.live.waiting import wait_for

# The same script for every life of a run; a life plays what its own folder holds.
_PLAYER = """\
#!/bin/sh
cd "$HOME/tapes/$SLURM_JOB_ID" || exit 70
n=0
until [ -e end ]; do
  if [ -e "$n" ]; then
    cat "$n"
    n=$((n + 1))
  else
    sleep 0.1
  fi
done
exit "$(cat end)"
"""


@dataclass
class Tape:
    """One job that plays; `log` is the file it writes."""

    lab: Lab
    user: User
    job: str
    pieces: int = 0
    played: int = 0

    @property
    def folder(self) -> Path:
        return self.user.home / "tapes" / self.job

    @property
    def log(self) -> Path:
        return self.user.home / f"slurm-{self.job}.out"

    def play(self, piece: bytes) -> None:
        """Have the job write `piece`, and wait until its log holds it."""
        draft = self.folder / "draft"
        draft.write_bytes(piece)
        draft.replace(self.folder / str(self.pieces))
        self.pieces += 1
        self.played += len(piece)
        wait_for(self._holds, 60, what=f"{self.log} to have {self.played} bytes")

    def _holds(self) -> bool:
        return self.log.exists() and self.log.stat().st_size >= self.played

    def end(self, code: int = 0) -> None:
        """Have the job end by itself."""
        draft = self.folder / "draft"
        draft.write_text(f"{code}\n")
        draft.replace(self.folder / "end")


def tape(lab: Lab, user: User, name: str, *options: str, after: Tape | None = None) -> Tape:
    """Submit a job called `name` that plays; with `after` it is that one's successor."""
    player = user.home / f"{name}.sh"
    player.write_text(_PLAYER)
    player.chmod(0o755)
    waits = [f"--dependency=afterany:{after.job}"] if after else []
    argv = ["sbatch", "--parsable", f"--job-name={name}", "--time=60", *waits, *options]
    job = lab.run([*argv, str(player)], user=user).checked().out.strip()
    made = Tape(lab, user, job)
    made.folder.mkdir(parents=True, exist_ok=True)
    return made
