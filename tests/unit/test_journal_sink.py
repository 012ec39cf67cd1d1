"""News in jobmond's own journal."""

from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from jobmond.model.outcome import Delivery
from jobmond.registry import sinks

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def news(key: str, title: str, severity: str = "info") -> Delivery:
    body = {
        "key": key,
        "type": "transition",
        "severity": severity,
        "title": title,
        "job": {"ref": "leonardo/4711"},
        "before": "RUNNING",
        "after": "FAILED",
    }
    return Delivery(0, key, "journal", body, created_at=NOW, due_at=NOW)


@pytest.mark.parametrize(
    ("severity", "level"), [("info", "info"), ("watch", "warning"), ("alarm", "error")]
)
async def test_one_line_for_each_news(severity: str, level: str) -> None:
    with capture_logs() as said:
        await sinks["journal"]().send([news("a", "leonardo/4711 FAILED", severity)])
    assert said == [
        {
            "event": "leonardo/4711 FAILED",
            "log_level": level,
            "type": "transition",
            "ref": "leonardo/4711",
            "before": "RUNNING",
            "after": "FAILED",
            "key": "a",
        }
    ]


async def test_a_key_is_said_once() -> None:
    sink = sinks["journal"]()
    with capture_logs() as said:
        await sink.send([news("a", "x"), news("a", "x"), news("b", "y")])
        await sink.send([news("b", "y")])
    assert [line["event"] for line in said] == ["x", "y"]


async def test_no_secret_and_no_control_character_gets_in() -> None:
    with capture_logs() as said:
        await sinks["journal"]().send([news("a", "\x1b[31m API_KEY=abc123")])
    assert said[0]["event"] == "\\x1b[31m API_KEY=****"
