"""The generated scripts, run by a real /bin/sh with stand-ins for Slurm's programs on PATH.

The stand-ins print what the real programs printed, under the separators they are called with, and
write down how they were called.
"""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobmond.backends.slurm import SlurmBackend
from jobmond.backends.slurm.script import Nonce, sections
from jobmond.model.observation import Ask, Gone, Poll, Seen, Unreachable
from jobmond.model.state import State
from jobmond.transports.local import LocalTransport
from tests.doubles import TRANSCRIPT_MARK, ShellTransport

TRANSCRIPTS = Path(__file__).parents[1] / "transcripts" / "slurm"
RECORDED = Nonce(TRANSCRIPT_MARK.decode(), TRANSCRIPT_MARK.decode())
NOW = datetime.fromtimestamp(1795977790, UTC)

SQUEUE = """\
#!/bin/sh
set_there="$TZ $LC_ALL $SLURM_TIME_FORMAT $SLURM_BITSTR_LEN ${SQUEUE_FORMAT-unset}"
echo "squeue $# $set_there" >>"$HERE/calls"
for word; do last=$word; done
sed "s/MARK/${last%%<*}/g" "$HERE/squeue.out"
cat "$HERE/squeue.err" >&2
exit "$(cat "$HERE/squeue.rc")"
"""
SACCT = """\
#!/bin/sh
echo "sacct $*" >>"$HERE/calls"
for word; do case $word in --delimiter=*) mark=${word#*=};; esac; done
sed "s/MARK/$mark/g" "$HERE/sacct.out"
cat "$HERE/sacct.err" >&2
exit "$(cat "$HERE/sacct.rc")"
"""
SCONTROL = """\
#!/bin/sh
echo "scontrol $*" >>"$HERE/calls"
cat "$HERE/job.$4.err" >&2 2>/dev/null
cat "$HERE/job.$4.out" 2>/dev/null && exit 0
echo 'slurm_load_jobs error: Invalid job id specified' >&2
exit 1
"""


class Programs:
    """A directory of stand-ins that replay a transcript."""

    def __init__(self, folder: Path, transcript: str) -> None:
        self.folder = folder
        (folder / "calls").write_text("")
        listed = sections((TRANSCRIPTS / f"{transcript}.out").read_bytes(), RECORDED)
        for program, text in (("squeue", SQUEUE), ("sacct", SACCT), ("scontrol", SCONTROL)):
            (folder / program).write_text(text.replace("MARK", TRANSCRIPT_MARK.decode()))
            (folder / program).chmod(0o755)
            if program in listed:
                self.answers(program, listed[program].rc, listed[program].out, listed[program].err)
        details = TRANSCRIPTS / f"{transcript}.details.out"
        shown = sections(details.read_bytes(), RECORDED) if details.exists() else {}
        for native_id, section in shown.items():
            if section.rc == 0:
                (folder / f"job.{native_id}.out").write_bytes(section.out)

    def answers(self, program: str, rc: int, out: bytes = b"", err: bytes = b"") -> None:
        (self.folder / f"{program}.rc").write_text(str(rc))
        (self.folder / f"{program}.out").write_bytes(out)
        (self.folder / f"{program}.err").write_bytes(err)

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()

    def transport(self, **environment: str) -> ShellTransport:
        return ShellTransport(self.folder, HERE=str(self.folder), **environment)


@pytest.fixture
def mixed(tmp_path: Path) -> Programs:
    return Programs(tmp_path, "mixed-named")


async def polled(transport: ShellTransport, *ids: str, **options: object) -> Poll:
    backend = SlurmBackend(transport, **options)  # type: ignore[arg-type] # keywords of the test's own
    asks = [Ask(one, None, added_at=NOW - timedelta(hours=1)) for one in ids]
    return await backend.poll(asks, since=NOW - timedelta(hours=1), now=NOW, timeout_s=60)


async def test_a_whole_sweep(mixed: Programs) -> None:
    shutil.copy(TRANSCRIPTS / "mixed-window.details.out", mixed.folder / "details")
    for native_id, section in sections((mixed.folder / "details").read_bytes(), RECORDED).items():
        if section.rc == 0:
            (mixed.folder / f"job.{native_id}.out").write_bytes(section.out)
    poll = await polled(mixed.transport(), "19", "21", "24", "27", "31", "999999", users=["alice"])
    states = {n: s.state for n, s in poll.sightings.items() if isinstance(s, Seen)}
    assert states == {
        "19": State.COMPLETED,
        "21": State.FAILED,
        "24": State.RUNNING,
        "27": State.CANCELLED,
        "31": State.RUNNING,
    }
    assert isinstance(poll.sightings["999999"], Gone)
    assert poll.trouble is None
    failed = poll.sightings["21"]
    assert isinstance(failed, Seen)
    assert failed.facts.exit_code == 137
    assert poll.calls == {"squeue": 1, "sacct": 1, "scontrol": 6}
    programs = [call.split()[0] for call in mixed.calls]
    assert sorted(programs) == sorted(["squeue", "sacct", *["scontrol"] * 6])


