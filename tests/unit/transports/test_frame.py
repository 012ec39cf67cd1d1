"""The envelope: bytes in, an exit code and exactly those bytes out, or nothing at all."""

import itertools
import os
import shutil
import signal
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobmond.transports._frame import Intake, far_command, nonce, unwrap, wrap

NONCE = "0123456789abcdef0123456789abcdef"
BEGIN = b"JMBEGIN " + NONCE.encode() + b"\n"
END = b"\nJMEND " + NONCE.encode() + b" "
SHELLS = [
    s for s in ("/bin/sh", "/bin/bash", "/usr/bin/ksh", "/usr/bin/busybox") if shutil.which(s)
]

# Output that tries to look like the frame: everything but the nonce is known to anybody.
marker_like = st.sampled_from(
    [
        b"JMBEGIN " + b"f" * 32 + b"\n",
        b"\nJMEND " + b"f" * 32 + b" 0\n",
        b"\nJMEND " + NONCE[:31].encode() + b" 0\n",
        b"\nJMEND ",
        b"JMBEGIN " + NONCE[1:].encode() + b"\n",
        BEGIN[:20],
    ]
)
output = (
    st.lists(st.binary(max_size=200) | marker_like, max_size=6)
    .map(b"".join)
    .filter(lambda raw: NONCE.encode() not in raw)  # hypothesis finds the constant above
)


def framed(banner: bytes, stdout: bytes, code: int) -> bytes:
    return banner + BEGIN + stdout + END + str(code).encode() + b"\n"


def shell(frame: bytes, *words: str, sh: str = "/bin/sh") -> subprocess.CompletedProcess[bytes]:
    """Run a frame with standard input held open, in a process group of its own."""
    program = [sh, "sh"] if sh.endswith("busybox") else [sh]
    with subprocess.Popen(
        [*program, "-s", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(frame)
        process.stdin.flush()
        stdout = process.stdout.read()
        stderr = process.stderr.read()
        process.wait(60)
    return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


@given(banner=output, stdout=output, code=st.integers(0, 255), after=output)
def test_any_bytes_come_back_exactly(banner: bytes, stdout: bytes, code: int, after: bytes) -> None:
    assert unwrap(framed(banner, stdout, code) + after, NONCE) == (code, stdout)


@given(banner=output, stdout=output, code=st.integers(0, 255), data=st.data())
def test_a_cut_anywhere_is_no_answer(
    banner: bytes, stdout: bytes, code: int, data: st.DataObject
) -> None:
    whole = framed(banner, stdout, code)
    cut = data.draw(st.integers(0, len(whole) - 1))
    assert unwrap(whole[:cut], NONCE) is None


@given(stdout=output, cuts=st.lists(st.integers(0, 2000), max_size=8))
def test_the_pieces_do_not_matter(stdout: bytes, cuts: list[int]) -> None:
    whole = framed(b"Welcome", stdout, 7)
    intake = Intake(NONCE, max_bytes=len(stdout))
    edges = sorted({0, len(whole), *(c for c in cuts if c < len(whole))})
    for start, end in itertools.pairwise(edges):
        assert not intake.ended
        intake.feed(whole[start:end])
    assert intake.ended
    assert intake.answer() == (7, stdout)


@given(output)
def test_any_bytes_without_the_nonce_are_no_answer(noise: bytes) -> None:
    assert unwrap(noise, NONCE) is None


def test_byte_by_byte_is_the_same() -> None:
    intake = Intake(NONCE, max_bytes=10)
    for byte in framed(b"Last login: JMBEGIN\n", b"\n\nhello\0", 0):
        intake.feed(bytes([byte]))
    assert intake.answer() == (0, b"\n\nhello\0")


@pytest.mark.parametrize("code", [b"", b"x", b"-1", b"1 2", b"99999", b" 1"])
def test_a_sentinel_without_a_number_is_no_answer(code: bytes) -> None:
    assert unwrap(BEGIN + b"out" + END + code + b"\n", NONCE) is None


def test_the_sentinel_of_another_script_is_no_answer() -> None:
    assert unwrap(framed(b"", b"out", 0), "f" * 32) is None


def test_exactly_the_allowed_bytes_are_an_answer_one_more_is_too_much() -> None:
    fits = Intake(NONCE, max_bytes=5)
    fits.feed(framed(b"a banner longer than the limit", b"12345", 0))
    assert (fits.too_much, fits.answer()) == (False, (0, b"12345"))
    over = Intake(NONCE, max_bytes=5)
    over.feed(framed(b"", b"123456", 0))
    assert (over.too_much, over.answer()) == (True, None)


def test_an_endless_output_or_banner_is_not_kept() -> None:
    output_only = Intake(NONCE, max_bytes=1000)
    output_only.feed(BEGIN)
    banner_only = Intake(NONCE, max_bytes=1000)
    for _ in range(10_000):
        output_only.feed(b"x" * 100)
        banner_only.feed(b"x" * 100)
    assert output_only.too_much
    assert len(output_only._held) < 1200
    assert not banner_only.too_much
    assert banner_only.banner == b"x" * 256


def test_a_nul_byte_in_a_script_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        wrap(b"echo a\0b", NONCE)


def test_nonces_differ_and_are_harmless_in_quotes() -> None:
    words = {nonce() for _ in range(100)}
    assert len(words) == 100
    assert all(len(word) == 32 and word.isalnum() for word in words)


@pytest.mark.parametrize("sh", SHELLS)
@pytest.mark.parametrize("own", [(), ("own",)])
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (b"echo hello", (0, b"hello\n")),
        (b"printf hello; exit 3", (3, b"hello")),
        (b"printf 'a\\000\\377b'", (0, b"a\0\xffb")),
        (b"cat; echo $?", (0, b"0\n")),
        (b"{ cat <&3; } 2>/dev/null || echo none", (0, b"none\n")),
        (b"echo $#", (0, b"0\n")),
        (b"cat <<'EOT'\n}\n)\n{\nEOT", (0, b"}\n)\n{\n")),
        (b"true # a comment without a newline", (0, b"")),
        (b"exec printf gone", (0, b"gone")),
        (b"sleep 600 & echo started", (0, b"started\n")),
        (b"exit 255", (255, b"")),
        (b"set -e; false; echo never", (1, b"")),
    ],
)
def test_scripts_in_a_real_shell(
    sh: str, own: tuple[str, ...], script: bytes, expected: tuple[int, bytes]
) -> None:
    if b"sleep 600" in script and not own:
        pytest.skip("only a shell with its own process group ends what a script left behind")
    ran = shell(wrap(script, NONCE), *own, sh=sh)
    assert unwrap(ran.stdout, NONCE) == expected
    assert ran.stderr == b""


