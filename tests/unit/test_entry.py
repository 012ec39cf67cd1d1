"""The failure entry: valid for machines, safe for people, whatever the job is called."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.logscan import tail_evidence
from jobmond.model.job import Choices, Job, LogEvidence
from jobmond.model.observation import Facts, TaskCounts
from jobmond.model.outcome import Diagnosis
from jobmond.model.state import Bucket, Kind, State
from jobmond.reports.entry import Told, entry, entry_path, safe

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
TRACEBACK = (
    b"step 1\n"
    b"Traceback (most recent call last):\n"
    b'  File "t.py", line 3, in <module>\n'
    b"    f()\n"
    b"ValueError: bad shape\n"
)


def a_job(**facts: object) -> Job:
    return Job(
        id=1,
        cluster="leonardo",
        kind=Kind.SLURM,
        native_id="4711",
        birth="1795950000",
        run="sft__a",
        life=2,
        bucket=Bucket.SFT,
        type="sft",
        labels=frozenset(),
        choices=Choices(),
        facts=Facts(
            **{
                "name": "sft__a_r2",
                "user": "alice",
                "exit_code": 1,
                "reason": "NonZeroExitCode",
                "submitted_at": datetime(2026, 11, 28, 20, 0, tzinfo=UTC),
                "started_at": datetime(2026, 11, 28, 21, 0, tzinfo=UTC),
                "elapsed_s": 7384,
                "nodes": "n[1-4]",
                "log_path": "/scratch/alice/4711.out",
            }
            | facts  # type: ignore[arg-type] # keywords of the test's own
        ),
        state=State.FAILED,
        native="FAILED",
        added_at=NOW,
        ended_at=datetime(2026, 11, 28, 23, 3, 4, tzinfo=UTC),
        proof="sacct",
        log=LogEvidence(status="read", path="/scratch/alice/4711.out", size_bytes=len(TRACEBACK)),
    )


def front_matter(text: str) -> dict[str, object]:
    head, _, _ = text.removeprefix("---\n").partition("\n---\n")
    values = yaml.safe_load(head)
    assert isinstance(values, dict)
    return values


def test_an_entry_has_its_day_and_its_name() -> None:
    path, _ = entry(a_job(), now=NOW, scan=tail_evidence(TRACEBACK, at_start=True), version="1.0")
    assert path == "2026-11-28/leonardo-4711-sft__a_r2.md"


def test_the_front_matter_is_for_machines() -> None:
    _, text = entry(a_job(), now=NOW, scan=tail_evidence(TRACEBACK, at_start=True), version="1.0")
    assert front_matter(text) == {
        "schema": 1,
        "jobmond": "1.0",
        "written_for": "failure",
        "ref": "leonardo/4711",
        "birth": "1795950000",
        "cluster": "leonardo",
        "kind": "slurm",
        "native_id": "4711",
        "name": "sft__a_r2",
        "user": "alice",
        "bucket": "sft",
        "state": "FAILED",
        "native": "FAILED",
        "exit_code": 1,
        "signal": None,
        "reason": "NonZeroExitCode",
        "submitted_at": "2026-11-28T20:00:00Z",
        "started_at": "2026-11-28T21:00:00Z",
        "ended_at": "2026-11-28T23:03:04Z",
        "elapsed_s": 7384,
        "nodes": "n[1-4]",
        "log_path": "/scratch/alice/4711.out",
        "log_status": "read",
        "log_bytes": 107,
        "log_window": [0, 107],
        "cause": "python-exception",
        "cause_log": None,
        "line": 5,
        "offset": 7,
        "fingerprint": "python-exception:ValueError:t.py/<module>:35bb93f2",
        "victims": None,
        "summary": "ValueError: bad shape",
        "recurrence": None,
        "run": "sft__a",
        "life": 2,
        "states": ["FAILED"],
        "logs": {},
    }


def test_the_text_says_what_happened_how_it_is_known_and_what_next() -> None:
    _, text = entry(a_job(), now=NOW, scan=tail_evidence(TRACEBACK, at_start=True), version="1.0")
    for line in (
        "# FAILED: `sft__a_r2` (`leonardo/4711`)",
        "- State: FAILED (`FAILED`)",
        "- Exit code: 1",
        "- Reason: `NonZeroExitCode`",
        "- Where: `leonardo`, nodes `n[1-4]`",
        "- Elapsed: 2:03:04",
        "- Run: `sft__a`, life 2",
        "- Proved by: `sacct`",
        "- Looked at: the whole log of 107 bytes",
        "## Evidence (line 5, byte 7)",
        "ValueError: bad shape",
        "## Next",
    ):
        assert line in text.split("\n"), line


def test_without_a_log_the_entry_says_where_it_was_looked_for() -> None:
    job = replace(a_job(), log=LogEvidence(status="absent", path=None, error=None))
    _, text = entry(
        job, now=NOW, scan=None, version="1.0", told=Told(looked=("/scratch/alice/*_4711.out",))
    )
    assert "- Looked at: nothing" in text
    assert "- Looked in: `/scratch/alice/*_4711.out`" in text
    assert front_matter(text)["log_window"] is None
    assert front_matter(text)["cause"] == "unknown"


def test_a_diagnosis_that_was_made_is_kept() -> None:
    said = Diagnosis(cause="quota", summary="EDQUOT on /scratch", excerpt=("OSError: quota",))
    job = replace(a_job(), diagnosis=said)
    _, text = entry(job, now=NOW, scan=tail_evidence(TRACEBACK, at_start=True), version="1.0")
    assert front_matter(text)["cause"] == "quota"
    assert "## Evidence\n\n```text\nOSError: quota\n```" in text
    assert "## First traceback (line 5, byte 7)" in text


def test_parts_of_an_array_are_counted() -> None:
    tasks = TaskCounts(3, {State.FAILED: 1, State.COMPLETED: 2}, failed=("4711_2",))
    _, text = entry(a_job(tasks=tasks), now=NOW, scan=None, version="1.0")
    assert "- Parts: 3 (1 FAILED, 2 COMPLETED); failed first: `4711_2`" in text


def test_a_requeue_does_not_cover_the_entry_before() -> None:
    assert entry_path(a_job(restarts=2), now=NOW) == (
        "2026-11-28/leonardo-4711-sft__a_r2-restart2.md"
    )


def test_a_job_without_an_end_is_dated_today() -> None:
    assert entry_path(replace(a_job(), ended_at=None), now=NOW).startswith("2026-11-29/")


def test_ids_that_look_alike_as_file_names_stay_apart() -> None:
    one = entry_path(replace(a_job(), native_id="ns/a"), now=NOW)
    two = entry_path(replace(a_job(), native_id="ns:a"), now=NOW)
    assert one != two
    assert re.fullmatch(r"2026-11-28/leonardo-ns_a-sft__a_r2-[0-9a-f]{8}\.md", one)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sft__a_r2", "sft__a_r2"),
        ("../../etc/passwd", "etc_passwd"),
        ("a..b", "a_b"),
        ("-rf", "rf"),
        (".hidden", "hidden"),
        ("$(touch /tmp/p)", "touch_tmp_p"),
        ("訓練", "job"),
        ("", "job"),
        ("a\nb\x1b[31m", "a_b_31m"),
        ("x" * 300, "x" * 60),
        ("hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567", "hf"),
    ],
)
def test_safe_names(text: str, expected: str) -> None:
    assert safe(text, 60) == expected


HOSTILE = [
    "FAILED|x", "$(touch /tmp/p)", "a: b # c", "- x", "? y", "[1", "{a", '"', "'", "\\", "---",
    "...", "!!python/object:os.system", "&a *a", "\t", "a\nb: c", "\x1b[31m", "訓練 🚀 👩\u200d💻",
    "\udcff", "\ufeff", "\u2028", "\x7f", "\x85", "yes", "null", "1e3", "```", "`a``b", "<script>",
    "~", "%", "@", "| x", "> x", "\ufffe", "\x00",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_in_their_place(name: str) -> None:
    job = replace(a_job(name=name, reason=name, user=name, workdir=name), run=name, native=name)
    path, text = entry(job, now=NOW, scan=None, version="1.0")
    assert re.fullmatch(r"2026-11-28/[A-Za-z0-9][A-Za-z0-9._-]*\.md", path)
    values = front_matter(text)
    assert values["ref"] == "leonardo/4711"
    assert isinstance(values["name"], str)
    assert values["cause"] == "unknown"
    assert text.count("\n---\n") == 1
    text.encode("utf-8")
    assert text.replace("\n", "").replace("\u200d", "").isprintable()


def test_a_name_survives_the_front_matter() -> None:
    _, text = entry(a_job(name='訓練 🚀: "a" \\n'), now=NOW, scan=None, version="1.0")
    assert front_matter(text)["name"] == '訓練 🚀: "a" \\n'


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_gives_valid_front_matter_and_a_safe_path(name: str, native: str) -> None:
    job = replace(a_job(name=name, nodes=name, log_path=name), native_id=native, native=native)
    path, text = entry(job, now=NOW, scan=None, version="1.0")
    assert re.fullmatch(r"2026-11-28/[A-Za-z0-9][A-Za-z0-9._-]{0,200}\.md", path)
    assert ".." not in path
    assert front_matter(text)["life"] == 2


@given(st.lists(st.sampled_from(["`", "```", "~~~", "\n", "# x", "a", "---"]), max_size=12))
def test_the_log_cannot_leave_its_fence(pieces: list[str]) -> None:
    scan = tail_evidence("".join(pieces).encode(), at_start=True)
    _, text = entry(a_job(), now=NOW, scan=scan, version="1.0")
    if scan.last_lines:
        _, _, rest = text.partition("Last lines:\n\n")
        fence, _, rest = rest.partition("text\n")
        body, closed, _ = rest.partition(f"\n{fence}\n")
        assert closed
        assert set(fence) == {"`"}
        assert body == "\n".join(scan.last_lines)


def test_secrets_are_masked_wherever_they_come_from() -> None:
    token = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
    said = Diagnosis(cause="auth", summary=f"401 for {token}", excerpt=(f"token {token}",))
    facts = {"command": f"serve --api-key {token}", "reason": token, "workdir": f"/x/{token}"}
    job = replace(a_job(**facts), diagnosis=said)
    scan = tail_evidence(f"export HF_TOKEN={token}\n".encode(), at_start=True)
    _, text = entry(job, now=NOW, scan=scan, version="1.0", told=Told(looked=(token,)))
    assert token not in text


def test_the_same_values_give_the_same_text() -> None:
    scan = tail_evidence(TRACEBACK, at_start=True)
    assert entry(a_job(), now=NOW, scan=scan, version="1.0") == entry(
        a_job(), now=NOW, scan=scan, version="1.0"
    )
