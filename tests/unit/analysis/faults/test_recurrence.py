"""Whether a failure was there before, and what that means for the next attempt."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.recurrence import Earlier, recurrence

NOW = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)
OOM = "cuda-oom:OutOfMemoryError:train.py/step:1f2e3d4c"
DISK = "disk-full:OSError:save.py/save:0a0b0c0d"


def ago(hours: float, fingerprint: str = OOM, minutes: float | None = 31) -> Earlier:
    elapsed = None if minutes is None else round(minutes * 60)
    return Earlier(NOW - timedelta(hours=hours), fingerprint, elapsed)


def test_the_third_time_at_the_same_age_is_not_transient():
    found = recurrence([ago(48), ago(24)], fingerprint=OOM, at=NOW, elapsed_s=31 * 60 + 20)
    assert found.words == "third time in two days, each after about 31 minutes: not transient"
    assert (found.count, found.interval_s, found.transient) == (3, 1860, False)
    assert found.dates == (NOW - timedelta(hours=48), NOW - timedelta(hours=24))
    assert found.previous == OOM


def test_the_first_time_says_nothing_about_the_next():
    found = recurrence([], fingerprint=OOM, at=NOW, elapsed_s=60)
    assert (found.words, found.count, found.transient) == ("first time", 1, None)


def test_twice_at_different_ages_may_be_chance():
    found = recurrence([ago(5, minutes=200)], fingerprint=OOM, at=NOW, elapsed_s=600)
    assert (found.words, found.transient) == ("second time in five hours", None)


def test_twice_at_the_same_age_is_not_transient():
    found = recurrence([ago(5)], fingerprint=OOM, at=NOW, elapsed_s=1_900)
    assert found.words == "second time in five hours, each after about 31 minutes: not transient"


def test_often_without_known_ages():
    found = recurrence(
        [ago(hours, minutes=None) for hours in range(1, 12)], fingerprint=OOM, at=NOW
    )
    assert found.words == "12th time in 11 hours: not transient"


def test_other_failures_do_not_count_but_the_last_is_named():
    found = recurrence([ago(9, DISK, 2), ago(3, DISK, 40)], fingerprint=OOM, at=NOW, elapsed_s=90)
    assert found.words == "first time; the failure before was disk-full"
    assert (found.count, found.previous) == (1, DISK)


def test_attempts_that_all_die_at_the_same_age_whatever_they_say():
    found = recurrence([ago(9, DISK), ago(3, DISK)], fingerprint=OOM, at=NOW, elapsed_s=1_850)
    assert found.fixed_s == 1860
    assert found.words == (
        "first time; the last three failures all came after about 31 minutes"
        "; the failure before was disk-full"
    )


def test_what_comes_later_does_not_count():
    assert recurrence([ago(-1)], fingerprint=OOM, at=NOW).count == 1


@given(
    st.lists(
        st.builds(
            ago,
            st.floats(-99, 9_999, allow_nan=False),
            st.sampled_from([OOM, DISK, ""]),
            st.none() | st.floats(0, 1e5, allow_nan=False),
        ),
        max_size=12,
    ),
    st.none() | st.integers(0, 10**7),
    st.randoms(),
)
def test_the_order_does_not_matter_and_every_history_has_words(earlier, elapsed, random):
    found = recurrence(earlier, fingerprint=OOM, at=NOW, elapsed_s=elapsed)
    mixed = list(earlier)
    random.shuffle(mixed)
    again = recurrence(mixed, fingerprint=OOM, at=NOW, elapsed_s=elapsed)
    assert (again.count, again.words.split(";")[0]) == (found.count, found.words.split(";")[0])
    assert found.count == 1 + sum(e.fingerprint == OOM and e.at < NOW for e in earlier)
    assert "\n" not in found.words
