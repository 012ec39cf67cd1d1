"""Logs of containers: their end, what is new in them, and what is no log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.segments import Cutter
from jobmond.backends.kubernetes.logs import KubeLogs
from jobmond.backends.kubernetes.logtext import Place, instant, no_log, pieces, place, step
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.model.observation import Absent, Follow, LogAsk, Read, Unavailable
from tests import kube
from tests.unit.builders import NOW

PATH = "train-x/train"


def stamp(n):
    """A time that rises with `n`; many share a second, as they do."""
    return f"2026-11-29T12:{n // 600:02d}:{n // 10 % 60:02d}.{n % 10:09d}Z".encode()


def lines(*texts, start=0):
    return b"".join(stamp(start + n) + b" " + text for n, text in enumerate(texts))


@pytest.fixture
def api():
    return kube.ApiPort()


def ask(path=PATH, *, tail=4096, follow=None, native="ml/train"):
    return LogAsk(native, path, None, tail, follow)


def follow(news=None, *needles, max_bytes=1_000_000):
    return Follow(news.place if news else None, needles, max_bytes)


async def read(api, one=None, **options):
    source = KubeLogs(api, clock=kube.Steady(), **options)
    one = one or ask()
    return (await source.read_tails([one], now=NOW, timeout_s=60))[one.native_id]


async def test_the_end_of_a_log_without_the_servers_times(api):
    api.state.logs["train-x", "train", False] = lines(b"step 1\n", b"step 2\n")
    got = await read(api)
    assert isinstance(got, Read)
    assert (got.value.tail, got.value.offset, got.value.size_bytes) == (b"step 1\nstep 2\n", 0, 14)
    assert got.value.mtime_at.isoformat() == "2026-11-29T12:00:00+00:00"
    assert api.state.asked == [
        (
            "/api/v1/namespaces/ml/pods/train-x/log",
            {"timestamps": "true", "tailLines": "128", "limitBytes": "65536", "container": "train"},
        )
    ]


async def test_of_a_long_log_it_is_known_that_there_is_more(api):
    body = lines(*[b"line %d\n" % n for n in range(1000)])
    api.state.logs["train-x", "train", False] = body
    got = (await read(api, ask(tail=100))).value
    assert got.tail.endswith(b"line 999\n")
    assert len(got.tail) == 100
    assert got.offset > 0


async def test_a_limit_that_was_reached_hides_the_end_so_fewer_lines_are_asked_for(api):
    body = lines(*[b"x" * 3000 + b"\n" for _ in range(200)], b"the end\n")
    api.state.logs["train-x", "train", False] = body
    got = (await read(api)).value
    assert got.tail.endswith(b"the end\n")
    assert [query["tailLines"] for _, query in api.state.asked] == ["128", "8"]


async def test_a_log_that_is_one_json_object_is_bytes(api):
    api.state.logs["train-x", "train", False] = lines(b'{"step": 1, "ok": true}\n')
    assert (await read(api)).value.tail == b'{"step": 1, "ok": true}\n'


async def test_bytes_that_are_no_text(api):
    api.state.logs["train-x", "train", False] = lines(b"\xff\xfe\x00\r50%\r100%\n")
    assert (await read(api)).value.tail == b"\xff\xfe\x00\r50%\r100%\n"


async def test_an_empty_log_is_asked_for_twice_and_then_is_empty(api):
    api.state.logs["train-x", "train", False] = b""
    got = (await read(api)).value
    assert (got.size_bytes, got.tail) == (0, b"")
    assert len(api.state.asked) == 2


async def test_a_log_that_comes_empty_and_was_not_before_is_no_answer(api):
    api.state.logs["train-x", "train", False] = lines(b"step 1\n")
    news = (await read(api, ask(follow=follow()))).value.news
    api.state.logs["train-x", "train", False] = b""
    got = await read(api, ask(follow=follow(news)))
    assert got == Unavailable("the log came empty, and it was not empty before")


STATUS = kube.status_body
WAITS = 'container "train" in pod "train-x" is waiting to start: ContainerCreating'


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (404, STATUS(404, "NotFound", 'pods "train-x" not found'), Absent((PATH,))),
        (400, STATUS(400, "BadRequest", WAITS), Absent((PATH,))),
        (
            400,
            STATUS(400, "BadRequest", "container nope is not valid for pod train-x"),
            "container nope is not valid",
        ),
        (404, b"404 page not found\n", "answers 404: 404 page not found"),
        (403, STATUS(403, "Forbidden", "cannot get pods/log"), "permission: the API server"),
        (
            500,
            STATUS(500, "InternalError", 'Get "https://10.0.0.1:10250": connection refused'),
            "connection refused",
        ),
        (502, b"<html><body>Bad Gateway</body></html>", "a page in HTML"),
        (503, b"", "no text with it"),
        (
            200,
            b"unable to retrieve container logs for containerd://0123abcd",
            "unable to retrieve container logs",
        ),
    ],
)
async def test_what_is_no_log_is_never_taken_for_one(api, status, body, expected):
    api.state.fixed["/log"] = (status, body)
    got = await read(api)
    if isinstance(expected, str):
        assert isinstance(got, Unavailable)
        assert expected in got.why
    else:
        assert got == expected


async def test_a_log_that_speaks_of_such_an_error_is_a_log():
    assert no_log(lines(b"one\n", b"unable to retrieve container logs for x\n")) is None
    said = lines(b"unable to retrieve container logs for x\n", b"and\n", b"more\n", b"follows\n")
    assert no_log(said) is None


@pytest.mark.parametrize("error", [TransientTransportError("lost"), NeedsPersonError("401")])
async def test_a_server_that_does_not_answer_is_asked_once_for_all(api, error):
    api.fails = error
    source = KubeLogs(api, clock=kube.Steady())
    asks = [ask(native=f"ml/j{n}") for n in range(5)]
    got = await source.read_tails(asks, now=NOW, timeout_s=60)
    assert got == {f"ml/j{n}": Unavailable(str(error)) for n in range(5)}


@pytest.mark.parametrize("path", [None, "", "/etc/passwd", "a/b/c", "x y", "../x", "p/c@-1"])
async def test_a_path_that_names_no_container(api, path):
    assert isinstance(await read(api, ask(path)), Absent)
    assert api.state.asked == []


async def test_after_a_restart_an_empty_log_shows_how_it_went_before(api):
    api.state.logs["train-x", "train", False] = b""
    api.state.logs["train-x", "train", True] = lines(b"ValueError: no\n")
    got = (await read(api, ask("train-x/train@2"))).value
    assert (got.path, got.tail) == ("train-x/train@2", b"ValueError: no\n")


async def test_a_container_that_waits_to_be_started_again_shows_how_it_went(api):
    api.state.fixed["/log"] = (400, STATUS(400, "BadRequest", WAITS))
    answer = api.state.answer

    def previous(path, query):
        if query.get("previous"):
            api.state.fixed.clear()
            api.state.logs["train-x", "train", True] = lines(b"boom\n")
        return answer(path, query)

    api.state.answer = previous
    assert (await read(api, ask("train-x/train@1"))).value.tail == b"boom\n"


# ---- what is new -----------------------------------------------------------------------------


async def test_only_what_is_new_comes(api):
    api.state.logs["train-x", "train", False] = lines(b"one\n", b"two\n")
    first = (await read(api, ask(follow=follow()))).value.news
    assert [s.raw for s in first.segments] == [b"one", b"two"]
    assert not first.restarted
    api.state.logs["train-x", "train", False] = lines(b"one\n", b"two\n", b"three\n", b"fo")
    second = (await read(api, ask(follow=follow(first)))).value.news
    assert [(s.offset, s.raw, s.closed) for s in second.segments] == [
        (8, b"three", True),
        (14, b"fo", False),
    ]
    assert api.state.asked[-1][1]["sinceTime"] == "2026-11-29T12:00:00Z"
    api.state.logs["train-x", "train", False] = lines(b"one\n", b"two\n", b"three\n", b"four\n")
    third = (await read(api, ask(follow=follow(second)))).value.news
    assert [(s.offset, s.raw, s.closed) for s in third.segments] == [(14, b"four", True)]
    fourth = (await read(api, ask(follow=follow(third)))).value.news
    assert fourth.segments == ()
    assert fourth.place == third.place


async def test_only_what_holds_a_needle_comes(api):
    api.state.logs["train-x", "train", False] = lines(b"loss 1\n", b"noise\n", b"loss 2\n")
    news = (await read(api, ask(follow=follow(None, b"loss", b"Step")))).value.news
    assert [s.raw for s in news.segments] == [b"loss 1", b"loss 2"]


async def test_more_than_is_wanted_at_once_comes_in_pieces(api):
    texts = [b"line %05d %s\n" % (n, b"x" * 100) for n in range(5000)]
    api.state.logs["train-x", "train", False] = lines(*texts)
    news, got = None, []
    for _ in range(20):
        news = (await read(api, ask(follow=follow(news, max_bytes=65536)))).value.news
        got += [s.raw + b"\n" for s in news.segments if s.closed]
        if not news.behind_bytes:
            break
    assert got == texts


async def test_a_second_that_holds_more_than_fits_is_got_past(api):
    at = b"2026-11-29T12:00:00.000000001Z "
    texts = [b"%06d %s\n" % (n, b"y" * 90) for n in range(3000)]
    api.state.logs["train-x", "train", False] = b"".join(at + text for text in texts)
    news, got = None, []
    for _ in range(10):
        news = (await read(api, ask(follow=follow(news, max_bytes=1)))).value.news
        got += [s.raw + b"\n" for s in news.segments if s.closed]
        if not news.behind_bytes:
            break
    assert got == texts


async def test_the_rest_of_an_attempt_is_read_before_the_next_begins(api):
    api.state.logs["train-x", "train", False] = lines(b"one\n")
    news = (await read(api, ask(follow=follow()))).value.news
    api.state.logs["train-x", "train", True] = lines(b"one\n", b"the crash")
    api.state.logs["train-x", "train", False] = lines(b"anew\n", start=50)
    rest = (await read(api, ask("train-x/train@1", follow=follow(news)))).value.news
    assert [(s.offset, s.raw, s.closed) for s in rest.segments] == [(4, b"the crash", True)]
    assert not rest.restarted
    anew = (await read(api, ask("train-x/train@1", follow=follow(rest)))).value.news
    assert [(s.offset, s.raw) for s in anew.segments] == [(0, b"anew")]
    assert anew.restarted


async def test_another_pod_is_another_log(api):
    api.state.logs["train-x", "train", False] = lines(b"one\n")
    api.state.logs["train-y", "train", False] = lines(b"two\n")
    news = (await read(api, ask(follow=follow()))).value.news
    other = (await read(api, ask("train-y/train", follow=follow(news)))).value.news
    assert other.restarted
    assert [(s.offset, s.raw) for s in other.segments] == [(0, b"two")]


async def test_a_log_that_was_rotated_goes_on_where_it_can(api):
    api.state.logs["train-x", "train", False] = lines(b"one\n", b"two\n")
    news = (await read(api, ask(follow=follow()))).value.news
    api.state.logs["train-x", "train", False] = lines(b"nine\n", b"ten\n", start=700)
    later = (await read(api, ask(follow=follow(news)))).value.news
    assert [(s.offset, s.raw) for s in later.segments] == [(8, b"nine"), (13, b"ten")]
    assert not later.restarted


async def test_what_is_new_and_cannot_be_had_leaves_the_end_readable(api):
    api.state.logs["train-x", "train", False] = lines(b"one\n")
    news = (await read(api, ask(follow=follow()))).value.news
    answer = api.state.answer

    def no_since(path, query):
        if "sinceTime" in query:
            api.state.fixed["/log"] = (500, b"")
        return answer(path, query)

    api.state.answer = no_since
    got = await read(api, ask(follow=follow(news)))
    assert (got.value.tail, got.value.news) == (b"one\n", None)


TEXTS = st.lists(
    st.binary(max_size=30).map(lambda raw: raw.replace(b"\n", b"\r")), min_size=1, max_size=12
)


@given(TEXTS, st.lists(st.integers(0, 400), max_size=4), st.booleans())
def test_any_way_of_growing_gives_the_same(texts, cuts, same_time):
    """The log as it was at some moments, cut anywhere: all segments come, each once."""
    whole = b"".join(
        stamp(0 if same_time else n) + b" " + text + b"\n" for n, text in enumerate(texts)
    )
    stand, got = Place(PATH), []
    for end in [*sorted(min(cut, len(whole)) for cut in cuts), len(whole)]:
        visible = whole[:end]
        # What is not all there yet is not sent with half a time.
        head = visible.rpartition(b"\n")[2]
        if len(head) < 31:
            visible = visible[: len(visible) - len(head)]
        made = step(stand, visible, ())
        got += [s for s in made.segments if s.closed]
        assert not made.lost
        stand = made.place
        assert place(dict(stand.values())) == stand
    expected = list(Cutter().feed(b"".join(text + b"\n" for text in texts)))
    assert got == expected


@given(st.binary(max_size=300), st.integers(0, 300), st.sampled_from(["", stamp(3).decode(), "x"]))
def test_any_bytes_are_accepted(body, skip, at):
    made = step(Place(PATH, at, skip, skip), body, (b"loss",))
    assert made.place.offset >= 0
    assert b"".join(p.text for p in pieces(body)) is not None
    no_log(body)


@pytest.mark.parametrize(
    "values", [None, {}, {"path": 3}, {"path": "p", "stamp": "", "skip": "x", "offset": 0}]
)
def test_a_place_that_is_none(values):
    assert place(values) is None


def test_times_of_any_zone_and_precision():
    assert instant(b"2026-11-29T13:00:00.123456789+01:00").isoformat() == (
        "2026-11-29T12:00:00.123456+00:00"
    )
    assert instant(b"2026-11-29T12:00:00Z") == NOW
    assert instant(b"nonsense") is None
