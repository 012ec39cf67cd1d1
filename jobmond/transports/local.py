"""Scripts on this machine."""

import asyncio

from jobmond.errors import TransientTransportError
from jobmond.ports import Answer
from jobmond.registry import transports
from jobmond.transports import _frame, _process

_SHELL = ("/bin/sh", "-s", _frame.OWN_GROUP)


@transports.plugin("local")
class LocalTransport:
    """Runs scripts with this machine's own `/bin/sh`, each in a process group that dies with it.

    `grace_s` bounds the waits that cannot be allowed to last: for output that an escaped process
    holds open after the script's end, and for a killed process that the kernel keeps (a dead file
    server).
    """

    def __init__(self, *, grace_s: float = 1.0) -> None:
        self._grace_s = grace_s

    @property
    def logins(self) -> int:
        """Always 0: nobody logs in."""
        return 0

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        """Run `script`; see `jobmond.ports.Transport`."""
        nonce = _frame.nonce()
        frame = _frame.wrap(script, nonce)
        intake = _frame.Intake(nonce, max_bytes=max_bytes)
        try:
            async with (
                asyncio.timeout(timeout_s),
                _process.running(_SHELL, intake, grace_s=self._grace_s) as shell,
            ):
                shell.write(frame)
                await shell.settled.wait()
        except TimeoutError as late:
            raise TransientTransportError(
                f"this host: no whole answer within {timeout_s:g} s"
            ) from late
        except OSError as failure:
            raise TransientTransportError(
                f"this host: cannot start /bin/sh: {failure.strerror}"
            ) from failure
        return _answer(intake, shell, max_bytes)

    async def close(self) -> None:
        """Nothing is held open."""


def _answer(intake: _frame.Intake, shell: _process.Shell, max_bytes: int) -> Answer:
    if intake.too_much:
        raise TransientTransportError(f"this host: more than {max_bytes} bytes of output")
    answer = intake.answer()
    if answer is None:
        raise TransientTransportError(
            f"this host: the shell ended ({_frame.ending(shell.status)}) before the "
            f"script did{_frame.last_words(bytes(shell.stderr), intake.banner)}"
        )
    code, stdout = answer
    return Answer(code, stdout, bytes(shell.stderr))
