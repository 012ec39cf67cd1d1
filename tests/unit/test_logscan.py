"""What the end of a log shows, and that no bytes can confuse it."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobmond.analysis.diagnose import diagnose
from jobmond.analysis.loglines import clean, lines
from jobmond.analysis.logscan import Scan, tail_evidence
from jobmond.model.state import State

PLAIN = b"""\
step 1 loss=2.0
Traceback (most recent call last):
  File "train.py", line 10, in <module>
    main()
    ~~~~^^
  File "train.py", line 7, in main
    raise ValueError("bad shape")
ValueError: bad shape
"""

CHAINED = b"""\
Traceback (most recent call last):
  File "a.py", line 1, in f
    open("/none")
FileNotFoundError: [Errno 2] No such file or directory: '/none'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 9, in <module>
    f()
RuntimeError: cannot start
"""

RANKS = b"""\
\r  0%|          | 0/916 [00:00<?, ?it/s][n51:2]:[rank2]: Traceback (most recent call last):
[n52:3]:[rank11]: Traceback (most recent call last):
[n51:2]:[rank2]:   File "t.py", line 310, in <module>
[n52:3]:[rank11]:   File "t.py", line 311, in <module>
[n51:2]:[rank2]:     main(cfg)
[n52:3]:[rank11]:     main(cfg)
[n51:2]:[rank2]: KeyError: 'value'
[n52:3]:[rank11]: RuntimeError: connection closed
W0714 09:01:24.891008 32568 torch/distributed/elastic/multiprocessing/api.py:897] Sending
"""

RAY = b"""\
\x1b[36m(TaskRunner pid=4890)\x1b[0m Traceback (most recent call last):
\x1b[36m(TaskRunner pid=4890)\x1b[0m   File "main.py", line 42, in main
\x1b[36m(TaskRunner pid=4890)\x1b[0m     ray.get(x)
\x1b[36m(TaskRunner pid=4890)\x1b[0m ray.exceptions.RayTaskError(OutOfMemoryError): ray::f() (pid=7)
\x1b[36m(TaskRunner pid=4890)\x1b[0m   File "actor.py", line 431, in update_policy
\x1b[36m(TaskRunner pid=4890)\x1b[0m     forward()
\x1b[36m(TaskRunner pid=4890)\x1b[0m torch.OutOfMemoryError: CUDA out of memory.
"""

GROUP = b"""\
  + Exception Group Traceback (most recent call last):
  |   File "g.py", line 4, in <module>
  |     raise group
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "g.py", line 2, in f
    | ValueError: inner
    +------------------------------------
"""

BENIGN = b"""\
2026-05-25 litellm - ERROR - This model's maximum context length is 32768 tokens. However, you
Traceback (most recent call last):
  File "agent.py", line 5, in run
    await step()
harbor.errors.AgentTimeoutError: Agent timed out after 900 s
Traceback (most recent call last):
  File "llm.py", line 5, in call
    post()
litellm.BadRequestError: This model's maximum context length is 32768 tokens.
    | Traceback (most recent call last):
    |   File "/app/solve.py", line 14, in <module>
    |     assert x
    | AssertionError: from a transcript
patterns: ["Traceback (most recent call last):", "CUDA out of memory", "Killed"]
Exception ignored in: <function Pool.__del__ at 0x7f>
Traceback (most recent call last):
  File "pool.py", line 3, in __del__
    self.close()
OSError: handle is closed
"""

ELASTIC = b"""\
Traceback (most recent call last):
  File "/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-07-14_09:31:02
  host      : gpu-017
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 41233)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 41233
============================================================
"""


def whole(log: bytes) -> Scan:
    return tail_evidence(log, at_start=True)


def test_a_traceback_is_found_whole_with_its_place() -> None:
    found = whole(PLAIN).traceback
    assert found is not None
    assert (found.text, found.first_line, found.line, found.offset) == (
        "ValueError: bad shape",
        2,
        8,
        16,
    )
    assert len(found.excerpt) == 7
    assert found.excerpt[0] == "Traceback (most recent call last):"
    assert found.excerpt[-1] == "ValueError: bad shape"


def test_the_first_exception_of_a_chain_is_the_cause_and_the_block_holds_both() -> None:
    found = whole(CHAINED).traceback
    assert found is not None
    assert found.text.startswith("FileNotFoundError")
    assert (found.first_line, found.line) == (1, 4)
    assert found.excerpt[-1] == "RuntimeError: cannot start"
    assert len(found.excerpt) == 11


def test_ranks_are_told_apart_and_a_bar_before_the_header_is_no_obstacle() -> None:
    found = whole(RANKS).traceback
    assert found is not None
    assert (found.text, found.first_line, found.line, found.offset) == (
        "KeyError: 'value'",
        1,
        7,
        0,
    )
    assert found.excerpt == (
        "[n51:2]:[rank2]: Traceback (most recent call last):",
        '[n51:2]:[rank2]:   File "t.py", line 310, in <module>',
        "[n51:2]:[rank2]:     main(cfg)",
        "[n51:2]:[rank2]: KeyError: 'value'",
    )


def test_what_ray_carries_over_ends_at_the_innermost_exception() -> None:
    found = whole(RAY).traceback
    assert found is not None
    assert (found.text, found.line) == ("torch.OutOfMemoryError: CUDA out of memory.", 7)


def test_an_exception_group_is_one_block() -> None:
    found = whole(GROUP).traceback
    assert found is not None
    assert found.text == "ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)"
    assert found.line == 4
    assert len(found.excerpt) == 9


@pytest.mark.parametrize("label", [b"3: ", b"[rank3]: ", b"[default0]:", b"stderr: "])
def test_a_labelled_traceback_is_found(label: bytes) -> None:
    log = b"".join(label + line for line in PLAIN.splitlines(keepends=True))
    found = whole(log).traceback
    assert found is not None
    assert (found.text, found.line) == ("ValueError: bad shape", 8)


def test_benign_lines_are_never_chosen() -> None:
    scan = whole(BENIGN)
    assert scan.traceback is None
    assert scan.marks == ()
    assert scan.proves_failure is None
    assert diagnose(scan, state=State.FAILED, exit_code=1).cause == "unknown"


def test_a_real_exception_among_benign_ones_is_chosen() -> None:
    found = whole(BENIGN + PLAIN + BENIGN).traceback
    assert found is not None
    assert (found.text, found.line) == ("ValueError: bad shape", 27)


def test_a_launchers_summary_is_the_cause_only_where_nothing_better_is() -> None:
    alone, after = whole(ELASTIC).traceback, whole(PLAIN + ELASTIC).traceback
    assert alone is not None
    assert alone.text.endswith("ChildFailedError:")
    assert after is not None
    assert after.text == "ValueError: bad shape"


def test_a_window_inside_the_file_knows_bytes_but_no_line_numbers() -> None:
    found = tail_evidence(b"torn off\n" + PLAIN, at_start=False, offset=5_000).traceback
    assert found is not None
    assert (found.line, found.first_line, found.offset) == (None, None, 5_025)
    unplaced = tail_evidence(PLAIN, at_start=False).traceback
    assert unplaced is not None
    assert unplaced.offset is None


def test_a_block_whose_header_was_cut_off_is_found() -> None:
    log = PLAIN[PLAIN.index(b'  File "train.py", line 7') :]
    found = tail_evidence(b"    main()\n" + log, at_start=False).traceback
    assert found is not None
    assert found.text == "ValueError: bad shape"


@given(st.integers(0, PLAIN.index(b"Traceback")), st.booleans())
def test_every_window_that_holds_the_block_gives_the_same_cause(start: int, crlf: bool) -> None:
    log = PLAIN[start:]
    if crlf:
        log = log.replace(b"\n", b"\r\n")
    scan = tail_evidence(log, at_start=start == 0)
    said = diagnose(scan, state=State.FAILED, exit_code=1)
    assert said.cause == "python-exception"
    assert said.summary == "ValueError: bad shape"


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (PLAIN, "ValueError: bad shape"),
        (CHAINED, "FileNotFoundError: [Errno 2] No such file or directory: '/none'"),
        (PLAIN + b"wandb: View run at https://x\n\n", "ValueError: bad shape"),
        (ELASTIC, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"),
        (b"step 1\nKilled\n", "Killed"),
        (b"step 1\nKilled", "Killed"),
        (
            b"./run.sh: line 3: 12345 Killed                  python train.py\n",
            "./run.sh: line 3: 12345 Killed                  python train.py",
        ),
        (b"Segmentation fault (core dumped)\n", "Segmentation fault (core dumped)"),
        (
            b'Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent first):'
            b'\n  File "a.py", line 1 in f\n',
            "Fatal Python error: Segmentation fault",
        ),
        (b"terminate called after throwing an instance of 'x'\nAborted\n", "Aborted"),
    ],
)  # fmt: skip
def test_last_words_that_prove_a_failure(end: bytes, words: str) -> None:
    scan = whole(b"step 0\n" + end)
    assert scan.proves_failure == words
    assert scan.proves_end is None


@pytest.mark.parametrize(
    "log",
    [
        b"",
        b"step 1\nstep 2\n",
        PLAIN + b"retrying\nstep 2 loss=1.9\n",
        b"Exception in thread Thread-1 (worker):\n" + PLAIN[16:],
        b"Exception ignored in: <function f>\n" + PLAIN[16:],
        b"Killed the old server, starting\n",
        b"ulimit: core dumped is disabled\n",
        PLAIN.replace(b"ValueError: bad shape", b"SystemExit: 0"),
        PLAIN.replace(b"ValueError: bad shape\n", b""),
        BENIGN,
    ],
)
def test_what_proves_no_failure(log: bytes) -> None:
    assert whole(log).proves_failure is None


@pytest.mark.parametrize(
    "end",
    [
        b"end: 2026-02-14 10:16:33 UTC, exit 0\n",
        b"entrypoint exit code: 0",
        b"Job 'raysubmit_A1b2' succeeded\n",
        b"====== 42 passed, 2 xfailed in 211.04s ======\n",
        b"{'train_runtime': 1312.1, 'train_loss': 1.183, 'epoch': 2.0}\n",
        b"***** train metrics *****\n  epoch      =        2.0\n  train_runtime = 21:52\n",
        b"\x1b[36m(entry pid=7)\x1b[0m \x1b[32m2026-11-29 16:16:25.764\x1b[0m |"
        b" \x1b[1m\x1b[32mINFO    \x1b[0m | \x1b[36mskyrl.train.trainer\x1b[0m:"
        b"\x1b[36mtrain\x1b[0m:\x1b[36m601\x1b[0m - \x1b[1m\x1b[32mTraining done!\x1b[0m\n",
    ],
)
def test_last_words_that_prove_the_end(end: bytes) -> None:
    assert whole(b"step 1\n" + end).proves_end is not None


@pytest.mark.parametrize(
    "end",
    [
        b"done\n",
        b"exit code: 01\n",
        b"exit 0\nstep 2\n",
        b"Saved checkpoint\n",
        b"100%|##########| 80/80 [00:01<00:00]\n",
        b"====== 1 failed, 42 passed in 211.04s ======\n",
        b"{'train_runtime': 1312.1}\n" + PLAIN,
        b"***** train metrics *****\n  epoch = 2.0\n***** Running Evaluation *****\n",
        b"exit 0\nKilled\n",
        b"Training done!\n",
        b"INFO     | skyrl.train.trainer:train:601 - Training done!\nsaving the model\n",
    ],
)
def test_what_proves_no_end(end: bytes) -> None:
    assert whole(b"step 1\n" + end).proves_end is None


@pytest.mark.parametrize(
    ("state", "code", "signal", "log", "cause"),
    [
        (State.FAILED, 1, None, PLAIN, "python-exception"),
        (State.FAILED, None, None, PLAIN, "python-exception"),
        (State.FAILED, 1, None, b"step 1\n", "unknown"),
        (State.FAILED, None, 9, PLAIN, "python-exception"),  # what it says goes before how it ended
        (State.FAILED, None, 9, b"step 1\n", "sigkill"),
        (State.FAILED, 137, None, b"", "sigkill"),
        (State.FAILED, 143, None, b"", "sigterm"),
        (State.FAILED, None, 11, b"", "segfault"),
        (State.FAILED, 135, None, b"", "segfault"),
        (State.FAILED, None, None, b"a\nKilled\n", "sigkill"),
        (State.FAILED, None, None, b"a\nBus error\n", "segfault"),
        (State.OUT_OF_MEMORY, None, 9, PLAIN, "host-oom"),
        (State.TIMEOUT, None, None, PLAIN, "walltime"),
        (State.NODE_FAIL, 1, None, PLAIN, "node-failure"),
        (State.PREEMPTED, None, 15, PLAIN, "preempted"),
    ],
)
def test_causes(state: State, code: int | None, signal: int | None, log: bytes, cause: str) -> None:
    assert diagnose(whole(log), state=state, exit_code=code, signal=signal).cause == cause


def test_a_schedulers_line_is_quoted_for_what_the_scheduler_said() -> None:
    kill = (
        b"slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-07-14T21:00:12 DUE TO TIME LIMIT ***"
    )
    said = diagnose(whole(b"step 1\n" + kill + b"\n"), state=State.TIMEOUT)
    assert (said.cause, said.line, said.offset) == ("walltime", 2, 7)
    assert said.excerpt == (kill.decode(),)


def test_a_summary_says_what_was_looked_at() -> None:
    assert diagnose(None, state=State.FAILED, exit_code=3).summary == (
        "FAILED with exit code 3; nothing says why. No log was read."
    )
    scan = tail_evidence(b"x y\n", at_start=False, offset=96)
    assert diagnose(scan, state=State.FAILED, signal=6).summary == (
        "FAILED and signal 6; the log holds no traceback and no kill line. "
        "Looked at the last 4 bytes of the log (from byte 96)."
    )
    assert whole(b"").looked == "an empty log"
    assert whole(b"a").looked == "the whole log of 1 bytes"


def test_last_lines_are_safe_to_show() -> None:
    token = b"hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
    log = (
        b"a\0\0\n"
        b" 1%|#  | 1/100 [00:01<00:03]\r 2%|#  | 2/100 [00:01<00:03]\r 3%|# | 3/100\n"
        b"\x1b[31mred\x1b[0m \x1b]0;title\x07bell\x07 caf\xc3\xa9 \xff\n"
        b"export HF_TOKEN=" + token + b"\n\n"
    )
    scan = whole(log)
    assert scan.last_lines == (
        "a",
        " 3%|# | 3/100",
        "red bell\\x07 café \\xff",
        "export HF_TOKEN=****",
        "",
    )
    assert scan.last_line == "export HF_TOKEN=****"


def test_half_a_secret_at_the_cut_is_not_shown() -> None:
    scan = tail_evidence(b"IjKlMnOpQrStUvWxYz01234567 loss=1\nnext\n", at_start=False)
    assert scan.last_lines == (" loss=1", "next")
    assert tail_evidence(b"IjKlMnOpQrStUvWxYz01234567", at_start=False).last_lines == ("",)


def test_text_that_a_bar_painted_over_is_kept_where_it_speaks() -> None:
    read = lines(b"ValueError: x\r 1%|# | 1/9\r 2%|# | 2/9\nb\n")
    assert [(line.number, line.offset, line.text) for line in read] == [
        (1, 0, "ValueError: x"),
        (1, 0, " 2%|# | 2/9"),
        (2, 38, "b"),
    ]


def test_a_long_line_is_clipped() -> None:
    scan = whole(b"x" * 5_000)
    assert scan.last_lines == ("x" * 1_000 + "… (4000 more characters)",)


PIECES = st.sampled_from(
    [PLAIN, CHAINED, RANKS, RAY, GROUP, BENIGN, ELASTIC, b"\r", b"\n", b"\0", b"\x1b[", b"Killed\n"]
)


@settings(max_examples=200)
@given(
    st.lists(PIECES | st.binary(max_size=20), max_size=6).map(b"".join),
    st.integers(0, 2_000),
    st.booleans(),
)
def test_any_bytes_cut_anywhere_are_accepted(log: bytes, cut: int, at_start: bool) -> None:
    scan = tail_evidence(log[cut:], at_start=at_start, offset=cut)
    assert not (scan.proves_failure and scan.proves_end)
    said = diagnose(scan, state=State.FAILED, exit_code=1)
    assert said.cause in {
        "python-exception",
        "unknown",
        "sigkill",
        "segfault",
        "missing-file",
        "cuda-oom",
    }
    if scan.traceback and scan.traceback.line:
        assert scan.traceback.first_line is not None
        assert scan.traceback.first_line <= scan.traceback.line <= log.count(b"\n") + 1
    for line in scan.last_lines:
        assert line.replace("\t", "").isprintable()


@given(st.binary(max_size=200))
def test_clean_text_moves_no_cursor(raw: bytes) -> None:
    assert "\x1b" not in clean(raw)
    assert "\n" not in clean(raw)


@pytest.mark.parametrize(
    "piece",
    [
        b"\x1b[0", b"\x1b]", b"\r", b"\n", b"[rank1]: ", b"a.", b"(", b"1: ", b"  File \"",
        b"Traceback (most recent call last):\n",
        b"[rank1]: Traceback (most recent call last):\n",
        b"Traceback (most recent call last):\n  File \"\n", b"    |", b"+ Exception Group ",
    ],
)  # fmt: skip
def test_hostile_length_costs_time_in_proportion(piece: bytes) -> None:
    def cost(length: int) -> float:
        log = piece * (length // len(piece))
        runs = []
        for _ in range(3):
            began = time.process_time()
            tail_evidence(log, at_start=False)
            runs.append(time.process_time() - began)
        return min(runs)

    small, large = cost(16_000), cost(128_000)
    # Eight times the text: linear is 8 times the work, quadratic 64 times.
    assert large < 30 * max(small, 0.002)
