"""What every dialect owes, whoever wrote it."""

import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jobmond.analysis.bookmark import put_down, taken_up
from jobmond.analysis.reading import LogReader, needles_of
from jobmond.model.metrics import CANONICAL, Segment
from tests.training import HERE, LOGS, PARSERS, everything, fed, lines_of, log, reader

NAMES = sorted(PARSERS)
PIECES = {
    "areal": ["areal/train.log"],
    "axolotl": ["composite/llamafactory.out"],
    "hf": ["sft/hf_v4.57.1.raw.log", "sft/hf_v5.24.0.raw.log", "composite/bad_bytes.log"],
    "llamafactory": ["composite/llamafactory.out"],
    "launcher": ["launcher/ptq_oom.log", "launcher/submit_failed.stdout"],
    "lm-eval": [],
    "megatron": ["sft/megatron.log"],
    "nemo-rl": ["nemo_rl/grpo.log"],
    "openrlhf": ["openrlhf/ppo.log"],
    "prime-rl": ["prime_rl/trainer.log", "prime_rl/orchestrator.log"],
    "skyrl": [
        "skyrl/marin_wandb_mirror.ansi_ray.log",
        "skyrl/console_step.ansi_ray.log",
        "composite/restart_chain/run_1002.out",
        "composite/interleaved_ray.log",
    ],
    "slime": ["slime/train.log"],
    "torchtune": ["sft/torchtune_log_1700000000.txt"],
    "trl": ["trl/grpo_hf4.raw.log", "trl/grpo_hf5.raw.log"],
    "verl": ["verl/console_numpy2_ray.log", "verl/console_old_3f.log"],
}
SAMPLES = sorted({path for paths in PIECES.values() for path in paths})
# What a hostile or broken log may hold, beside any bytes.
WORDS = st.sampled_from(
    [
        b"{'loss': 1.0, 'grad_norm': nan, 'epoch': 0.1}",
        b"{'loss': '1.0', 'epo",
        b"ch': '0.1'}",
        b" 35%|\xe2\x96\x88   | 320/916 [2:47:47<5:21:36, 32.38s/it]",
        b"  0%|   | 0/916 [00:00<?, ?it/s]",
        b'WANDB_MIRROR kind=train step=7 metrics={"trainer/global_step": 7, "a": NaN}',
        b'WANDB_MIRROR kind=train step=8 metrics={"a": [[[[',
        b"skyrl_train - Step 9: ",
        b"{'policy/raw_grad_norm': '0.0000',",
        b" 'trainer/global_step': 9}",
        b"(TaskRunner pid=1) step:3 - actor/grad_norm:np.float64(nan) - critic/rewards/mean:0.1",
        b" iteration        5/     300 | consumed samples: 320 | lm loss: NAN | grad norm: 2 |",
        b"Global step 12: {'policy_loss': -0.1, 'reward': tensor(0.3)}",
        b"***** Running training *****",
        b"Training done!",
        b"\xe2\x96",
        b"\x1b[36m",
        b"\x1b]0;",
        b"\0",
        b"\r",
        b"\n",
        b"\n",
        b"(skyrl_entrypoint pid=1) ",
        b"\xe2\x94\x80 Entering Experiment cicd with id: cicd_7 \xe2\x94\x80",
        b"                    slurm_tunnel://nemo_run/471",
        b"Task 0: ptq_0\n- Status: PENDING\n- Job id: 4712",
        b"AULT_CFG_0/0 Inserted 106 quantizers",
        b"AULT_CFG_0/0  44%|\xe2\x96\x8d | 14/32 [00:40<00:49,  2.76s/it]",
        b"[16:11:33] INFO     Job 471 finished: FAILED",
        b"Unexpected error: ",
        b"[repeated 3x across cluster]",
        b"9" * 5000,
        b"{'a': " * 30,
    ]
)
LOGLIKE = st.lists(st.one_of(WORDS, st.binary(max_size=20)), max_size=40).map(b"".join)
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", NAMES)
class TestEveryDialect:
    def test_is_called_like_its_plugin(self, name):
        assert PARSERS[name].name == name

    def test_has_few_needles_that_are_plain_words(self, name):
        parser = PARSERS[name]
        assert 0 < len(parser.needles) <= 24
        for needle in (*parser.needles, *parser.hints):
            assert len(needle) >= 1
            assert not set(needle) & set(b"\r\n\0\x1b")
            needle.decode()

    def test_says_where_it_comes_from(self, name):
        module = type(PARSERS[name]).__module__
        assert "Source:" in (__import__(module, fromlist=["_"]).__doc__ or "")

    def test_maps_to_canonical_names_only(self, name):
        parser = PARSERS[name]
        table = getattr(__import__(type(parser).__module__, fromlist=["_"]), "CANONICAL", {})
        values = {native: 1.0 for natives in table.values() for native in natives}
        assert set(parser.canonical(values)) <= CANONICAL
        assert parser.canonical({}) == {}

    def test_what_it_reads_has_a_needle(self, name):
        parser = PARSERS[name]
        wanted = re.compile(b"|".join(map(re.escape, parser.needles))).search
        for path in PIECES.get(name, ()):
            for line in re.split(rb"[\r\n]", lines_of(path)):
                if not wanted(line):
                    assert list(parser.read(Segment(0, line), {})) == [], line

    @QUICK
    @given(LOGLIKE)
    def test_any_bytes_are_accepted(self, name, raw):
        following = fed(raw, name)
        assert following.finish() is not None

    @QUICK
    @given(LOGLIKE, st.lists(st.integers(0, 2000), max_size=6))
    def test_cut_anywhere(self, name, raw, cuts):
        assert everything(fed(raw, name, cuts=tuple(cuts))) == everything(fed(raw, name))

    @QUICK
    @given(LOGLIKE)
    def test_filtered_by_its_needles(self, name, raw):
        assert _values(filtered(raw, PARSERS[name].needles), name) == _values(raw, name)

    @QUICK
    @given(LOGLIKE)
    def test_what_is_peeked_at_is_not_stored(self, name, raw):
        following = fed(raw, name)
        before = everything(following)
        following.peek()
        assert everything(following) == before


