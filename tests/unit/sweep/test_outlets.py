"""Sinks made of their tables, with the ports they ask for."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobmond import registry
from jobmond.errors import ConfigError
from jobmond.registry import Registry
from jobmond.sinks.file import FileSink
from jobmond.sinks.webhook import WebhookSink
from jobmond.sweep.outlets import outlets
from tests.doubles_store import FixedClock

CLOCK = FixedClock(datetime(2026, 11, 29, 12, 0, tzinfo=UTC))


class Http:
    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1


def made(*tables, http=Http):
    return outlets(tables, clock=CLOCK, http=http)


async def test_near_and_far(tmp_path: Path) -> None:
    one = made(
        ("team", "webhook", {"url_file": tmp_path / "url"}),
        ("news", "file", {"path": tmp_path / "news"}),
        ("ops", "webhook", {"url_file": tmp_path / "url", "spool": 5}),
    )
    assert isinstance(one.near["news"], FileSink)
    assert isinstance(one.far["team"], WebhookSink)
    assert (list(one.near), list(one.far)) == (["news"], ["team", "ops"])
    assert (one.far["team"].spool, one.far["ops"].spool) == (10_000, 5)
    assert one.far["team"].give_up_after == timedelta(days=3)
    http = one.http
    await one.close()
    assert isinstance(http, Http)
    assert http.closed == 1


async def test_http_is_made_once_and_only_where_it_is_needed(tmp_path: Path) -> None:
    count = []

    def http():
        count.append(1)
        return Http()

    one = made(("news", "file", {"path": tmp_path / "news"}), http=http)
    assert count == []
    await one.close()
    made(
        ("a", "webhook", {"url_file": tmp_path / "url"}),
        ("b", "webhook", {"url_file": tmp_path / "url"}),
        http=http,
    )
    assert count == [1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_bytes": 1023}, "sinks.team.max_bytes: must be at least 1024"),
        ({"spool": 0}, "sinks.team.spool: must be at least 1"),
        ({"timeout": timedelta(0)}, "sinks.team.timeout: must be at least 0:00:01"),
        ({"give_up_after": timedelta(0)}, "sinks.team.give_up_after: must be at least 0:01:00"),
    ],
)
def test_values_that_no_sink_takes(tmp_path: Path, options: dict, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made(("team", "webhook", {"url_file": tmp_path / "url", **options}))
    assert str(caught.value) == said


def test_a_port_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd:
        def __init__(self, telepathy: object, /) -> None: ...

    sinks: Registry[object] = Registry("sink", "jobmond.sinks")
    sinks.plugin("odd")(Odd)
    monkeypatch.setattr(registry, "sinks", sinks)
    with pytest.raises(LookupError, match="no port is called 'telepathy'"):
        made(("x", "odd", {}))
