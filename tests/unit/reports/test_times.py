import contextlib
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.reports.times import ago, instant, local, parse_instant, seconds, since, span

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
ROME = timezone(timedelta(hours=1))


def test_an_instant_is_utc_with_z_and_whole_seconds():
    at = datetime(2026, 11, 29, 13, 0, 5, 999, tzinfo=ROME)
    assert instant(at) == "2026-11-29T12:00:05Z"
    assert instant(None) is None


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-29T12:00:00Z", NOW),
        ("2026-11-29T13:00:00+01:00", NOW),
        ("2026-11-29T12:00:00", None),
        ("yesterday", None),
        (None, None),
        (12, None),
    ],
)
def test_only_an_instant_with_a_zone_is_one(text, at):
    assert parse_instant(text) == at


@pytest.mark.parametrize(
    ("amount_s", "text"),
    [
        (None, "—"),
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h00m"),
        (11100, "3h05m"),
        (86400, "1d00h"),
        (190_000, "2d04h"),
        (-4, "0s"),
    ],
)
def test_a_span_has_at_most_two_units(amount_s, text):
    assert span(amount_s) == text


def test_an_age():
    assert ago(NOW - timedelta(minutes=3), NOW) == "3m ago"
    assert ago(NOW + timedelta(hours=1), NOW) == "just now"
    assert ago(None, NOW) == "never"


def test_local_time_names_the_day_only_when_it_is_another():
    assert local(NOW, ROME, now=NOW) == "13:00"
    assert local(NOW - timedelta(days=1), ROME, now=NOW) == "2026-11-28 13:00"
    # 23:30 UTC is the next day in Rome already.
    late = datetime(2026, 11, 28, 23, 30, tzinfo=UTC)
    assert local(late, ROME, now=NOW) == "00:30"
    assert local(None, ROME) == "—"


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2h", datetime(2026, 11, 29, 10, 0, tzinfo=UTC)),
        ("1d12h", datetime(2026, 11, 28, 0, 0, tzinfo=UTC)),
        ("2026-11-29", datetime(2026, 11, 28, 23, 0, tzinfo=UTC)),
        ("9:05", datetime(2026, 11, 29, 8, 5, tzinfo=UTC)),
        ("12:30", datetime(2026, 11, 29, 11, 30, tzinfo=UTC)),
        ("2026-11-29T12:00:00Z", NOW),
        ("2026-11-29 12:00", datetime(2026, 11, 29, 11, 0, tzinfo=UTC)),
    ],
)
def test_since_knows_durations_dates_and_times(text, at):
    assert since(text, now=NOW, tz=ROME) == at


@pytest.mark.parametrize("text", ["", "soon", "2x", "99999999w", "25:00", "2026-13-01", "h"])
def test_what_is_no_time_is_said_in_one_line(text):
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        since(text, now=NOW, tz=ROME)


@given(st.text(max_size=20))
def test_since_takes_any_text(text):
    with contextlib.suppress(ValueError):
        assert since(text, now=NOW, tz=ROME).tzinfo is not None


@pytest.mark.parametrize(
    ("text", "amount_s"), [("90", 90.0), ("0.5", 0.5), ("30s", 30.0), ("1h30m", 5400.0)]
)
def test_durations(text, amount_s):
    assert seconds(text) == amount_s


@pytest.mark.parametrize("text", ["", "x", "1y", "-3", "nan", "1h x"])
def test_no_durations(text):
    with pytest.raises(ValueError, match="is no duration"):
        seconds(text)
