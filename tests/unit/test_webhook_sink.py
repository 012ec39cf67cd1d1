"""What a webhook makes of any bytes: in its files, and in what a receiver says."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobmond.errors import SinkError, SinkRefusal, SinkRetry, TransportError
from jobmond.model.outcome import Delivery
from jobmond.ports import HttpAnswer
from jobmond.sinks.webhook import WebhookSink
from jobmond.transports.http import HttpClient
from tests.doubles_store import FixedClock

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
EVENT = Delivery(1, "k", "team", {"title": "t"}, created_at=NOW, due_at=NOW)
quickly = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


class Saying:
    """Gives one answer to everything."""

    def __init__(self, status: int, **headers: str) -> None:
        self.answer = HttpAnswer(status, {k.replace("_", "-"): v for k, v in headers.items()}, b"")

    async def request(self, method: str, url: str, **how: object) -> HttpAnswer:
        return self.answer

    async def close(self) -> None: ...


def told(folder: Path, http: object, **files: Path) -> SinkError | None:
    """What the sink says of one event; None where it was taken."""
    files = {"url_file": folder / "good", **files}
    (folder / "good").write_text("http://receiver.invalid/hook")
    sink = WebhookSink(http, FixedClock(NOW), **files)
    try:
        asyncio.run(sink.send([EVENT]))
    except SinkError as error:
        assert "\n" not in str(error)
        return error
    return None


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every real request ends at a proxy that is not there."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)


dates = st.from_regex(r"\A[A-Za-z]{0,4},? ?[0-9]{0,5} ?[A-Z][a-z]{2} [0-9]{0,6} [0-9:]{0,9} .{0,6}")


@quickly
@given(asked=st.text() | dates | st.from_regex(r"\A[0-9]{0,30}\Z"), date=st.text() | dates)
def test_any_word_about_when_to_come_back(tmp_path: Path, asked: str, date: str) -> None:
    error = told(tmp_path, Saying(429, retry_after=asked, date=date))
    assert isinstance(error, SinkRetry)
    assert error.after_s is None or error.after_s >= 0


@quickly
@given(status=st.integers(-5, 2000))
def test_any_status(tmp_path: Path, status: int) -> None:
    error = told(tmp_path, Saying(status))
    if 200 <= status <= 299:
        assert error is None
    elif status in (408, 429) or status >= 500:
        assert isinstance(error, SinkRetry)
    else:
        assert isinstance(error, SinkRefusal)


@quickly
@given(content=st.binary(max_size=200))
def test_any_bytes_as_the_address(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "any").write_bytes(content)
    error = told(tmp_path, Saying(200), url_file=tmp_path / "any")
    assert error is None or isinstance(error, SinkRetry)


@quickly
@given(content=st.binary(max_size=200))
def test_any_bytes_as_the_secret(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "any").write_bytes(content)
    error = told(tmp_path, Saying(200), secret_file=tmp_path / "any")
    assert error is None or isinstance(error, SinkRetry)


async def _said(client: HttpClient, url: str) -> str:
    try:
        await client.request("POST", url, headers={}, timeout_s=30.0, max_bytes=10)
    except TransportError as error:
        return str(error)
    raise AssertionError(f"somebody answered {url!r}")


@pytest.fixture
def said() -> Iterator[Callable[[str], str]]:
    """What the client says of a URL; one client for all of them, because making one is slow."""
    client = HttpClient()
    with asyncio.Runner() as runner:
        yield lambda url: runner.run(_said(client, url))
        runner.run(client.close())


@quickly
@given(
    start=st.sampled_from(["http://", "https://", ""]),
    rest=st.text(max_size=60) | st.from_regex(r"\A(xn--)?[^/]{1,9}:[0-9]{0,6}/[%a-f0-9]{0,9}"),
)
def test_any_text_as_a_url(said: Callable[[str], str], start: str, rest: str) -> None:
    words = said(start + rest)
    assert "\n" not in words
    assert len(words) < 80
