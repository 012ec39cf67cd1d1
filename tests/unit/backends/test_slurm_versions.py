"""What real clusters of 22.05 and 24.11 said in every state, and the state that follows.

The recordings are plain squeue, sacct and scontrol output; here their values stand in the rows
that the backend asks for.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobmond.backends.slurm import SlurmBackend
from jobmond.model.observation import Ask, Facts, Seen, Unreachable
from jobmond.model.state import State
from tests.doubles import FakeSlurm, accounted, queued

RECORDED = Path(__file__).parents[2] / "transcripts/slurm_versions"
NOW = datetime(2026, 11, 29, 23, 0, tzinfo=UTC)

# By the title of the recording, written from what was done to the job.
ENDS = {
    "COMPLETED": State.COMPLETED,
    "FAILED": State.FAILED,
    "batch script kill -9": State.FAILED,
    "last command of script dies": State.FAILED,
    "output path directory missing": State.FAILED,
    "workdir missing": State.FAILED,
    "right after scancel": State.CANCELLED,
    "CANCELLED": State.CANCELLED,
    "after USR1 trap exit 9": State.FAILED,
    "COMPLETING (scancel": State.CANCELLED,
    "after KillWait: CANCELLED": State.CANCELLED,
    "chain: A just ended": State.TIMEOUT,
    "chain: A TIMEOUT": State.TIMEOUT,
    "afterok + kill-on-invalid-dep": State.CANCELLED,
    "afternotok satisfied": State.COMPLETED,
    "array all ended": State.FAILED,  # task 3 of it failed
    "het job ended": State.COMPLETED,
    "PREEMPTED (PreemptMode=CANCEL)": State.PREEMPTED,
    "OOM via JobAcctGatherParams": State.FAILED,  # no cgroup: the plugin kills, Slurm says FAILED
    "after MinJobAge purge": State.COMPLETED,
    "NODE_FAIL": State.NODE_FAIL,
    "array: scancel of the whole array": State.CANCELLED,
    "then the whole": State.CANCELLED,
    "--signal=B:USR1@50": State.COMPLETED,
    "COMPLETING (slow Epilog; script exit 3)": State.FAILED,
    "COMPLETING, sacct settled meanwhile": State.FAILED,
    "cloud node never came up (--no-requeue)": State.NODE_FAIL,
    "slow epilog done": State.FAILED,
    "DEADLINE": State.TIMEOUT,
    "OOM cgroup: child of the batch script": State.OUT_OF_MEMORY,
    "OOM cgroup: batch process itself": State.OUT_OF_MEMORY,
    "OOM cgroup: inside an srun step": State.COMPLETED,  # only the step died, the script went on
    "same job after slurmdbd is back": State.FAILED,
    "job submitted while mariadb was down": State.FAILED,
    "later": State.COMPLETED,
}
LIVES = {
    "chain: A RUNNING": State.RUNNING,
    "chain: B PENDING": State.PENDING,
    "chain: B RUNNING": State.RUNNING,
    "PENDING": State.PENDING,
    "RUNNING": State.RUNNING,
    "SUSPENDED": State.RUNNING,
    "resumed": State.RUNNING,
    "array 0-9%2 running": State.RUNNING,
    "array after cancelling 7,8,9": State.RUNNING,
    "het job RUNNING": State.RUNNING,
    "just after requeue": State.PENDING,
    "requeued, waiting": State.PENDING,
    "requeuehold": State.PENDING,
    "SPECIAL_EXIT": State.PENDING,
    "preempted by REQUEUE": State.PENDING,
    "held with --deadline": State.PENDING,
    "held job whose --deadline": State.PENDING,
    "held array: one task cancelled": State.PENDING,
    "node down, requeueable job": State.PENDING,
    "slurmd killed, requeueable job": State.PENDING,
    "CONFIGURING": State.RUNNING,
    "slow Prolog": State.PENDING,
    "job sent to a node whose slurmd has just died": State.PENDING,
    "Prolog failed": State.PENDING,
    "cloud node never came up (requeueable)": State.PENDING,
}
CODES = {
    "FAILED (exit 3)": 3,
    "FAILED (command not found, 127)": 127,
    "COMPLETED (exit 0)": 0,
    "same job after slurmdbd is back": 6,
    "job submitted while mariadb was down": 8,
}


def wanted(title):
    table = {**ENDS, **LIVES}
    return table[max((words for words in table if title.startswith(words)), key=len)]


def epoch(text):
    if not text[:4].isdigit():
        return text
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def queue_row(line, submit, log):
    job, _, _, raw, _, word, reason, _, dependency, elapsed, limit, start, nodes = line.split("|")
    more = {"reason": reason, "dependency": dependency, "elapsed": elapsed, "limit": limit}
    return queued(job, word, raw=raw, submit=submit, start=epoch(start), nodes=nodes, **more)


def account_row(line):
    job, raw, name, word, code, _, _, _, _, submit, start, end, nodes = line.split("|")
    times = {"submit": epoch(submit), "start": epoch(start), "end": epoch(end)}
    return accounted(job, word, raw=raw, name=name, code=code, nodes=nodes, **times)


def with_epochs(record):
    words = []
    for word in record.split(" "):
        key, _, value = word.partition("=")
        words.append(f"{key}={epoch(value)}" if key.endswith("Time") else word)
    return " ".join(words).encode()


def recordings(version):
    return json.loads((RECORDED / f"{version}.json").read_text())


def cluster(case):
    rows = [line for line in case["sacct"].splitlines()[1:] if line.count("|") == 12]
    accounts = [account_row(line) for line in rows if "." not in line.split("|")[0]]
    record = case.get("scontrol", "")
    told = record.partition("SubmitTime=")[2].split(" ")[0]
    submit = epoch(told) if told else int(accounts[-1]["Submit"]) if accounts else 1_000_000
    queue = [queue_row(line, submit, record) for line in case["squeue"].splitlines()]
    known = record and case["job"] and "slurm_load_jobs error" not in record
    records = {case["job"]: with_epochs(record)} if known else {}
    return FakeSlurm(queue, accounts, records)


async def polled(case, far):
    ask = Ask(case["job"], None, added_at=NOW - timedelta(days=1))
    poll = await SlurmBackend(far).poll([ask], since=ask.added_at, now=NOW, timeout_s=100)
    return poll.sightings[case["job"]]


@pytest.mark.parametrize(
    ("version", "number"),
    [(v, i) for v in ("22.05", "24.11") for i in range(len(recordings(v)))],
)
async def test_every_recorded_state(version, number):
    case = recordings(version)[number]
    sighting = await polled(case, cluster(case))
    assert isinstance(sighting, Seen), (case["title"], sighting)
    assert sighting.state is wanted(case["title"]), case["title"]
    if case["title"] in CODES:
        assert sighting.facts.exit_code == CODES[case["title"]]


@pytest.mark.parametrize("version", ["22.05", "24.11"])
def test_the_recordings_hold_what_was_promised(version):
    titles = " ".join(case["title"] for case in recordings(version))
    for word in ("TIMEOUT", "SIGSEGV", "Held", "DependencyNeverSatisfied", "array", "requeue"):
        assert word in titles


# ── what accounting said by itself, beside the queue's answer to another question ──

# By recording and job: the state now and the ends of earlier lives; None: nothing is proved.
NOW_AND_BEFORE = {
    ("s2_more", "32_1"): (State.RUNNING, []),
    ("s2_more", "50"): (State.PENDING, []),
    ("s2_more", "51"): (State.PENDING, []),
    ("s2_more", "54"): (State.PENDING, [State.PREEMPTED]),  # put back by its owner
    ("s2_more", "59"): (State.PENDING, [State.PREEMPTED]),
    ("s10_checks", "1"): (State.RUNNING, []),
    ("s10_checks", "2"): (State.PENDING, []),  # held: in accounting only when named
    ("s10_checks", "3"): (State.PENDING, []),
    ("s10_checks", "4"): (State.PENDING, []),
    ("s10_checks", "107"): (State.RUNNING, []),
    ("s10_checks", "108"): (State.PENDING, []),
    ("s10_checks", "109"): (State.PENDING, []),
    ("s10_checks", "110"): (State.PENDING, []),
    ("s1_basic", "27"): (State.RUNNING, []),  # 22.05 still accounts for it as PENDING
    ("s3a_faults", "2"): (State.COMPLETED, []),
    ("s3_purge", "112"): (State.COMPLETED, []),
    ("s3a_faults", "15"): (State.PENDING, [State.NODE_FAIL]),
    ("s3a_faults", "13"): (State.PENDING, [State.NODE_FAIL]),
    ("s4_boot", "5"): (State.PENDING, [State.PREEMPTED]),  # REQUEUED by a prolog that failed
    ("s4_boot", "4"): (State.PENDING, [State.NODE_FAIL]),
    ("s3a_faults", "19"): (State.RUNNING, []),
    ("s3_outage", "126"): (State.COMPLETED, []),  # it ended while slurmctld was down
    ("s3_outage", "127"): (State.RUNNING, []),
    ("s3_outage", "130"): None,  # FAILED in the queue, and slurmdbd is down
}
HELD = {("s4_boot", "5"), ("s10_checks", "2"), ("s10_checks", "108")}
TASKS = {"50": 8, "51": 500}
LETTERS = {"r": "reason", "E": "dependency", "M": "elapsed", "l": "limit", "N": "nodes"}


def accountings(version):
    return json.loads((RECORDED / f"{version}-accounting.json").read_text())


def table(text, columns):
    keys = columns.split("|")
    rows = [dict(zip(keys, line.split("|"), strict=True)) for line in text.splitlines()]
    return [row for row in rows if "." not in row[keys[0]]]


def cluster_of_accounting(case):
    known = table(case["sacct"], case["sacct_columns"])
    submits = [epoch(row["Submit"]) for row in known if "Submit" in row]
    times = {"submit": "Submit", "start": "Start", "end": "End"}
    accounts = [
        accounted(
            row["JobID"],
            row["State"],
            raw=row.get("JobIDRaw", row["JobID"]),
            name=row.get("JobName", "train"),
            **{key: epoch(row[name]) for key, name in times.items() if name in row},
        )
        for row in known
    ]
    queue = [
        queued(
            row["%i"],
            row["%T"],
            raw=row.get("%A", row["%i"].partition("_")[0]),
            submit=submits[-1] if submits else 1_000_000,
            name=row.get("%j", "train"),
            **{word: row[f"%{key}"] for key, word in LETTERS.items() if f"%{key}" in row},
        )
        for row in table(case["squeue"], case["squeue_columns"])
    ]
    records = {case["job"]: with_epochs(case["scontrol"])} if "scontrol" in case else {}
    failing = {}
    if "sacct_failed" in case:
        rc, said = case["sacct_failed"]
        failing["sacct"] = (rc, said.encode())
    return FakeSlurm(queue, accounts, records, failing), submits


@pytest.mark.parametrize(
    ("version", "number"),
    [(v, i) for v in ("22.05", "24.11") for i in range(len(accountings(v)))],
)
async def test_every_recorded_answer_of_accounting(version, number):
    case = accountings(version)[number]
    far, submits = cluster_of_accounting(case)
    # It was seen in the life that began first; `sacct -D` shows that one too.
    first = str(submits[0]) if len(submits) > 1 else None
    if case["title"] == "sacct without -D":
        first = str(submits[0] - 7)
    ask = Ask(case["job"], first, added_at=NOW - timedelta(days=1), facts=Facts(user="alice"))
    poll = await SlurmBackend(far).poll([ask], since=ask.added_at, now=NOW, timeout_s=100)
    sighting = poll.sightings[case["job"]]
    wanted_here = NOW_AND_BEFORE[case["file"], case["job"]]
    if wanted_here is None:
        assert isinstance(sighting, Unreachable)
        return
    assert isinstance(sighting, Seen), (case["title"], sighting)
    assert (sighting.state, [life.state for life in sighting.previous]) == wanted_here
    assert sighting.facts.held is ((case["file"], case["job"]) in HELD)
    if case["job"] in TASKS:
        assert sighting.facts.tasks is not None
        assert sighting.facts.tasks.total == TASKS[case["job"]]
