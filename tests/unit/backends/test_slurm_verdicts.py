"""Verdicts beyond the single traps: many parts, no accounting, runaways, what is owed."""

from datetime import UTC, datetime, timedelta

import pytest

from jobmond.backends.slurm import SlurmBackend
from jobmond.errors import ConfigError, NeedsPersonError
from jobmond.model.observation import Ask, Facts, Gone, Poll, Seen, Unreachable
from jobmond.model.state import State
from jobmond.registry import backends
from tests.doubles import FakeSlurm, ScriptedTransport, accounted, queued, record

T0 = 1_000_000
NOW = datetime.fromtimestamp(T0 + 3600, UTC)
BEGAN = datetime.fromtimestamp(T0, UTC)
BIRTH = str(T0)
DISABLED = {"sacct": (1, b"Slurm accounting storage is disabled\n")}


def known(job: str = "7", state: State = State.RUNNING, **facts: object) -> Ask:
    values = {"user": "alice", "submitted_at": BEGAN} | facts
    return Ask(job, BIRTH, added_at=BEGAN, state=state, facts=Facts(**values))  # type: ignore[arg-type] # keywords of the test's own


def new(job: str) -> Ask:
    return Ask(job, None, added_at=BEGAN)


async def polled(
    cluster: FakeSlurm,
    *asks: Ask,
    backend: SlurmBackend | None = None,
    now: datetime = NOW,
    since: datetime = BEGAN,
) -> Poll:
    backend = backend or SlurmBackend(cluster)
    return await backend.poll(asks, since=since, now=now, timeout_s=100)


async def seen(cluster: FakeSlurm, ask: Ask, **options: object) -> Seen:
    sighting = (await polled(cluster, ask, **options)).sightings[ask.native_id]  # type: ignore[arg-type] # keywords of the test's own
    assert isinstance(sighting, Seen), sighting
    return sighting


# ── ids and options ──


@pytest.mark.parametrize("good", ["7", "4711", "4711_3", "4711_0", "103+1"])
def test_ids_that_are_asked_for(good):
    assert SlurmBackend(FakeSlurm()).valid_id(good) is None


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "0",
        "x",
        "7;id",
        "7 8",
        "7_",
        "7_[1-2]",
        "-7",
        "7\n",
        "$(id)",
        "\u0667",
        "7.batch",
        "7+",
        "07",
    ],
)
async def test_nothing_else_ever_reaches_a_script(bad):
    cluster = FakeSlurm()
    backend = SlurmBackend(cluster)
    assert backend.valid_id(bad) is not None
    poll = await polled(cluster, Ask(bad, None, added_at=BEGAN), backend=backend)
    assert isinstance(poll.sightings[bad], Unreachable)
    assert cluster.scripts[0].count("ask sacct") == 1
    assert " -j" not in cluster.scripts[0]


@pytest.mark.parametrize("user", ["", "-x", "a b", "a,b", "a\nb", "a'b"])
def test_a_name_that_is_no_user_is_refused(user):
    with pytest.raises(ConfigError):
        SlurmBackend(FakeSlurm(), users=[user])


async def test_users_are_quoted_and_the_login_user_is_the_default():
    cluster = FakeSlurm()
    await polled(cluster, backend=SlurmBackend(cluster, users=["alice", "b$ob"]))
    await polled(cluster)
    assert "jobmond_own='alice,b$ob'" in cluster.scripts[0]
    assert 'jobmond_own="$(id -un)"' in cluster.scripts[1]


def test_the_registry_knows_it():
    made = backends["slurm"](FakeSlurm(), users=("alice",), accounting="none", bin_dir="/opt/x y")
    assert made.kind == "slurm"
    assert made.discovers


# ── transports ──


async def test_what_needs_a_person_says_so():
    locked = ScriptedTransport(NeedsPersonError("key refused", remedy="ssh leonardo"))
    poll = await polled(locked, known())  # type: ignore[arg-type] # a double of the transport
    assert (poll.needs_login, poll.remedy, poll.trouble) == (True, "ssh leonardo", "key refused")
    assert poll.sightings == {"7": Unreachable("key refused")}


@pytest.mark.parametrize(
    ("rc", "said"),
    [
        (127, "squeue was not found on PATH there; set bin_dir to the directory that holds it"),
        (137, "squeue did not answer in time"),
        (2, "squeue ended with 2"),
    ],
)
async def test_a_squeue_that_fails_is_trouble(rc, said):
    poll = await polled(FakeSlurm(failing={"squeue": (rc, b"")}), known())
    assert poll.trouble == said


# ── accounting that does not exist ──


