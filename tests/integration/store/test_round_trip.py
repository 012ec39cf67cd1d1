"""What is stored comes back as it was, field by field."""

import dataclasses
from datetime import UTC, datetime, timedelta, timezone

import pytest

from jobmond.errors import StoreError
from jobmond.model.commit import JobChange
from jobmond.model.job import Choices, Job, LogEvidence
from jobmond.model.observation import Facts, Link, Part, TaskCounts
from jobmond.model.outcome import Diagnosis, Recurrence, Signal, Transition
from jobmond.model.state import Bucket, Kind, PostMortem, Severity, State
from jobmond.model.training import Bookmark, Place, Training
from jobmond.model.trials import Bank, Engine, Trial, Trials, Work

T = datetime(2026, 11, 29, 8, 30, 15, 123456, tzinfo=UTC)
LATER = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)

FACTS = Facts(
    name="rl__gsm8k | x",
    user="alice",
    partition="boost",
    account="acc",
    comment="a\tb",
    workdir="/scratch/a b",
    command="/home/alice/run.sh --lr 1e-5",
    reason="NonZeroExitCode",
    exit_code=1,
    signal=9,
    submitted_at=T,
    started_at=T,
    ended_at=LATER,
    start_estimate_at=LATER,
    elapsed_s=4210,
    time_limit_s=86400,
    nodes="n[1-4]",
    dependency="afterany:4711(unfulfilled)",
    restarts=2,
    log_path="/scratch/x_4711.out",
    err_path="/scratch/x_4711.err",
    held=True,
    suspended=True,
    tasks=TaskCounts(5, {State.RUNNING: 3, State.FAILED: 2}, ("4711_3", "4711_4"), ("4711_1",)),
    progress="calibrating 14/32",
    message="pulling image\nback-off",
    misses=2,
    empty_since=T,
    bucket=Bucket.EVAL,
    scores={"MMLU-Pro": 42.26},
    submit_line="sbatch -N 4 rl.sbatch",
    node_count=4,
    gpus=32,
    detailed=True,
)
RECURRENCE = Recurrence(2, (T, LATER), 600, 900, False, "f00", "2 times", 1)
LINK = Link("4711", True, "1764434000", State.TIMEOUT, "TIMEOUT", Facts(user="alice"), T)
CHOICES = Choices(
    name="mine",
    description="the one with 漢字 and 🙂",
    bucket=Bucket.SFT,
    type="sft",
    run="cell-7",
    user="bob",
    owner="alice",
    owner_uid=4294967294,
    session={"agent": {"id": 7, "tags": ["a", None, 1.5]}},
    log_path="/elsewhere.log",
    nel_command=("/opt/nel/bin/nel", "--verbose"),
    nel_home="/home/bob",
    labels_added=frozenset({"no-kill", "agentic"}),
    labels_removed=frozenset({"smoke"}),
    last_status="RUNNING",
)
SIGNALS = (
    Signal(
        rule="rl-collapse",
        severity=Severity.ALARM,
        title="grad norm 3.1",
        evidence={"grad_norm": 3.1, "window": [1, 2]},
        action="cancel-and-salvage",
        step=15,
        last_step=5_000_000_000,
        opened_at=T,
        cleared_at=LATER,
        recovered_at=LATER,
    ),
    Signal("stall", Severity.WATCH, "cleared once", {}, opened_at=T, cleared_at=LATER),
    Signal("stall", Severity.WATCH, "and open again", {}, opened_at=LATER),
)
TRAINING = Training(
    dialect="skyrl",
    bucket=Bucket.RL,
    phase="training",
    step=7,
    max_step=80,
    metrics={"reward": 0.5, "reward/avg_raw_reward": float("inf")},
    rate_s_per_step=41.5,
    eta_s=3000.0,
    log_life=2,
    resumed_from=5,
    records=3,
    checkpoints=(5,),
    values=(0.25, float("inf")),
    grad_norms=(1.5,),
    first_step=6,
    before_step=5,
    stepped_at=T,
    began_at=LATER,
    behind_bytes=12,
    trend="Resumed at 5.",
)
WORK = Work(
    tree="/scratch/jobs/x",
    trials=Trials(
        9, 10, 1, 3, 5, {"AgentTimeoutError": 5}, 0.25, "all-trials", 12.5, "episodes", 8, 1, 2, 1,
        True, T, (Trial("a", 0.5, False, "X", 3, "episodes", 9, 2.5),), False, "m", "b",
    ),
    recent_done=9,
    recent_passed=3,
    engine=Engine(600.0, 1, 2, True),
    exported=12,
    infra={"tunnel": True, "api_base": None, "engine": False},
    trend="healthy",
    read_at=T,
    error="budget",
    bank=Bank(20, (10, 20), (30,), "/scratch/ckpt", ("/scratch/ckpt",), T, "no answer"),
)  # fmt: skip
WHOLE = Job(
    id=0,
    cluster="leo",
    kind=Kind.LOCAL,
    native_id="pid-4711",
    birth="boot 17",
    run="cell-7",
    life=3,
    bucket=Bucket.SFT,
    type="sft",
    labels=frozenset({"a", "b"}),
    choices=CHOICES,
    facts=FACTS,
    state=State.FAILED,
    native="FAILED",
    added_at=T,
    tracked=False,
    discovered=True,
    stale=True,
    first_seen_at=T,
    seen_at=LATER,
    ended_at=LATER,
    absent_since=T,
    proof="sacct",
    transitions=0,
    post_mortem=PostMortem.PENDING,
    post_mortem_tries=2,
    log=LogEvidence("read", "/x.out", 12, 2**40, T, LATER, "no", "last line", LATER, T),
    parts=(Part("65f6.0", "failed", State.FAILED, (LINK,), True, "/runs/0"), Part("65f6.1")),
    training=TRAINING,
    work=WORK,
    diagnosis=Diagnosis(
        "cuda-oom", "ran out", 12, 10, 2**40, ("a", "b"), "f00", 3, RECURRENCE, "/x.err"
    ),
    agent_log="/agent_logs/2026-11-29/leo-4711.md",
    signals=SIGNALS,
    probe="due",
    successor="leo/4712",
    predecessor=None,
    note="look",
)


