"""Registry files from end to end: tracked, written back, never revived, never harmed."""

import errno
import json
import os
import stat
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from jobmond.daemon import registries
from jobmond.model.observation import Gone
from jobmond.model.state import State
from jobmond.sinks import registry_file
from jobmond.store.registries import sink_name
from tests.doubles_desk import ME
from tests.registry_scene import Far, living
from tests.unit.builders import at, seen

MMLU = {
    "type": "nel",
    "id": "4711",
    "host": "login.leonardo.example",
    "user": "alice",
    "submitted": "2026-11-29 12:00",
    "description": "MMLU-Pro",
    "last_status": "PENDING",
    "retries": {"left": 2},
}
RAW = {"type": "slurm", "id": 4712, "host": "leonardo"}
RUNNING = seen(State.RUNNING)
FAILED = seen(State.FAILED, exit_code=1, ended_at=at(1))


async def test_what_another_program_adds_is_tracked_at_the_next_sweep(tmp_path):
    async with living(tmp_path) as scene:
        scene.write(MMLU, RAW)
        await scene.sweep(j4711=RUNNING, j4712=RUNNING)
        jobs = await scene.jobs()
        assert sorted(jobs) == ["leonardo/4711", "leonardo/4712"]
        assert scene.far.asked == ["4711", "4712"]
        choices = jobs["leonardo/4711"].choices
        assert (choices.description, choices.user) == ("MMLU-Pro", "alice")
        assert choices.owner_uid == os.geteuid()
        assert scene.swept == [("leonardo", False)]
        assert scene.read() == [
            {**MMLU, "last_status": "RUNNING"},
            {**RAW, "last_status": "RUNNING"},
        ]


async def test_a_terminal_entry_goes_and_everything_else_stays(tmp_path):
    async with living(tmp_path) as scene:
        scene.write(MMLU, RAW)
        await scene.sweep(j4711=RUNNING, j4712=RUNNING)
        await scene.sweep(j4711=FAILED)
        assert scene.read() == [{**RAW, "last_status": "RUNNING"}]
        assert await scene.tracked() == ["leonardo/4712"]
        told = [json.loads(line) for line in (tmp_path / "news.jsonl").read_text().splitlines()]
        assert [(n["job"]["ref"], n["after"]) for n in told if n["job"]][-1] == (
            "leonardo/4711", "FAILED",
        )  # fmt: skip


async def test_each_session_s_file_is_watched_and_its_owner_is_shown(tmp_path):
    folder = tmp_path / "agents" / "s-1"
    folder.mkdir(parents=True)
    owner = {"agent": "codex", "session_id": "s-1"}
    (folder / "active_jobs.json").write_text(json.dumps({"owner": owner, "jobs": [RAW]}))
    async with living(tmp_path) as scene:
        await scene.sweep(j4712=RUNNING)
        [job] = (await scene.desk.status(ME))["jobs"]
        assert (job["ref"], job["session"]) == ("leonardo/4712", owner)
        written = json.loads((folder / "active_jobs.json").read_text())
        assert written == {"owner": owner, "jobs": [{**RAW, "last_status": "RUNNING"}]}


@pytest.mark.parametrize("host", ["leo", "LEONARDO", "alice@login.leonardo.example", "leonardo"])
async def test_a_host_is_a_cluster_its_host_or_an_alias(tmp_path, host):
    async with living(tmp_path) as scene:
        scene.write({**RAW, "host": host})
        await scene.look()
        assert await scene.tracked() == ["leonardo/4712"]


async def test_a_bad_entry_is_said_once_and_harms_no_other(tmp_path):
    async with living(tmp_path) as scene:
        scene.write(
            RAW,
            {**RAW, "id": "1", "host": "nowhere"},
            {**RAW, "id": "cicd_1", "type": "launcher"},
            {**RAW, "id": "abc"},
            {"type": "local", "id": str(os.getpid())},
        )
        with capture_logs() as said:
            await scene.look()
            scene.write(MMLU, *scene.read())
            await scene.look()
        errors = [line["error"] for line in said if line["log_level"] == "error"]
        assert errors == [
            f"{scene.path}: 1: host 'nowhere' is no cluster, no host of one and no alias of such"
            " a host (clusters: leonardo, here)",
            f"{scene.path}: abc: abc is no SLURM id",
            f"{scene.path}: cicd_1: jobs of type launcher cannot be watched there in this version",
        ]
        assert scene.registries.problems == errors
        assert await scene.tracked() == [
            f"here/pid-{os.getpid()}", "leonardo/4711", "leonardo/4712",
        ]  # fmt: skip


