"""Taking the log script's answer apart: any bytes, cut anywhere."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.backends._files import Short, readings
from jobmond.backends._files.looking import Limits, Marks, look_script
from jobmond.model.observation import Absent, LogAsk, Read, Unavailable

NOW = datetime(2026, 11, 29, tzinfo=UTC)
MARK = "0123456789abcdef"
MARKS = Marks(MARK, "fedcba9876543210")
ASKS = [LogAsk(str(i), f"/{i}.out", None, 100) for i in range(3)]


def framed(index: int, content: bytes, *, asked: int | None = None, path: bytes = b"/x") -> bytes:
    number = len(content) if asked is None else asked
    head = b"\n%b file %d %d 7 9 0 %d\n" % (MARK.encode(), index, number, number)
    data = b"\n%b data %d\n" % (MARK.encode(), index)
    return head + path + data + content + b"\n%b end %d\n" % (MARK.encode(), index)


@given(contents=st.lists(st.binary(max_size=80), min_size=3, max_size=3))
def test_contents_come_through(contents):
    out = b"".join(framed(i, content) for i, content in enumerate(contents))
    found = readings(out, MARKS, ASKS, now=NOW)
    for i, content in enumerate(contents):
        one = found[str(i)]
        assert isinstance(one, Read)
        assert one.value.tail == content


@given(
    before=st.binary(max_size=20), index=st.integers(0, 2), word=st.sampled_from(["end", "file"])
)
def test_a_file_that_holds_our_own_marks(before, index, word):
    content = before + f"\n{MARK} {word} {index}\n".encode() + before
    found = readings(framed(0, content) + framed(1, b"after"), MARKS, ASKS, now=NOW)
    first, second = found["0"], found["1"]
    assert isinstance(first, Read)
    assert isinstance(second, Read)
    assert (first.value.tail, second.value.tail) == (content, b"after")


@given(cut=st.integers(0, 1000))
def test_what_is_cut_off_is_short_and_never_a_shorter_log(cut):
    whole = framed(0, b"first\n\n") + framed(1, b"second") + framed(2, b"")
    found = readings(whole[: cut % len(whole)], MARKS, ASKS, now=NOW)
    wanted = {"0": b"first\n\n", "1": b"second", "2": b""}
    for native_id, one in found.items():
        assert isinstance(one, Short) or (
            isinstance(one, Read) and one.value.tail == wanted[native_id]
        )


def test_fewer_bytes_than_asked_for_are_short():
    found = readings(framed(0, b"abc", asked=10) + framed(1, b"x"), MARKS, ASKS, now=NOW)
    assert found["0"] == Short("10 bytes are there, 10 were asked for, 3 arrived")
    assert isinstance(found["1"], Read)
    assert found["2"] == Short("nothing arrived")


@given(out=st.binary(max_size=300))
def test_any_bytes_are_taken(out):
    assert set(readings(out, MARKS, ASKS, now=NOW)) == {"0", "1", "2"}
    readings(out.replace(b"\n", b"\n" + MARK.encode() + b" "), MARKS, ASKS, now=NOW)


def test_the_words_for_what_was_not_read():
    mark = MARK.encode()
    out = b"\n%b absent 0\n\n%b budget 1\n\n%b why 2\nstat: x: Stale file handle\n%b end 2\n" % (
        mark,
        mark,
        mark,
        mark,
    )
    assert readings(out, MARKS, ASKS, now=NOW) == {
        "0": Absent(("/0.out",)),
        "1": Unavailable("budget"),
        "2": Unavailable("stat: x: Stale file handle"),
    }


def denied(said: bytes):
    out = b"\n%b denied 0\n%b\n%b end 0\n" % (MARK.encode(), said, MARK.encode())
    found = readings(out, MARKS, ASKS, now=NOW)["0"]
    assert isinstance(found, Unavailable)
    return found.why


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            b"alice -rw-------\nbob\nfile\n/a b",
            "permission: bob may not read /a b (-rw------- alice); alice can allow it: "
            "setfacl -m u:bob:r '/a b'",
        ),
        (
            b"alice drwx------\nbob\nfolder\n/home/alice",
            "permission: bob may not enter /home/alice (drwx------ alice); alice can allow it: "
            "setfacl -m u:bob:x /home/alice",
        ),
        (b"\nbob\nfile\n/a", "permission: bob may not read /a"),
        (b"bob ----------\nbob\nfile\n/a", "permission: bob may not read /a"),
        (
            b"al;ice -rw-------\n$(id)\nfile\n/a\n`id`\x1b[2J",
            "permission: $(id) may not read /a\\n`id`\\x1b[2J (-rw------- al;ice); "
            "al;ice can allow it: setfacl -m 'u:$(id):r' '/a\\n`id`\\x1b[2J'",
        ),
        (b"", "permission: denied"),
        (b"alice -rw-------\nbob", "permission: denied"),
    ],
)
def test_the_words_for_what_may_not_be_read(said, why):
    assert denied(said) == why


@given(said=st.binary().filter(lambda said: MARK.encode() not in said))
def test_any_words_of_a_far_side_about_permission(said):
    why = denied(said)
    assert why.startswith("permission: ")
    assert "\n" not in why


def test_an_index_nobody_asked_for_is_nobodys():
    assert isinstance(readings(framed(77, b"x"), MARKS, ASKS, now=NOW)["0"], Short)


def test_a_clock_beyond_all_years_is_now():
    out = framed(0, b"x").replace(b" 7 9 ", b" 99999999999999999999 9 ")
    one = readings(out, MARKS, ASKS, now=NOW)["0"]
    assert isinstance(one, Read)
    assert one.value.mtime_at == NOW


def test_everything_in_the_script_is_quoted():
    hostile = LogAsk("7'; rm -rf ~", "/a'$(id)`id`\n", "/w'", -5)
    script = look_script(MARKS, [hostile], Limits(1, 1, 1), timeout_s=9).decode()
    assert script.endswith(
        "look 0 0 '/a'\"'\"'$(id)`id`\n' '/w'\"'\"'' '7'\"'\"'; rm -rf ~'\nexit 0\n"
    )
