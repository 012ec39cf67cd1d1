"""Sweeps and people in any order: no commit fails, and a person's word stands.

A commit that broke a constraint would break it again at every sweep, and the cluster would be
blind from then on.
"""

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from jobmond.errors import Refused
from jobmond.model.commit import ClusterSnapshot, JobChange, SweepCommit
from jobmond.model.job import Choices, Classified, ClusterHealth, Job
from jobmond.model.observation import Facts
from jobmond.model.outcome import Signal, Transition
from jobmond.model.state import TERMINAL, Bucket, Kind, Severity, State
from jobmond.store import Store

T = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
LATE = T + timedelta(days=400)
# Shrinking takes minutes here: every try is a database of its own.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
BLANK = Job(
    id=0,
    cluster="leo",
    kind=Kind.SLURM,
    native_id="",
    birth=None,
    run="",
    life=1,
    bucket=Bucket.OTHER,
    type="other",
    labels=frozenset(),
    choices=Choices(),
    facts=Facts(),
    state=State.PENDING,
    native="",
    added_at=T,
    discovered=True,
)

ids = st.sampled_from(["1", "2"])
births = st.sampled_from(["a", "b", "c"])
runs = st.sampled_from(["r", "s"])
states = st.sampled_from(
    [State.RUNNING, State.PENDING, State.FAILED, State.LOST, State.TIMEOUT, State.UNKNOWN]
)
what_people_do = st.one_of(
    st.tuples(st.just("add"), ids, st.none() | births),
    st.tuples(st.just("drop"), ids, st.none()),
    st.tuples(st.just("choose"), ids, runs),
    st.tuples(st.just("expire"), st.none(), st.none()),
)
what_a_sweep_sees = st.lists(
    st.one_of(
        st.tuples(st.just("moved"), st.integers(0, 3), births, states, runs),
        st.tuples(st.just("requeued"), st.integers(0, 3), births, states, runs),
        st.tuples(st.just("joined"), st.integers(0, 3), births, states, runs),
        st.tuples(st.just("found"), ids, births, states, runs),
    ),
    max_size=4,
)

# What broke once: a job and its twin in one sweep.
twice = [("moved", 0, "a", State.RUNNING, "r"), ("found", "1", "a", State.RUNNING, "r")]

rounds = st.lists(st.tuples(st.lists(what_people_do, max_size=3), what_a_sweep_sees), max_size=5)


def change(job: Job, state: State) -> JobChange:
    over = state in TERMINAL
    after = replace(
        job,
        state=state,
        native=state.value,
        tracked=not over,
        ended_at=T if over else None,
        signals=(Signal("stall", Severity.WATCH, state.value, {}),),
    )
    return JobChange(after, (Transition(T, job.state, state, state.value),))


def changes(past: ClusterSnapshot, seen: list[tuple]) -> tuple[JobChange, ...]:
    """What a sweep could conclude from `past`: each job and each new birth at most once."""
    made: dict[object, JobChange] = {}
    for what, which, birth, state, run in seen:
        if what == "found":
            new = replace(BLANK, native_id=which, birth=birth, run=run)
            made.setdefault((which, birth), change(new, state))
            continue
        if which >= len(past.jobs) or past.jobs[which].id in made:
            continue
        job = past.jobs[which]
        named = replace(job, birth=job.birth or birth)
        if what == "moved":
            made[job.id] = change(replace(named, run=run), state)
        elif what == "joined":
            others = [one.id for one in past.jobs if one.id != job.id]
            before = others[0] if others else None
            made[job.id] = change(replace(named, run=run, life=2, predecessor=before), state)
        elif named.birth != birth:
            made[job.id] = change(named, State.PREEMPTED)
            child = replace(named, id=0, birth=birth, life=job.life + 1, predecessor=job.id)
            made.setdefault((job.native_id, birth), change(child, state))
    return tuple(made.values())


def act(store: Store, what: str, native_id: str, more: str | None) -> None:
    if what == "expire":
        store.expire(LATE, history_keep=timedelta(days=1))
        return
    if what == "add":
        choices = Choices(owner="alice", labels_added=frozenset({"mine"}))
        place = Classified(Bucket.RL, "rl", "r", frozenset({"mine"}))
        (held,) = [job for job in store.find(f"leo/{native_id}") if job.tracked] or [None]
        try:
            added = store.add(
                "leo", Kind.SLURM, native_id, choices=choices, classified=place, now=T, birth=more
            )
        except Refused:
            assert held is not None
            assert held.birth not in (None, more)
            return
        assert "mine" in added.job.labels
        assert not added.created or added.job.tracked
        return
    for job in store.find(f"leo/{native_id}"):
        if what == "drop":
            assert not store.untrack(job.id, by="alice", now=T).tracked
        else:
            choices = replace(job.choices, run=more)
            store.choose(job.id, choices, Classified(job.bucket, job.type, more, job.labels))


def everything(store: Store) -> dict[int, Job]:
    return {job.id: job for run in ("r", "s") for job in store.lives(run, "leo")}


@settings(max_examples=60, deadline=None, phases=PHASES)
@example([([], twice), ([], twice)])
@given(rounds)
def test_any_order_of_sweeps_and_people(steps):
    with closing(Store.open("sqlite://")) as store:
        for number, (people, seen) in enumerate(steps):
            past = store.snapshot("leo", correct_since=T)
            loaded = everything(store)
            for what, native_id, more in people:
                act(store, what, native_id, more)
            before = everything(store)
            health = ClusterHealth("leo", "slurm", True, "ok", since=T)
            store.commit(SweepCommit("leo", T, T, health, changes(past, seen)))
            check(loaded, before, everything(store), f"round {number}")


def check(
    loaded: dict[int, Job], before: dict[int, Job], after: dict[int, Job], where: str
) -> None:
    tracked = [job.native_id for job in after.values() if job.tracked]
    assert len(tracked) == len(set(tracked)), where
    born = [(job.native_id, job.birth) for job in after.values() if job.birth]
    assert len(born) == len(set(born)), where
    for number, job in after.items():
        old = before.get(number)
        dropped = number in loaded and loaded[number].tracked and old and not old.tracked
        assert not (dropped and job.tracked), f"{where}: a person's rm was undone"
        if old and old.choices != loaded.get(number, old).choices:
            assert job.labels >= old.choices.labels_added, where
            assert old.choices.run in (None, job.run), where
        assert number not in loaded or number in before or number not in after, where
