"""Webhooks against a real receiver that does all that receivers do."""

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobmond.errors import SinkRefusal, SinkRetry
from jobmond.model.outcome import Delivery
from jobmond.sinks.webhook import WebhookSink
from jobmond.transports.http import HttpClient
from tests.doubles_store import FixedClock
from tests.receiver import (
    CLOSE,
    HALF_HANG,
    HANG,
    MID_BODY,
    MID_CHUNK,
    NO_HTTP,
    RESET,
    RESET_TAKEN,
    Receiver,
    Reply,
    Request,
    status,
)

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
ONE_SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def straight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the proxy that this environment may have."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def event(number: int, ref: str = "lab/1", **more: object) -> Delivery:
    body = {
        "schema": 1,
        "type": "transition",
        "title": f"{ref}: RUNNING → FAILED",
        "body": "native FAILED",
        "job": {"ref": ref, "name": "train", "bucket": "sft", "run": "train"},
        **more,
    }
    key = f"{ref}@100#{number}"
    return Delivery(number, key, "team", {"key": key, **body}, created_at=NOW, due_at=NOW)


@asynccontextmanager
async def hook(folder: Path, url: str, **options: object) -> AsyncIterator[WebhookSink]:
    (folder / "url").write_text(f"{url}\n")
    http = HttpClient()
    try:
        yield WebhookSink(
            http, FixedClock(NOW), url_file=folder / "url", timeout=ONE_SECOND, **options
        )
    finally:
        await http.close()


async def refused(folder: Path, *replies: Reply) -> SinkRetry | SinkRefusal:
    """What the sink says of the last of `replies`."""
    async with Receiver(list(replies)) as receiver, hook(folder, receiver.url) as sink:
        with pytest.raises((SinkRetry, SinkRefusal)) as caught:
            await sink.send([event(1)])
        assert receiver.url not in str(caught.value)
        return caught.value


@pytest.mark.parametrize("code", [200, 201, 202, 204, 206, 299])
async def test_any_2xx_says_taken(tmp_path: Path, code: int) -> None:
    reply = status(code, b"" if code == 204 else b"fine")
    async with Receiver([reply]) as receiver, hook(tmp_path, receiver.url) as sink:
        await sink.send([event(1), event(2)])
        assert [r.news["key"] for r in receiver.requests] == ["lab/1@100#1", "lab/1@100#2"]


async def test_what_is_sent(tmp_path: Path) -> None:
    async with Receiver() as receiver, hook(tmp_path, receiver.url) as sink:
        await sink.send([event(1)])
    sent = receiver.requests[0]
    assert sent.target == "/hook"
    assert sent.headers["content-type"] == "application/json"
    assert sent.headers["user-agent"].startswith("jobmond/")
    assert sent.headers["webhook-id"] == "lab/1@100#1"
    assert sent.headers["webhook-timestamp"] == "1795953600"
    assert "webhook-signature" not in sent.headers
    assert sent.news == {
        "key": "lab/1@100#1",
        "schema": 1,
        "type": "transition",
        "title": "lab/1: RUNNING → FAILED",
        "body": "native FAILED",
        "job": {"ref": "lab/1", "name": "train", "bucket": "sft", "run": "train"},
    }


def verified(request: Request, secret: str) -> bool:
    """As https://www.standardwebhooks.com tells receivers to check."""
    key = base64.b64decode(secret[len("whsec_") :])
    content = b"%b.%b.%b" % (
        request.headers["webhook-id"].encode(),
        request.headers["webhook-timestamp"].encode(),
        request.body,
    )
    wanted = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    versions = [one.split(",", 1) for one in request.headers["webhook-signature"].split(" ")]
    return any(v == "v1" and hmac.compare_digest(found, wanted) for v, found in versions)