async def test_a_truncated_file_is_reported_once_untouched_and_stops_nothing(tmp_path):
    other = tmp_path / "agents" / "s-1"
    other.mkdir(parents=True)
    async with living(tmp_path) as scene:
        scene.write(MMLU, RAW)
        await scene.sweep(j4711=RUNNING, j4712=RUNNING)
        cut = scene.path.read_text()[:200]
        scene.path.write_text(cut)
        os.utime(scene.path, (0, 0))  # not just now, whatever time it is on this host
        scene.write({**RAW, "id": "99"}, path=other / "active_jobs.json")
        with capture_logs() as said:
            await scene.look()
            await scene.look()
            await scene.sweep(j4711=FAILED)
        errors = [line["error"] for line in said if line["log_level"] == "error"]
        assert len(errors) == 1
        assert errors[0].startswith(f"{scene.path}: not JSON: line 10, column 1")
        assert errors[0].endswith("; the file is left as it is")
        assert scene.path.read_text() == cut
        assert await scene.tracked() == ["leonardo/4712", "leonardo/99"]
        # Once it can be read again it says what became of its jobs.
        scene.write(MMLU, RAW)
        await scene.look()
        assert scene.read() == [{**RAW, "last_status": "RUNNING"}]
        assert scene.registries.problems == []


async def test_a_file_that_is_being_written_is_read_again_before_anybody_complains(tmp_path):
    async with living(tmp_path) as scene:
        scene.path.write_text("[{")
        now_s = scene.clock.at.timestamp() + 59
        os.utime(scene.path, (now_s, now_s))
        with capture_logs() as said:
            await scene.look()
            scene.write(RAW)
            await scene.look(minutes=0.25)
        assert said == []
        assert await scene.tracked() == ["leonardo/4712"]


async def test_an_entry_that_is_removed_ends_tracking_at_the_second_look(tmp_path):
    async with living(tmp_path) as scene:
        scene.write(MMLU, RAW)
        await scene.sweep(j4711=RUNNING, j4712=RUNNING)
        scene.write(RAW)
        await scene.look()
        assert await scene.tracked() == ["leonardo/4711", "leonardo/4712"]
        await scene.look()
        assert await scene.tracked() == ["leonardo/4712"]
        # Whoever adds it again wants it watched again.
        scene.write(MMLU, RAW)
        await scene.look()
        assert await scene.tracked() == ["leonardo/4711", "leonardo/4712"]


async def test_a_file_that_is_rewritten_in_two_steps_loses_nothing(tmp_path):
    async with living(tmp_path) as scene:
        scene.write(MMLU)
        await scene.sweep(j4711=RUNNING)
        scene.write()
        await scene.look()
        scene.write(MMLU)
        for _ in range(3):
            await scene.look()
        assert await scene.tracked() == ["leonardo/4711"]


async def test_who_added_a_job_otherwise_keeps_it(tmp_path):
    from jobmond.desk.requests import AddRequest

    async with living(tmp_path) as scene:
        scene.write(MMLU, RAW)
        await scene.look()
        await scene.desk.add(AddRequest(("leonardo/4711",)), ME)
        scene.write()
        for _ in range(3):
            await scene.look()
        assert await scene.tracked() == ["leonardo/4711"]


