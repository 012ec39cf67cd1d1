"""Training logs followed from sweep to sweep, through a real shell and a real database."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from jobmond import registry
from jobmond.analysis import bookmark
from jobmond.analysis.classify import classified
from jobmond.analysis.followed import Tools
from jobmond.analysis.judge import LATCHED, STEPPED, standing
from jobmond.analysis.replay import Replay
from jobmond.analysis.replay import standing as as_inspected
from jobmond.backends._files import FileReader
from jobmond.errors import StoreError
from jobmond.model.job import Choices
from jobmond.model.observation import EndedLife, Facts, Poll, Seen
from jobmond.model.state import Bucket, Kind, State
from jobmond.store import Store
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.conclude import Terms
from jobmond.sweep.sweep import Sweeper
from tests.doubles import ShellTransport
from tests.training import LOGS, PARSERS, log, read, reader
from tests.unit.builders import NOW

RULES = tuple(registry.rules[name]() for name in STEPPED)


def classify(choices, facts, native_id, read_as=None, /):
    return classified(choices, facts, native_id, (), read_as)


class Clock:
    def __init__(self):
        self.at = NOW

    def now(self):
        return self.at

    def monotonic(self):
        return self.at.timestamp()


class Queue:
    """A source that says what it is told; its jobs write to files."""

    kind = "slurm"
    discovers = False

    def __init__(self):
        self.says = {}

    async def poll(self, asks, *, since, now, timeout_s):
        return Poll({a.native_id: self.says[a.native_id] for a in asks})

    def valid_id(self, native_id):
        return None


class Scene:
    def __init__(self, tmp_path, *, rules=(), **cluster):
        self.store = Store.open(f"sqlite:///{tmp_path / 'db'}")
        self.clock, self.queue, self.shell = Clock(), Queue(), ShellTransport()
        made = Cluster(
            "lab", "slurm", {Kind.SLURM: self.queue}, FileReader(self.shell), (), **cluster
        )
        self.cluster = made
        terms = Terms(rules, ("news",), "/agent_logs")
        tools = Tools(tuple(PARSERS.values()), RULES)
        self.sweeper = Sweeper(self.store, self._call, self.clock, classify, terms, tools=tools)
        self.folder = tmp_path

    async def _call(self, fn, /, *args, **kw):
        return fn(*args, **kw)

    def add(self, native_id, **choices):
        chosen = Choices(**choices)
        self.store.add(
            "lab",
            Kind.SLURM,
            native_id,
            choices=chosen,
            classified=classify(chosen, Facts(), native_id),
            now=self.clock.now(),
        )

    async def sweep(self, **states):
        """`_4711=State.RUNNING` or what is seen of it."""
        for word, seen in states.items():
            native_id = word.removeprefix("_")
            self.queue.says[native_id] = (
                seen if isinstance(seen, Seen) else self.seen(native_id, seen)
            )
        self.clock.at += timedelta(minutes=15)
        return await self.sweeper.sweep(self.cluster)

    def seen(self, native_id, state=State.RUNNING, *, birth="100", log=None, **facts):
        path = str(self.folder / f"{log or native_id}.out")
        known = Facts(name="train", log_path=path, started_at=NOW, submitted_at=NOW, **facts)
        return Seen(state, state.value, birth, known, "sacct")

    def write(self, native_id, content):
        (self.folder / f"{native_id}.out").write_bytes(content)

    def job(self, word):
        (found,) = self.store.find(word)
        return found

    def told(self, kind="signal"):
        return [
            (n.payload["signal"]["rule"], n.payload["signal"]["step"])
            for n in self.store.events(limit=1000)
            if n.type == kind
        ]


@pytest.mark.parametrize("name", LOGS)
async def test_sweeps_see_what_reading_it_at_once_gives(tmp_path, name):
    """Wherever the sweeps fall: the numbers, the signals, and each of them told once."""
    raw = log(name)
    scene = Scene(tmp_path)
    scene.add("7")
    dice = random.Random(name)
    for cut in [*sorted(dice.randrange(len(raw)) for _ in range(5)), len(raw)]:
        scene.write("7", raw[:cut])
        await scene.sweep(_7=State.RUNNING)
    whole = read(raw)
    training = scene.job("7").training
    assert training is not None
    state = whole.state
    assert (training.dialect, training.bucket) == (whole.parser.name, state.bucket)
    assert scene.job("7").bucket is state.bucket
    assert (training.step, training.max_step, training.phase) == (
        state.step,
        state.max_step,
        state.phase,
    )
    assert (training.log_life, training.resumed_from) == (state.life, state.resumed_from)
    assert repr(training.metrics) == repr({**state.last, **state.canonical})
    assert training.rate_s_per_step == state.rate_s_per_step
    expected = {(s.rule, s.step, s.last_step) for s in inspected(raw)}
    open_now = {(s.rule, s.step, s.last_step) for s in standing(scene.job("7"))}
    assert {s for s in open_now if s[0] in LATCHED} == {s for s in expected if s[0] in LATCHED}
    assert {s[0] for s in open_now} == {s[0] for s in expected}
    told = [rule for rule, _ in scene.told() if rule in LATCHED]
    assert len(told) == len(set(told)) or state.life > 1


def inspected(raw):
    replay = Replay(RULES, frozenset())
    following = reader(judge=replay.judge)
    following.feed(raw)
    found = following.finish()
    assert found is not None
    state = found.state
    return as_inspected(replay.firings, life=state.life, newest=state.record_step, latched=LATCHED)


async def test_a_second_look_moves_what_is_new(tmp_path):
    raw = log("skyrl_head_ok")
    scene = Scene(tmp_path)
    scene.add("7")
    scene.write("7", raw)
    await scene.sweep(_7=State.RUNNING)
    first = scene.store.clusters(scene.clock.now())[0].log_bytes_per_h
    await scene.sweep(_7=State.RUNNING)
    again = scene.store.clusters(scene.clock.now())[0].log_bytes_per_h - first
    assert again <= 4096  # its last lines
    assert first > again


async def test_far_behind_the_newest_is_shown_first_and_the_rest_is_caught_up(tmp_path):
    raw = log("hf5_sft_ok")
    scene = Scene(tmp_path, log_read_bytes=20_000)
    scene.add("7")
    scene.write("7", raw)
    await scene.sweep(_7=State.RUNNING)
    training = scene.job("7").training
    assert training.behind_bytes > 0
    assert training.step == read(raw).state.step
    for _ in range(10):
        await scene.sweep(_7=State.RUNNING)
    training = scene.job("7").training
    assert training.behind_bytes == 0
    assert training.records == read(raw).state.records


def steps(first, last, *, norm="0.02"):
    """A fork's log of some steps."""
    return b"".join(
        b'WANDB_MIRROR kind=train step=%d metrics={"reward/avg_raw_reward": %.4f, '
        b'"policy/raw_grad_norm": %b}\n' % (n, 0.1 + n / 100, norm.encode())
        for n in range(first, last + 1)
    )


