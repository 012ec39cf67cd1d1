"""Jobs that write trials, on a real cluster: each rule by its edge, and what is owed then.

What has to grow old is born old. In one test a second stands for an hour; in the other the rules
have their own patience, and the far side's clock shows what the test says.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.live.lab import Lab, Submission, User
from tests.live.product import MakeProduct, Product
from tests.live.runs import words
from tests.live.tape import Tape, tape
from tests.trees import put, result

QUICK = {"rules.eval-stall.quiet": "1s", "rules.zombie.grace": "1s", "recent": "24h"}
YEAR_S = 365 * 86400


@pytest.fixture
def scene(lab: Lab, user: User) -> Iterator[tuple[Lab, User]]:
    yield lab, user
    lab.scancel("-u", user.name)


def tree_of(user: User, name: str, total: int) -> Path:
    tree = user.home / "jobs" / name
    put(tree, {"n_total_trials": total, "stats": {"n_trials": 0}})
    (tree / "job.log").touch()
    return tree


def ends(tree: Path, *names: str) -> None:
    """Trials that ended long before the job began."""
    for name in names:
        path = put(tree / name, result(name))
        long_ago = path.stat().st_mtime - YEAR_S
        os.utime(path, (long_ago, long_ago))


def owed(product: Product, *options: str) -> list[dict[str, Any]]:
    answer = json.loads(product.ctl("followups", "--json", *options).checked().out)
    return list(answer["followups"])


def standing(product: Product, job: Tape) -> list[str]:
    return [signal["rule"] for signal in product.jobs()[job.job]["signals"]]


def test_trials_over_time_and_what_is_owed_in_the_end(
    scene: tuple[Lab, User], make_product: MakeProduct
) -> None:
    lab, user = scene
    slow, good = tape(lab, user, "eval-slow"), tape(lab, user, "eval-good")
    stuck, whole = tree_of(user, "eval-slow", 3), tree_of(user, "eval-good", 2)
    ends(stuck, "a__aaaaaaa")
    for one in (slow, good):
        lab.wait_for_state(one.job, "RUNNING")
    product = make_product(lab, user, settings=QUICK)
    product.add(slow.job, good.job)
    product.swept_until(lambda: "eval-stall" in standing(product, slow), what="a stall")
    row = product.jobs()[slow.job]
    assert (row["metrics"]["trials_done"], row["metrics"]["trials_total"]) == (1, 3)

    ends(stuck, "b__aaaaaaa", "c__aaaaaaa")
    ends(whole, "a__aaaaaaa", "b__aaaaaaa")
    good.end()
    lab.wait_for_accounting(good.job, "COMPLETED")
    product.sweep_well()
    assert standing(product, slow) == ["zombie"]
    assert [(one["kind"], one["state"]) for one in owed(product)] == [
        ("zombie", "open"),
        ("cleanup", "open"),
    ]

    lab.scancel(slow.job)
    lab.wait_for_accounting(slow.job, "CANCELLED")
    product.sweep_well()
    product.stop()
    product.start()
    (cleanup,) = owed(product)
    assert (cleanup["evidence"]["path"], cleanup["state"]) == (str(whole), "open")
    assert [words(e) for e in product.events_of(slow.job)][-3:] == [
        "followup zombie open",
        "transition RUNNING CANCELLED",
        "followup zombie closed",
    ]

    # Nothing is tracked any more, and still it is seen that the tree goes.
    product.sweep_well()
    assert len(owed(product)) == 1
    shutil.rmtree(whole)
    product.swept_until(lambda: not owed(product), what="the cleanup to close")
    (done,) = [one for one in owed(product, "--all") if one["kind"] == "cleanup"]
    assert done["closed_by"] == "jobmond"
    assert done["note"].startswith("the tree is gone; free inodes ")


# The names say the bucket; each job comes to one edge.
WRITERS = (
    "eval-still", "eval-tail", "eval-over", "eval-quick", "eval-barred", "eval-shut",
    "datagen__alone",
)  # fmt: skip
# What a run does to its tree: piece by piece, each with the times that it was given.
_WRITER = """\
mkdir -p "jobs/$SLURM_JOB_NAME" && touch "jobs/$SLURM_JOB_NAME/job.log" || exit 70
n=0
while :; do
  if [ -e "handed/$SLURM_JOB_NAME/$n" ]; then
    cp -Rp "handed/$SLURM_JOB_NAME/$n/"* "jobs/$SLURM_JOB_NAME/" || exit 71
    n=$((n + 1))
    echo "$n" >"wrote-$SLURM_JOB_NAME"
  else
    sleep 0.1
  fi