async def test_a_job_in_two_files_needs_both_to_go(tmp_path):
    other = tmp_path / "agents" / "s-1" / "active_jobs.json"
    other.parent.mkdir(parents=True)
    async with living(tmp_path) as scene:
        scene.write(RAW)
        scene.write(RAW, path=other)
        await scene.look()
        scene.write()
        for _ in range(3):
            await scene.look()
        assert await scene.tracked() == ["leonardo/4712"]
        scene.write(path=other)
        for _ in range(3):
            await scene.look()
        assert await scene.tracked() == []


async def test_a_person_s_word_stands_against_the_file(tmp_path):
    async with living(tmp_path) as scene:
        scene.write(RAW)
        await scene.sweep(j4712=RUNNING)
        await scene.desk.remove("leonardo/4712", ME)
        scene.write(RAW, MMLU)
        await scene.look()
        assert await scene.tracked() == ["leonardo/4711"]
        assert scene.read()[0] == RAW


async def test_a_file_that_is_gone_ends_nothing(tmp_path):
    folder = tmp_path / "agents" / "s-1"
    folder.mkdir(parents=True)
    async with living(tmp_path) as scene:
        scene.write(RAW, path=folder / "active_jobs.json")
        scene.write(MMLU)
        await scene.look()
        (folder / "active_jobs.json").unlink()
        scene.path.unlink()
        for _ in range(4):
            await scene.look()
        assert await scene.tracked() == ["leonardo/4711", "leonardo/4712"]
        assert scene.read() == []
        scene.write(RAW, path=folder / "active_jobs.json")
        await scene.look()
        scene.write(path=folder / "active_jobs.json")
        for _ in range(3):
            await scene.look()
        assert await scene.tracked() == ["leonardo/4711"]


async def test_a_configured_file_that_does_not_exist_is_created_where_its_folder_is(tmp_path):
    async with living(tmp_path, registry_files=f'["{tmp_path}/a.json", "{tmp_path}/no/b.json"]'):
        pass
    async with living(
        tmp_path, registry_files=f'["{tmp_path}/a.json", "{tmp_path}/no/b.json"]'
    ) as scene:
        await scene.look()
        assert (tmp_path / "a.json").read_text() == "[]\n"
        assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o600
        assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("links", [True, False])
async def test_a_file_that_is_created_is_never_seen_in_part(tmp_path, monkeypatch, links):
    path = tmp_path / "active_jobs.json"
    found: list[str] = []
    real_open, real_link = os.fdopen, os.link

    def opened(*args: Any, **kw: Any) -> Any:
        found.extend(p.read_text() for p in [path] if p.exists())
        return real_open(*args, **kw)

    def link(*args: Any) -> None:
        if not links:
            raise OSError(errno.EPERM, "Operation not permitted")
        real_link(*args)

    monkeypatch.setattr(registries.os, "fdopen", opened)
    monkeypatch.setattr(registries.os, "link", link)
    assert registries._created(path) is None
    assert found == ([] if links else [""])  # without links there is no other way
    assert path.read_text() == "[]\n"
    path.write_text("[1]")
    assert registries._created(path) is None  # somebody was faster
    assert path.read_text() == "[1]"
    assert [p.name for p in tmp_path.iterdir()] == ["active_jobs.json"]


async def test_files_are_looked_at_once_a_minute_and_read_when_they_changed(tmp_path, monkeypatch):
    reads: list[Path] = []
    real = registries.read_registry

    def read(path: Path) -> Any:
        reads.append(path)
        return real(path)

    monkeypatch.setattr(registries, "read_registry", read)
    async with living(tmp_path) as scene:
        scene.write(RAW)
        await scene.look()
        await scene.look()
        assert len(reads) == 1
        scene.write(RAW, MMLU)
        await scene.look(minutes=0.5)
        assert len(reads) == 1
        await scene.look(minutes=0.5)
        assert len(reads) == 2