async def test_a_chain_goes_on_in_another_log(tmp_path):
    """History, numbers and place go to the successor; each log is read by itself."""
    scene = Scene(tmp_path)
    scene.add("7")
    scene.write("7", steps(1, 5))
    await scene.sweep(_7=State.RUNNING)
    scene.write("7", steps(1, 8))
    scene.write("8", steps(7, 7))
    scene.queue.says["8"] = scene.seen("8", State.RUNNING, dependency="afterany:7")
    scene.add("8")
    await scene.sweep(_7=State.RUNNING, _8=scene.seen("8", State.PENDING, dependency="afterany:7"))
    await scene.sweep(_7=scene.seen("7", State.TIMEOUT), _8=State.RUNNING)
    old, new = scene.job("7"), scene.job("8")
    assert old.training.step == 8
    assert new.predecessor == old.id
    await scene.sweep(_8=State.RUNNING)
    new = scene.job("8")
    assert (new.training.step, new.training.log_life) == (7, 2)
    kept = scene.store.readings([new.id])[new.id]
    following = bookmark.unpacked(kept, PARSERS.values())
    column = following.best.state.track.columns()["reward"]
    assert list(column.steps) == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("appended", [True, False])
async def test_a_requeue_goes_on_in_the_same_path(tmp_path, appended):
    scene = Scene(tmp_path)
    scene.add("7")
    before = steps(1, 5)
    scene.write("7", before)
    await scene.sweep(_7=State.RUNNING)
    scene.write("7", (before if appended else b"") + steps(4, 4))
    ended = EndedLife("100", State.NODE_FAIL, "NODE_FAIL", Facts(ended_at=NOW))
    await scene.sweep(_7=replace(scene.seen("7", birth="200"), previous=(ended,)))
    job = scene.job("7")
    assert (job.birth, job.training.step, job.training.log_life) == ("200", 4, 2)


