"""What Slurm was seen to do to those who watch it, one test each.

Measured on Slurm 22.05 and 24.11. The number is only an order; the name says what happens.
"""

from datetime import UTC, datetime, timedelta

import pytest

from jobmond.backends.slurm import SlurmBackend
from jobmond.errors import TransientTransportError
from jobmond.model.observation import Ask, Facts, Gone, Poll, Seen, Unreachable
from jobmond.model.state import State
from jobmond.ports import Answer
from tests.doubles import FakeSlurm, ScriptedTransport, accounted, queued, record

T0 = 1_000_000
NOW = datetime.fromtimestamp(2_000_000, UTC)
LONG_AGO = datetime.fromtimestamp(T0, UTC)


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def known(
    job: str = "7", state: State = State.RUNNING, birth: str | None = "1000000", **facts: object
) -> Ask:
    """An ask about a job that was seen before."""
    defaults = {"user": "alice", "submitted_at": LONG_AGO}
    return Ask(
        native_id=job,
        birth=birth,
        added_at=LONG_AGO,
        state=state,
        facts=Facts(**{**defaults, **facts}),  # type: ignore[arg-type] # keywords of the test's own
    )


def new(job: str = "7", **fields: object) -> Ask:
    return Ask(native_id=job, birth=None, added_at=LONG_AGO, **fields)  # type: ignore[arg-type] # keywords of the test's own


async def polled(
    cluster: FakeSlurm, *asks: Ask, now: datetime = NOW, backend: SlurmBackend | None = None
) -> Poll:
    backend = backend or SlurmBackend(cluster)
    since = now - timedelta(hours=1)
    return await backend.poll(asks, since=since, now=now, timeout_s=120)


async def one(cluster: FakeSlurm, ask: Ask, **options: object) -> Seen | Gone | Unreachable:
    return (await polled(cluster, ask, **options)).sightings[ask.native_id]  # type: ignore[arg-type] # keywords of the test's own


async def seen(cluster: FakeSlurm, ask: Ask, **options: object) -> Seen:
    sighting = await one(cluster, ask, **options)
    assert isinstance(sighting, Seen), sighting
    return sighting


# ── squeue and scontrol ──


async def test_01_an_empty_queue_with_rc_0_does_not_say_that_the_job_is_gone():
    cluster = FakeSlurm(accounts=[accounted("7", "RUNNING")])
    assert isinstance(await one(cluster, known()), Unreachable)


async def test_01_finished_jobs_are_asked_for_because_they_show_until_the_purge():
    cluster = FakeSlurm()
    await polled(cluster, known())
    assert "squeue -h -t all -u" in cluster.scripts[0]
    assert " -j" not in cluster.scripts[0].split("ask squeue", 1)[1].split("\n", 1)[0]


async def test_02_a_user_that_does_not_exist_is_no_empty_queue():
    cluster = FakeSlurm(squeue_says=b"squeue: error: Invalid user: alicee\n\n")
    poll = await polled(cluster, new())
    assert isinstance(poll.sightings["7"], Unreachable)
    assert poll.trouble == "squeue: error: Invalid user: alicee"


async def test_02_no_list_is_ever_empty():
    cluster = FakeSlurm()
    await polled(cluster)
    assert " -j" not in cluster.scripts[0]
    assert '[ -n "$jobmond_users" ] || exit 0' in cluster.scripts[0]