async def test_without_accounting_the_queue_ends_a_job():
    row = queued("7", "FAILED", end=T0 + 99, reason="NonZeroExitCode")
    cluster = FakeSlurm(
        queue=[row], failing=DISABLED, records={"7": record("7", "FAILED", ExitCode="3:0")}
    )
    sighting = await seen(cluster, known())
    assert (sighting.state, sighting.proof, sighting.facts.exit_code) == (State.FAILED, "squeue", 3)
    assert sighting.facts.ended_at == datetime.fromtimestamp(T0 + 99, UTC)
    assert (await polled(cluster, known())).trouble is None


async def test_without_accounting_a_job_nobody_knows_is_gone_without_an_answer():
    poll = await polled(FakeSlurm(failing=DISABLED), known())
    gone = poll.sightings["7"]
    assert isinstance(gone, Gone)
    assert not gone.complete


async def test_accounting_can_be_switched_off():
    cluster = FakeSlurm(queue=[queued("7", "COMPLETED", end=T0 + 9)])
    backend = SlurmBackend(cluster, accounting="none")
    assert (await seen(cluster, known(), backend=backend)).state is State.COMPLETED
    assert "ask sacct" not in cluster.scripts[0]


async def test_an_old_accounting_that_refuses_a_field_is_asked_without_it_next_time():
    refusal = b'sacct: fatal: Invalid field requested: "SubmitLine"\n'
    cluster = FakeSlurm(failing={"sacct": (1, refusal)})
    backend = SlurmBackend(cluster)
    assert isinstance((await polled(cluster, known(), backend=backend)).sightings["7"], Unreachable)
    cluster.failing, cluster.accounts = {}, [accounted("7", "COMPLETED", end=T0 + 60)]
    assert (await seen(cluster, known(), backend=backend)).state is State.COMPLETED
    assert "SubmitLine" not in cluster.scripts[-1]


# ── states ──


@pytest.mark.parametrize("word", ["EXPEDITING", "POWERED_DOWN", "", "7|FAILED"])
async def test_a_word_that_is_not_known_moves_only_that_job_not_at_all(word):
    cluster = FakeSlurm(queue=[queued("7", word), queued("8", "RUNNING")])
    poll = await polled(cluster, known("7"), known("8"))
    first = poll.sightings["7"]
    assert isinstance(first, Unreachable)
    assert word in first.error
    assert isinstance(poll.sightings["8"], Seen)
    assert poll.complaints == (f"job 7: the state {word!r} is not known",)


async def test_an_accounting_word_that_is_not_known_moves_nothing():
    poll = await polled(FakeSlurm(accounts=[accounted("7", "EXPEDITED", end=T0 + 9)]), known())
    assert poll.sightings["7"] == Unreachable(
        "accounting shows a state that is not known: EXPEDITED"
    )


async def test_the_queue_says_finished_and_accounting_not_yet():
    cluster = FakeSlurm(queue=[queued("7", "COMPLETED")], accounts=[accounted("7", "RUNNING")])
    poll = await polled(cluster, known())
    assert poll.sightings["7"] == Unreachable("the queue says COMPLETED; accounting says RUNNING")


async def test_a_job_that_ended_between_the_two_questions():
    ended = accounted("7", "COMPLETED", end=T0 + 60)
    cluster = FakeSlurm(queue=[queued("7", "RUNNING")], accounts=[ended])
    assert (await seen(cluster, known())).state is State.COMPLETED


async def test_waiting_again_after_a_failure_is_the_queues_word():
    ended = accounted("7", "FAILED", end=T0 + 60)
    cluster = FakeSlurm(queue=[queued("7", "REQUEUE_HOLD")], accounts=[ended])
    sighting = await seen(cluster, known())
    assert (sighting.state, sighting.facts.held) == (State.PENDING, True)


async def test_cancelled_while_waiting_between_the_two_questions():
    ended = accounted("7", "CANCELLED by 0", end=T0 + 60)
    cluster = FakeSlurm(queue=[queued("7", "PENDING")], accounts=[ended])
    assert (await seen(cluster, known(state=State.PENDING))).state is State.CANCELLED


async def test_a_node_failure_of_a_job_the_queue_has_let_go_is_its_end():
    row = accounted("7", "NODE_FAIL", end=T0 + 60)
    assert (await seen(FakeSlurm(accounts=[row]), known())).state is State.NODE_FAIL


async def test_a_job_of_somebody_else_is_not_judged_by_our_queue():
    running = accounted("7", "RUNNING", user="carol")
    cluster = FakeSlurm(accounts=[running], records={"7": record("7", "RUNNING")})
    sighting = await seen(cluster, new("7"))
    assert (sighting.state, sighting.proof) == (State.RUNNING, "scontrol")
    await polled(cluster, known(user="carol"))
    assert "for jobmond_one in carol; do" in cluster.scripts[-1]


