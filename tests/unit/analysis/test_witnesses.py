"""Of several logs of one job, the one that tells the cause is believed."""

from jobmond.analysis.witnesses import believed, witnesses
from jobmond.model.observation import Examined, Facts, LogPart, LogTail
from jobmond.model.state import State
from tests.unit.builders import NOW, job

OOM = (
    b'Traceback (most recent call last):\n  File "serve.py", line 3, in f\n    g()\n'
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
)
LOST = (
    b'Traceback (most recent call last):\n  File "ask.py", line 9, in f\n    g()\n'
    b"requests.exceptions.ConnectionError: HTTPConnectionPool(host='n1', port=8000): refused\n"
)
DISK = (
    b'Traceback (most recent call last):\n  File "ask.py", line 9, in f\n    g()\n'
    b"OSError: [Errno 28] No space left on device: '/scratch/x'\n"
)
FAILED = job(state=State.FAILED, native="FAILED", facts=Facts(exit_code=1))


def whole(path: str, data: bytes) -> Examined:
    return Examined(path, len(data), (LogPart(0, data, 1),) if data else ())


def told(**logs: bytes) -> tuple[str, str | None, int | None]:
    """Cause, the log that tells it where it is not the first, and the line."""
    files = [whole(f"/l/{name.replace('_', '.')}", data) for name, data in logs.items()]
    own = files[0]
    data = own.parts[0].data if own.parts else b""
    tail = LogTail(own.path, len(data), 1, NOW, 0, data, examined=tuple(files))
    found, _ = believed(FAILED, witnesses(tail))
    return found.cause, found.log, found.line


def test_one_log():
    assert told(a_out=OOM) == ("cuda-oom", None, 4)


def test_what_stands_in_the_other_file():
    assert told(a_out=b"step 1\n", a_err=b"x\n" + OOM) == ("cuda-oom", "/l/a.err", 5)


def test_the_jobs_own_log_goes_first_where_both_tell_it():
    assert told(a_out=OOM, a_err=DISK) == ("cuda-oom", None, 4)


def test_a_server_is_believed_before_the_client_that_lost_it():
    assert told(client_log=LOST, server_log=OOM) == ("cuda-oom", "/l/server.log", 4)
    assert told(server_log=OOM, client_log=LOST)[0] == "cuda-oom"


def test_a_client_that_failed_by_itself_is_believed():
    ended = b"step 1\nTerminated\n"
    assert told(client_log=DISK, server_log=ended) == ("disk-full", None, 4)


def test_no_log_and_an_empty_one():
    assert believed(FAILED, ())[0].cause == "unknown"
    assert told(a_out=b"")[0] == "unknown"


def test_a_part_that_was_not_read_leaves_the_end_of_the_log():
    tail = LogTail("/l/a", 900, 1, NOW, 900 - len(OOM), OOM, examined=(Examined("/l/a", 900, ()),))
    found, _ = believed(FAILED, witnesses(tail))
    assert (found.cause, found.line) == ("cuda-oom", None)


def test_parts_of_a_log_whose_middle_is_missing_are_said():
    parts = (LogPart(0, b"start\n", 1), LogPart(500, b"x\n" + OOM, 39))
    size = 502 + len(OOM)
    one = Examined("/l/a", size, parts, hits=3, searched=False)
    [own] = witnesses(LogTail("/l/a", size, 1, NOW, 502, OOM, examined=(one,)))
    found, _ = believed(FAILED, [own])
    assert (found.cause, found.line, found.first_line, found.offset) == ("cuda-oom", 43, 40, 502)
    assert own.scan.looked.startswith(f"{8 + len(OOM)} bytes in 2 parts (of {size} bytes;")


def test_of_logs_that_were_joined_each_speaks_for_itself():
    files = (whole("/l/client-0-7-0.log", LOST), whole("/l/server-0-7-0.log", OOM))
    both = b"==> client <==\n" + LOST + b"==> server <==\n" + OOM
    heard = witnesses(LogTail("/l", len(both), 0, NOW, 0, both, joined=True, examined=files))
    found, teller = believed(FAILED, heard)
    assert (found.cause, found.log, found.line) == ("cuda-oom", "/l/server-0-7-0.log", 4)
    assert teller is not None
    assert teller.path == "/l/server-0-7-0.log"
    alone = witnesses(LogTail("/l", len(both), 0, NOW, 0, both, joined=True))
    assert believed(FAILED, alone)[0].cause == "cuda-oom"
