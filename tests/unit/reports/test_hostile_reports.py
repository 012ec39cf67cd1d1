"""Whole reports of jobs that hold the worst that names, numbers and words can be."""

import json
import random
import unicodedata

import jsonschema
import pytest
from wcwidth import wcswidth

from jobmond.model.job import Choices, ClusterHealth, LogEvidence
from jobmond.model.observation import Facts, TaskCounts
from jobmond.model.outcome import Diagnosis, Signal
from jobmond.model.state import TERMINAL, Bucket, ClusterStatus, Severity, State
from jobmond.model.training import Training
from jobmond.model.trials import Trials, Work
from jobmond.reports.document import status_document
from jobmond.reports.schema import schema
from jobmond.reports.status import status_text
from jobmond.reports.view import View
from tests.unit.builders import NOW, at, job

WORDS = (
    "train", "rl__x", "_r7", "x" * 300, "a" * 59, "-" * 70, "|\u2502\u250c\u2510", "{x}%s", "\\n",
    "'\"`$(x)", "a\tb\nc\rd", "\x00nul", "\x1b[31mred\x1b[0m", "\x9b31m", "\u202ertl", "\ufeffbom",
    "\u2028line", "\u200b" * 20 + "x", "e\u0301" * 40, "\u6f22\u5b57" * 30, "\ufdfd" * 5,
    "\u0600abc", "\U0001f469\u200d\U0001f469\u200d\U0001f467" * 12,
    "\U0001f3f3\ufe0f\u200d\U0001f308",
    "\u1160\u11a8" * 9, "\U0001f9d1\U0001f3fd" * 9,
)  # fmt: skip
UNPRINTABLE = {"Cc", "Cs", "Zl", "Zp"}
NUMBERS = (0.0, -0.0, 1e-12, 1e300, -1e300, 0.1, 123456789.123, *map(float, ("nan", "inf", "-inf")))
NAMES = ("reward", "loss", "grad_norm", "entropy", "policy_loss", "log_ratio_abs_mean", "epoch")


class Hostile:
    """Jobs by chance, the same for one seed."""

    def __init__(self, seed):
        self.dice = random.Random(seed)

    def one(self, *choices):
        return self.dice.choice(choices)

    def word(self):
        return "".join(self.dice.choices(WORDS, k=self.dice.randrange(1, 4)))

    def number(self):
        return self.dice.choice(NUMBERS)

    def metrics(self):
        named = {name: self.number() for name in NAMES if self.one(True, False)}
        return {**named, self.word(): self.number()}

    def training(self, bucket):
        return Training(
            dialect=self.one("skyrl", "hf", None),
            bucket=bucket,
            phase=self.one("bring-up", "training", "finishing", "done", "failed"),
            step=self.one(None, 0, 5, 10**12),
            max_step=self.one(None, 1, 10**15),
            metrics=self.metrics(),
            rate_s_per_step=self.one(None, 0.0, 1e9, self.number()),
            eta_s=self.one(None, 0.0, 1e12, self.number()),
            log_life=self.one(1, 9),
            stepped_at=at(-5),
            began_at=at(-9),
            behind_bytes=self.one(0, 10**12),
            trend=self.one(None, "Stable", self.word()),
        )

    def work(self):
        failed = {self.word(): 3}
        trials = Trials(self.one(0, 10**6), self.one(None, 10**9), exceptions=failed)
        return Work(self.word(), self.one(None, trials), trend=self.word(), error=self.word())

    def facts(self, state):
        return Facts(
            name=self.one(None, self.word()),
            user=self.word(),
            reason=self.one(None, self.word()),
            message=self.word(),
            nodes=self.word(),
            progress=self.one(None, self.word()),
            submitted_at=at(-(10**6)),
            started_at=at(-self.dice.randrange(1, 10**6)),
            ended_at=at(-1) if state in TERMINAL else None,
            elapsed_s=self.one(None, 0, 10**9),
            time_limit_s=self.one(None, 86400, 10**9),
            exit_code=self.one(None, 1),
            tasks=self.one(None, TaskCounts(5, {State.RUNNING: 5}, (), ("1_1",))),
        )

    def job(self, number):
        bucket, state = self.one(*Bucket), self.one(*State)
        odd = {"a": self.number(), "w": self.word()}
        signal = Signal("rl-collapse", Severity.ALARM, self.word(), odd, step=5, opened_at=at(-4))
        told = Diagnosis("cuda-oom", self.word(), 1, 1, 1, (self.word(),), "f", 2)
        return job(
            str(number),
            id=number,
            cluster=self.one("lab", "x" * 40),
            bucket=bucket,
            type=self.word(),
            run=self.word(),
            state=state,
            native=self.word(),
            labels=frozenset({self.word()}),
            facts=self.facts(state),
            training=self.one(None, self.training(bucket)),
            work=self.one(None, self.work()),
            signals=self.one((), (signal,)),
            diagnosis=self.one(None, told),
            note=self.one(None, self.word()),
            log=LogEvidence("read", self.word(), error=self.word(), last_line=self.word()),
            stale=self.one(False, False, True),
            tracked=state not in TERMINAL,
            choices=Choices(name=self.one(None, self.word()), description=self.word()),
        )

    def cluster(self, name):
        return ClusterHealth(
            name=name,
            kind="slurm",
            active=True,
            status=self.one(*ClusterStatus),
            since=at(-50),
            last_ok_at=at(-60),
            error=self.word(),
            remedy=self.word(),
            notes=self.word(),
        )

    def document(self):
        jobs = [self.job(number) for number in range(1, self.dice.randrange(2, 14))]
        clusters = [self.cluster(name) for name in ("lab", "x" * 40)]
        daemon = {"running": True, "host": self.word(), "version": "1"}
        daemon |= {"last_sweep_at": NOW, "next_sweep_at": NOW}
        return json.dumps(status_document(jobs, clusters, daemon=daemon, now=NOW), allow_nan=False)


@pytest.mark.parametrize("seed", range(15))
def test_a_report_fits_prints_and_keeps_its_schema(seed):
    document = json.loads(Hostile(seed).document())
    jsonschema.Draft202012Validator(schema("status")).validate(document)
    for fit, ascii_only, brief in ((80, False, False), (80, True, True), (120, False, True)):
        view = View(now=NOW, fit=fit, ascii_only=ascii_only, brief=brief)
        for line in status_text(document, view):
            assert not UNPRINTABLE & set(map(unicodedata.category, line))
            assert line.isascii() or not ascii_only
            columns = wcswidth(line)
            assert columns >= 0
            if line[:1] in "\u250c\u251c\u2514\u2502+|":  # a table; prose may be as long as it is
                assert columns <= fit
