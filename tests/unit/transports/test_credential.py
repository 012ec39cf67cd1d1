"""Requests that say who asks: headers from files and commands, never shown."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.ports import HttpAnswer
from jobmond.transports._credential import Authorized, Source, headers
from tests.doubles_store import FixedClock

SECRET = "Bearer sk-verysecret0123456789"


class Guarded:
    """Answers 200 to who has the right header, else 401."""

    def __init__(self, right: str = SECRET) -> None:
        self.right = right
        self.seen: list[Mapping[str, str]] = []
        self.closed = False

    async def request(self, *given: Any, headers: Mapping[str, str], **more: Any) -> HttpAnswer:
        self.seen.append(headers)
        fine = headers.get("authorization") == self.right
        return HttpAnswer(200 if fine else 401, {}, b"{}")

    async def close(self) -> None:
        self.closed = True


async def status(http: Authorized) -> int:
    answer = await http.request(
        "POST", "http://x", headers={"accept": "*/*"}, timeout_s=5, max_bytes=99
    )
    return answer.status


def script(folder: Path, body: str) -> tuple[str, ...]:
    path = folder / "token.py"
    path.write_text(body)
    return (sys.executable, str(path))


async def test_a_file_is_read_anew_for_each_request(tmp_path: Path) -> None:
    file = tmp_path / "header"
    file.write_text("Bearer old\n")
    far = Guarded()
    http = Authorized(far, FixedClock(), Source(file))
    assert await status(http) == 401
    assert not await http.acted()
    file.write_text(f"  {SECRET}\r\n\n")
    assert await http.acted()
    assert await status(http) == 200
    assert far.seen[-1] == {"accept": "*/*", "authorization": SECRET}


async def test_a_command_is_run_again_after_a_while_and_when_it_is_refused(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("")
    command = script(
        tmp_path,
        f"p = {str(count)!r}\nopen(p, 'a').write('x')\nprint('Bearer', len(open(p).read()))\n",
    )
    far, clock = Guarded("Bearer 1"), FixedClock()
    http = Authorized(far, clock, Source(command=command))
    assert await status(http) == 200
    clock.move(299)
    assert await status(http) == 200
    assert count.read_text() == "x"
    far.right = "Bearer 2"  # the first has run out
    assert await status(http) == 200
    assert [seen["authorization"] for seen in far.seen[-2:]] == ["Bearer 1", "Bearer 2"]
    clock.move(301)
    far.right = "Bearer 3"
    assert await status(http) == 200
    assert count.read_text() == "xxx"


async def test_a_command_that_prints_the_same_is_not_sent_twice(tmp_path: Path) -> None:
    far = Guarded("Bearer other")
    http = Authorized(far, FixedClock(), Source(command=script(tmp_path, "print('Bearer x')")))
    assert await status(http) == 401
    assert len(far.seen) == 1
    assert not await http.acted()


async def test_both_are_sent(tmp_path: Path) -> None:
    file = tmp_path / "header"
    file.write_text(SECRET)
    command = script(tmp_path, "print('Proxy-Authorization: Bearer a:b')")
    far = Guarded()
    assert await status(Authorized(far, FixedClock(), Source(file, command))) == 200
    assert far.seen[0]["proxy-authorization"] == "Bearer a:b"


async def test_nobody_says_who_asks() -> None:
    far = Guarded()
    http = Authorized(far, FixedClock(), Source())
    assert await http.acted()  # the configuration was just read
    assert await status(http) == 401
    assert not await http.acted()
    await http.close()
    assert far.closed
    assert http.logins == 0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import sys; print('sk-verysecret0123456789'); sys.exit(3)", "ended with 3"),
        ("import sys; sys.exit('token=sk-verysecret0123456789 expired')", "ended with 1"),
        ("pass", "gives no header"),
        ("print('Bearer \\x1b[31m')", "printable ASCII"),
        ("print('x' * 2_000_000)", "more than a header"),
        ("print('Host: elsewhere')", "expected one line"),
        ("print('a'); print('b')", "expected one line"),
    ],
)
async def test_a_command_that_fails_wants_a_person(tmp_path: Path, body: str, said: str) -> None:
    far = Guarded()
    http = Authorized(far, FixedClock(), Source(command=script(tmp_path, body)))
    with pytest.raises(NeedsPersonError, match=said) as failed:
        await status(http)
    assert "sk-verysecret" not in str(failed.value)
    assert far.seen == []
    assert not await http.acted()
    script(tmp_path, f"print({SECRET!r})")
    assert await http.acted()
    assert await status(http) == 200


async def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    command = script(tmp_path, "import time; time.sleep(600)")
    http = Authorized(Guarded(), FixedClock(), Source(command=command, timeout_s=0.2))
    with pytest.raises(TransientTransportError, match=r"did not end within 0\.2 s"):
        await status(http)


async def test_a_command_or_file_that_is_not_there(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    for source in (Source(missing), Source(command=(str(missing),))):
        with pytest.raises(NeedsPersonError, match="No such file") as failed:
            await status(Authorized(Guarded(), FixedClock(), source))
        assert str(missing) in str(failed.value)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"Bearer abc", {"authorization": "Bearer abc"}),
        (b"Basic YTpi\n", {"authorization": "Basic YTpi"}),
        (b"Bearer a:b", {"authorization": "Bearer a:b"}),
        (b"authorization:Bearer x", {"authorization": "Bearer x"}),
        (
            b"Proxy-Authorization: Bearer iap\nBearer own\n",
            {"proxy-authorization": "Bearer iap", "authorization": "Bearer own"},
        ),
        (b"X-Goog-Iap: 1", {"x-goog-iap": "1"}),
    ],
)
def test_headers(raw: bytes, expected: dict[str, str]) -> None:
    assert headers(raw, "f") == expected


@given(st.binary(max_size=300))
def test_whatever_a_file_holds_is_headers_or_one_safe_line(raw: bytes) -> None:
    try:
        found = headers(raw, "/etc/header")
    except NeedsPersonError as error:
        assert str(error).isprintable()
        assert str(error).startswith("/etc/header")
    else:
        for name, value in found.items():
            assert name == name.lower()
            assert value
            assert not set(name + value) & {"\r", "\n", "\0"}