done
"""
# squeue as it is, but for when jobs began (the ninth field): three hours earlier.
_LONG_AT_WORK = """\
%s "$@" | awk -F';' -v OFS=';' '
  substr($9, 1, 10) ~ /^[0-9]+$/ { $9 = (substr($9, 1, 10) - 10800) substr($9, 11) } 1'
"""
_CLOCK = """\
#!/bin/sh
[ "$*" != +%s ] || exec cat "$HOME/clock"
exec /bin/date "$@"
"""
TIMED_OUT: dict[str, Any] = {
    "exception_info": {"exception_type": "AgentTimeoutError"},
    "verifier_result": None,
}
REFUSED: dict[str, Any] = {"exception_info": {"exception_type": "DaytonaAuthenticationError"}}
AT_ONCE: dict[str, Any] = {"agent_result": None, "finished_at": "2026-07-14T09:00:22"}
ONE_TURN: dict[str, Any] = {"agent_result": {"n_output_tokens": 9, "metadata": {"n_episodes": 1}}}


@dataclass
class Writers:
    """Jobs of one user that write trees, and the clock of the far side, which stands still."""

    lab: Lab
    user: User
    now_s: int
    ids: dict[str, str] = field(default_factory=dict)
    pieces: dict[str, int] = field(default_factory=dict)
    trials: int = 0

    def begin(self) -> None:
        lab, user = self.lab, self.user
        real = shutil.which("squeue")
        lab.fault(user, "squeue", _LONG_AT_WORK % real)
        clock = user.home / "bin" / "date"
        clock.parent.mkdir()
        clock.write_text(_CLOCK)
        clock.chmod(0o755)
        lab.bashrc(user, 'PATH="$HOME/bin:$PATH"\n')
        self.later(0)
        options = ("--time=600", "--mem=50")
        asked = [Submission(_WRITER, (f"--job-name={name}", *options)) for name in WRITERS]
        self.ids = dict(zip(WRITERS, lab.sbatch_many(user, asked), strict=True))

    def later(self, minutes: int) -> None:
        """Set the far side's clock so much further."""
        self.now_s += 60 * minutes
        (self.user.home / "clock").write_text(f"{self.now_s}\n")

    def plans(self, name: str, total: int) -> None:
        put(self._draft(name), {"n_total_trials": total, "stats": {"n_trials": 0}})

    def ends(self, name: str, n: int, *, ago: int = 0, **changes: Any) -> None:
        """So many trials of the job ended so many minutes ago."""
        for _ in range(n):
            trial = f"t{self.trials:03d}__aaaaaaa"
            self.trials += 1
            path = put(self._draft(name) / trial, result(trial, **changes))
            os.utime(path, (self.now_s - 60 * ago,) * 2)

    def write(self) -> None:
        """Have the jobs write all of that, and wait until they did."""
        drafts = list((self.user.home / "handed").glob("*/draft"))
        for draft in drafts:
            name = draft.parent.name
            draft.rename(draft.parent / str(self.pieces.get(name, 0)))
            self.pieces[name] = self.pieces.get(name, 0) + 1
        for draft in drafts:
            self.lab.wait_for(partial(self._wrote, draft.parent.name), 60, what="a piece")

    def may(self, mode: str, path: str) -> None:
        """The user changes who may look into a folder of theirs."""
        self.lab.run(["chmod", mode, str(self.user.home / path)], user=self.user).checked()

    def _draft(self, name: str) -> Path:
        return self.user.home / "handed" / name / "draft"

    def _wrote(self, name: str) -> bool:
        path = self.user.home / f"wrote-{name}"
        return path.exists() and path.read_text().strip() == str(self.pieces[name])


@pytest.fixture
def writers(scene: tuple[Lab, User]) -> Writers:
    return Writers(*scene, now_s=int(time.time()))


def rows_of(product: Product, writers: Writers) -> dict[str, dict[str, Any]]:
    """The jobs of `status --json`, by name."""
    jobs = product.jobs()
    return {name: jobs[job] for name, job in writers.ids.items()}