@pytest.mark.parametrize(
    ("rc", "err", "said"),
    [
        (
            1,
            b"slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
            "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        ),
        (
            1,
            b"slurm_load_jobs error: Socket timed out on send/recv operation\n",
            "slurm_load_jobs error: Socket timed out on send/recv operation",
        ),
        (124, b"", "squeue did not answer in time"),
    ],
)
async def test_03_a_controller_that_is_down_or_hangs_moves_no_job(rc, err, said):
    cluster = FakeSlurm(failing={"squeue": (rc, err)}, accounts=[accounted("7", "FAILED", end=1)])
    poll = await polled(cluster, known(), new("8"))
    assert poll.sightings == {"7": Unreachable(said), "8": Unreachable(said)}
    assert poll.trouble == said
    assert poll.found == ()


async def test_03_every_command_is_bounded_at_the_far_side():
    cluster = FakeSlurm(queue=[queued("7", "RUNNING")])
    await polled(cluster, known())
    assert "ask squeue timeout -k 2 36 squeue" in cluster.scripts[0]
    assert "ask sacct timeout -k 2 48 sacct" in cluster.scripts[0]
    assert "timeout -k 2 18 scontrol" in cluster.scripts[1]


async def test_04_05_json_is_never_asked_for():
    cluster = FakeSlurm(queue=[queued("7", "RUNNING")])
    await polled(cluster, known())
    assert not any("--json" in script for script in cluster.scripts)


async def test_06_completing_hides_the_end_until_accounting_has_it():
    row = queued("7", "COMPLETING")
    cluster = FakeSlurm(queue=[row], accounts=[accounted("7", "RUNNING")])
    sighting = await seen(cluster, known())
    assert (sighting.state, sighting.native) == (State.RUNNING, "COMPLETING")
    cluster = FakeSlurm(queue=[row], accounts=[accounted("7", "FAILED", code="3:0", end=T0 + 99)])
    sighting = await seen(cluster, known())
    assert (sighting.state, sighting.proof, sighting.facts.exit_code) == (State.FAILED, "sacct", 3)


@pytest.mark.parametrize("word", ["NODE_FAIL", "PREEMPTED", "BOOT_FAIL"])
async def test_06_completing_after_what_may_be_queued_again_is_waited_out(word):
    cluster = FakeSlurm(
        queue=[queued("7", "COMPLETING")], accounts=[accounted("7", word, end=T0 + 99)]
    )
    sighting = await seen(cluster, known())
    assert (sighting.state, sighting.native) == (State.RUNNING, "COMPLETING")


@pytest.mark.parametrize(("word", "still"), [("CONFIGURING", False), ("STOPPED", True)])
async def test_07_configuring_and_stopped_run_in_accounting_and_here(word, still):
    cluster = FakeSlurm(queue=[queued("7", word)], accounts=[accounted("7", "RUNNING")])
    sighting = await seen(cluster, known())
    assert (sighting.state, sighting.native) == (State.RUNNING, word)
    assert sighting.facts.suspended is still


@pytest.mark.parametrize(
    ("reason", "held"),
    [
        ("ReqNodeNotAvail, UnavailableNodes:n4", False),
        ("launch failed requeued held", True),
        ("job requeued in held state", True),
        ("JobArrayTaskLimit,JobHeldUser", True),
        ("JobHeldAdmin", True),
        ("RaisedSignal:9(Killed)", False),
        ("PartitionNodeLimit", False),
    ],
)
async def test_08_reasons_are_free_text(reason, held):
    cluster = FakeSlurm(queue=[queued("7", "PENDING", reason=reason, start="N/A")])
    facts = (await seen(cluster, known(state=State.PENDING))).facts
    assert (facts.reason, facts.held) == (reason, held)


async def test_08_a_new_job_has_no_reason_for_a_moment():
    cluster = FakeSlurm(queue=[queued("7", "PENDING", reason="None")])
    assert (await seen(cluster, new())).facts.reason is None


async def test_09_a_name_may_hold_anything():
    name = b'a|b\n"c"\td;,@ end squeue 0' + b"\xff\xe2\x80\xae"
    cluster = FakeSlurm(
        queue=[queued("7", "RUNNING", name=name), queued("8", "RUNNING", name="")],
        accounts=[accounted("7", "RUNNING", name=name.replace(b'"', b"`"))],
    )
    poll = await polled(cluster, new("7"), new("8"))
    first, second = poll.sightings["7"], poll.sightings["8"]
    assert isinstance(first, Seen)
    assert isinstance(second, Seen)
    assert first.facts.name == 'a|b\\n"c"\\td;,@ end squeue 0\\xff\\u202e'
    assert second.facts.name is None


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/home/alice/run_7.out", "/home/alice/run_7.out"),
        ("/home/alice/out my job.out", "/home/alice/out my job.out"),
        ("/home/alice/run_%N.out", None),
        ("/home/alice/a_27_4294967294.out", None),
        ("~/tilde.out", None),
        ("relative.out", None),
        ("/home/alice/line\nbreak.out", None),
    ],
)
async def test_10_a_log_path_counts_only_when_it_is_expanded(path, told):
    cluster = FakeSlurm(
        queue=[queued("7", "RUNNING")], records={"7": record("7", "RUNNING", StdOut=path)}
    )
    facts = (await seen(cluster, new())).facts
    assert (facts.log_path, facts.detailed) == (told, True)
    assert facts.workdir == "/home/alice"