# ── runaways ──


async def test_a_runaway_record_is_given_up_after_a_day_and_not_on_one_look():
    cluster = FakeSlurm(accounts=[accounted("7", "RUNNING", limit="UNLIMITED")])
    backend = SlurmBackend(cluster)
    for hours in (0, 12, 23):
        poll = await polled(cluster, known(), backend=backend, now=NOW + timedelta(hours=hours))
        assert isinstance(poll.sightings["7"], Unreachable)
    poll = await polled(cluster, known(), backend=backend, now=NOW + timedelta(hours=25))
    assert isinstance(poll.sightings["7"], Gone)


async def test_a_record_far_past_its_limit_is_given_up_sooner():
    cluster = FakeSlurm(accounts=[accounted("7", "RUNNING", limit=10)])
    backend = SlurmBackend(cluster)
    later = NOW + timedelta(days=3)
    first = await polled(cluster, known(), backend=backend, now=later)
    assert isinstance(first.sightings["7"], Unreachable)
    again = await polled(cluster, known(), backend=backend, now=later + timedelta(minutes=15))
    assert isinstance(again.sightings["7"], Gone)


async def test_a_runaway_that_scontrol_knows_is_no_runaway():
    cluster = FakeSlurm(
        accounts=[accounted("7", "RUNNING", limit=10)], records={"7": record("7", "RUNNING")}
    )
    backend = SlurmBackend(cluster)
    later = NOW + timedelta(days=3)
    await polled(cluster, known(), backend=backend, now=later)
    sighting = await seen(cluster, known(), backend=backend, now=later + timedelta(minutes=15))
    assert (sighting.state, sighting.proof) == (State.RUNNING, "scontrol")


# ── many parts ──


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (["RUNNING", "FAILED", "PENDING"], State.RUNNING),
        (["PENDING", "FAILED", "COMPLETED"], State.PENDING),
        (["COMPLETED", "COMPLETED"], State.COMPLETED),
        (["COMPLETED", "TIMEOUT", "CANCELLED by 0"], State.TIMEOUT),
        (["OUT_OF_MEMORY", "FAILED"], State.FAILED),
        (["PREEMPTED", "CANCELLED"], State.PREEMPTED),
    ],
)
async def test_an_array_is_as_its_parts_are(words, state):
    live = ("RUNNING", "PENDING")
    queue = [queued(f"9_{i}", word, raw=10 + i) for i, word in enumerate(words) if word in live]
    rows = [
        accounted(f"9_{i}", word, end=T0 + 60 + i, raw=10 + i)
        for i, word in enumerate(words)
        if word not in live
    ]
    sighting = await seen(FakeSlurm(queue=queue, accounts=rows), new("9"))
    assert sighting.state is state
    assert sighting.facts.tasks is not None
    assert sighting.facts.tasks.total == len(words)


async def test_an_array_that_ended_spans_its_tasks():
    rows = [
        accounted("9_0", "COMPLETED", start=T0 + 10, end=T0 + 60),
        accounted("9_1", "FAILED", start=T0 + 30, end=T0 + 90, code="3:0"),
    ]
    facts = (await seen(FakeSlurm(accounts=rows), known("9"))).facts
    assert facts.started_at == datetime.fromtimestamp(T0 + 10, UTC)
    assert facts.ended_at == datetime.fromtimestamp(T0 + 90, UTC)
    assert (facts.elapsed_s, facts.exit_code) == (80, 3)
    assert facts.tasks is not None
    assert facts.tasks.failed == ("9_1",)


@pytest.mark.parametrize(
    ("listed", "total"), [("9_[2-9%2]", 8), ("9_[0-1,3]", 3), ("9_[0-20:4]", 6), ("9_[7]", 1)]
)
async def test_tasks_that_wait_are_counted(listed, total):
    row = queued(listed, "PENDING", reason="JobArrayTaskLimit", start="N/A")
    tasks = (await seen(FakeSlurm(queue=[row]), new("9"))).facts.tasks
    assert tasks is not None
    assert (tasks.total, tasks.by_state) == (total, {State.PENDING: total})


async def test_a_waiting_task_has_its_arrays_row():
    row = queued("9_[2-9%2]", "PENDING", start="N/A")
    assert (await seen(FakeSlurm(queue=[row]), new("9_4"))).state is State.PENDING
    poll = await polled(FakeSlurm(queue=[row]), new("9_1"))
    assert isinstance(poll.sightings["9_1"], Gone)