def filtered(raw: bytes, needles: tuple[bytes, ...]) -> bytes:
    """What `tr '\\r' '\\n' | grep -F` leaves; an open end stays open."""
    *closed, rest = raw.replace(b"\r", b"\n").split(b"\n")
    kept = [line + b"\n" for line in closed if any(needle in line for needle in needles)]
    return b"".join(kept) + rest


def _values(raw: bytes, name: str | None) -> list[object]:
    """What is known, without where it stood."""
    plain = put_down(fed(raw, name))
    return [repr(plain["candidates"]), plain["settled"]]


@QUICK
@given(LOGLIKE, st.lists(st.integers(0, 2000), max_size=6))
@example(b"{'loss': 1.0}\n" * 3, [5])
def test_cut_anywhere_while_the_dialect_is_open(raw, cuts):
    assert everything(fed(raw, cuts=tuple(cuts))) == everything(fed(raw))


@QUICK
@given(LOGLIKE)
def test_filtered_by_every_needle_while_the_dialect_is_open(raw):
    needles = needles_of(list(PARSERS.values()), hints=True)
    assert _values(filtered(raw, needles), None) == _values(raw, None)


@pytest.mark.parametrize("path", SAMPLES)
def test_every_byte_is_a_place_to_cut(path):
    raw = lines_of(path)[:6000]
    whole = everything(fed(raw))
    for cut in range(0, len(raw), 1 if len(raw) < 900 else 13):
        assert everything(fed(raw, cuts=(cut,))) == whole, cut


@pytest.mark.parametrize("name", LOGS)
@settings(max_examples=2, deadline=None)
@given(st.data())
def test_whole_logs_in_pieces(name, data):
    raw = log(name)
    cuts = data.draw(st.lists(st.integers(0, len(raw)), min_size=1, max_size=20))
    assert everything(fed(raw, cuts=tuple(cuts))) == everything(fed(raw))


@pytest.mark.parametrize("name", [*LOGS, *SAMPLES])
@settings(max_examples=3, deadline=None)
@given(st.data())
def test_put_down_and_taken_up_again(name, data):
    raw = lines_of(name) if "/" in name else log(name)
    cut = data.draw(st.integers(0, len(raw)))
    first = reader()
    first.feed(raw[:cut])
    first.peek()
    kept = put_down(first)
    second = taken_up(kept, PARSERS.values())
    assert second is not None
    assert everything(second) == everything(first)
    # What was not closed is read again, from the byte that the bookmark names.
    second.feed(raw[kept["offset"] :])
    assert everything(second) == everything(fed(raw))


def test_a_bookmark_of_another_version_is_not_taken_up():
    assert taken_up({**put_down(LogReader(())), "version": 0}, PARSERS.values()) is None
    kept = put_down(fed(b"", "hf"))
    assert taken_up(kept, [PARSERS["verl"]]) is None


def test_the_samples_are_there():
    assert all((HERE / "dialects" / path).is_file() for path in SAMPLES)