async def test_10_a_job_that_could_not_be_started_is_known_by_0_53():
    cluster = FakeSlurm(accounts=[accounted("7", "FAILED", code="0:53", end=T0 + 1)])
    sighting = await seen(cluster, known())
    assert sighting.state is State.FAILED
    assert sighting.facts.exit_code is None
    assert sighting.facts.reason is not None
    assert "(0:53)" in sighting.facts.reason


async def test_11_a_requeue_keeps_the_id_and_is_a_new_life():
    again = T0 + 500
    cluster = FakeSlurm(
        queue=[queued("7", "PENDING", submit=again, reason="BeginTime", start=again + 120)],
        accounts=[
            accounted("7", "NODE_FAIL", end=again),
            accounted("7", "PENDING", submit=again, start="Unknown"),
        ],
        records={"7": record("7", "PENDING", SubmitTime=again, Restarts=1)},
    )
    sighting = await seen(cluster, known())
    assert (sighting.state, sighting.birth) == (State.PENDING, "1000500")
    assert sighting.facts.restarts == 1
    assert sighting.facts.start_estimate_at == at(again + 120)
    assert [(life.birth, life.state, life.native) for life in sighting.previous] == [
        ("1000000", State.NODE_FAIL, "NODE_FAIL")
    ]
    assert sighting.previous[0].facts.ended_at == at(again)


async def test_11_the_restart_count_proves_a_requeue_that_accounting_no_longer_shows():
    again = T0 + 500
    cluster = FakeSlurm(
        queue=[queued("7", "RUNNING", submit=again)],
        records={"7": record("7", "RUNNING", SubmitTime=again, Restarts=1)},
        failing={"sacct": (1, b"sacct: error: Problem talking to the database\n")},
    )
    sighting = await seen(cluster, known())
    assert sighting.birth == "1000500"
    assert [(p.birth, p.native) for p in sighting.previous] == [("1000000", "REQUEUED")]


async def test_12_times_are_asked_for_in_epoch_seconds_and_words_are_no_times():
    cluster = FakeSlurm(
        queue=[queued("7", "PENDING", start="N/A", end="NONE")],
        accounts=[accounted("7", "PENDING", start="Unknown", end="None")],
    )
    facts = (await seen(cluster, known(state=State.PENDING))).facts
    assert facts.submitted_at == LONG_AGO
    assert (facts.started_at, facts.ended_at, facts.start_estimate_at) == (None, None, None)
    assert "TZ=UTC SLURM_TIME_FORMAT=%s" in cluster.scripts[0]


async def test_13_nothing_is_ever_cancelled_here():
    cluster = FakeSlurm(queue=[queued("7", "RUNNING")])
    await polled(cluster, known())
    assert not any("scancel" in script for script in cluster.scripts)


# ── sacct and slurmdbd ──


async def test_14_a_stub_row_called_allocation_ends_nothing_and_names_nothing():
    stub = accounted("7", "FAILED", name="allocation", limit="", end="Unknown")
    assert isinstance(await one(FakeSlurm(accounts=[stub]), known()), Unreachable)
    cluster = FakeSlurm(queue=[queued("7", "RUNNING", name="real")], accounts=[stub])
    sighting = await seen(cluster, known())
    assert (sighting.state, sighting.facts.name) == (State.RUNNING, "real")


