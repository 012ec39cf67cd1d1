"""The envelope in which a script travels to a shell, and its output comes back.

A connection that dies must never look like an answer, and a script that was cut on its way must
never run in part. So the whole script is one compound command on the shell's standard input,
which a shell parses to its end before it starts it, and the output is an answer only with the
sentinel line that carries the exit code.

Standard input stays open while the script runs: when it closes (we gave up, were killed, or the
connection broke) a watcher inside the frame ends the script's process group. That works where
signals over SSH do not: root logins, forced commands, servers before OpenSSH 7.9.
"""

import secrets

from jobmond.analysis.visible import readable, visible

STDERR_MAX_BYTES = 65_536  # kept of standard error; the rest is read and dropped
OWN_GROUP = "own"  # first argument of the shell where it has a process group to itself

_BEGIN = "JMBEGIN"
_END = "JMEND"
_CODE_MAX_BYTES = 4  # "255\n"
_BANNER_KEPT_BYTES = 256  # longer than a sentinel, and enough for a refusal in words

# The watcher ignores TERM so that it lives to send KILL; it is itself in the group, which keeps
# the group's number from being given to somebody else. At the end, what the script left behind in
# the background goes too, for it would hold the output open.
_FRAME = """\
{
exec 3<&0 </dev/null
(
trap '' TERM HUP
while read -r _jm_line <&3; do :; done
kill -TERM 0
sleep 5
kill -KILL 0
) >/dev/null 2>&1 &
_jm_watch=$!
printf '%s\\n' '@BEGIN@ @NONCE@'
(
set --
exec 3<&-
@SCRIPT@
)
_jm_code=$?
exec 2>/dev/null
kill -KILL "$_jm_watch"
printf '\\n%s %s\\n' '@END@ @NONCE@' "$_jm_code"
if [ "$1" = @OWN@ ]; then trap '' TERM; kill -TERM 0; fi
exit 0
}
"""


def nonce() -> str:
    """A word that no output can contain by accident or by design."""
    return secrets.token_hex(16)


def wrap(script: bytes, nonce: str) -> bytes:
    """The bytes for the standard input of `/bin/sh -s`, which must stay open until the end.

    The script runs in a subshell with `/dev/null` as standard input.

    Raises:
        ValueError: the script holds a NUL byte, which shells drop or stop at.
    """
    if b"\0" in script:
        raise ValueError("a script cannot hold a NUL byte")
    head, tail = (
        _FRAME.replace("@BEGIN@", _BEGIN)
        .replace("@END@", _END)
        .replace("@NONCE@", nonce)
        .replace("@OWN@", OWN_GROUP)
        .split("@SCRIPT@")
    )
    return head.encode("ascii") + script + tail.encode("ascii")


def unwrap(stdout: bytes, nonce: str) -> tuple[int, bytes] | None:
    """Exit code and output of a framed script; None unless it ran to its end.

    What a login shell printed before the script is not part of the output.
    """
    intake = Intake(nonce, max_bytes=len(stdout))
    intake.feed(stdout)
    return intake.answer()


def far_command(timeout_s: float) -> str:
    """The command line that starts the shell at the far side.

    It reads the same in sh, csh and fish: no newline, backslash or exclamation mark, one pair of
    single quotes. `timeout` bounds the script where it exists and knows `-k`; it also gives the
    shell a process group of its own.
    """
    seconds = max(1, int(timeout_s))
    bounded = f"timeout -k 5 {seconds}"
    return (
        f"exec /bin/sh -c 'if timeout -k 5 {seconds} true >/dev/null 2>&1; "
        f"then exec {bounded} /bin/sh -s {OWN_GROUP}; else exec /bin/sh -s; fi'"
    )


def ending(status: int | None) -> str:
    """How a shell ended, in words; `status` is its exit status, or minus the signal's number."""
    if status is None:
        return "unknown"
    return f"signal {-status}" if status < 0 else f"exit {status}"


def last_words(stderr: bytes, banner: bytes) -> str:
    """The last line of either for the end of a message, safe to show; may be empty."""
    for said in (stderr, banner):
        if lines := readable(said[-1000:]).strip().splitlines():
            return f": {visible(lines[-1].strip())[-200:]}"
    return ""


class Intake:
    """Takes standard output as it comes, in pieces of any size, and never holds too much of it.

    `ended` turns true with the end sentinel, `too_much` with more than `max_bytes` of output.
    """

    def __init__(self, nonce: str, *, max_bytes: int) -> None:
        self._begin = f"{_BEGIN} {nonce}\n".encode("ascii")
        self._end = f"\n{_END} {nonce} ".encode("ascii")
        self._max_bytes = max_bytes
        self._began = False
        self._held = bytearray()  # the end of a banner, then the output
        self._end_at: int | None = None
        self.ended = False

    def feed(self, piece: bytes) -> None:
        """Take the next piece; nothing is kept after the end."""
        if self.ended or self.too_much:
            return
        searched = len(self._held)
        self._held += piece
        if not self._began:
            if not self._drop_banner():
                return
            searched = 0
        self._look_for_end(max(0, searched - len(self._end)))

    def _drop_banner(self) -> bool:
        at = self._held.find(self._begin)
        self._began = at >= 0
        if self._began:
            del self._held[: at + len(self._begin)]
        else:
            del self._held[:-_BANNER_KEPT_BYTES]
        return self._began

    @property
    def banner(self) -> bytes:
        """The end of what came instead of a script's output; empty once a script has begun."""
        return b"" if self._began else bytes(self._held)

    def _look_for_end(self, start: int) -> None:
        if self._end_at is None:
            at = self._held.find(self._end, start)
            self._end_at = at if at >= 0 else None
        if self._end_at is not None:
            code_at = self._end_at + len(self._end)
            self.ended = self._held.find(b"\n", code_at, code_at + _CODE_MAX_BYTES) >= 0

    @property
    def too_much(self) -> bool:
        """Whether there is more output than allowed."""
        if self._end_at is not None:
            return self._end_at > self._max_bytes
        return self._began and len(self._held) > self._max_bytes + len(self._end)

    def answer(self) -> tuple[int, bytes] | None:
        """Exit code and output, once `ended`; None before, and for a sentinel without a number."""
        if not self.ended or self._end_at is None or self.too_much:
            return None
        code, _, _ = bytes(self._held[self._end_at + len(self._end) :]).partition(b"\n")
        if not code.isdigit():
            return None
        return int(code), bytes(self._held[: self._end_at])
