"""A log as a stream: with grep, without it, whatever it holds, the same comes out."""

import io
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobmond.cli import sieve
from jobmond.cli.sieve import Sieve
from tests.benchmarks.rl_log import pieces
from tests.training import everything, fed, log, reader

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