async def test_14_a_job_younger_than_the_grace_is_not_missed():
    young = Ask("7", None, added_at=NOW - timedelta(seconds=30))
    assert isinstance(await one(FakeSlurm(), young), Unreachable)
    hinted = Ask("7", None, added_at=LONG_AGO, submitted_at=NOW - timedelta(seconds=30))
    assert isinstance(await one(FakeSlurm(), hinted), Unreachable)
    old = Ask("7", None, added_at=NOW - timedelta(seconds=601))
    assert await one(FakeSlurm(), old) == Gone("neither queue nor accounting knows it")


async def test_15_an_end_counts_only_with_its_time():
    cluster = FakeSlurm(accounts=[accounted("7", "FAILED", code="0:0", end="Unknown")])
    assert isinstance(await one(cluster, known()), Unreachable)
    cluster = FakeSlurm(accounts=[accounted("7", "FAILED", code="8:0", end=T0 + 70)])
    sighting = await seen(cluster, known())
    assert (sighting.state, sighting.facts.exit_code) == (State.FAILED, 8)
    assert sighting.facts.ended_at == at(T0 + 70)


async def test_15_an_empty_exit_code_is_none():
    cluster = FakeSlurm(accounts=[accounted("7", "FAILED", code="", end=T0 + 70)])
    facts = (await seen(cluster, known())).facts
    assert (facts.exit_code, facts.signal) == (None, None)


async def test_16_accounting_subtracts_128_and_scontrol_does_not():
    row = accounted("7", "FAILED", code="9:0", end=T0 + 70)
    assert (await seen(FakeSlurm(accounts=[row]), known())).facts.exit_code == 9
    cluster = FakeSlurm(
        queue=[queued("7", "FAILED", end=T0 + 70)],
        accounts=[row],
        records={"7": record("7", "FAILED", ExitCode="137:0")},
    )
    facts = (await seen(cluster, known())).facts
    assert (facts.exit_code, facts.signal) == (137, None)


@pytest.mark.parametrize(
    ("word", "code", "state", "exit_code", "signal"),
    [
        ("FAILED", "0:11", State.FAILED, None, 11),
        ("FAILED", "137:0", State.FAILED, 137, None),
        ("COMPLETED", "0:0", State.COMPLETED, 0, None),
        ("CANCELLED by 1000", "0:0", State.CANCELLED, None, None),
        ("TIMEOUT", "0:0", State.TIMEOUT, None, None),
        ("DEADLINE", "1:0", State.TIMEOUT, None, None),
        ("NODE_FAIL", "1:0", State.NODE_FAIL, None, None),
        ("OUT_OF_MEMORY", "0:125", State.OUT_OF_MEMORY, None, None),
    ],
)
async def test_16_the_state_comes_first_and_the_code_after_it(word, code, state, exit_code, signal):
    cluster = FakeSlurm(accounts=[accounted("7", word, code=code, end=T0 + 70)])
    sighting = await seen(cluster, known())
    assert (sighting.state, sighting.native) == (state, word)
    assert (sighting.facts.exit_code, sighting.facts.signal) == (exit_code, signal)


@pytest.mark.parametrize("word", ["CANCELLED by 0", "CANCELLED by 1000", "CANCELLED", "CANCELLED+"])
async def test_17_the_first_word_decides_and_the_whole_is_shown(word):
    cluster = FakeSlurm(accounts=[accounted("7", word, end=T0 + 70)])
    sighting = await seen(cluster, known())
    assert (sighting.state, sighting.native) == (State.CANCELLED, word)


async def test_18_accountings_reason_is_never_asked_for():
    cluster = FakeSlurm(accounts=[accounted("7", "COMPLETED", end=T0 + 70)])
    assert (await seen(cluster, known())).facts.reason is None
    assert "Reason" not in cluster.scripts[0]


async def test_19_steps_are_never_asked_for():
    cluster = FakeSlurm()
    await polled(cluster, known())
    assert "sacct -X -D -n -p " in cluster.scripts[0]