@pytest.mark.parametrize("title", ["plain", "ä\x1b\u202e", "x" * 70_000])
async def test_the_signature_holds(tmp_path: Path, title: str) -> None:
    (tmp_path / "secret").write_text(SECRET + "\n")
    async with (
        Receiver() as receiver,
        hook(tmp_path, receiver.url, secret_file=tmp_path / "secret") as sink,
    ):
        await sink.send([event(1, "lab/ä b%", title=title)])
    sent = receiver.requests[0]
    assert verified(sent, SECRET)
    assert not verified(Request("", sent.headers, sent.body + b" "), SECRET)
    assert not verified(sent, "whsec_" + base64.b64encode(b"another secret of some size").decode())


async def test_two_secrets_sign_while_one_follows_the_other(tmp_path: Path) -> None:
    new = "whsec_" + base64.b64encode(b"f" * 24).decode()
    (tmp_path / "secret").write_text(f"{SECRET}\n{new}\n")
    async with (
        Receiver() as receiver,
        hook(tmp_path, receiver.url, secret_file=tmp_path / "secret") as sink,
    ):
        await sink.send([event(1)])
        (tmp_path / "secret").write_text(new)
        await sink.send([event(2)])
    first, second = receiver.requests
    assert (verified(first, SECRET), verified(first, new)) == (True, True)
    assert (verified(second, SECRET), verified(second, new)) == (False, True)


async def test_an_id_that_no_header_can_hold_is_still_one_and_the_same(tmp_path: Path) -> None:
    odd = event(1, "lab/ä\r\nx: y%20 ")
    async with Receiver() as receiver, hook(tmp_path, receiver.url) as sink:
        await sink.send([odd])
        await sink.send([odd])
    assert {r.key for r in receiver.requests} == {"lab/%C3%A4%0D%0Ax:%20y%2520%20@100#1"}
    assert "x" not in receiver.requests[0].headers


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504, 599])
async def test_what_is_tried_again(tmp_path: Path, code: int) -> None:
    error = await refused(tmp_path, status(code))
    assert isinstance(error, SinkRetry)
    assert str(code) in str(error)
    assert error.after_s is None


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 409, 410, 413, 422, 425, 451, 499])
async def test_what_is_given_up(tmp_path: Path, code: int) -> None:
    error = await refused(tmp_path, status(code))
    assert isinstance(error, SinkRefusal)
    assert str(code) in str(error)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (HANG, "no whole answer within 1 s"),
        (HALF_HANG, "no whole answer within 1 s"),
        (RESET, "reset the connection"),
        (RESET_TAKEN, "reset the connection"),
        (CLOSE, "closed before the answer was whole"),
        (MID_BODY, "closed before the answer was whole"),
        (MID_CHUNK, "closed before the answer was whole"),
        (NO_HTTP, "or it is no HTTP"),
    ],
)
async def test_no_whole_answer_is_no_answer(tmp_path: Path, reply: Reply, said: str) -> None:
    error = await refused(tmp_path, reply)
    assert isinstance(error, SinkRetry)
    assert said in str(error)
    assert f"{tmp_path}/url" in str(error)


async def test_nobody_listens(tmp_path: Path) -> None:
    async with Receiver() as receiver:
        url = receiver.url
    async with hook(tmp_path, url) as sink:
        with pytest.raises(SinkRetry, match="refused the connection"):
            await sink.send([event(1)])


@pytest.mark.parametrize(
    ("headers", "after_s"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"Retry_After": "0"}, 0.0),
        ({"Retry_After": "Sun, 29 Nov 2026 12:02:00 GMT"}, 120.0),
        ({"Retry_After": "Sun, 29 Nov 2026 11:00:00 GMT"}, 0.0),
        # The receiver's clock is a day ahead, and both its dates are.
        (
            {
                "Retry_After": "Mon, 30 Nov 2026 12:00:30 GMT",
                "Date": "Mon, 30 Nov 2026 12:00:00 GMT",
            },
            30.0,
        ),
        ({"Retry_After": "soon"}, None),
        ({"Retry_After": "-5"}, None),
        ({"Retry_After": ""}, None),
        ({"Retry_After": "Sun, 99 Nov 2026 99:99:99 GMT"}, None),
    ],
)
@pytest.mark.parametrize("code", [429, 503])
async def test_when_to_come_back(
    tmp_path: Path, code: int, headers: dict[str, str], after_s: float | None
) -> None:
    error = await refused(tmp_path, status(code, **headers))
    assert isinstance(error, SinkRetry)
    assert error.after_s == after_s


