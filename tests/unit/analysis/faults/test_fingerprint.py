"""The same fault has the same signature on another day, node, rank and path; another has not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.choosing import diagnose_file
from jobmond.analysis.fingerprint import blur, fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 3 has 94.50 GiB",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has 79.1 GiB",
        ),
        (
            "FileNotFoundError: [Errno 2] No such file: '/scratch/alice/a/part-41.jsonl'",
            "FileNotFoundError: [Errno 2] No such file: '/lustre/team/x/part-7.jsonl'",
        ),
        ("RuntimeError: bad pointer 0x7f3ab96a49fc", "RuntimeError: bad pointer 0x55aa"),
        (
            "srun: error: n03: task 0: Exited with exit code 3",
            "srun: error: gpu-117: task 12: Exited with exit code 3",
        ),
        (
            "[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=26413, OpType=ALLREDUCE)",
            "[Rank 12] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE)",
        ),
    ],
)
def test_what_differs_between_runs_does_not_count(one, other):
    assert fingerprint("x", one, "a.py:f") == fingerprint("x", other, "a.py:f")


def test_what_tells_faults_apart_counts():
    said = "ValueError: bad shape"
    assert fingerprint("x", said, "a.py:f") != fingerprint("x", said, "b.py:f")
    assert fingerprint("x", said, "a.py:f") != fingerprint("y", said, "a.py:f")
    assert fingerprint("x", said, None) != fingerprint("x", "ValueError: bad type", None)
    assert fingerprint("x", "ValueError: a: b", None).split(":")[:3] == ["x", "ValueError", "-"]


def run(rank: int, root: str, size: str) -> str:
    log = f"""\
step 1
[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "{root}/proj/train.py", line {rank + 40}, in step
[rank{rank}]:     loss.backward()
[rank{rank}]:   File "{root}/venv/lib/python3.11/site-packages/torch/_tensor.py", line 5, in backward
[rank{rank}]:     run()
[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size} GiB.
"""
    found = diagnose_file([log.encode()])
    assert found is not None
    assert found.fingerprint is not None
    return found.fingerprint


def test_the_innermost_frame_of_the_project_is_part_of_it():
    assert run(3, "/scratch/alice", "2.32").startswith("cuda-oom:OutOfMemoryError:train.py/step:")
    assert run(3, "/scratch/alice", "2.32") == run(7, "/home/bob/w2", "1.10")


@given(st.text(max_size=3_000))
def test_any_text(text):
    once = blur(text)
    assert len(once) <= 300
    assert "\n" not in once
    assert fingerprint("x", text, text) == fingerprint("x", text, text)