async def test_20_held_jobs_that_accounting_hides_live_in_the_queue():
    held = queued("7", "PENDING", reason="JobHeldUser", start="N/A")
    poll = await polled(FakeSlurm(queue=[held]), known(state=State.PENDING))
    sighting = poll.sightings["7"]
    assert isinstance(sighting, Seen)
    assert sighting.facts.held


async def test_20_nobody_is_gone_before_accounting_was_asked_by_name():
    hidden = accounted(
        "7", "CANCELLED by 1000", start="Unknown", end=T0 + 70, nodes="None assigned"
    )
    cluster = FakeSlurm(accounts=[hidden])
    backend = SlurmBackend(cluster)
    ask = known(state=State.PENDING)
    assert isinstance(await one(cluster, ask, backend=backend), Unreachable)
    assert " -j" not in cluster.scripts[0]
    sighting = await seen(cluster, ask, backend=backend, now=NOW + timedelta(minutes=15))
    assert sighting.state is State.CANCELLED
    assert " -j 7" in cluster.scripts[-1]


async def test_20_tasks_cancelled_while_they_waited_vanish():
    cluster = FakeSlurm(
        queue=[queued("9_1", "RUNNING", raw=10)],
        accounts=[accounted("9_1", "RUNNING"), accounted("9_[2-3]", "PENDING", start="Unknown")],
    )
    sighting = await seen(cluster, known("9"))
    assert sighting.facts.tasks is not None
    assert sighting.facts.tasks.by_state == {State.RUNNING: 1}
    asks = [known("9_2", State.PENDING), new("9_3")]
    poll = await polled(cluster, *asks)
    assert isinstance(poll.sightings["9_3"], Gone)


async def test_20_a_whole_array_cancelled_leaves_one_row():
    row = accounted("16_[1-5%1]", "CANCELLED by 1000", end=T0 + 70, raw=16)
    done = accounted("16_0", "COMPLETED", end=T0 + 60, raw=17)
    sighting = await seen(FakeSlurm(accounts=[done, row]), known("16"))
    assert sighting.state is State.CANCELLED
    assert sighting.facts.tasks is not None
    assert sighting.facts.tasks.by_state == {State.COMPLETED: 1, State.CANCELLED: 5}


@pytest.mark.parametrize("listed", ["18_[0-1,3]", "18_[0-3]", "18_[0-1]"])
async def test_20_accountings_row_of_many_ends_the_tasks_that_the_queue_calls_over(listed):
    ended = accounted("18_[0-3]", "CANCELLED by 1000", start="None", end=T0 + 70)
    shown = [queued(listed, "CANCELLED", start="N/A", end=T0 + 70)]
    shown += [queued("18_3", "CANCELLED", raw=19)] if listed == "18_[0-1]" else []
    cluster = FakeSlurm(queue=shown, accounts=[ended])
    for asked in ("18", "18_0"):
        sighting = await seen(cluster, known(asked, State.PENDING))
        assert (sighting.state, sighting.proof) == (State.CANCELLED, "sacct")
    tasks = (await seen(cluster, known("18", State.PENDING))).facts.tasks
    assert tasks is not None
    assert tasks.by_state == {State.CANCELLED: 4}


async def test_20_a_task_that_never_began_is_known_by_the_row_of_many_after_the_purge():
    ended = accounted("18_[0-3]", "CANCELLED by 1000", start="None", end=T0 + 70)
    sighting = await seen(FakeSlurm(accounts=[ended]), known("18_1", State.PENDING))
    assert sighting.state is State.CANCELLED


