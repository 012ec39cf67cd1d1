"""Failures that come again: what a sweep knows of those before, and says of the new one."""

from dataclasses import replace
from datetime import timedelta

import pytest
import yaml

from jobmond.backends._files import FileReader
from jobmond.model.state import State
from tests.doubles import ShellTransport
from tests.integration.test_sweep import TRACE, Scene, text
from tests.unit.builders import NOW, seen

OTHER = TRACE.replace(b"ValueError: no", b"FileNotFoundError: [Errno 2] No such file: '/d/x'")


@pytest.fixture
def scene(tmp_path):
    made = Scene(tmp_path)
    yield made
    made.store.close()


async def dies(scene, native_id, *, hours, minutes=31, log=TRACE, name="train", command="run.sh"):
    """A job that is seen running and then dead, `hours` after NOW, having lived `minutes`."""
    died_at = NOW + timedelta(hours=hours)
    facts = {"name": name, "command": command, "started_at": died_at - timedelta(minutes=minutes)}
    scene.add(native_id)
    scene.far.logs[native_id] = text(log)
    scene.clock.at = died_at - timedelta(minutes=20)
    await scene.sweep(**{f"_{native_id}": seen(State.RUNNING, **facts)})
    scene.clock.at = died_at
    ended = seen(
        State.FAILED, exit_code=1, ended_at=died_at, elapsed_s=round(minutes * 60), **facts
    )
    await scene.sweep(**{f"_{native_id}": ended})
    return scene.job(f"lab/{native_id}")


def entries(scene):
    """The texts of the entries that are owed, by the last part of their path."""
    due = scene.store.due("agent_log", scene.clock.now() + timedelta(days=99), 100)
    return {str(d.body["path"]).rpartition("/")[2]: str(d.body["text"]) for d in due}


def title(scene):
    return scene.store.events(limit=1000)[-1].payload["title"]


async def test_the_third_time_after_the_same_while_is_said_wherever_the_failure_is(scene):
    await dies(scene, "1", hours=0)
    await dies(scene, "2", hours=24)
    third = await dies(scene, "3", hours=48, minutes=31.3)
    words = "third time in two days, each after about 31 minutes: not transient"
    known = third.diagnosis.recurrence
    assert (known.count, known.interval_s, known.transient) == (3, 1860, False)
    assert known.words == words
    assert title(scene).endswith(f"ValueError: no; {words}")
    text = entries(scene)["lab-3-train.md"]
    assert f"`ValueError: no` (line 3); {words}" in text
    assert yaml.safe_load(text.split("---")[1])["recurrence"]["dates"] == [
        "2026-11-29T12:00:00Z",
        "2026-11-30T12:00:00Z",
    ]
    assert (
        "- 2026-11-30T12:00:00Z [`lab/2`](../2026-11-30/lab-2-train.md) after 0:31:00: the same\n"
        "- 2026-11-29T12:00:00Z [`lab/1`](../2026-11-29/lab-1-train.md) after 0:31:00: the same\n"
    ) in text


async def test_the_first_time_is_not_worth_a_word_in_the_news(scene):
    first = await dies(scene, "1", hours=0)
    assert first.diagnosis.recurrence.words == "first time"
    assert title(scene).endswith("ValueError: no")
    assert "## Earlier failures" not in entries(scene)["lab-1-train.md"]


async def test_failures_that_differ_and_come_after_the_same_while(scene):
    await dies(scene, "1", hours=0, log=OTHER)
    await dies(scene, "2", hours=1, log=OTHER)
    third = await dies(scene, "3", hours=2)
    assert third.diagnosis.recurrence.words == (
        "first time; the last three failures all came after about 31 minutes"
        "; the failure before was missing-file"
    )
    assert (
        "`lab/2`](../2026-11-29/lab-2-train.md) after 0:31:00: missing-file:"
        in (entries(scene)["lab-3-train.md"])
    )


async def test_another_name_of_the_same_configuration_counts_as_the_same(scene):
    await dies(scene, "1", hours=0, name="a", command="python train.py --lr 1")
    again = await dies(scene, "2", hours=1, name="b", command="python train.py --lr 1", minutes=5)
    assert again.diagnosis.recurrence.words == "second time in an hour"


async def test_the_same_of_other_runs_is_the_clusters_affair(scene):
    await dies(scene, "1", hours=0, name="a", command="a.sh")
    await dies(scene, "2", hours=1, name="b", command="b.sh")
    third = await dies(scene, "3", hours=2, name="c", command="c.sh")
    known = third.diagnosis.recurrence
    assert (known.count, known.elsewhere, known.transient) == (1, 2, None)
    assert known.words == (
        "first time; two jobs of other runs on the cluster failed in the same way"
        " in the last two hours"
    )


