"""Three training runs on a real cluster, told sweep by sweep; the tests look at what was seen.

They write real logs piece by piece: a SkyRL run that collapses and then times out, a Hugging Face
run that times out, each with a copy that goes on from a checkpoint, and one whose gradients
explode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.live.lab import Counts, Lab, User
from tests.live.product import Event, Product, ref
from tests.live.tape import Tape
from tests.training import log

RL = log("skyrl_legacy_collapse")
SFT = log("hf5_sft_sigterm").removesuffix(b"Terminated\n")
SFT_LATER = log("hf5_sft_resume")
WILD = log("hf5_sft_gradexplode")
FIRST = ("moon", "tide", "wild")  # names that say nothing of what they do
TAIL_BYTES = 4096  # of a running job's log, which every sweep looks at

# Places at which the recorder inside each run says what was so.
RL_CUTS = (13515, 90660, 226650, 453301, 679951)
SFT_CUTS = (1197, 5116, 12406, len(SFT))
LATER_CUTS = (230, 9581, len(SFT_LATER))
WILD_CUTS = (1344, 4340, 10851, 26154)


def bar(step: int) -> int:
    """Where the line with the bar of the RL run's `step` begins."""
    found = re.search(rb"[^\n]*Batches Processed:[^\n]* %d/80 \[" % step, RL)
    assert found is not None
    return found.start()


# The copy begins like the first life, says where it goes on, and stays well for four steps.
RL_RESUMING = RL[: bar(0)] + b"skyrl.train.trainer:train:1 - Resuming from global_step: 40\n"
RL_RESUMED = RL[bar(40) : bar(44)]


@dataclass
class Look:
    """What stood after one sweep, and what that sweep cost."""

    jobs: Mapping[str, Mapping[str, Any]]
    text: str
    used: Counts
    moved_bytes: int
    told: list[Event]


@dataclass
class Story:
    lab: Lab
    user: User
    product: Product
    tapes: dict[str, Tape] = field(default_factory=dict)
    looks: dict[str, Look] = field(default_factory=dict)

    def look(self, name: str) -> None:
        """One sweep, and everything that came of it."""
        counts, moved = self.lab.counts(self.user), self._moved()
        told = len(self.product.events())
        self.product.sweep_well()
        self.looks[name] = Look(
            jobs=self.product.jobs(),
            text=self.product.ctl("status").checked().out,
            used=self.lab.counts(self.user) - counts,
            moved_bytes=self._moved() - moved,
            told=self.product.events()[told:],
        )
        print(f"--- {name}: {self.looks[name].moved_bytes} bytes\n{self.looks[name].text}")

    def _moved(self) -> int:
        return int(self.product.cluster()["log_bytes_per_h"])

    def row(self, look: str, name: str) -> Mapping[str, Any]:
        return self.looks[look].jobs[self.tapes[name].job]

    def seen(self, look: str, name: str) -> tuple[object, ...]:
        row = self.row(look, name)
        return tuple(row.get(word) for word in ("bucket", "phase", "life", "step", "max_step"))

    def told(self, look: str, name: str) -> list[str]:
        mine = (one for one in self.looks[look].told if one.ref == ref(self.tapes[name].job))
        return [words(one) for one in mine]


def words(event: Event) -> str:
    signal = event.whole.get("signal")
    owed = event.whole.get("followup")
    if owed is not None:
        return f"followup {owed['kind']} {owed['state']}"
    if signal is None:
        return f"{event.type} {event.before} {event.after}"
    return f"{event.type} {signal['rule']} {signal['step']}"


def pieces(raw: bytes, cuts: tuple[int, ...]) -> Iterator[bytes]:
    begins = (0, *cuts)
    return (raw[begin:end] for begin, end in zip(begins, cuts, strict=False))


def first_lives(story: Story) -> None:
    """All three up to the collapse; nothing new in two of the sweeps."""
    moon, tide, wild = (story.tapes[name] for name in FIRST)
    rl, sft, sick = pieces(RL, RL_CUTS), pieces(SFT, SFT_CUTS), pieces(WILD, WILD_CUTS)
    story.product.sweep_well()
    story.look("start")
    for name in ("bring-up", "training", "saved"):
        moon.play(next(rl))
        tide.play(next(sft))
        wild.play(next(sick))
        story.look(name)
    story.look("quiet")
    moon.play(next(rl))
    tide.play(next(sft))
    story.look("stable")
    moon.play(next(rl))
    wild.play(next(sick))
    story.look("collapse")
    story.look("collapsed")


def second_lives(story: Story) -> None:
    """Walltime for two of them; the copy of one goes on at once, that of the other waits."""
    lab, tapes = story.lab, story.tapes
    waiting = tapes["tide-copy"].job
    lab.scontrol("update", f"JobId={waiting}", "StartTime=now+1hour")
    for name in ("moon", "tide"):
        lab.scontrol("update", f"JobId={tapes[name].job}", "TimeLimit=1")
    for name in ("moon", "tide"):
        lab.wait_for_accounting(tapes[name].job, "TIMEOUT", timeout_s=180)
    lab.wait_for_state(tapes["moon-copy"].job, "RUNNING")
    story.look("restart")
    lab.scontrol("update", f"JobId={waiting}", "StartTime=now")
    lab.wait_for_state(waiting, "RUNNING")
    later = pieces(SFT_LATER, LATER_CUTS)
    tapes["moon-copy"].play(RL_RESUMING)
    tapes["tide-copy"].play(next(later))
    story.look("resuming")
    tapes["moon-copy"].play(RL_RESUMED)
    tapes["tide-copy"].play(next(later))
    story.look("resumed")
    tapes["tide-copy"].play(next(later))
    for name, code in (("moon-copy", 0), ("tide-copy", 0), ("wild", 3)):
        tapes[name].end(code)
        lab.wait_for_accounting(tapes[name].job, "FAILED" if code else "COMPLETED")
    story.look("ended")
    story.look("over")
