"""Logs from the log service: the end of each, and what is new since the last look."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobmond.backends.iris.logs import IrisLogs
from jobmond.errors import TransientTransportError
from jobmond.model.observation import Follow, LogAsk, LogTail, Read, Reading, Unavailable
from jobmond.ports import HttpAnswer
from tests.controller import Controller, error, ms, ok
from tests.doubles_store import FixedClock

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
BORN = NOW - timedelta(hours=2)
TRAIN = "alice/train"
PLACE = f"iris:/{TRAIN}@{ms(BORN)['epochMs']}"


def reader(far: Controller, **options: Any) -> IrisLogs:
    return IrisLogs(far, FixedClock(), url="http://iris", **options)


def ask(native: str = TRAIN, follow: Follow | None = None, **more: Any) -> LogAsk:
    plain: dict[str, Any] = {"path": PLACE, "workdir": None, "tail_bytes": 4096}
    return LogAsk(native, follow=follow, **{**plain, **more})


def since(place: object = None, *needles: bytes, max_bytes: int = 1 << 20) -> Follow:
    return Follow(place, needles, max_bytes)  # type: ignore[arg-type] # what a source gave


async def reading(logs: IrisLogs, one: LogAsk | None = None) -> Reading[LogTail]:
    one = one or ask()
    return (await logs.read_tails([one], now=NOW, timeout_s=60))[one.native_id]


async def tail(logs: IrisLogs, one: LogAsk | None = None) -> LogTail:
    found = await reading(logs, one)
    assert isinstance(found, Read), found
    return found.value


async def test_the_whole_of_a_short_log() -> None:
    far = Controller()
    far.say(TRAIN, NOW - timedelta(minutes=3), "one", "two é")
    found = await tail(reader(far))
    assert (found.tail, found.offset, found.size_bytes) == ("one\ntwo é\n".encode(), 0, 11)
    assert found.path == PLACE
    assert found.mtime_at == NOW - timedelta(minutes=3)
    assert found.news is None


async def test_a_log_without_a_line_is_an_answer() -> None:
    found = await tail(reader(Controller()))
    assert (found.tail, found.size_bytes) == (b"", 0)


async def test_what_an_earlier_submission_printed_is_not_its_log() -> None:
    far = Controller()
    far.say(TRAIN, BORN - timedelta(minutes=1), "of the one before")
    far.say(TRAIN, BORN + timedelta(minutes=1), "mine")
    assert (await tail(reader(far))).tail == b"mine\n"


async def test_the_lines_of_child_jobs_are_theirs() -> None:
    far = Controller()
    far.say(TRAIN, NOW, "mine")
    far.say(f"{TRAIN}/child", NOW, *["theirs"] * 500)
    far.say(f"{TRAIN}/child/7", NOW, "theirs too")
    far.say("alice/training", NOW, "another job")
    far.say(TRAIN, NOW, "of the second task, tried again", task="1:4")
    logs = reader(far)
    assert (await tail(logs)).tail == b"mine\nof the second task, tried again\n"
    assert [q["matchScope"] for _, q in far.asked] == ["MATCH_SCOPE_PREFIX", "MATCH_SCOPE_REGEX"]


async def test_only_the_end_of_a_long_log_travels() -> None:
    far = Controller()
    far.say(TRAIN, NOW, *(f"{n:079d}" for n in range(1000)))
    found = await tail(reader(far), ask(tail_bytes=8000))
    assert found.tail == "".join(f"{n:079d}\n" for n in range(900, 1000)).encode()
    assert found.offset > 0
    assert found.size_bytes == found.offset + 8000
    short = await tail(reader(far), ask(tail_bytes=100))
    assert short.tail == (f"{998:079d}\n{999:079d}\n".encode())[-100:]


async def test_places_in_a_log_stay_as_it_grows() -> None:
    """`logs -f` goes on at the byte at which the last look ended."""
    far, lines = Controller(), [f"line {n:04d}" for n in range(500)]
    far.say(TRAIN, NOW, *lines[:200])
    logs = reader(far)
    first = await tail(logs)
    far.say(TRAIN, NOW, *lines[200:210])
    second = await tail(logs)
    fresh = second.tail[first.size_bytes - second.offset :]
    assert fresh == "".join(f"{line}\n" for line in lines[200:210]).encode()
    assert second.size_bytes == first.size_bytes + 100
    assert (await tail(logs)).size_bytes == second.size_bytes


async def test_what_is_new_is_read_once_in_order_and_only_where_it_matters() -> None:
    far = Controller()
    far.say(TRAIN, NOW, "step 1", "noise", "step 2\rstep 3")
    logs = reader(far)
    first = (await tail(logs, ask(follow=since(None, b"step")))).news
    assert first is not None
    assert [(s.offset, s.raw) for s in first.segments] == [
        (0, b"step 1"),
        (13, b"step 2"),
        (20, b"step 3"),
    ]
    assert all(s.closed for s in first.segments)
    assert (first.restarted, first.behind_bytes) == (False, 0)
    far.say(TRAIN, NOW, "step 4")
    second = (await tail(logs, ask(follow=since(first.place, b"step")))).news
    assert second is not None
    assert [(s.offset, s.raw) for s in second.segments] == [(27, b"step 4")]
    third = (await tail(logs, ask(follow=since(second.place, b"step")))).news
    assert third is not None
    assert (third.segments, third.moved_bytes, third.place) == ((), 0, second.place)


async def test_nothing_new_costs_one_call() -> None:
    far = Controller()
    far.say(TRAIN, NOW, "step 1")
    logs = reader(far)
    first = (await tail(logs, ask(follow=since()))).news
    assert first is not None
    far.asked.clear()
    await tail(logs, ask(follow=since(first.place)))
    assert len(far.asked) == 1


@pytest.mark.parametrize("max_bytes", [1, 10, 100, 5000, 10**6])
async def test_however_it_is_cut_the_news_are_the_same(max_bytes: int) -> None:
    far = Controller()
    far.say(TRAIN, NOW, *(f"line {n}" for n in range(300)))
    logs, place, found = reader(far), None, []
    for _ in range(400):
        news = (await tail(logs, ask(follow=since(place, max_bytes=max_bytes)))).news
        assert news is not None
        found += news.segments
        place = news.place
        if not news.segments:
            break
        assert news.moved_bytes <= max_bytes + 9
    text = b"".join(s.raw + b"\n" for s in found)
    assert text == "".join(f"line {n}\n" for n in range(300)).encode()
    assert all(text[s.offset : s.offset + len(s.raw)] == s.raw for s in found)


async def test_a_place_is_good_after_a_restart_of_ours() -> None:
    far = Controller()
    far.say(TRAIN, NOW, "a", "b")
    first = (await tail(reader(far), ask(follow=since()))).news
    assert first is not None
    far.say(TRAIN, NOW, "c")
    found = await tail(reader(far), ask(follow=since(first.place)))
    assert found.news is not None
    assert [(s.offset, s.raw) for s in found.news.segments] == [(4, b"c")]
    assert found.size_bytes == 6


async def test_what_is_still_to_be_read_is_said() -> None:
    far = Controller()
    far.say(TRAIN, NOW, "x" * 99, "y" * 99, "z" * 99)
    found = await tail(reader(far), ask(follow=since(max_bytes=100)))
    assert found.news is not None
    assert (found.news.moved_bytes, found.news.behind_bytes) == (100, 200)
    assert found.size_bytes >= 300


async def test_another_submission_is_another_log() -> None:
    far = Controller()
    far.say(TRAIN, BORN + timedelta(minutes=1), "old")
    first = (await tail(reader(far), ask(follow=since()))).news
    assert first is not None
    again = BORN + timedelta(hours=1)
    far.say(TRAIN, NOW, "new")
    later = ask(path=f"iris:/{TRAIN}@{ms(again)['epochMs']}", follow=since(first.place))
    news = (await tail(reader(far), later)).news
    assert news is not None
    assert news.restarted
    assert [(s.offset, s.raw) for s in news.segments] == [(0, b"new")]


async def test_a_log_service_that_began_anew_is_another_log() -> None:
    far = Controller()
    far.say(TRAIN, NOW, "a", "b", "c")
    logs = reader(far)
    first = (await tail(logs, ask(follow=since()))).news
    assert first is not None
    far.lines.clear()
    far.say(TRAIN, NOW, "fresh")
    found = await tail(logs, ask(follow=since(first.place)))
    assert found.news is not None
    assert (found.news.restarted, found.size_bytes) == (True, 6)
    assert [s.raw for s in found.news.segments] == [b"fresh"]


async def test_lines_that_were_there_and_are_not_are_no_silence() -> None:
    far = Controller()
    far.say(TRAIN, NOW, "a")
    logs = reader(far)
    first = (await tail(logs, ask(follow=since()))).news
    assert first is not None
    far.lines.clear()
    assert isinstance(await reading(logs), Unavailable)
    assert isinstance(await reading(reader(far), ask(follow=since(first.place))), Unavailable)


async def test_a_followed_log_with_child_jobs() -> None:
    far = Controller()
    for n in range(50):
        far.say(f"{TRAIN}/child", NOW, "theirs")
        far.say(TRAIN, NOW, f"mine {n}")
    news = (await tail(reader(far), ask(follow=since()))).news
    assert news is not None
    assert [s.raw for s in news.segments] == [f"mine {n}".encode() for n in range(50)]


PAGE = HttpAnswer(502, {"content-type": "text/html"}, b"<html>")
BAD = {
    "html": PAGE,
    "gone": HttpAnswer(404, {}, b""),
    "cut": HttpAnswer(200, {}, b'{"entries": [{"seq": "1", "key": "/alice/tr'),
    "no list": ok({"entries": {}}),
    "no line": ok({"entries": ["x"]}),
    "no seq": ok({"entries": [{"key": "/alice/train/0:0", "data": "x"}]}),
    "odd seq": ok({"entries": [{"key": "/alice/train/0:0", "data": "x", "seq": "-1"}]}),
    "odd data": ok({"entries": [{"key": "/alice/train/0:0", "data": 7, "seq": "1"}]}),
    "declined": error(500, "internal", "finelog is down"),
    "refused": error(401, "unauthenticated", "who?"),
    "reset": TransientTransportError("the receiver reset the connection"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_fetch_that_failed_is_no_silence(name: str) -> None:
    far = Controller(broken=BAD[name])
    found = await reading(reader(far), ask(follow=since()))
    assert isinstance(found, Unavailable)
    assert found.why


async def test_after_no_answer_nobody_else_is_asked_for() -> None:
    far = Controller(broken=TransientTransportError("no whole answer within 20 s"))
    asks = [ask(f"alice/{n}") for n in "abc"]
    found = await reader(far).read_tails(asks, now=NOW, timeout_s=60)
    assert set(found) == {"alice/a", "alice/b", "alice/c"}
    assert {type(one) for one in found.values()} == {Unavailable}
    assert len(far.asked) == 1


async def test_a_later_page_that_fails_leaves_the_rest_for_next_time() -> None:
    far = Controller()
    far.say(TRAIN, NOW, *(f"line {n}" for n in range(5000)))
    lost = TransientTransportError("lost")
    far.broken = lambda _, q: lost if int(q.get("cursor", 0)) >= 2000 else None
    logs = reader(far)
    first = (await tail(logs, ask(follow=since()))).news
    assert first is not None
    assert len(first.segments) == 2000
    assert first.behind_bytes > 0
    far.broken = None
    second = (await tail(logs, ask(follow=since(first.place)))).news
    assert second is not None
    assert [s.raw for s in second.segments] == [f"line {n}".encode() for n in range(2000, 5000)]


async def test_lines_that_are_too_long_for_one_answer_are_asked_for_in_fewer() -> None:
    far = Controller()
    far.say(TRAIN, NOW, *("x" * 2000 for _ in range(800)))
    found = await tail(reader(far, max_bytes=200_000), ask(tail_bytes=65536))
    assert found.tail.endswith(b"xxx\n")
    assert len(found.tail) == 65536


async def test_a_file_that_a_person_named_is_not_there_to_be_read() -> None:
    far = Controller()
    far.say(TRAIN, NOW, "one")
    found = await tail(reader(far), ask(path="/scratch/train.out"))
    assert (found.path, found.tail) == (f"iris:/{TRAIN}", b"one\n")
    wrong = await reading(reader(far), ask("train"))
    assert isinstance(wrong, Unavailable)


async def test_a_name_with_signs_of_patterns_is_only_a_name() -> None:
    far = Controller()
    job = "alice/a+b.(c)"
    far.say(job, NOW, "mine")
    far.say(f"{job}/child", NOW, *["theirs"] * 500)
    assert (await tail(reader(far), ask(job, path=None))).tail == b"mine\n"


async def test_no_time_no_call() -> None:
    far = Controller()
    found = await reader(far).read_tails([ask()], now=NOW, timeout_s=0)
    assert found[TRAIN] == Unavailable("budget")
    assert far.asked == []