@pytest.mark.parametrize("code", [301, 302, 303, 304, 307, 308])
async def test_a_redirect_is_not_followed(tmp_path: Path, code: int) -> None:
    async with Receiver() as elsewhere:
        error = await refused(tmp_path, status(code, b"", Location=elsewhere.url))
    assert isinstance(error, SinkRefusal)
    assert f"write the final address into {tmp_path}/url" in str(error)
    assert elsewhere.requests == []


async def test_an_endless_answer_is_an_answer(tmp_path: Path) -> None:
    endless = Reply(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 70_000)
    async with Receiver([endless]) as receiver, hook(tmp_path, receiver.url) as sink:
        await sink.send([event(1)])


async def test_no_cookie_comes_back(tmp_path: Path) -> None:
    async with (
        Receiver([status(200, Set_Cookie="id=1; Path=/")]) as receiver,
        hook(tmp_path, receiver.url) as sink,
    ):
        await sink.send([event(1), event(2)])
    assert "cookie" not in receiver.requests[1].headers


async def test_a_large_event_is_cut(tmp_path: Path) -> None:
    async with Receiver() as receiver, hook(tmp_path, receiver.url, max_bytes=2048) as sink:
        await sink.send([event(1, body="ä" * 9000)])
    sent = receiver.requests[0]
    assert 2036 <= len(sent.body) <= 2048  # ä takes six
    assert sent.news["body"].endswith("ä… (cut)")
    assert sent.news["title"] == "lab/1: RUNNING → FAILED"


async def test_what_is_no_json_is_refused_and_not_sent(tmp_path: Path) -> None:
    async with Receiver() as receiver, hook(tmp_path, receiver.url) as sink:
        with pytest.raises(SinkRefusal, match="lab/1@100#1 is not JSON"):
            await sink.send([event(1, odd=object())])
    assert receiver.requests == []


async def test_the_address_is_read_anew(tmp_path: Path) -> None:
    async with Receiver() as old, Receiver() as new, hook(tmp_path, old.url) as sink:
        await sink.send([event(1)])
        (tmp_path / "url").write_text(new.url)
        await sink.send([event(2)])
        assert (len(old.requests), len(new.requests)) == (1, 1)


@pytest.mark.parametrize(
    "text",
    ["", "ftp://h/x", "https://", "hunter2", "https://h/a b", "http://h/x\nhttp://h/y",
     "http://h/\x1b[31m", "http://[::1/x", "http://h:99999/x", "http://h:0/"],
)  # fmt: skip
async def test_a_file_that_holds_no_address(tmp_path: Path, text: str) -> None:
    async with hook(tmp_path, text) as sink:
        with pytest.raises(SinkRetry) as caught:
            await sink.send([event(1)])
        with pytest.raises(SinkRetry):
            await sink.check()
    assert str(caught.value) == f"{tmp_path}/url: expected one line that begins with https://"


async def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    async with hook(tmp_path, "http://127.0.0.1:9/") as sink:
        await sink.check()
        (tmp_path / "url").write_bytes(b"\xff\xfe")
        with pytest.raises(SinkRetry, match="url: not UTF-8"):
            await sink.send([event(1)])
        (tmp_path / "url").unlink()
        with pytest.raises(SinkRetry, match="url: No such file"):
            await sink.send([event(1)])


@pytest.mark.parametrize("text", ["", "hunter2!", "whsec_", f"{SECRET}\nhunter2!", "ä"])
async def test_a_file_that_holds_no_secret(tmp_path: Path, text: str) -> None:
    (tmp_path / "secret").write_text(text)
    async with (
        Receiver() as receiver,
        hook(tmp_path, receiver.url, secret_file=tmp_path / "secret") as sink,
    ):
        with pytest.raises(SinkRetry) as caught:
            await sink.send([event(1)])
    assert str(caught.value) == (
        f"{tmp_path}/secret: expected whsec_ and base64, one secret a line"
    )
    assert receiver.requests == []