def test_the_example_says_something_about_every_field():
    silent = {
        f.name
        for value in (
            WHOLE,
            FACTS,
            FACTS.tasks,
            CHOICES,
            WHOLE.log,
            WHOLE.parts[0],
            LINK,
            TRAINING,
            WORK,
            WORK.trials,
            WORK.trials.recent[0],
            WORK.engine,
            WHOLE.diagnosis,
            RECURRENCE,
            SIGNALS[0],
        )
        for f in dataclasses.fields(value)
        if getattr(value, f.name) in (None, (), frozenset()) or getattr(value, f.name) == f.default
    }
    assert silent == {"transitions", "predecessor"}


def test_a_job_comes_back_in_every_field(store, make):
    store.commit(make.sweep(WHOLE))
    (kept,) = store.lives("cell-7", "leo")
    assert kept == dataclasses.replace(WHOLE, id=kept.id)
    assert store.job(kept.id) == kept


def test_a_changed_job_comes_back_in_every_field(store, make):
    store.commit(make.sweep(make.job("pid-4711", kind=Kind.LOCAL, birth=None)))
    (first,) = store.jobs(recent_since=T)
    wanted = dataclasses.replace(
        WHOLE, id=first.id, choices=Choices(), added_at=first.added_at, discovered=False
    )
    store.commit(make.sweep(wanted))
    assert store.job(first.id) == wanted


def test_instants_of_any_zone_are_the_same_instant(store, make):
    there = timezone(timedelta(hours=5, minutes=30))
    store.commit(make.sweep(make.job(seen_at=datetime(2026, 11, 29, 14, 0, 0, 7, tzinfo=there))))
    (kept,) = store.jobs(recent_since=T)
    assert kept.seen_at == datetime(2026, 11, 29, 8, 30, 0, 7, tzinfo=UTC)
    assert kept.seen_at.tzinfo is UTC


