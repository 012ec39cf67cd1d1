"""Properties of what takes bytes apart: any bytes, cut anywhere."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.backends.slurm import accounting, fields, queue, record, states
from jobmond.backends.slurm.accounting import AccountingFailed, Accounts
from jobmond.backends.slurm.rows import NoDetail, NotKnown
from jobmond.backends.slurm.script import Nonce, Section, sections
from jobmond.model.state import State
from tests.doubles import accounted, accounts, listing, queued
from tests.doubles import record as shown

NONCE = Nonce.of("0123456789abcdef" * 4)
HOSTILE = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace")),
    st.sampled_from(
        [b"|", b"\n", b"\n0 end squeue 0\n", b" UserId=root(0) ", b"<>;", b" StdOut=/x"]
    ),
)


def no_mark(value: bytes) -> bool:
    return NONCE.field.encode() not in value


@given(
    name=HOSTILE.filter(no_mark), comment=HOSTILE.filter(no_mark), reason=HOSTILE.filter(no_mark)
)
def test_a_queue_row_survives_any_text(name, comment, reason):
    rows = [
        queued("7", "RUNNING", name=name, comment=comment, reason=reason),
        queued("8", "PENDING", name=name),
    ]
    parsed = queue.parse(Section(0, listing(rows, NONCE.field), b""), NONCE)
    assert parsed.whole
    assert [(row.id.master, row.native, row.name) for row in parsed.rows] == [
        ("7", "RUNNING", name),
        ("8", "PENDING", name),
    ]


@given(name=HOSTILE.filter(no_mark), line=HOSTILE.filter(no_mark))
def test_an_accounting_row_survives_any_text(name, line):
    rows = [accounted("7", "FAILED", name=name, end=99, line=line), accounted("8", "RUNNING")]
    parsed = accounting.read(
        Section(0, accounts(rows, NONCE.field), b""), NONCE, named=None, submit_line=True
    )
    assert isinstance(parsed, Accounts)
    assert parsed.whole
    assert [(row.id.master, row.end, row.name) for row in parsed.rows] == [
        ("7", 99, name),
        ("8", None, b"train"),
    ]


@given(name=HOSTILE)
def test_a_record_survives_a_name_that_is_known(name):
    output = shown("7", "RUNNING", JobName=name, Comment=name)
    detail = record.read(Section(0, output, b""), name=name)
    assert isinstance(detail, tuple)
    row = detail[0]
    assert (row.native, row.name, row.user) == ("RUNNING", name, "alice")
    assert row.log_path == "/home/alice/slurm-7.out"


@pytest.mark.parametrize(
    ("tres", "gpus"),
    [
        ({"TRES": "cpu=96,mem=1T,node=4,billing=4,gres/gpu=32"}, 32),
        ({"ReqTRES": "cpu=4,gres/gpu=8", "AllocTRES": "cpu=4,gres/gpu=16,gres/gpu:h100=16"}, 16),
        ({"ReqTRES": "cpu=4,gres/gpu=8", "AllocTRES": "(null)"}, 8),
        ({"TRES": "cpu=4,node=1"}, None),
    ],
)
def test_a_record_tells_what_is_allocated(tres, gpus):
    output = shown("7", "RUNNING", **{name: text.encode() for name, text in tres.items()})
    (row,) = record.read(Section(0, output, b""), name=b"train")
    assert row.gpus == gpus


@given(out=st.binary(max_size=400), err=st.binary(max_size=80), rc=st.integers(0, 255))
def test_any_bytes_are_taken(out, err, rc):
    section = Section(rc, out, err)
    queue.parse(section, NONCE)
    accounting.read(section, NONCE, named=None, submit_line=True)
    record.read(section, name=None)
    sections(out, NONCE)


@given(cut=st.integers(0, 10_000), name=HOSTILE.filter(no_mark))
def test_a_cut_listing_never_looks_whole(cut, name):
    frame = NONCE.frame.encode()
    body = listing([queued("7", "RUNNING", name=name), queued("8", "RUNNING")], NONCE.field)
    whole = b"\n%b begin squeue\n%b\n%b end squeue 0\n\n%b done squeue\n" % (
        frame,
        body,
        frame,
        frame,
    )
    assert sections(whole, NONCE)["squeue"].out == body
    assert sections(whole[: cut % len(whole)], NONCE) == {}


@given(cut=st.integers(1, 10_000))
def test_a_cut_body_is_not_whole(cut):
    body = listing([queued("7", "RUNNING"), queued("8", "RUNNING")], NONCE.field).rstrip(b"\n")
    parsed = queue.parse(Section(0, body[: -(cut % len(body)) or -1], b""), NONCE)
    ids = {row.id.master for row in parsed.rows} | parsed.unreadable.keys()
    assert not parsed.whole or ids != {"7", "8"} or len(parsed.rows) < 2


@given(cut=st.integers(1, 10_000))
def test_cut_accounting_is_no_answer_or_shows_whole_rows_only(cut):
    body = accounts([accounted("7", "FAILED", end=99), accounted("8", "RUNNING")], NONCE.field)
    parsed = accounting.read(
        Section(0, body[: cut % len(body)], b""), NONCE, named=None, submit_line=True
    )
    assert isinstance(parsed, AccountingFailed) or all(
        (row.id.master, row.end) in (("7", 99), ("8", None)) for row in parsed.rows
    )


def test_an_unreadable_row_is_that_jobs_and_nobody_elses():
    rows = [queued("7", "RUNNING", submit="N/A"), queued("8", "RUNNING")]
    parsed = queue.parse(Section(0, listing(rows, NONCE.field), b""), NONCE)
    assert [row.id.master for row in parsed.rows] == ["8"]
    assert list(parsed.unreadable) == ["7"]
    assert parsed.whole
    rows = [queued("what", "RUNNING"), queued("8", "RUNNING")]
    assert not queue.parse(Section(0, listing(rows, NONCE.field), b""), NONCE).whole


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (b"0:00", 0),
        (b"1:28", 88),
        (b"10:00", 600),
        (b"01:02:03", 3723),
        (b"1-00:00:00", 86400),
        (b"2-03:04:05", 183845),
        (b"UNLIMITED", None),
        (b"NOT_SET", None),
        (b"INVALID", None),
        (b"", None),
    ],
)
def test_durations(text, seconds):
    assert fields.duration_s(text) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (b"1795976907", 1795976907),
        (b"0", None),
        (b"Unknown", None),
        (b"None", None),
        (b"N/A", None),
        (b"NONE", None),
        (b"", None),
        (b"2026-11-29T15:54:22", 1795967662),
        (b"99999999999999999999", None),
        ("١٢".encode(), None),
    ],
)
def test_instants(text, seconds):
    assert fields.epoch(text) == seconds


def test_an_instant_is_aware_utc():
    assert fields.instant(1795967662) == datetime(2026, 11, 29, 15, 54, 22, tzinfo=UTC)


def test_every_word_of_the_table_is_mapped_as_the_interface_says():
    same = "PENDING RUNNING COMPLETED FAILED TIMEOUT OUT_OF_MEMORY NODE_FAIL CANCELLED PREEMPTED"
    rows = {word: State(word) for word in same.split()}
    for words, state in (
        ("CONFIGURING COMPLETING SUSPENDED STOPPED RESIZING SIGNALING STAGE_OUT", State.RUNNING),
        ("REQUEUED REQUEUE_HOLD REQUEUE_FED SPECIAL_EXIT RESV_DEL_HOLD", State.PENDING),
        ("BOOT_FAIL", State.NODE_FAIL),
        ("DEADLINE", State.TIMEOUT),
        ("REVOKED", State.CANCELLED),
        ("LAUNCH_FAILED RECONFIG_FAIL", State.FAILED),
    ):
        rows |= dict.fromkeys(words.split(), state)
    assert dict(states.STATES) == rows


@pytest.mark.parametrize(
    ("rc", "out", "err", "kind"),
    [
        (1, b"", b"slurm_load_jobs error: Invalid job id specified\n", NotKnown),
        (1, b"Job 12_23 not found\n", b"", NotKnown),
        (1, b"", b"Job 12_23 not found\n", NotKnown),
        (1, b"", b"slurm_load_jobs error: Unable to contact slurm controller\n", NoDetail),
        (124, b"", b"", NoDetail),
        (0, b"", b"", NoDetail),
        (0, b"No jobs in the system\n", b"", NoDetail),
    ],
)
def test_only_a_plain_no_of_scontrol_is_a_no(rc, out, err, kind):
    assert isinstance(record.read(Section(rc, out, err), name=None), kind)


def test_a_record_with_unknown_keys_and_odd_values():
    output = (
        b"JobId=7 JobName=lr=1e-4 my run UserId=alice(1001) GroupId=alice(1001) MCS_label=N/A "
        b"JobState=RUNNING Reason=RaisedSignal:11(Segmentation_fault) Brand:New/Key=1 Restarts=0 "
        b"ExitCode=0:0 SubmitTime=1795976907 CPUs/Task=1 Command=/x y WorkDir=/home/a b "
        b"Comment= StdOut=/etc/x"
        b"  StdErr=/home/a b/err.txt StdIn=/dev/null StdOut=/home/a b/out.txt TresPerTask=cpu=1\n"
    )
    detail = record.read(Section(0, output, b""), name=None)
    assert isinstance(detail, tuple)
    row = detail[0]
    assert row.name == b"lr=1e-4 my run"
    assert (row.log_path, row.err_path) == ("/home/a b/out.txt", "/home/a b/err.txt")
    assert row.workdir == b"/home/a b"
    assert row.reason == "RaisedSignal:11(Segmentation fault)"


def test_what_a_job_asks_for_cannot_change_what_slurm_says_of_it():
    output = shown("7", "RUNNING").replace(
        b" Command=", b" Features=x JobState=COMPLETED Command=/y JobState=FAILED Restarts=9 "
    )
    detail = record.read(Section(0, output, b""), name=b"train")
    assert isinstance(detail, tuple)
    assert (detail[0].native, detail[0].restarts) == ("RUNNING", 0)
