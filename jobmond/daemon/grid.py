"""When the next tick is due, as a function of now alone, so that jitter never drifts."""

import random
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def next_tick(now: datetime, *, interval: timedelta, jitter: timedelta, seed: str) -> datetime:
    """The first slot of the grid after `now`, plus that slot's own jitter.

    Slots are whole multiples of `interval` since 1970. The jitter of a slot is drawn from `seed`
    and the slot, so that asking twice gives the same answer, and is always shorter than
    `interval`. A tick is never in the past, whichever way the clock jumped.
    """
    slot = (now - _EPOCH) // interval
    while True:
        at = _EPOCH + slot * interval + _jitter(slot, jitter, seed)
        if at > now:
            return at
        slot += 1


def _jitter(slot: int, jitter: timedelta, seed: str) -> timedelta:
    # Spreads daemons over time; nothing secret depends on it.
    return jitter * random.Random(f"{seed}:{slot}").random()  # noqa: S311