async def test_a_writer_without_the_lock_gets_our_words_at_the_next_look(tmp_path):
    """It read the file before we wrote it, and puts its old state and a new job there."""
    async with living(tmp_path) as scene:
        scene.write(MMLU, RAW)
        await scene.sweep(j4711=RUNNING, j4712=RUNNING)
        stale = scene.read()
        await scene.sweep(j4711=FAILED)
        scene.write(*stale, {**RAW, "id": 4713})
        await scene.look()
        assert scene.read() == [{**RAW, "last_status": "RUNNING"}, {**RAW, "id": 4713}]
        assert await scene.tracked() == ["leonardo/4712", "leonardo/4713"]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_crash_between_commit_and_rewrite_revives_nothing(tmp_path, monkeypatch, when):
    class Killed(BaseException):
        """kill -9."""

    real = registry_file._draft

    def killed(*args: Any) -> Any:
        if when == "after":
            real(*args).replace(args[0])
        raise Killed

    entry = {key: value for key, value in MMLU.items() if key != "submitted"}
    far = Far()
    async with living(tmp_path, far=far) as scene:
        scene.write(entry, RAW)
        await scene.sweep(j4711=RUNNING, j4712=RUNNING)
        clock = scene.clock
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(registry_file, "_draft", killed)
            await scene.sweep(j4711=FAILED)
    if when == "before":
        assert [e["id"] for e in json.loads(scene.path.read_text())] == ["4711", 4712]
    async with living(tmp_path, far=far, clock=clock) as scene:
        far.asked.clear()
        await scene.look()
        assert await scene.tracked() == ["leonardo/4712"]
        await scene.app.deliver()
        assert [e["id"] for e in scene.read()] == [4712]
        await scene.sweep()
        assert far.asked == ["4712"]
        told = [json.loads(line) for line in (tmp_path / "news.jsonl").read_text().splitlines()]
        assert [n["after"] for n in told if n["job"]].count("FAILED") == 1
        assert await scene.app.writer.call(scene.app.store.outbox_sinks) == ()


async def test_a_file_that_cannot_be_written_is_owed_and_shown(tmp_path, monkeypatch):
    def full(*args: Any) -> Any:
        raise OSError(28, "No space left on device")

    async with living(tmp_path) as scene:
        scene.write(RAW)
        with monkeypatch.context() as patch:
            patch.setattr(registry_file, "_draft", full)
            await scene.sweep(j4712=RUNNING)
        document = await scene.desk.status(ME)
        [mine] = [s for s in document["sinks"] if s["name"] == sink_name(str(scene.path))]
        assert (mine["undelivered"], mine["configured"]) == (1, True)
        assert "No space left on device" in mine["last_error"]
        scene.clock.move(3600)
        await scene.app.deliver()
        assert scene.read() == [{**RAW, "last_status": "RUNNING"}]


async def test_an_old_entry_of_a_job_that_was_known_before_just_goes(tmp_path):
    async with living(tmp_path) as scene:
        scene.write(MMLU)
        await scene.sweep(j4711=seen(State.FAILED, submitted_at=at(-60), ended_at=at(1)))
        other = {**MMLU, "submitted": at(-300).strftime("%Y-%m-%d %H:%M")}
        scene.write(other)
        scene.far.asked.clear()
        await scene.sweep()
        assert scene.far.asked == []
        assert scene.read() == []


def submitted(days: float) -> str:
    """Local time, as people write it; so many days before the scene begins."""
    return (at(0) - timedelta(days=days)).astimezone().strftime("%Y-%m-%d %H:%M")


def on(days: float) -> Any:
    """A running job that was submitted so many days before."""
    return seen(State.RUNNING, birth=f"d{days}", submitted_at=at(0) - timedelta(days=days))