async def test_what_failed_in_one_sweep_is_told_in_the_order_in_which_it_failed(scene):
    for native_id in ("1", "2", "3"):
        scene.add(native_id)
        scene.far.logs[native_id] = text(TRACE)
    alive = seen(State.RUNNING, command="run.sh")
    await scene.sweep(_1=alive, _2=alive, _3=alive)
    dead = [
        seen(State.FAILED, command="run.sh", ended_at=NOW - timedelta(minutes=m), elapsed_s=600)
        for m in (1, 2, 3)
    ]
    await scene.sweep(_1=dead[0], _2=dead[1], _3=dead[2])
    counts = [scene.job(f"lab/{n}").diagnosis.recurrence.count for n in (1, 2, 3)]
    assert counts == [3, 2, 1]


async def test_what_lies_further_back_than_is_remembered_does_not_count(scene):
    await dies(scene, "1", hours=0)
    late = await dies(scene, "2", hours=24 * 31)
    assert late.diagnosis.recurrence.count == 1


async def test_a_failure_whose_log_came_late_counts_once(scene):
    await dies(scene, "1", hours=0)
    scene.far.logs.clear()
    died = NOW + timedelta(hours=5)
    scene.add("2")
    scene.clock.at = died
    await scene.sweep(_2=seen(State.FAILED, exit_code=1, ended_at=died, command="run.sh"))
    assert scene.job("lab/2").diagnosis.cause == "unknown"
    scene.far.logs = {"2": text(TRACE)}
    await scene.sweep()
    assert scene.job("lab/2").diagnosis.recurrence.words == "second time in five hours"


async def test_a_time_limit_that_a_successor_follows_is_no_failure(scene):
    await dies(scene, "1", hours=0)
    scene.add("2")
    await scene.sweep(_2=seen(State.RUNNING))
    scene.far.found = (("3", seen(State.PENDING, birth="200", dependency="afterany:2")),)
    await scene.sweep(_2=seen(State.TIMEOUT, ended_at=scene.clock.now()))
    assert scene.job("lab/2").diagnosis is None
    assert list(entries(scene)) == ["lab-1-train.md"]
    assert [f.ref for f in scene.store.failures.since(NOW, limit=9)] == ["lab/1"]


async def test_the_timeline_has_what_was_seen_and_what_the_source_says(scene):
    await dies(scene, "1", hours=0)
    timeline = entries(scene)["lab-1-train.md"].partition("## Timeline\n\n")[2]
    assert timeline.split("\n\n")[0].split("\n") == [
        "- 2026-11-29T11:29:00Z started",
        "- 2026-11-29T11:55:00Z first seen: RUNNING (`RUNNING`)",
        "- 2026-11-29T12:00:00Z last written to its log",
        "- 2026-11-29T12:00:00Z ended",
        "- 2026-11-29T12:15:00Z seen: RUNNING → FAILED (`FAILED`)",
    ]


async def test_a_cause_in_the_middle_of_a_large_log_is_found_at_its_line(scene, tmp_path):
    log = tmp_path / "train.out"
    steps = [b"it %d fine and well and of a length like any other\n" % n for n in range(30_000)]
    boom = b'Traceback (most recent call last):\n  File "t.py", line 1, in f\nKeyError: 7\n'
    after = b"waiting for the others\n" * 40_000
    log.write_bytes(b"".join(steps) + boom + after)
    errors = tmp_path / "train.err"
    errors.write_bytes(b"nothing of note\n")
    scene.cluster = replace(scene.cluster, logs=FileReader(ShellTransport()))
    scene.add("1")
    facts = {"log_path": str(log), "err_path": str(errors)}
    await scene.sweep(_1=seen(State.RUNNING, **facts))
    await scene.sweep(_1=seen(State.FAILED, exit_code=1, ended_at=NOW, **facts))
    found = scene.job("lab/1").diagnosis
    assert (found.cause, found.line, found.first_line) == ("python-exception", 30_003, 30_001)
    assert found.offset == log.read_bytes().index(boom)
    text = entries(scene)["lab-1-train.md"]
    ranges = yaml.safe_load(text.split("---")[1])["logs"]
    assert list(ranges) == [str(log), str(errors)]
    assert any(start <= found.offset < end for start, end in ranges[str(log)])
    assert f"- Looked at `{errors}` as well: the whole log of 16 bytes" in text
