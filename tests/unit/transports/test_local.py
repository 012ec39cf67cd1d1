"""What is particular to scripts on this machine; the rest is in the contract tests."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from jobmond.errors import TransientTransportError
from jobmond.transports.local import LocalTransport


async def test_nobody_logs_in() -> None:
    transport = LocalTransport()
    await transport.run(b":", timeout_s=30, max_bytes=0)
    assert transport.logins == 0


async def test_the_script_has_a_process_group_of_its_own() -> None:
    answer = await LocalTransport().run(b"ps -o pgid= -p $$", timeout_s=30, max_bytes=100)
    assert int(answer.stdout) != os.getpgid(0)


async def test_a_shell_that_is_killed_is_no_answer() -> None:
    with pytest.raises(TransientTransportError, match="signal 9"):
        await LocalTransport().run(b"kill -KILL $$", timeout_s=30, max_bytes=100)


async def test_the_last_words_of_a_shell_that_failed() -> None:
    with pytest.raises(TransientTransportError, match=r"this host: .*exit 2.*[Ss]yntax error"):
        await LocalTransport().run(b"if", timeout_s=30, max_bytes=100)


async def test_a_program_that_keeps_output_open_does_not_hold_up_the_timeout(
    tmp_path: Path,
) -> None:
    """It left the process group, so it outlives the script; we do not wait for it."""
    pid_file = tmp_path / "pid"
    script = f"setsid sh -c 'echo $$ >{pid_file}; exec sleep 600' & sleep 600".encode()
    with pytest.raises(TransientTransportError, match="within 1 s"):
        await LocalTransport(grace_s=0.1).run(script, timeout_s=1, max_bytes=100)
    os.kill(int(pid_file.read_text()), signal.SIGKILL)


async def test_a_machine_without_processes_to_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fork(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(asyncio.get_running_loop(), "subprocess_exec", fork)
    with pytest.raises(TransientTransportError, match="cannot start /bin/sh: Resource"):
        await LocalTransport().run(b":", timeout_s=30, max_bytes=100)


async def test_no_process_and_no_pipe_is_left() -> None:
    transport = LocalTransport()
    await transport.run(b":", timeout_s=30, max_bytes=100)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await transport.run(b"exit 1", timeout_s=30, max_bytes=100)
        with pytest.raises(TransientTransportError):
            await transport.run(b"echo too much", timeout_s=30, max_bytes=1)
    await asyncio.sleep(0)
    assert len(os.listdir("/proc/self/fd")) <= before