def signals(rows: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """The rules that stand, by the job's name; jobs without any are left out."""
    found = {name: sorted(one["rule"] for one in row["signals"]) for name, row in rows.items()}
    return {name: rules for name, rules in found.items() if rules}


def ended(rows: dict[str, dict[str, Any]]) -> tuple[int, ...]:
    return tuple(rows[name]["metrics"]["trials_done"] for name in WRITERS)


def told(product: Product, writers: Writers) -> list[str]:
    """What the file sink has of signals, sorted."""
    return sorted(
        f"{event.type} {name} {event.whole['signal']['rule']}"
        for name, job in writers.ids.items()
        for event in product.events_of(job)
        if event.type in ("signal", "cleared")
    )


def just_before(writers: Writers) -> None:
    """Each job is as near to its edge as it may be without anything to tell."""
    for name in WRITERS:
        writers.plans(name, 3 if name == "eval-over" else 100)
    writers.ends("eval-still", 3, ago=59)
    writers.ends("eval-tail", 10, ago=150)
    writers.ends("eval-tail", 10, ago=50, **TIMED_OUT)
    writers.ends("eval-over", 3, ago=9)
    writers.ends("eval-quick", 4, **AT_ONCE)
    writers.ends("eval-barred", 2, **REFUSED)
    writers.ends("eval-shut", 1, ago=59)
    writers.ends("datagen__alone", 9, **ONE_TURN)
    writers.write()


def just_after(writers: Writers) -> None:
    """Two minutes later all are over it; one of them has a tree that nobody may look into."""
    writers.ends("eval-shut", 5, ago=59, **AT_ONCE, **REFUSED)
    writers.later(2)
    writers.ends("eval-tail", 20, **TIMED_OUT)
    writers.ends("eval-quick", 1, **AT_ONCE)
    writers.ends("eval-barred", 1, **REFUSED)
    writers.ends("datagen__alone", 1, **ONE_TURN)
    writers.write()
    writers.may("000", "jobs/eval-shut")


OVER = {
    "eval-still": ["eval-stall"],
    "eval-over": ["zombie"],
    "eval-quick": ["instant-fail"],
    "eval-barred": ["auth-failures"],
    "datagen__alone": ["dead-engine"],
}
HOURS_LATER = {
    "eval-tail": ["eval-stall"],
    "eval-over": ["zombie"],
    "eval-quick": ["eval-stall", "instant-fail"],
    "eval-barred": ["auth-failures", "eval-stall"],
    "eval-shut": ["auth-failures", "eval-stall", "instant-fail"],
    "datagen__alone": ["dead-engine"],
}


def test_every_rule_over_trials_by_its_edge_and_none_by_a_tree_that_cannot_be_read(
    writers: Writers, make_product: MakeProduct
) -> None:
    writers.begin()
    product = make_product(writers.lab, writers.user)
    just_before(writers)
    product.add(*writers.ids.values())
    product.sweep_well()
    rows = rows_of(product, writers)
    assert ended(rows) == (3, 20, 3, 4, 2, 1, 9)
    assert signals(rows) == {}

    just_after(writers)
    product.sweep_well()
    rows = rows_of(product, writers)
    assert ended(rows) == (3, 40, 3, 5, 3, 1, 10)
    assert signals(rows) == OVER
    assert rows["datagen__alone"]["metrics"]["avg_turns"] == 1.0
    raised = sorted(f"signal {name} {rule}" for name, (rule,) in OVER.items())
    assert told(product, writers) == raised

    # It goes on, hours pass, and nobody sees it.
    writers.later(300)
    writers.ends("eval-still", 1)
    writers.write()
    writers.may("000", "jobs")
    product.sweep_well()
    rows = rows_of(product, writers)
    assert signals(rows) == OVER
    assert all(row["trend"].startswith("trials not read") for row in rows.values())
    assert told(product, writers) == raised

    # What was hidden was worth telling.
    writers.may("755", "jobs")
    writers.may("755", "jobs/eval-shut")
    product.sweep_well()
    assert signals(rows_of(product, writers)) == HOURS_LATER
    assert told(product, writers) == sorted(
        ["cleared eval-still eval-stall", "signal eval-still eval-stall"]
        + [f"signal {name} {rule}" for name, rules in HOURS_LATER.items() for rule in rules]
    )
