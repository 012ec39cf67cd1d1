"""nel: what its answers prove, and what they do not."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.backends.nel.execdb import launched
from jobmond.backends.nel.rows import NotUnderstood, refusal, rows, unsuitable
from jobmond.model.observation import Ask, Gone, Link, Seen, Unreachable
from jobmond.model.state import Bucket, State
from tests.nel_scene import NOW, OLD, TRANSCRIPTS, NelScene, settled, slurm_row, transcript
from tests.unit.builders import seen

INVOCATION = "3f08cc0641f75196"


@pytest.fixture
def nel(tmp_path: Path) -> NelScene:
    made = NelScene(tmp_path)
    made.home.mkdir()
    made.write()
    return made


def three(nel: NelScene, name: str, code: int = 0) -> None:
    """The invocation of the transcripts, its database, and what nel says."""
    said = (transcript(name), transcript(name, "stderr"), code)
    nel.says[INVOCATION] = said
    nel.write()
    nel.launch(
        INVOCATION,
        slurm_row("4711001", f"{nel.folder}/runs/simple_evals.mmlu_pro.0"),
        slurm_row("4711002", f"{nel.folder}/runs/gsm8k_cot_instruct.1"),
        slurm_row("4711003", f"{nel.folder}/runs/simple_evals.gpqa_diamond.2"),
    )


class TestIds:
    @pytest.mark.parametrize(
        "native_id",
        [INVOCATION, f"{INVOCATION}.0", "65f68ad6", "65f68ad6.12", "1234567890123456"],
    )
    def test_good(self, nel, native_id):
        assert nel.backend().valid_id(native_id) is None

    @pytest.mark.parametrize(
        "native_id",
        [
            "4711",
            "12345678",
            "65f68ad6c803b54200",
            "65F68AD6C803B542",
            "x",
            "65f68ad6;id",
            "",
            "-x",
        ],
    )
    def test_bad(self, nel, native_id):
        complaint = nel.backend().valid_id(native_id)
        assert complaint is not None
        assert "\n" not in complaint


class TestRows:
    def test_three_shapes_of_progress(self):
        local = rows(transcript("crafted_local_json"))
        assert [row.done for row in local][:4] == [None, None, None, 1234]
        slurm = rows(transcript("slurm_mixed_json"))
        assert [row.done for row in slurm] == [None, 812, None]
        assert [row.slurm_id for row in slurm] == ["4711001", "4711002", "4711003"]

    @pytest.mark.parametrize("text", [b"", b"{}", b"[1]", b'[{"status": "splendid"}]', b"[" * 9999])
    def test_anything_else_is_not_understood(self, text):
        with pytest.raises(NotUnderstood):
            rows(text)

    @given(st.binary(max_size=200))
    def test_any_bytes(self, text):
        try:
            assert isinstance(rows(text), list)
        except NotUnderstood as error:
            assert "\n" not in str(error)

    def test_an_id_of_slurm_is_a_number(self):
        [row] = rows(
            b'[{"invocation":"a","job_id":"aaaa1111.0","status":"failed",'
            b'"data":{"slurm_job_id":"1; rm -rf /","remote_rundir_path":"relative"}}]'
        )
        assert (row.slurm_id, row.folder) == (None, None)

    def test_refusals(self):
        assert refusal(0, b"") is None
        assert refusal(124, b"") == "nel status did not answer in time"
        said = refusal(1, transcript("ambiguous", "stderr"))
        assert said == "more than one invocation begins like this: write the whole id"

    def test_the_other_nel_is_refused_in_one_line(self):
        said = unsuitable("nel", b"nel, version 0.4.0\n", b"", 0)
        assert said is not None
        assert "0.4.0" in said
        assert "\n" not in said
        assert unsuitable("nel", b"nemo_evaluator_launcher: 0.2.6\n", b"[I x] y\n", 0) is None


class TestDatabase:
    def test_the_last_record_of_a_job_counts_and_bad_lines_do_not(self):
        first = {"invocation_id": "aaaa1111", "job_id": "aaaa1111.0", "timestamp": 100.5}
        line = json.dumps({**first, "executor": "slurm", "data": slurm_row("1", "/runs/a.b.0")})
        later = {**first, "timestamp": 200, "executor": "slurm", "data": slurm_row("2", "/runs/x")}
        text = f"{line}\n{{\nnull\n[]\n{json.dumps(later)}\n" + '{"job_id": 7}\n{"timest'
        [job] = launched(text.encode()).values()
        assert job.row.slurm_id == "2"
        assert job.submitted_at is not None
        assert job.submitted_at.timestamp() == 100.5

    @given(st.binary(max_size=200))
    def test_any_bytes(self, text):
        assert isinstance(launched(text), dict)


class TestSlurm:
    async def test_rows_become_parts_with_links(self, nel):
        three(nel, "slurm_mixed_json")
        own = (await nel.poll(INVOCATION)).sightings[INVOCATION]
        assert isinstance(own, Seen)
        assert [part.links for part in own.parts] == [
            (Link("4711001"),),
            (Link("4711002"),),
            (Link("4711003"),),
        ]
        assert (
            own.facts.name == "simple_evals.mmlu_pro, gsm8k_cot_instruct, simple_evals.gpqa_diamond"
        )
        assert own.facts.user == "root"
        assert own.facts.submitted_at == OLD
        assert own.facts.bucket is Bucket.EVAL
        assert own.facts.progress == "812 requests answered"

    async def test_what_slurm_says_is_what_it_is(self, nel):
        three(nel, "slurm_mixed_json")
        own = (await nel.poll(INVOCATION)).sightings[INVOCATION]
        answers = {
            "4711001": seen(State.COMPLETED),
            "4711002": seen(State.RUNNING),
            "4711003": seen(State.PENDING),
        }
        whole = settled(own, answers)
        assert isinstance(whole, Seen)
        assert whole.state is State.RUNNING
        assert whole.facts.tasks is not None
        assert whole.facts.tasks.by_state == {
            State.COMPLETED: 1,
            State.RUNNING: 1,
            State.PENDING: 1,
        }

    async def test_ssh_down_is_printed_as_failed_and_moves_nothing(self, nel):
        three(nel, "slurm_ssh_down_json")
        own = (await nel.poll(INVOCATION)).sightings[INVOCATION]
        whole = settled(own, {})
        assert isinstance(whole, Unreachable)
        assert "called failed" in whole.error

    async def test_and_where_slurm_answers_all_the_same_it_is_believed(self, nel):
        three(nel, "slurm_ssh_down_json")
        own = (await nel.poll(INVOCATION)).sightings[INVOCATION]
        answers = {f"471100{n}": seen(State.RUNNING) for n in (1, 2, 3)}
        whole = settled(own, answers)
        assert isinstance(whole, Seen)
        assert whole.state is State.RUNNING

    async def test_no_word_of_an_answer_with_an_error_of_ssh_counts(self, nel):
        killed = transcript("slurm_ssh_down_json").replace(b'"failed"', b'"killed"')
        three(nel, "slurm_ssh_down_json")
        nel.says[INVOCATION] = (killed, transcript("slurm_ssh_down_json", "stderr"), 0)
        nel.write()
        own = (await nel.poll(INVOCATION)).sightings[INVOCATION]
        assert isinstance(settled(own, {}), Unreachable)

    async def test_a_row_without_an_id_proves_nothing(self, nel):
        nel.says["bbbb0000dddd1111"] = (transcript("slurm_noid"), b"", 0)
        nel.write()
        nel.record("bbbb0000dddd1111.0", {"hostname": "cw-dfw-login", "username": "root"})
        own = (await nel.poll("bbbb0000dddd1111")).sightings["bbbb0000dddd1111"]
        assert isinstance(settled(own, {}), Unreachable)

    async def test_the_chain_is_read_from_its_list(self, nel):
        three(nel, "slurm_mixed_json")
        folder = nel.folder / "runs" / "gsm8k_cot_instruct.1"
        folder.mkdir(parents=True)
        (folder / ".slurm_job_id.list").write_text("4711002\n4711010\nx\n4711011\n")
        mixed = transcript("slurm_mixed_json").replace(
            b"/scratch/alice/nel/cluster/eval/20261129_154137-3f08cc0641f75196",
            f"{nel.folder}/runs".encode(),
        )
        nel.says[INVOCATION] = (mixed, b"", 0)
        nel.write()
        own = (await nel.poll(INVOCATION)).sightings[INVOCATION]
        assert isinstance(own, Seen)
        assert [link.native_id for link in own.parts[1].links] == ["4711002", "4711010", "4711011"]

    async def test_scores_are_read_when_they_are_there(self, nel):
        nel.launch(
            "aaaa1111bbbb2222",
            slurm_row("1", TRANSCRIPTS / "scores-0"),
            slurm_row("2", nel.folder / "b"),
        )
        for name, place in (("mmlu_pro", nel.folder / "a"), ("gsm8k", nel.folder / "b")):
            (place / "artifacts").mkdir(parents=True)
            for file in (TRANSCRIPTS / "results" / name).iterdir():
                (place / "artifacts" / file.name).write_bytes(file.read_bytes())
        nel.record("aaaa1111bbbb2222.0", slurm_row("1", nel.folder / "a"))
        own = (await nel.poll("aaaa1111bbbb2222")).sightings["aaaa1111bbbb2222"]
        assert isinstance(own, Seen)
        assert own.facts.scores == {"MMLU-Pro": 42.26, "GSM8K": 67.1}

    async def test_jobs_of_another_cluster_are_not_looked_for_here(self, nel):
        nel.launch("aaaa1111bbbb2222", slurm_row("1", "/runs/0", hostname="juwels"))
        own = (await nel.poll("aaaa1111bbbb2222")).sightings["aaaa1111bbbb2222"]
        assert isinstance(own, Unreachable)
        assert "juwels" in own.error
        assert nel.calls == []

    async def test_another_alias_of_the_host_is_the_host(self, nel):
        nel.launch("aaaa1111bbbb2222", slurm_row("1", "/runs/0", hostname="dfw"))
        real = {"dfw": "10.0.0.1", "cw-dfw-login": "10.0.0.1"}.get
        own = (await nel.poll("aaaa1111bbbb2222", real_name=real)).sightings["aaaa1111bbbb2222"]
        assert isinstance(own, Seen)

    async def test_a_nel_that_fails_does_not_hide_what_its_database_knows(self, nel):
        three(nel, "slurm_mixed_json")
        nel.stub("exit 1")
        own = (await nel.poll(INVOCATION)).sightings[INVOCATION]
        whole = settled(own, {f"471100{n}": seen(State.RUNNING) for n in (1, 2, 3)})
        assert isinstance(whole, Seen)
        assert whole.state is State.RUNNING


class TestUnknown:
    async def test_not_found_in_a_database_that_can_be_read_is_gone(self, nel):
        nel.launch("cccc1111bbbb2222", slurm_row("1", "/runs/0"))
        poll = await nel.poll("deadbeefdeadbeef")
        assert poll.sightings["deadbeefdeadbeef"] == Gone("not_found")
        assert poll.trouble is None

    async def test_but_not_while_it_is_young(self, nel):
        nel.launch("cccc1111bbbb2222", slurm_row("1", "/runs/0"))
        ask = Ask("deadbeefdeadbeef", None, added_at=NOW - timedelta(minutes=1))
        poll = await nel.backend().poll([ask], since=OLD, now=NOW, timeout_s=60)
        assert isinstance(poll.sightings["deadbeefdeadbeef"], Unreachable)

    async def test_a_home_without_a_database_says_nothing_about_any_job(self, nel):
        own = (await nel.poll("deadbeefdeadbeef")).sightings["deadbeefdeadbeef"]
        assert isinstance(own, Unreachable)
        assert str(nel.home) in own.error

    async def test_an_ambiguous_beginning_costs_nobody_else_an_answer(self, nel):
        three(nel, "slurm_mixed_json")
        nel.says["aaaa1111"] = (b"", transcript("ambiguous", "stderr"), 1)
        nel.write()
        poll = await nel.poll("aaaa1111", INVOCATION, "nonsense")
        assert poll.sightings["aaaa1111"] == Unreachable(
            "more than one invocation begins like this: write the whole id"
        )
        assert isinstance(poll.sightings[INVOCATION], Seen)
        assert isinstance(poll.sightings["nonsense"], Unreachable)

    async def test_an_executor_that_is_none_says_so(self, nel):
        nel.record("aaaa3333bbbb2222.0", {}, executor="gitlab")
        said = transcript("unknown_executor").replace(b"aaaa3333", b"aaaa3333bbbb2222")
        nel.says["aaaa3333bbbb2222"] = (said, b"", 0)
        nel.write()
        own = (await nel.poll("aaaa3333bbbb2222")).sightings["aaaa3333bbbb2222"]
        assert isinstance(settled(own, {}), Unreachable)

    async def test_a_workspace_that_does_not_answer_moves_nothing(self, nel):
        nel.record("bbbb9999dddd1111.0", {"lepton_job_name": "x"}, executor="lepton")
        nel.says["bbbb9999dddd1111"] = (transcript("lepton"), b"", 0)
        nel.write()
        own = (await nel.poll("bbbb9999dddd1111")).sightings["bbbb9999dddd1111"]
        assert isinstance(settled(own, {}), Unreachable)


class TestCalls:
    async def test_the_other_nel_is_named_in_one_line(self, nel):
        nel.version = "nel, version 0.4.0"
        nel.write()
        own = (await nel.poll("deadbeefdeadbeef")).sightings["deadbeefdeadbeef"]
        assert isinstance(own, Unreachable)
        assert "0.4.0" in own.error
        assert "--nel-command" in own.error
        assert nel.calls == ["--version"]

    async def test_a_program_that_is_not_there(self, nel):
        nel.program.unlink()
        own = (await nel.poll("deadbeefdeadbeef")).sightings["deadbeefdeadbeef"]
        assert isinstance(own, Unreachable)
        assert "cannot be started" in own.error

    async def test_its_version_is_asked_once(self, nel):
        nel.launch("cccc1111bbbb2222", slurm_row("1", "/runs/0"))
        backend = nel.backend()
        await nel.poll("deadbeefdeadbeef", backend=backend)
        await nel.poll("deadbeefdeadbeef", backend=backend)
        assert nel.calls.count("--version") == 1
        assert nel.calls.count("status deadbeefdeadbeef --json") == 2

    async def test_one_that_hangs_is_ended_with_all_it_started(self, nel):
        nel.stub(
            f'[ "$1" = --version ] && {{ echo nemo_evaluator_launcher: 0.2.6; exit 0; }}\n'
            f"echo $TMPDIR > {nel.folder}/tmpdir\nsleep 300 &\necho $! > {nel.folder}/child\n"
            "mkdir $TMPDIR/tmpx\nsleep 300"
        )
        own = (await nel.poll("deadbeefdeadbeef", each_s=2)).sightings["deadbeefdeadbeef"]
        assert own == Unreachable("nel status did not answer in time")
        child = (nel.folder / "child").read_text().strip()
        assert not Path(f"/proc/{child}/task").exists() or _zombie(child)
        assert not Path((nel.folder / "tmpdir").read_text().strip()).exists()

    async def test_a_master_that_it_left_behind_is_told_to_go(self, nel, tmp_path):
        programs = tmp_path / "bin"
        programs.mkdir()
        (programs / "ssh").write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/ssh\n')
        (programs / "ssh").chmod(0o755)
        nel.stub(
            f"PATH={programs}:$PATH\n"
            "mkdir -p $TMPDIR/tmpab\n"
            "python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])'"
            " $TMPDIR/tmpab/socket\necho nemo_evaluator_launcher: 0.2.6"
        )
        backend = nel.backend()
        backend._here.environment["PATH"] = f"{programs}:/usr/bin:/bin:/usr/local/bin"
        await nel.poll("deadbeefdeadbeef", backend=backend)
        said = (tmp_path / "ssh").read_text()
        assert "-O exit -S" in said
        assert "/tmpab/socket" in said
        assert not list(nel.folder.glob("jobmond-nel.*"))

    async def test_a_job_has_its_own_nel_and_home(self, nel, tmp_path):
        other = NelScene(tmp_path / "other", version="nemo_evaluator_launcher: 0.1.93")
        other.home.mkdir(parents=True)
        other.launch(INVOCATION, slurm_row("4711001", "/runs/0"))
        other.says[INVOCATION] = (transcript("slurm_mixed_json"), b"", 0)
        other.write()
        ask = Ask(
            INVOCATION, None, added_at=OLD, command=(str(other.program),), home=str(other.home)
        )
        poll = await nel.backend().poll([ask], since=OLD, now=NOW, timeout_s=60)
        assert isinstance(poll.sightings[INVOCATION], Seen)
        assert nel.calls == []
        assert other.calls == ["--version", f"status {INVOCATION} --json"]

    async def test_what_there_is_no_time_for_comes_first_next_time(self, nel):
        three(nel, "slurm_mixed_json")
        backend = nel.backend()
        poll = await nel.poll(INVOCATION, backend=backend, timeout_s=3)
        assert nel.calls == []
        assert isinstance(poll.sightings[INVOCATION], Seen)  # by its database
        await nel.poll("deadbeefdeadbeef", INVOCATION, backend=backend)
        assert nel.calls[1:] == [f"status {INVOCATION} --json", "status deadbeefdeadbeef --json"]


class TestDiscovery:
    async def test_recent_invocations_of_this_cluster_are_found(self, nel):
        fresh = NOW - timedelta(hours=2)
        nel.launch("aaaa1111bbbb2222", slurm_row("1", "/runs/a.0"), at=fresh)
        nel.launch("aaaa2222bbbb2222", slurm_row("2", "/runs/b.0"), at=NOW - timedelta(days=3))
        nel.launch("aaaa3333bbbb2222", slurm_row("3", "/r", hostname="juwels"), at=fresh)
        poll = await nel.poll()
        assert [native_id for native_id, _ in poll.found] == ["aaaa1111bbbb2222"]
        assert nel.calls == []

    async def test_what_is_asked_about_is_no_find(self, nel):
        three(nel, "slurm_mixed_json")
        assert (await nel.poll(INVOCATION)).found == ()

    async def test_without_a_database_nothing_is_found_and_nothing_is_wrong(self, nel):
        poll = await nel.poll()
        assert (poll.found, poll.trouble, poll.sightings) == ((), None, {})

    async def test_it_knows_whose_cluster_an_invocation_runs_on(self, nel):
        nel.launch("aaaa1111bbbb2222", slurm_row("1", "/runs/a.0"))
        ask = Ask("aaaa1111bbbb2222", None, added_at=NOW)
        assert await nel.backend().knows(ask)
        assert not await nel.backend(hosts=frozenset({"juwels"})).knows(ask)
        assert not await nel.backend().knows(Ask("deadbeefdeadbeef", None, added_at=NOW))


def _zombie(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