async def test_a_task_is_known_by_the_number_slurm_keeps_for_it():
    row = queued("9_1", "RUNNING", raw=10)
    sighting = await seen(FakeSlurm(queue=[row]), new("10"))
    assert (sighting.state, sighting.facts.tasks) == (State.RUNNING, None)


async def test_a_task_queued_again_keeps_the_array_alive():
    again = T0 + 500
    cluster = FakeSlurm(
        queue=[queued("9_1", "PENDING", submit=again)],
        accounts=[accounted("9_0", "COMPLETED", end=T0 + 60)],
    )
    sighting = await seen(cluster, known("9"))
    assert (sighting.state, sighting.birth) == (State.PENDING, BIRTH)


async def test_a_recycled_array_id_is_another_array():
    later = T0 + 900_000
    cluster = FakeSlurm(
        queue=[queued("9_0", "RUNNING", submit=later), queued("9_5", "RUNNING", submit=later)],
        accounts=[
            accounted("9_0", "FAILED", end=T0 + 60),
            accounted("9_0", "RUNNING", submit=later),
        ],
    )
    sighting = await seen(cluster, known("9"))
    assert (sighting.state, sighting.birth) == (State.FAILED, BIRTH)
    assert sighting.facts.tasks is not None
    assert sighting.facts.tasks.total == 1


async def test_an_array_with_a_task_in_doubt_is_not_ended():
    rows = [accounted("9_0", "COMPLETED", end=T0 + 60), accounted("9_1", "RUNNING")]
    poll = await polled(FakeSlurm(accounts=rows), known("9"))
    assert isinstance(poll.sightings["9"], Unreachable)


async def test_a_heterogeneous_job_waits_for_its_last_component():
    cluster = FakeSlurm(
        queue=[queued("5+1", "RUNNING", raw=6)],
        accounts=[accounted("5+0", "FAILED", end=T0 + 9), accounted("5+1", "RUNNING")],
    )
    sighting = await seen(cluster, known("5"))
    assert sighting.state is State.RUNNING
    assert sighting.facts.tasks is not None
    assert sighting.facts.tasks.failed == ("5+0",)
    assert (await seen(cluster, new("5+0"))).state is State.FAILED


# ── scontrol's budget ──


async def test_at_most_fifty_calls_and_the_others_have_their_turn_next():
    rows = [queued(str(i), "RUNNING", submit=T0 + i) for i in range(1, 121)]
    cluster = FakeSlurm(
        queue=rows,
        records={str(i): record(str(i), "RUNNING", SubmitTime=T0 + i) for i in range(1, 121)},
    )
    backend = SlurmBackend(cluster)
    detailed: dict[str, bool] = {}
    for turn in range(3):
        asks = [
            Ask(
                str(i),
                str(T0 + i),
                BEGAN,
                state=State.RUNNING,
                facts=Facts(detailed=detailed.get(str(i), False)),
            )
            for i in range(1, 121)
        ]
        cluster.shown.clear()
        poll = await polled(cluster, *asks, backend=backend)
        if turn == 0:
            assert cluster.shown[0] == "120"  # the newest first
        assert len(cluster.shown) <= 50
        assert poll.calls == {"squeue": 1, "sacct": 1, "scontrol": len(cluster.shown)}
        detailed = {n: s.facts.detailed for n, s in poll.sightings.items() if isinstance(s, Seen)}
    assert all(detailed.values())


async def test_failing_jobs_come_first():
    rows = [queued(str(i), "RUNNING", submit=T0 + i) for i in range(1, 61)]
    rows.append(queued("500", "FAILED", submit=T0 - 900, end=T0 + 1))
    ended = accounted("500", "FAILED", submit=T0 - 900, end=T0 + 1)
    cluster = FakeSlurm(queue=rows, accounts=[ended])
    await polled(cluster, *(new(str(i)) for i in (*range(1, 61), 500)))
    assert cluster.shown[0] == "500"


async def test_what_was_told_is_not_asked_again_and_not_forgotten():
    cluster = FakeSlurm(queue=[queued("7", "RUNNING")])
    told = known(detailed=True, log_path="/l.out", err_path="/e.err", restarts=2)
    facts = (await seen(cluster, told)).facts
    assert (facts.log_path, facts.err_path, facts.restarts) == ("/l.out", "/e.err", 2)
    assert (facts.detailed, cluster.shown) == (True, [])
    await polled(cluster, known(state=State.PENDING, detailed=True))
    assert cluster.shown == ["7"]


