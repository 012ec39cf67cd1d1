"""Several logs of one job: the one that knows is asked."""

import pytest

from jobmond.analysis.choosing import Word, choose
from jobmond.analysis.diagnoser import diagnose_chunks
from jobmond.analysis.whichlog import Part, Told, believed, other_ranks, part_of
from jobmond.model.state import State
from tests.unit.analysis.faults.variations import ELASTIC, EXIT_1, OOM, STEPS, trace

GLOO = trace(
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by "
    "peer [127.0.0.1]:60553. This is typically caused by a remote worker crashing."
)
REFUSED = trace("httpx.ConnectError: [Errno 111] Connection refused")
NO_ANSWER = trace("RuntimeError: 230 of 512 samples without a response")
TIME = (
    "slurmstepd: error: *** JOB 17 ON n1 CANCELLED AT 2026-07-14T21:00:12 DUE TO TIME LIMIT ***\n"
)
STOPPED = "INFO: Shutting down\nTerminated\n"


def job(*logs: tuple[str, str], word: Word | None = None):
    told = []
    for path, text in logs:
        evidence = diagnose_chunks([text.encode()])
        told.append(Told(path, choose(evidence, word), hurt=bool(evidence.events)))
    chosen = believed(told)
    if chosen is None:
        return None, None
    found = told[chosen]
    cause = found.diagnosis and found.diagnosis.cause
    return (cause, found.path), other_ranks(told, chosen)


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/scratch/a/logs/server-8812-0.out", Part.SERVER),
        ("logs/vllm_server.log", Part.SERVER),
        ("/x/run/vllm.log", Part.SERVER),
        ("logs/client-8812.log", Part.CLIENT),
        ("/w/torch/attempt_0/3/stderr.log", Part.RANK),
        ("logs/rank_12.log", Part.RANK),
        ("log-acct-job_8812_3.out", Part.RANK),
        ("sbatch_acct_8812.out", Part.LAUNCHER),
        ("/x/slurm-8812.out", Part.OUT),
        ("train.8812.err", Part.ERR),
        ("/x/run/stderr.log", Part.ERR),
        ("train.log", Part.OUT),
    ],
)
def test_whose_log_a_path_is(path, part):
    assert part_of(path) is part


def test_the_server_knows_why_its_clients_cannot_reach_it():
    found, _ = job(("client.log", STEPS + REFUSED + EXIT_1), ("server.log", STEPS + trace(OOM)))
    assert found == ("cuda-oom", "server.log")


def test_a_server_that_died_without_a_reason_comes_before_what_the_client_makes_of_it():
    died = "EngineCore encountered a fatal error.\n"
    found, _ = job(("client.log", NO_ANSWER), ("server.log", STEPS + died))
    assert found == ("engine-dead", "server.log")


def test_a_server_that_was_only_stopped_explains_nothing():
    own = trace("KeyError: 'doc_id'")
    found, _ = job(("server.log", STEPS + STOPPED), ("client.log", own))
    assert found == ("python-exception", "client.log")


def test_a_client_that_fails_by_itself_while_the_server_is_well():
    found, _ = job(("server.log", STEPS), ("client.log", REFUSED))
    assert found == ("network", "client.log")


def test_standard_error_holds_what_the_output_does_not():
    found, _ = job(("a.out", STEPS), ("a.err", trace(OOM)))
    assert found == ("cuda-oom", "a.err")


def test_the_rank_that_failed_and_not_those_that_missed_it():
    logs = [(f"rank_{n}.log", STEPS + (trace(OOM) if n == 5 else GLOO)) for n in range(8)]
    found, others = job(("launcher.log", ELASTIC), *logs)
    assert (found, others) == (("cuda-oom", "rank_5.log"), 7)


def test_a_reason_with_a_name_comes_before_an_exception_nobody_knows():
    found, _ = job(
        ("rank_0.log", trace("RuntimeError: batch was lost")), ("rank_1.log", trace(OOM))
    )
    assert found == ("cuda-oom", "rank_1.log")


def test_of_equal_ones_the_first():
    found, _ = job(("rank_0.log", trace(OOM)), ("rank_1.log", trace(OOM)))
    assert found == ("cuda-oom", "rank_0.log")


def test_only_the_launcher_says_that_something_failed():
    found, _ = job(("rank_0.log", STEPS), ("torchrun.log", ELASTIC))
    assert found == ("unknown", "torchrun.log")


def test_what_somebody_outside_names_wins():
    found, _ = job(("a.out", STEPS + trace("KeyboardInterrupt")), ("a.err", TIME))
    assert found == ("walltime", "a.err")


def test_the_schedulers_word_wins_and_the_log_that_quotes_it_is_named():
    word = Word(State.TIMEOUT)
    found, _ = job(("a.out", STEPS + trace(OOM)), ("a.err", TIME), word=word)
    assert found == ("walltime", "a.err")


def test_nothing_failed():
    found, _ = job(("server.log", STEPS), ("client.log", STEPS))
    assert found[0] is None


def test_failed_and_no_log_says_why():
    found, _ = job(("a.out", STEPS), ("a.err", ""), word=Word(State.FAILED, 3))
    assert found[0] == "unknown"


def test_the_log_that_the_job_is_known_by_comes_first_among_equals():
    found = choose(diagnose_chunks([trace(OOM).encode()]))
    told = [Told("rank_0.log", found), Told("a.out", found, own=True)]
    assert believed(told) == 1
    assert other_ranks(told, 0) is None


def test_no_logs():
    assert believed([]) is None