async def test_20_a_row_of_many_does_not_speak_for_tasks_that_have_rows_of_their_own():
    ended = accounted("18_[0-3]", "CANCELLED by 1000", start="None", end=T0 + 70)
    began = accounted("18_1", "COMPLETED", end=T0 + 60, raw=19)
    runs = queued("18_2", "RUNNING", raw=20)
    cluster = FakeSlurm(queue=[runs], accounts=[ended, began])
    assert (await seen(cluster, known("18_1"))).state is State.COMPLETED
    assert (await seen(cluster, known("18_2"))).state is State.RUNNING
    tasks = (await seen(cluster, known("18"))).facts.tasks
    assert tasks is not None
    assert tasks.by_state == {State.COMPLETED: 1, State.RUNNING: 1, State.CANCELLED: 2}


@pytest.mark.parametrize("end", ["Unknown", T0 + 70])
async def test_20_a_row_of_many_ends_nothing_while_tasks_wait_or_without_its_end(end):
    ended = accounted("18_[0-3]", "CANCELLED by 1000", start="None", end=end)
    waits = queued("18_[0-1,3]", "PENDING", start="N/A")
    sighting = await one(FakeSlurm(queue=[waits], accounts=[ended]), known("18", State.PENDING))
    assert isinstance(sighting, Seen)
    assert sighting.state is State.PENDING
    if end == "Unknown":
        over = queued("18_[0-1,3]", "CANCELLED", start="N/A")
        cluster = FakeSlurm(queue=[over], accounts=[ended])
        assert isinstance(await one(cluster, known("18", State.PENDING)), Unreachable)


async def test_21_accounting_that_does_not_answer_is_a_partial_answer():
    cluster = FakeSlurm(
        queue=[queued("7", "RUNNING")],
        failing={"sacct": (1, b"sacct: error: Problem talking to the database: Refused\n")},
    )
    poll = await polled(cluster, known("7"), known("8"))
    assert isinstance(poll.sightings["7"], Seen)
    assert isinstance(poll.sightings["8"], Unreachable)
    assert poll.trouble is not None
    assert "Problem talking to the database" in poll.trouble


async def test_21_no_exit_status_is_hidden_behind_a_pipe():
    cluster = FakeSlurm()
    await polled(cluster, known())
    assert " | " not in cluster.scripts[0]


async def test_22_the_end_is_what_accounting_says_even_if_late():
    row = accounted("7", "COMPLETED", start=T0, end=T0 + 192, elapsed=192)
    facts = (await seen(FakeSlurm(accounts=[row]), known())).facts
    assert (facts.elapsed_s, facts.ended_at) == (192, at(T0 + 192))


async def test_23_a_recycled_id_never_gives_another_jobs_row():
    ours = accounted("7", "COMPLETED", end=T0 + 60)
    later = accounted("7", "FAILED", submit=T0 + 900_000, end=T0 + 900_060)
    sighting = await seen(FakeSlurm(accounts=[ours, later]), known())
    assert (sighting.state, sighting.birth) == (State.COMPLETED, "1000000")
    assert sighting.previous == ()


async def test_23_a_recycled_id_in_the_queue_is_not_our_job():
    stranger = queued("7", "RUNNING", submit=T0 + 900_000)
    cluster = FakeSlurm(
        queue=[stranger], records={"7": record("7", "RUNNING", SubmitTime=T0 + 900_000)}
    )
    backend = SlurmBackend(cluster)
    await one(cluster, known(), backend=backend)
    sighting = await one(cluster, known(), backend=backend)
    assert sighting == Gone("the id belongs to a job submitted at another time")


async def test_23_the_submit_time_people_gave_chooses_among_jobs_of_one_id():
    rows = [
        accounted("7", "COMPLETED", end=T0 + 60),
        accounted("7", "FAILED", submit=T0 + 900_000, end=T0 + 900_060),
    ]
    hinted = new(submitted_at=at(T0 + 3600))
    assert (await seen(FakeSlurm(accounts=rows), hinted)).state is State.COMPLETED
    assert (await seen(FakeSlurm(accounts=rows), new())).state is State.FAILED


async def test_23_a_live_job_is_not_the_one_of_a_submit_time_long_ago():
    cluster = FakeSlurm(queue=[queued("7", "RUNNING")], records={"7": record("7", "RUNNING")})
    backend = SlurmBackend(cluster)
    entry = new(submitted_at=at(T0 - 900_000))
    await one(cluster, entry, backend=backend)
    sighting = await one(cluster, entry, backend=backend)
    assert sighting == Gone("the id belongs to a job submitted at another time")