@pytest.mark.parametrize("sh", [s for s in SHELLS if not s.endswith("ksh")])  # has no subshells
def test_a_script_that_is_killed_has_an_exit_code(sh: str) -> None:
    ran = shell(wrap(b"sh -c 'kill -KILL $PPID'; echo never", NONCE), "own", sh=sh)
    assert unwrap(ran.stdout, NONCE) == (137, b"")


def test_standard_error_is_the_scripts_alone() -> None:
    ran = shell(wrap(b"echo oops >&2; exit 1", NONCE), "own", sh="/bin/bash")
    assert ran.stderr == b"oops\n"


@settings(max_examples=25, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("sh", SHELLS)
def test_a_cut_script_never_runs_in_part(
    sh: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("cut")
    frame = wrap(b": >ran\ncat <<'EOT' >/dev/null\n}\nEOT\n: >ran\n", NONCE)
    cut = data.draw(st.integers(0, len(frame) - len("}\n")))
    program = [sh, "sh"] if sh.endswith("busybox") else [sh]
    ran = subprocess.run(
        [*program, "-s", "own"],
        input=frame[:cut],
        capture_output=True,
        start_new_session=True,
        cwd=place,
        timeout=60,
        check=False,
    )
    assert not (place / "ran").exists()
    assert unwrap(ran.stdout, NONCE) is None


@pytest.mark.parametrize("sh", SHELLS)
def test_closing_standard_input_ends_the_script(sh: str) -> None:
    program = [sh, "sh"] if sh.endswith("busybox") else [sh]
    with subprocess.Popen(
        [*program, "-s", "own"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdin and process.stdout
        process.stdin.write(wrap(b"sleep 600; echo never", NONCE))
        process.stdin.flush()
        assert process.stdout.readline() == BEGIN
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait(60) == -signal.SIGTERM


def test_the_far_command_bounds_the_script_and_survives_foreign_shells() -> None:
    command = far_command(60.9)
    assert "timeout -k 5 60 /bin/sh -s own" in command
    assert far_command(0.2).count("timeout -k 5 1 ") == 2
    assert command.count("'") == 2
    assert not set(command) & set('\n\\!"`$')


@pytest.mark.parametrize("login_shell", ["sh", "bash", "csh", "tcsh", "fish"])
@pytest.mark.parametrize("path", ["/usr/bin:/bin", "/nonexistent"])
def test_the_far_command_in_login_shells(login_shell: str, path: str) -> None:
    program = shutil.which(login_shell)
    if program is None:
        pytest.skip(f"{login_shell} is not installed")
    with subprocess.Popen(
        [program, "-c", far_command(30)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={"PATH": path, "HOME": os.devnull},
    ) as process:
        assert process.stdin and process.stdout
        process.stdin.write(wrap(b"exit 4", NONCE))
        process.stdin.flush()
        assert unwrap(process.stdout.read(), NONCE) == (4, b"")
