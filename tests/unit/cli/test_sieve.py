"""A log as a stream: with grep, without it, whatever it holds, the same comes out."""

import io
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobmond.analysis.choosing import choose, diagnose_file
from jobmond.analysis.scout import Scout
from jobmond.cli import sieve
from jobmond.cli.sieve import Sieve
from jobmond.cli.windows import read_evidence
from tests.benchmarks.rl_log import pieces
from tests.training import everything, fed, log, reader
from tests.unit.analysis.faults.windowing import NARROW

GREP = shutil.which("grep")
WAYS = [(GREP, True), (GREP, False), (None, False)]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Blocks so small that a short log has many."""
    monkeypatch.setattr(sieve, "_SMALL_BYTES", 2000)
    monkeypatch.setattr(sieve, "_FIRST_BYTES", 1000)
    monkeypatch.setattr(sieve, "BLOCK_BYTES", 5000)
    monkeypatch.setattr(sieve, "TAIL_BYTES", 1500)


def through(where, raw, grep, file):
    following = reader()
    where.write_bytes(raw)
    with where.open("rb", buffering=0) as source:
        sums = Sieve(grep).read(source, following, file=file)
    return sums, following


@pytest.mark.parametrize(("grep", "file"), WAYS)
@pytest.mark.parametrize(
    "name", ["skyrl_legacy_raise", "hf5_sft_ok", "trl_grpo_collapse", "verl_ok", "megatron_ok"]
)
def test_as_if_it_had_been_fed_at_once(tmp_path, name, grep, file):
    raw = log(name)
    sums, following = through(tmp_path / "log", raw, grep, file)
    assert everything(following) == everything(fed(raw))
    assert (sums.size_bytes, sums.lines) == (len(raw), raw.count(b"\n"))
    assert sums.tail == raw[-1500:]


@pytest.mark.parametrize(("grep", "file"), WAYS)
@pytest.mark.parametrize("end", [b"", b"\n", b"x" * 1400, b"y" * 9000, b"{'loss': 3.0}"])
def test_whatever_the_end_is(tmp_path, grep, file, end):
    bars = b"".join(b"\r 1%%|x| %d/9000 [00:01<1:00, 1.0it/s]" % n for n in range(600))
    raw = b"{'loss': 1.0}\n" + b"noise\n" * 900 + bars + b"\n{'loss': 2.0}\n" + end
    _, following = through(tmp_path / "log", raw, grep, file)
    assert everything(following) == everything(fed(raw))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.sampled_from(
            [b"{'loss': 1.0}\n", b"\n", b"\r", b"z" * 3000, b"'k': \n", b"9/9 [", b"\0\xff\n"]
        ),
        max_size=30,
    ).map(b"".join)
)
@pytest.mark.parametrize(("grep", "file"), WAYS)
def test_any_bytes(tmp_path, grep, file, raw):
    sums, following = through(tmp_path / "log", b"{'loss': 0.5}\n" + raw, grep, file)
    assert everything(following) == everything(fed(b"{'loss': 0.5}\n" + raw))
    assert sums.lines == raw.count(b"\n") + 1


def test_a_line_that_grep_cannot_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(sieve, "_GREP_MEMORY_BYTES", 1)
    raw = log("skyrl_legacy_raise")
    sums, following = through(tmp_path / "log", raw, GREP, True)
    assert everything(following) == everything(fed(raw))
    assert (sums.size_bytes, sums.lines, sums.tail) == (len(raw), raw.count(b"\n"), raw[-1500:])


def test_only_so_many_bytes():
    following = reader()
    sums = Sieve(GREP).read(io.BytesIO(log("megatron_ok")), following, 1975)
    assert (sums.size_bytes, following.finish().state.step) == (1975, 15)


def test_a_large_log_in_little_memory(tmp_path):
    where = tmp_path / "log"
    with where.open("wb") as out:
        for piece in pieces(5_000_000):
            out.write(piece)
    following = reader()
    with where.open("rb", buffering=0) as source:
        Sieve(GREP).read(source, following, file=True)
    assert following.finish().state.step == 13


OOM = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB."


def scouted(where, raw, grep, file):
    where.write_bytes(raw)
    scout = Scout()
    with where.open("rb", buffering=0) as source:
        sums = Sieve(grep, scout).read(source, reader(), file=file)
        found = read_evidence(
            source, scout, size_bytes=sums.size_bytes, lines=sums.lines, limits=NARROW
        )
    return scout, choose(found)


def noisy(tail: bytes) -> bytes:
    """A training log in which something stands far from both ends."""
    chatter = b"(Engine pid=8) INFO 07-14 09:10:00 [loggers.py:248] throughput: 12.5 tokens/s\n"
    return log("skyrl_legacy_raise")[:60_000] + chatter * 200 + tail + chatter * 600


@pytest.mark.parametrize(("grep", "file"), WAYS)
def test_a_diagnosis_needs_only_few_parts_of_a_file(tmp_path, grep, file):
    trace = (
        b'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n' + OOM + b"\n"
    )
    raw = noisy(b"x\n" + trace)
    scout, found = scouted(tmp_path / "log", raw, grep, file)
    assert found is not None
    assert found.cause == "cuda-oom"
    assert raw.split(b"\n")[found.line - 1] == OOM
    assert raw[found.offset :].startswith(b"Traceback")
    assert found == diagnose_file([raw])
    assert len(scout.spots()) == 1


@pytest.mark.parametrize(("grep", "file"), WAYS)
def test_a_failure_behind_a_bar_in_a_line_without_an_end(tmp_path, grep, file):
    bars = b"".join(b"\r 1%%|x| %d/9000 [00:01<1:00, 1.0it/s]" % n for n in range(900))
    raw = noisy(bars + b"\nslurmstepd: error: Detected 1 oom_kill event in StepId=7.0.\n")
    _, found = scouted(tmp_path / "log", raw, grep, file)
    assert found is not None
    assert (found.cause, found.line) == ("host-oom", diagnose_file([raw]).line)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.sampled_from(
            [b"{'loss': 1.0}\n", b"\n", b"\r", b"z" * 3000, b"step 3/9\n", b"\0\xff\n", OOM + b"\n",
             b"Killed\n", b"'loss': nan}\n", b"9/9 [", b"Traceback (most recent call last):\n",
             b'  File "a.py", line 1, in f\n', b"ValueError: x\n"]
        ),
        max_size=30,
    ).map(b"".join)
)  # fmt: skip
def test_every_way_finds_the_same_places(tmp_path, raw):
    raw = b"{'loss': 0.5}\n" + raw
    found = [scouted(tmp_path / "log", raw, *way) for way in WAYS]
    assert len({(scout.spots(), scout.benign) for scout, _ in found}) == 1
    assert found[0][1] == found[1][1] == found[2][1]