async def test_signals_end_with_the_life_they_speak_of(tmp_path):
    scene = Scene(tmp_path)
    scene.add("7")
    bad = steps(1, 7) + steps(8, 9, norm="NaN")
    scene.write("7", bad)
    await scene.sweep(_7=State.RUNNING)
    assert [s.rule for s in standing(scene.job("7"))] == ["nan-loss"]
    scene.write("7", bad + steps(5, 6))
    await scene.sweep(_7=State.RUNNING)
    assert standing(scene.job("7")) == ()
    assert scene.told() == [("nan-loss", 9)]
    assert scene.told("cleared") == [("nan-loss", 9)]


async def test_a_reading_of_another_version_begins_again(tmp_path, monkeypatch):
    scene = Scene(tmp_path)
    scene.add("7")
    scene.write("7", steps(1, 5))
    await scene.sweep(_7=State.RUNNING)
    monkeypatch.setattr(bookmark, "VERSION", bookmark.VERSION + 1)
    scene.write("7", steps(1, 6))
    await scene.sweep(_7=State.RUNNING)
    assert scene.job("7").training.step == 5  # nothing is guessed from a part
    await scene.sweep(_7=State.RUNNING)
    assert (scene.job("7").training.step, scene.job("7").training.records) == (6, 6)


async def test_a_reading_of_another_version_doubles_no_alarm(tmp_path, monkeypatch):
    scene = Scene(tmp_path)
    scene.add("7")
    bad = steps(1, 3) + steps(1, 7) + steps(8, 9, norm="NaN")
    scene.write("7", bad)
    await scene.sweep(_7=State.RUNNING)
    monkeypatch.setattr(bookmark, "VERSION", bookmark.VERSION + 1)
    for last in (11, 12, 13):
        scene.write("7", bad + steps(10, last))
        await scene.sweep(_7=State.RUNNING)
    assert scene.told() == [("nan-loss", 9)]
    assert scene.told("cleared") == []
    assert [s.rule for s in standing(scene.job("7"))] == ["nan-loss"]


async def test_what_a_predecessor_wrote_last_is_not_its_successor_s(tmp_path):
    """Both write to one log, and the end of the first's was never seen by itself."""
    scene = Scene(tmp_path)
    scene.add("7")
    scene.write("7", steps(1, 5))
    await scene.sweep(_7=State.RUNNING)
    late = steps(6, 7) + steps(8, 9, norm="NaN")
    scene.add("8")
    waiting = scene.seen("8", State.PENDING, log="7", dependency="afterany:7")
    await scene.sweep(_7=State.RUNNING, _8=waiting)
    (tmp_path / "7.out").chmod(0)
    (tmp_path / "7.out").rename(tmp_path / "away")
    await scene.sweep(_7=scene.seen("7", State.TIMEOUT), _8=scene.seen("8", log="7"))
    (tmp_path / "away").rename(tmp_path / "7.out")
    (tmp_path / "7.out").chmod(0o600)
    scene.write("7", steps(1, 5) + late)
    for _ in range(3):
        await scene.sweep(_8=scene.seen("8", log="7"))
    assert standing(scene.job("8")) == ()
    scene.write("7", steps(1, 5) + late + steps(5, 6))  # its own begins
    await scene.sweep(_8=scene.seen("8", log="7"))
    assert standing(scene.job("8")) == ()
    assert scene.told() == []