async def test_what_the_login_shell_sets_changes_nothing(mixed: Programs) -> None:
    transport = mixed.transport(SQUEUE_FORMAT="%i", SLURM_TIME_FORMAT="relative", TZ="Asia/Tokyo")
    poll = await polled(transport, "19")
    assert isinstance(poll.sightings["19"], Seen)
    assert mixed.calls[0] == "squeue 7 UTC C %s 0 unset"


async def test_a_directory_of_programs_may_be_named(mixed: Programs, tmp_path: Path) -> None:
    transport = ShellTransport(None, HERE=str(mixed.folder))
    poll = await polled(transport, "19", bin_dir=str(mixed.folder))
    assert isinstance(poll.sightings["19"], Seen)


async def test_without_squeue_there_is_trouble_and_a_remedy(tmp_path: Path) -> None:
    programs = Programs(tmp_path, "mixed-named")
    (tmp_path / "squeue").write_text("#!/bin/sh\nexit 127\n")
    poll = await polled(programs.transport(), "19")
    assert poll.trouble is not None
    assert "set bin_dir" in poll.trouble


async def test_a_failing_squeue_leaves_the_database_alone(mixed: Programs) -> None:
    text = b"slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
    mixed.answers("squeue", 1, b"", text)
    poll = await polled(mixed.transport(), "19")
    assert poll.sightings["19"] == Unreachable(text.decode().strip())
    assert [call.split()[0] for call in mixed.calls] == ["squeue"]


async def test_a_hanging_squeue_is_ended_at_the_far_side(mixed: Programs) -> None:
    (mixed.folder / "squeue").write_text("#!/bin/sh\nexec sleep 600\n")
    (mixed.folder / "timeout").write_text('#!/bin/sh\n[ "$1 $2 $3" = "-k 2 18" ] && exit 124\n')
    (mixed.folder / "timeout").chmod(0o755)
    poll = await polled(mixed.transport(), "19")
    assert poll.sightings["19"] == Unreachable("squeue did not answer in time")


async def test_error_text_is_kept_apart_from_the_answer(mixed: Programs) -> None:
    mixed.answers("sacct", 1, b"half a row", b"noise\nsacct: error: Problem talking: refused\n")
    poll = await polled(mixed.transport(), "24", "19")
    assert isinstance(poll.sightings["24"], Seen)
    assert isinstance(poll.sightings["19"], Unreachable)
    assert poll.trouble == "accounting does not answer: sacct: error: Problem talking: refused"


async def test_a_far_side_without_timeout_still_answers(mixed: Programs) -> None:
    programs = mixed.folder / "few"
    programs.mkdir()
    for name in ("cat", "sed", "id", "sh"):
        (programs / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    for name in ("squeue", "sacct", "scontrol"):
        (programs / name).symlink_to(mixed.folder / name)
    transport = mixed.transport()
    transport.environment["PATH"] = str(programs)
    assert isinstance((await polled(transport, "19")).sightings["19"], Seen)


async def test_the_login_user_is_found_out_there(mixed: Programs) -> None:
    (mixed.folder / "id").write_text("#!/bin/sh\necho alice\n")
    (mixed.folder / "id").chmod(0o755)
    poll = await polled(mixed.transport())
    assert "19" in {native for native, _ in poll.found}
    assert any("-u alice -S 2026-11-29T17:33:10 -E now" in call for call in mixed.calls)


async def test_a_login_without_a_name_asks_nothing(mixed: Programs) -> None:
    (mixed.folder / "id").write_text("#!/bin/sh\necho 'id: cannot find name' >&2\nexit 1\n")
    (mixed.folder / "id").chmod(0o755)
    poll = await polled(mixed.transport(), "19")
    assert isinstance(poll.sightings["19"], Unreachable)
    assert poll.trouble is not None
    assert "cannot find name" in poll.trouble
    assert mixed.calls == []


async def test_scontrol_stops_at_the_first_silence(mixed: Programs) -> None:
    (mixed.folder / "scontrol").write_text(
        "#!/bin/sh\n"
        'echo "scontrol $*" >>"$HERE/calls"\n'
        "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2\n"
        "exit 1\n"
    )
    poll = await polled(mixed.transport(), "24", "25", "26")
    assert all(isinstance(one, Seen) for one in poll.sightings.values())
    assert sum(call.startswith("scontrol") for call in mixed.calls) == 1


async def test_over_the_product_s_own_transport(
    mixed: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERE", str(mixed.folder))
    backend = SlurmBackend(LocalTransport(), users=["alice"], bin_dir=str(mixed.folder))
    asks = [Ask(one, None, added_at=NOW - timedelta(hours=1)) for one in ("20", "999999")]
    poll = await backend.poll(asks, since=NOW, now=NOW, timeout_s=60)
    failed = poll.sightings["20"]
    assert isinstance(failed, Seen)
    assert (failed.state, failed.facts.exit_code) == (State.FAILED, 3)
    assert isinstance(poll.sightings["999999"], Gone)