# ── sbatch ──


async def test_24_a_job_whose_submission_was_unclear_is_found_at_once():
    held = queued("25", "PENDING", reason="JobHeldUser", start="N/A", name="token")
    poll = await polled(FakeSlurm(queue=[held]))
    assert [(native, job.facts.name) for native, job in poll.found] == [("25", "token")]


async def test_25_a_noisy_login_shell_disturbs_nothing():
    cluster = FakeSlurm(
        queue=[queued("7", "RUNNING")], banner=b"Welcome!\n squeue begin \n7|FAILED"
    )
    assert (await seen(cluster, known())).state is State.RUNNING


@pytest.mark.parametrize("reason", ["PartitionNodeLimit", "PartitionConfig", "InvalidAccount"])
async def test_26_a_job_that_can_never_start_just_waits(reason):
    cluster = FakeSlurm(queue=[queued("7", "PENDING", reason=reason)])
    sighting = await seen(cluster, known(state=State.PENDING))
    assert (sighting.state, sighting.facts.reason) == (State.PENDING, reason)


async def test_27_a_command_that_does_not_exist_is_no_command():
    cluster = FakeSlurm(queue=[queued("7", "RUNNING", command="(null)")])
    assert (await seen(cluster, known())).facts.command is None


# ── dependencies ──


async def test_28_the_queue_may_run_ahead_of_accounting():
    a, b = queued("1", "TIMEOUT", end=T0 + 99), queued("2", "RUNNING", dependency="(null)")
    line = "sbatch -d afterany:1 job.sh"
    rows = [accounted("1", "RUNNING"), accounted("2", "RUNNING", line=line)]
    poll = await polled(FakeSlurm(queue=[a, b], accounts=rows), known("1"), known("2"))
    assert isinstance(poll.sightings["1"], Unreachable)
    successor = poll.sightings["2"]
    assert isinstance(successor, Seen)
    assert successor.facts.dependency == "afterany:1"


async def test_28_a_standing_dependency_is_the_queues_text():
    row = queued("2", "PENDING", dependency="afterany:1(unfulfilled)", reason="Dependency")
    facts = (await seen(FakeSlurm(queue=[row]), known("2", State.PENDING))).facts
    assert facts.dependency == "afterany:1(unfulfilled)"


async def test_29_a_dependency_that_can_never_be_met_is_told_and_waits():
    row = queued("3", "PENDING", reason="DependencyNeverSatisfied", dependency="afterok:1(failed)")
    sighting = await seen(FakeSlurm(queue=[row]), known("3", State.PENDING))
    assert sighting.state is State.PENDING
    assert sighting.facts.reason == "DependencyNeverSatisfied"
    assert not sighting.facts.held


async def test_30_a_dependency_on_an_unknown_id_is_only_text():
    row = accounted("3", "COMPLETED", end=T0 + 60, line="sbatch --dependency=afterok:999999 x.sh")
    assert (await seen(FakeSlurm(accounts=[row]), known("3"))).facts.dependency == "afterok:999999"


async def test_30_what_the_wrapped_script_says_is_no_dependency():
    row = accounted("3", "COMPLETED", end=T0 + 60, line="sbatch --wrap foo -d afterany:4")
    assert (await seen(FakeSlurm(accounts=[row]), known("3"))).facts.dependency is None


async def test_31_a_job_past_its_limit_runs_until_slurm_says_otherwise():
    row = queued("7", "RUNNING", elapsed="1:28", limit="1:00")
    sighting = await seen(FakeSlurm(queue=[row]), known())
    assert (sighting.state, sighting.facts.elapsed_s) == (State.RUNNING, 88)
    assert sighting.facts.time_limit_s == 60