async def test_a_successor_that_goes_on_without_a_word_is_judged_by_what_comes_then(tmp_path):
    scene = Scene(tmp_path)
    scene.add("7")
    scene.write("7", steps(1, 5))
    await scene.sweep(_7=State.RUNNING)
    scene.add("8")
    waiting = scene.seen("8", State.PENDING, log="7", dependency="afterany:7")
    await scene.sweep(_7=State.RUNNING, _8=waiting)
    await scene.sweep(_7=scene.seen("7", State.TIMEOUT), _8=scene.seen("8", log="7"))
    scene.write("7", steps(1, 7) + steps(8, 9, norm="NaN"))
    await scene.sweep(_8=scene.seen("8", log="7"))
    scene.write("7", steps(1, 7) + steps(8, 9, norm="NaN") + steps(10, 10))
    await scene.sweep(_8=scene.seen("8", log="7"))
    assert [s.rule for s in standing(scene.job("8"))] == ["nan-loss"]
    assert scene.told() == [("nan-loss", 9)]


async def test_what_people_and_names_say_goes_before_the_log(tmp_path):
    scene = Scene(tmp_path)
    scene.add("7", bucket=Bucket.EVAL)
    scene.write("7", steps(1, 5))
    await scene.sweep(_7=State.RUNNING)
    assert scene.job("7").bucket is Bucket.EVAL


async def test_a_log_of_no_trainer_has_no_training(tmp_path):
    scene = Scene(tmp_path)
    scene.add("7")
    scene.write("7", b"hello\nworld\n")
    await scene.sweep(_7=State.RUNNING)
    job = scene.job("7")
    assert job.training is None or job.training.dialect is None
    assert job.bucket is Bucket.OTHER


async def test_trend_says_how_long_nothing_came(tmp_path):
    scene = Scene(tmp_path)
    scene.add("7")
    scene.write("7", steps(1, 12))
    await scene.sweep(_7=State.RUNNING)
    first = scene.job("7").training.trend
    assert "No new step" not in first
    for _ in range(3):
        await scene.sweep(_7=State.RUNNING)
    assert scene.job("7").training.trend.startswith("No new step for 45m")


async def test_a_job_that_was_suspended_for_hours_is_not_stalled_when_it_goes_on(tmp_path):
    scene = Scene(tmp_path, rules=(registry.rules["stall"](),))
    scene.add("7", bucket=Bucket.RL)
    scene.write("7", steps(1, 12))
    for _ in range(3):
        await scene.sweep(_7=State.RUNNING)
    for _ in range(20):
        await scene.sweep(_7=scene.seen("7", suspended=True))
    for _ in range(4):
        await scene.sweep(_7=scene.seen("7"))
    assert scene.told() == []
    await scene.sweep(_7=scene.seen("7"))
    assert scene.told() == [("stall", None)]


async def test_a_commit_that_failed_has_read_nothing(tmp_path, monkeypatch):
    scene = Scene(tmp_path)
    scene.add("7")
    scene.write("7", steps(1, 5))
    await scene.sweep(_7=State.RUNNING)
    scene.write("7", steps(1, 7) + steps(8, 9, norm="NaN"))

    def full(store, commit):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patched, pytest.raises(StoreError):
        patched.setattr(Store, "commit", full)
        await scene.sweep(_7=State.RUNNING)
    assert scene.told() == []
    await scene.sweep(_7=State.RUNNING)
    assert scene.told() == [("nan-loss", 9)]
    assert scene.job("7").training.records == 9