async def test_a_submit_time_of_another_job_is_an_error_on_that_entry_alone(tmp_path, monkeypatch):
    entry = {**RAW, "submitted": submitted(0)}
    other = tmp_path / "agents" / "s-1" / "active_jobs.json"
    other.parent.mkdir(parents=True)
    stale = {**RAW, "submitted": submitted(40), "description": "of last month"}
    async with living(tmp_path) as scene:
        scene.write(entry)
        await scene.sweep(j4712=on(0))
        scene.write(stale, {**RAW, "id": 4713}, path=other)
        with capture_logs() as said:
            for _ in range(3):
                await scene.look()
        when = at(0).strftime("%Y-%m-%d %H:%M")
        assert [line["error"] for line in said if line["log_level"] == "error"] == [
            f"{other}: 4712: submitted is more than a day off: leonardo/4712 was submitted {when}"
            " UTC and is another job; correct the entry or remove it"
        ]
        jobs = await scene.jobs()
        assert sorted(jobs) == ["leonardo/4712", "leonardo/4713"]
        assert jobs["leonardo/4712"].choices.description is None
        assert json.loads(other.read_text())[0] == stale
        with monkeypatch.context() as patch:  # looked at again once a minute, and no oftener
            patch.setattr(registries, "read_registry", None)
            await scene.look(minutes=0.5)
        # Once the id is free again, the job that had it earlier is over too: no second alarm.
        await scene.sweep(j4712=replace(on(0), state=State.FAILED, native="FAILED"))
        await scene.look()
        await scene.app.deliver()
        assert [e["id"] for e in json.loads(other.read_text())] == [4713]
        assert scene.read() == []
        assert scene.registries.problems == []
        told = [json.loads(line) for line in (tmp_path / "news.jsonl").read_text().splitlines()]
        about = [n["after"] for n in told if n["job"] and n["job"]["ref"] == "leonardo/4712"]
        assert about == ["FAILED"]


async def test_a_job_that_was_queued_again_is_known_by_its_first_submit_time(tmp_path):
    other = tmp_path / "agents" / "s-1" / "active_jobs.json"
    other.parent.mkdir(parents=True)
    async with living(tmp_path) as scene:
        scene.write(RAW)
        await scene.sweep(j4712=replace(on(0), facts=replace(on(0).facts, restarts=1)))
        scene.write({**RAW, "submitted": submitted(9), "description": "long"}, path=other)
        await scene.look()
        assert scene.registries.problems == []
        assert (await scene.jobs())["leonardo/4712"].choices.description == "long"


async def test_an_id_that_was_given_out_again_waits_for_the_sweep_that_sees_it(tmp_path):
    later = {**RAW, "submitted": submitted(-3), "description": "the next one"}
    async with living(tmp_path) as scene:
        scene.write(RAW)
        await scene.sweep(j4712=on(0))
        scene.clock.move(3 * 86400)
        scene.write(RAW, later)
        await scene.look()
        assert "is another job" in str(scene.registries.problems)
        await scene.sweep(j4712=Gone("the id belongs to a job submitted at another time"))
        await scene.look()
        await scene.sweep(j4712=on(-3))
        assert await scene.tracked() == ["leonardo/4712"]
        [job] = [job for job in (await scene.jobs()).values() if job.tracked]
        assert (job.birth, job.choices.description) == ("d-3", "the next one")
        assert scene.read() == [{**later, "last_status": "RUNNING"}]
        assert scene.registries.problems == []


async def test_the_next_job_under_an_id_that_a_person_dropped_is_tracked(tmp_path):
    async with living(tmp_path) as scene:
        scene.write(RAW)
        await scene.sweep(j4712=on(0))
        await scene.desk.remove("leonardo/4712", ME)
        scene.clock.move(3 * 86400)
        scene.write({**RAW, "submitted": submitted(-3)})
        await scene.sweep(j4712=on(-3))
        assert await scene.tracked() == ["leonardo/4712"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root watches other users' files")
async def test_a_file_s_unix_owner_owns_its_jobs_and_nobody_else_s(tmp_path):
    async with living(tmp_path) as scene:
        theirs = tmp_path / "agents" / "s-1" / "active_jobs.json"
        theirs.parent.mkdir(parents=True)
        scene.write(RAW)
        await scene.look()
        scene.write({**RAW, "description": "mine now"}, {**RAW, "id": 7}, path=theirs)
        os.chown(theirs, 4711, 4711)
        await scene.look()
        jobs = await scene.jobs()
        assert jobs["leonardo/4712"].choices.owner_uid == 0
        assert jobs["leonardo/4712"].choices.description is None
        assert jobs["leonardo/7"].choices.owner_uid == 4711
        await scene.sweep(j7=RUNNING)
        assert theirs.stat().st_uid == 4711