async def test_a_controller_that_stops_answering_ends_the_round():
    cluster = FakeSlurm(
        queue=[queued(str(i), "RUNNING") for i in range(1, 9)],
        failing={"scontrol": (1, b"slurm_load_jobs error: Unable to contact slurm controller\n")},
    )
    poll = await polled(cluster, *(new(str(i)) for i in range(1, 9)))
    assert all(isinstance(s, Seen) and not s.facts.detailed for s in poll.sightings.values())
    assert len(cluster.shown) == 1
    assert poll.trouble is None


async def test_of_an_array_one_task_is_asked_about():
    rows = [queued(f"9_{i}", "RUNNING", raw=100 + i) for i in range(4)]
    cluster = FakeSlurm(
        queue=rows,
        records={"9_0": record("100", "RUNNING", ArrayJobId=9, ArrayTaskId=0)},
    )
    sighting = await seen(cluster, new("9"))
    assert cluster.shown == ["9_0"]
    assert (sighting.facts.log_path, sighting.facts.detailed) == ("/home/alice/slurm-100.out", True)


# ── what nobody asked about ──


async def test_found_is_what_lives_or_ended_lately_of_our_users():
    cluster = FakeSlurm(
        queue=[queued("1", "RUNNING"), queued("2", "PENDING"), queued("9_[1-2]", "PENDING")],
        accounts=[
            accounted("3", "FAILED", end=T0 + 3000),
            accounted("4", "FAILED", end=T0 + 60),
            accounted("5", "FAILED", end=T0 + 3000, user="carol"),
        ],
    )
    since = BEGAN + timedelta(seconds=2000)
    poll = await polled(cluster, known("2", State.PENDING), since=since)
    assert [native for native, _ in poll.found] == ["1", "3", "9"]


async def test_what_a_question_by_name_did_not_show_is_found_by_the_next():
    hidden = accounted("3", "FAILED", end=T0 + 3000)
    cluster = FakeSlurm(queue=[queued("7", "RUNNING")], accounts=[hidden])
    backend = SlurmBackend(cluster)
    first = await polled(cluster, new("7"), backend=backend, since=BEGAN)
    assert first.found == ()
    second = await polled(cluster, known("7"), backend=backend, since=NOW)
    assert [native for native, _ in second.found] == ["3"]


async def test_found_jobs_share_the_budget_only_where_they_will_be_tracked():
    cluster = FakeSlurm(queue=[queued("1", "RUNNING")], records={"1": record("1", "RUNNING")})
    await polled(cluster)
    assert cluster.shown == []
    poll = await polled(cluster, backend=SlurmBackend(cluster, discover=True))
    assert poll.found[0][1].facts.log_path == "/home/alice/slurm-1.out"


async def test_accounting_goes_back_as_far_as_it_is_asked_to():
    cluster = FakeSlurm()
    await polled(cluster, since=datetime(2026, 11, 29, 12, 30, tzinfo=UTC))
    assert "-S 2026-11-29T12:20:00 -E now -s " in cluster.scripts[0]


# ── what is easily mistaken ──


async def test_an_id_recycled_within_the_hour_by_somebody_else_is_no_requeue():
    ours = accounted("7", "COMPLETED", end=T0 + 60)
    theirs = accounted("7", "FAILED", submit=T0 + 600, end=T0 + 700, user="bob")
    sighting = await seen(FakeSlurm(accounts=[ours, theirs]), known())
    assert (sighting.state, sighting.birth) == (State.COMPLETED, BIRTH)


async def test_tasks_that_still_wait_are_not_counted_as_cancelled_too():
    cluster = FakeSlurm(
        queue=[queued("9_[3-9]", "PENDING", start="N/A")],
        accounts=[accounted("9_[2-9]", "CANCELLED by 1000", end=T0 + 60)],
    )
    tasks = (await seen(cluster, new("9"))).facts.tasks
    assert tasks is not None
    assert tasks.by_state == {State.PENDING: 7}


async def test_newcomers_do_not_push_out_those_who_wait_for_their_turn():
    cluster = FakeSlurm()
    backend = SlurmBackend(cluster, max_scontrol=2)
    for turn in range(3):
        jobs = range(1, 4 + turn)
        cluster.queue = [queued(str(i), "RUNNING", submit=T0 + i) for i in jobs]
        told = [str(i) in cluster.shown for i in jobs]
        asks = [
            Ask(str(i), str(T0 + i), BEGAN, state=State.RUNNING, facts=Facts(detailed=done))
            for i, done in zip(jobs, told, strict=True)
        ]
        await polled(cluster, *asks, backend=backend)
    assert cluster.shown == ["3", "2", "1", "4", "5"]