async def test_31_a_script_that_traps_term_and_exits_0_is_still_a_timeout():
    cluster = FakeSlurm(
        queue=[queued("7", "TIMEOUT", end=T0 + 70)],
        accounts=[accounted("7", "TIMEOUT", end=T0 + 70)],
        records={"7": record("7", "TIMEOUT", ExitCode="0:0")},
    )
    assert (await seen(cluster, known())).state is State.TIMEOUT


async def test_32_deadline_is_a_timeout():
    cluster = FakeSlurm(
        queue=[queued("7", "DEADLINE", reason="DeadLine", nodes="", end=T0 + 70)],
        accounts=[accounted("7", "DEADLINE", code="1:0", start="None", end=T0 + 70)],
    )
    sighting = await seen(cluster, known(state=State.PENDING))
    assert (sighting.state, sighting.native) == (State.TIMEOUT, "DEADLINE")


# ── node failures ──


async def test_33_a_silent_requeue_after_a_node_failure_is_seen():
    again = T0 + 300
    cluster = FakeSlurm(
        queue=[queued("7", "RUNNING", submit=again, start=again + 130)],
        accounts=[
            accounted("7", "NODE_FAIL", end=again),
            accounted("7", "RUNNING", submit=again, start=again + 130),
        ],
    )
    sighting = await seen(cluster, known())
    assert sighting.birth == str(again)
    assert sighting.previous[0].state is State.NODE_FAIL
    assert " -D " in cluster.scripts[0]


async def test_34_a_failed_prolog_holds_the_job():
    row = queued("7", "PENDING", reason="launch failed requeued held")
    assert (await seen(FakeSlurm(queue=[row]), known(state=State.PENDING))).facts.held


async def test_35_out_of_memory_counts_even_if_the_script_exits_0():
    cluster = FakeSlurm(
        queue=[queued("7", "OUT_OF_MEMORY", reason="OutOfMemory", end=T0 + 70)],
        accounts=[accounted("7", "OUT_OF_MEMORY", code="0:125", end=T0 + 70)],
    )
    sighting = await seen(cluster, known())
    assert (sighting.state, sighting.facts.reason) == (State.OUT_OF_MEMORY, "OutOfMemory")
    assert sighting.facts.signal is None


# ── ssh ──


async def test_36_a_script_without_an_answer_moves_no_job():
    transport = ScriptedTransport(Answer(255, b"", b""))
    poll = await SlurmBackend(transport).poll([known()], since=NOW, now=NOW, timeout_s=60)
    assert poll.sightings["7"] == Unreachable("squeue's answer did not arrive whole")


async def test_37_38_a_sweep_is_two_scripts_one_after_the_other():
    cluster = FakeSlurm(queue=[queued(str(i), "RUNNING") for i in range(1, 201)])
    await polled(cluster, *(new(str(i)) for i in range(1, 201)))
    assert len(cluster.scripts) == 2
    refused = ScriptedTransport(TransientTransportError("kex_exchange: Connection closed"))
    poll = await SlurmBackend(refused).poll([known()], since=NOW, now=NOW, timeout_s=60)
    assert poll.sightings["7"] == Unreachable("kex_exchange: Connection closed")
    assert len(refused.scripts) == 1


async def test_39_a_list_of_ids_never_outgrows_one_argument():
    cluster = FakeSlurm()
    asks = [new(str(10**9 + i)) for i in range(30_000)]
    await polled(cluster, *asks)
    longest = max(len(word) for word in cluster.scripts[0].split())
    assert longest < 131_072


async def test_40_what_ssh_warns_about_changes_nothing():
    cluster = FakeSlurm(queue=[queued("7", "RUNNING")])

    class Warned(FakeSlurm):
        async def run(self, script, *, timeout_s, max_bytes):
            answer = await cluster.run(script, timeout_s=timeout_s, max_bytes=max_bytes)
            warning = b"Control socket connect(/run/cm): Connection refused\n"
            return Answer(answer.exit_code, answer.stdout, warning)

    poll = await polled(Warned(), known())
    assert isinstance(poll.sightings["7"], Seen)
    assert poll.trouble is None