def test_a_naive_instant_is_refused_and_nothing_is_written(store, make):
    bad = make.job(seen_at=datetime(2026, 11, 29))
    with pytest.raises(StoreError, match="without time zone"):
        store.commit(make.sweep(make.job("1"), bad))
    assert store.jobs(recent_since=T) == ()


def test_what_no_database_takes_costs_one_character_not_the_commit(store, make):
    hostile = make.job(
        facts=Facts(name="a\x00b\ud800", comment="\x00\udfff"),
        note="\x00note",
        native="'; DROP TABLE runs; --",
    )
    store.commit(make.sweep(hostile, make.job("4712")))
    kept, _ = store.jobs(recent_since=T)
    assert kept.note == "\ufffdnote"
    assert kept.native == "'; DROP TABLE runs; --"
    assert kept.facts.comment == "\x00\udfff"
    assert store.find("a\ufffdb\ufffd") == (kept,)


def test_numbers_that_json_does_not_know_become_the_interfaces_words(store, make):
    odd = Signal("nan-loss", Severity.ALARM, "t", {"loss": float("nan"), "up": [float("-inf")]})
    store.commit(make.sweep(make.job(signals=(odd,))))
    (kept,) = store.jobs(recent_since=T)
    assert kept.signals[0].evidence == {"loss": "nan", "up": ["-inf"]}


def test_transitions_are_kept_in_order_and_counted(store, make):
    first = make.step(State.PENDING)
    store.commit(make.sweep(JobChange(make.job(transitions=1), (first,))))
    (job,) = store.jobs(recent_since=T)
    more = (
        make.step(State.RUNNING, State.PENDING, minute=1),
        Transition(make.at(2), State.RUNNING, State.FAILED, "FAILED by x", correction=True),
    )
    store.commit(make.sweep(JobChange(dataclasses.replace(job, transitions=3), more)))
    assert store.transitions(job.id) == (first, *more)
    assert store.job(job.id).transitions == 3


def test_health_news_followups_and_deliveries_come_back(store, make):
    from jobmond.model.outcome import Delivery, Followup, News

    health = make.health(
        status="needs-login",
        active=False,
        error="no key",
        remedy="ssh leo",
        notes="n",
        failures=3,
        retry_at=LATER,
    )
    told = News("k", T, "cluster", Severity.WATCH, "leo", None, {"a": [1, {"b": None}]})
    owed = Delivery(0, "k", "team", {"text": "漢"}, T, T, attempts=2, last_error="e")
    opened = Followup(0, "cleanup", "leo/4711", "clean up", T)
    store.commit(make.sweep(health=health, news=(told,), deliveries=(owed,), opened=(opened,)))
    assert store.snapshot("leo", correct_since=T).health == health
    assert store.clusters(LATER) == (health,)
    assert store.events() == (told,)
    assert store.due("team", T, 10) == (dataclasses.replace(owed, id=1),)
    assert store.followups() == (dataclasses.replace(opened, id=1),)


def test_where_a_reading_stands_comes_back_whole(store, make):
    """Needles of any bytes."""
    job = make.job()
    mark = Bookmark(Place("/x.out", {"offset": 7}, (b"loss", b"\xff\x00")), b"\x00packed")
    store.commit(make.sweep(JobChange(job, bookmark=mark)))
    [kept] = store.jobs(recent_since=make.noon)
    assert store.places([kept.id, 99]) == {kept.id: mark.at}
    assert store.readings([kept.id]) == {kept.id: mark.reading}
    later = Bookmark(Place("/y.out", None, ()), b"")
    store.commit(make.sweep(JobChange(kept, bookmark=later)))
    store.commit(make.sweep(JobChange(kept)))
    assert store.places([kept.id]) == {kept.id: later.at}
    assert store.readings([kept.id]) == {kept.id: b""}
