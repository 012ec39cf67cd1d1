"""Jobs and sightings for tests, with only what a test cares about spelled out."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from jobmond.model.job import Choices, Classified, Job
from jobmond.model.observation import EndedLife, Facts, Seen
from jobmond.model.state import Bucket, Kind, State

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
DAY = timedelta(hours=24)


def at(minutes: float) -> datetime:
    """NOW plus some minutes."""
    return NOW + timedelta(minutes=minutes)


def job(native_id: str = "4711", **changes) -> Job:
    """A tracked job, seen RUNNING, born at 100."""
    base = Job(
        id=int(head) if (head := native_id.split("_", maxsplit=1)[0]).isdecimal() else 1,
        cluster="lab",
        kind=Kind.SLURM,
        native_id=native_id,
        birth="100",
        run="train",
        life=1,
        bucket=Bucket.OTHER,
        type="job",
        labels=frozenset(),
        choices=Choices(),
        facts=Facts(name="train"),
        state=State.RUNNING,
        native="RUNNING",
        added_at=at(-60),
        first_seen_at=at(-60),
        seen_at=at(-15),
        transitions=1,
    )
    return replace(base, **changes)


def unseen(native_id: str = "4711", **changes) -> Job:
    """A job that was added and never seen."""
    blank = job(native_id, birth=None, facts=Facts(), state=State.UNKNOWN, native="")
    blank = replace(blank, run=native_id, first_seen_at=None, seen_at=None, transitions=0)
    return replace(blank, **changes)


def seen(state: State, *, birth: str = "100", native: str | None = None, **facts) -> Seen:
    """A sighting; facts by keyword, `previous` among them."""
    previous: tuple[EndedLife, ...] = facts.pop("previous", ())
    facts.setdefault("name", "train")
    return Seen(
        state, native or state.value, birth, Facts(**facts), proof="sacct", previous=previous
    )


def ended(state: State, birth: str = "100", **facts) -> EndedLife:
    """An earlier life under the same id."""
    return EndedLife(birth, state, state.value, Facts(**facts))


def by_name(
    choices: Choices, facts: Facts, native_id: str, read_as: Bucket | None = None, /
) -> Classified:
    """A classification that only looks at the name."""
    name = choices.name or facts.name or native_id
    return Classified(Bucket.OTHER, "job", choices.run or name, frozenset())
