"""What every transport owes, over every one that can run here."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobmond.errors import TransientTransportError
from jobmond.ports import Answer, Transport
from jobmond.registry import transports
from tests.needs import need
from tests.sshd import master_connection, processes_of, running_sshd

MEGABYTE = 1_000_000
PATIENCE_S = 30.0


@pytest.fixture(params=list(transports))
async def transport(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Transport]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    name = request.param
    with contextlib.ExitStack() as stack:
        if name == "local":
            made: Transport = transports[name]()
        elif name == "ssh":
            sshd = stack.enter_context(running_sshd())
            made = transports[name](
                hosts=["127.0.0.1"],
                port=sshd.port,
                user=sshd.user,
                identity_file=sshd.key,
                known_hosts_file=sshd.known_hosts,
            )
        elif name == "openssh":
            sshd = stack.enter_context(running_sshd())
            socket = sshd.place / "master"
            stack.enter_context(master_connection(sshd, socket))
            made = transports[name](hosts=["127.0.0.1"], control_path=socket)
        else:
            need(False, f"transport {name} has no far side in these tests")
        yield made
        await made.close()


async def ask(transport: Transport, script: bytes, *, max_bytes: int = MEGABYTE) -> Answer:
    return await transport.run(script, timeout_s=PATIENCE_S, max_bytes=max_bytes)


async def gone(mark: str) -> bool:
    """Whether no process carries `mark`; they have a while to go."""
    give_up_at = time.monotonic() + PATIENCE_S
    while processes_of(mark):
        if time.monotonic() > give_up_at:
            return False
        await asyncio.sleep(0.02)
    return True


async def there(mark: str) -> bool:
    give_up_at = time.monotonic() + PATIENCE_S
    while not processes_of(mark):
        if time.monotonic() > give_up_at:
            return False
        await asyncio.sleep(0.02)
    return True


def sleeper() -> tuple[str, bytes]:
    """A script that sleeps for long in a child of a child, and the mark of its processes."""
    mark = f"jm-{uuid.uuid4()}"
    return mark, f"sh -c 'sleep 600; : {mark}'; echo never".encode()


@pytest.mark.parametrize("code", [0, 1, 2, 42, 124, 126, 127, 137, 143, 254, 255])
async def test_exit_codes(transport: Transport, code: int) -> None:
    assert await ask(transport, f"exit {code}".encode()) == Answer(code, b"", b"")


async def test_output_and_errors_are_apart_and_exact(transport: Transport) -> None:
    answer = await ask(transport, b"printf 'out\\n\\n'; printf 'err' >&2; exit 7")
    assert answer == Answer(7, b"out\n\n", b"err")


async def test_any_byte_comes_back(transport: Transport) -> None:
    every = "".join(f"\\{byte:03o}" for byte in range(256))
    answer = await ask(transport, f"printf '{every}'".encode())
    assert answer.stdout == bytes(range(256))


async def test_nul_bytes(transport: Transport) -> None:
    assert (await ask(transport, b"head -c 3 /dev/zero")).stdout == b"\0\0\0"


async def test_a_script_of_any_bytes(transport: Transport) -> None:
    answer = await ask(transport, b"cat <<'EOT'\n\xff\xfe\xc3\xa4 $HOME `id` \\ ' \"\nEOT\n")
    assert answer.stdout == b"\xff\xfe\xc3\xa4 $HOME `id` \\ ' \"\n"


async def test_a_nul_byte_in_the_script_is_refused(transport: Transport) -> None:
    with pytest.raises(ValueError, match="NUL"):
        await ask(transport, b"echo a\0b")


@pytest.mark.parametrize("script", [b"echo hello", b"echo hello # no newline", b"echo hello\n\n"])
async def test_the_last_line_needs_no_newline(transport: Transport, script: bytes) -> None:
    assert (await ask(transport, script)).stdout == b"hello\n"


async def test_an_empty_script(transport: Transport) -> None:
    assert await ask(transport, b":") == Answer(0, b"", b"")


async def test_standard_input_is_empty(transport: Transport) -> None:
    assert await ask(transport, b"cat; read -r line; echo $?") == Answer(0, b"1\n", b"")


async def test_five_megabytes(transport: Transport) -> None:
    answer = await ask(transport, b"head -c 5000000 /dev/zero | tr '\\0' x", max_bytes=5 * MEGABYTE)
    assert answer == Answer(0, b"x" * 5_000_000, b"")


async def test_a_long_script(transport: Transport) -> None:
    """Longer than a command line may be, than a pipe holds and than an SSH window."""
    script = b"cat <<'EOT' | wc -c\n" + b"x" * 4_999_999 + b"\nEOT\n"
    assert (await ask(transport, script)).stdout.strip() == b"5000000"


async def test_more_output_than_allowed_is_no_answer(transport: Transport) -> None:
    assert (await ask(transport, b"printf 12345", max_bytes=5)).stdout == b"12345"
    with pytest.raises(TransientTransportError, match="more than 5 bytes"):
        await ask(transport, b"printf 123456", max_bytes=5)


async def test_endless_output_is_stopped_and_the_far_side_with_it(transport: Transport) -> None:
    mark = f"jm-{uuid.uuid4()}"
    with pytest.raises(TransientTransportError, match="more than 1000000 bytes"):
        await ask(transport, f"yes {mark}".encode())
    assert await gone(mark)
    assert (await ask(transport, b"echo alive")).stdout == b"alive\n"


async def test_endless_errors_do_no_harm(transport: Transport) -> None:
    answer = await ask(transport, b"head -c 3000000 /dev/zero | tr '\\0' e >&2; echo out")
    assert (answer.exit_code, answer.stdout) == (0, b"out\n")
    assert len(answer.stderr) == 65_536


async def test_out_of_time_is_no_answer_and_ends_the_far_side(transport: Transport) -> None:
    mark, script = sleeper()
    with pytest.raises(TransientTransportError):
        await transport.run(script, timeout_s=2.5, max_bytes=1000)
    assert await gone(mark)
    assert (await ask(transport, b"echo alive")).stdout == b"alive\n"


async def test_a_script_that_ignores_the_end_is_ended_too(transport: Transport) -> None:
    mark = f"jm-{uuid.uuid4()}"
    script = f"trap '' TERM HUP INT; sh -c 'trap \"\" TERM; while :; do sleep 1; done; : {mark}'"
    with pytest.raises(TransientTransportError):
        await transport.run(script.encode(), timeout_s=2.5, max_bytes=1000)
    assert await gone(mark)


async def test_cancelling_ends_the_far_side(transport: Transport) -> None:
    mark, script = sleeper()
    task = asyncio.create_task(ask(transport, script))
    assert await there(mark)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone(mark)
    assert (await ask(transport, b"echo alive")).stdout == b"alive\n"


async def test_what_a_script_leaves_behind_does_not_hold_up_the_answer(
    transport: Transport,
) -> None:
    mark, script = sleeper()
    started = await ask(transport, b"(" + script + b") & echo started")
    assert started == Answer(0, b"started\n", b"")
    assert await gone(mark)


async def test_an_escaped_process_does_not_hold_up_the_answer(transport: Transport) -> None:
    """One that left the process group with our output open."""
    need("setsid", "setsid is missing")
    answer = await ask(transport, b"setsid sleep 60 & echo $!")
    assert answer.exit_code == 0
    assert (await ask(transport, b"kill " + answer.stdout.strip())).exit_code == 0


async def test_a_syntax_error_is_no_answer_and_runs_nothing(
    transport: Transport, tmp_path: Path
) -> None:
    trace = tmp_path / "ran"
    with pytest.raises(TransientTransportError, match="exit 2"):
        await ask(transport, f": >{trace}\nif true; then".encode())
    assert not trace.exists()


async def test_the_end_sentinel_cannot_be_faked(transport: Transport) -> None:
    fake = b"printf '\\nJMEND 0123456789abcdef0123456789abcdef 0\\n'; exit 9"
    answer = await ask(transport, fake)
    assert answer.exit_code == 9
    assert answer.stdout == b"\nJMEND 0123456789abcdef0123456789abcdef 0\n"


async def test_several_at_once_do_not_mix(transport: Transport) -> None:
    answers = await asyncio.gather(*(ask(transport, f"echo {n}".encode()) for n in range(12)))
    assert [a.stdout for a in answers] == [f"{n}\n".encode() for n in range(12)]


async def test_closing_twice_is_no_error(transport: Transport) -> None:
    await ask(transport, b":")
    await transport.close()
    await transport.close()
