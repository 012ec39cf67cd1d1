"""Trees of trials read through a transport: only what is new, and never a wrong number."""

import json
import os
import shutil
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobmond.analysis.treestate import Entry, JobMemory, TreeMemory, put_down
from jobmond.backends._trees import TreeLimits, TreeReader, ask_script, readings
from jobmond.backends._trees.remains import found_remains
from jobmond.cli.folder import read_folder
from jobmond.errors import TransientTransportError
from jobmond.model.observation import Absent, Read, Unavailable
from jobmond.model.trials import Remains, TreeAsk, Trial, Trials
from jobmond.ports import Answer
from jobmond.transports.local import LocalTransport
from tests.trees import JOB, VERSIONS, harbor, put, result

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


class Looking:
    """Looks at one tree again and again, and remembers in between."""

    def __init__(self, path, **limits):
        self.path = str(path)
        self.reader = TreeReader(LocalTransport(), TreeLimits(**limits))
        self.memory = None

    async def reading(self):
        ask = TreeAsk("1", self.path, memory=self.memory)
        found = (await self.reader.read_trees([ask], now=NOW, timeout_s=60))["1"]
        if isinstance(found, Read):
            self.memory = json.loads(json.dumps(found.value.memory))
        return found

    async def trials(self):
        found = await self.reading()
        assert isinstance(found, Read), found
        return found.value.trials


@pytest.fixture
def job(tmp_path):
    """A job of trials with nothing in it yet."""
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "job.log").touch()
    return folder


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """The programs that scripts start, one line each; each still does its work."""
    record, shims = tmp_path / "calls", tmp_path / "shims"
    shims.mkdir()
    for name in ("stat", "tr", "xargs", "awk", "ls", "find", "du", "cat", "head"):
        real = shutil.which(name)
        shim = shims / name
        shim.write_text(f'#!/bin/sh\nprintf "%s\\n" "{name} $*" >>{record}\nexec {real} "$@"\n')
        shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shims}:{os.environ['PATH']}")

    def since_last():
        lines = record.read_text().splitlines() if record.exists() else []
        record.unlink(missing_ok=True)
        return lines

    return since_last


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_numbers_are_those_of_inspect(version, tmp_path):
    shutil.copytree(harbor(version), tmp_path / JOB)
    live, offline = await Looking(tmp_path).trials(), read_folder(str(tmp_path / JOB)).trials
    elsewhere = {"last_result_at", "recent"}  # times of copies are those of copying
    for name in {one.name for one in fields(Trials)} - elsewhere:
        assert getattr(live, name) == getattr(offline, name), name
    assert (live.done, live.total, live.running) == (9, 10, 1)


class TestOnlyWhatIsNew:
    async def test_ten_new_of_ten_thousand(self, job, calls):
        entries = {}
        for i in range(10_000):
            name = f"task-{i:05d}__aaaaaaa"
            (job / name).mkdir()
            about = (job / name).stat()
            trial = Trial(name, 1.0, turns=9, turns_source="episodes", output_tokens=3)
            second, fraction = divmod(about.st_mtime_ns, 10**9)
            entries[name] = Entry(second, f"{about.st_ino}.{fraction:09d}", second, trial)
        looking = Looking(job)
        looking.memory = put_down(TreeMemory({".": JobMemory(entries=entries)}))
        for i in range(10):
            put(job / f"new-{i}__bbbbbbb", result(f"new-{i}__bbbbbbb"))
        put(job, {"n_total_trials": 20_000, "stats": {"n_trials": 10_010}})
        trials = await looking.trials()
        assert (trials.done, trials.total, trials.whole) == (10_010, 20_000, True)
        made = calls()
        assert sum(line == "tr , \\n" for line in made) == 11, "ten results and the job's own"
        listings = [line for line in made if line.startswith("xargs")]
        assert len(listings) == 2, "one listing of folders, one of the new ones' results"
        stats = [line for line in made if line.startswith("stat")]
        assert len(stats) <= 3 + 6 + 1, "2,000 folders to a call"
        assert not [line for line in made if line.startswith(("find", "du", "ls"))]

    async def test_nothing_is_listed_while_the_jobs_own_result_is_the_same(self, job, calls):
        put(job / "a__aaaaaaa", result())
        root = put(job, {"n_total_trials": 2, "stats": {"n_trials": 1}})
        old = datetime.now(UTC).timestamp() - 600
        os.utime(root, (old, old))
        looking = Looking(job)
        first = await looking.trials()
        calls()
        again = await looking.trials()
        assert replace(again, last_result_at=first.last_result_at) == first
        assert not [line for line in calls() if line.startswith(("xargs", "tr"))]

    async def test_a_result_written_just_now_is_looked_at_again(self, job):
        put(job / "a__aaaaaaa", result())
        put(job, {"n_total_trials": 2, "stats": {"n_trials": 1}})
        looking = Looking(job)
        assert (await looking.trials()).done == 1
        put(job / "b__aaaaaaa", result())
        assert (await looking.trials()).done == 2

    async def test_a_folder_that_comes_with_an_old_time_is_found_one_look_later(self, job):
        put(job / "a__aaaaaaa", result())
        looking = Looking(job)
        await looking.trials()
        put(job / "b__aaaaaaa", result())
        os.utime(job / "b__aaaaaaa", (1000, 1000))
        await looking.trials()
        assert (await looking.trials()).done == 2

    async def test_what_is_too_much_for_one_look_comes_with_the_next(self, job):
        for i in range(50):
            put(job / f"t{i}__aaaaaaa", result())
        looking = Looking(job, files=20)
        done = []
        for _ in range(3):
            trials = await looking.trials()
            done.append((trials.done, trials.whole))
        assert done == [(20, False), (40, False), (50, True)]


class TestWhatHarborDoes:
    async def test_a_running_trial_ends(self, job):
        put(job / "a__aaaaaaa", {"trial_name": "a"}, "config.json")
        looking = Looking(job)
        trials = await looking.trials()
        assert (trials.done, trials.running, trials.last_result_at) == (0, 1, None)
        put(job / "a__aaaaaaa", result())
        trials = await looking.trials()
        assert (trials.done, trials.running) == (1, 0)

    async def test_a_torn_result_is_read_again_though_nothing_else_changed(self, job):
        text = json.dumps(result(), indent=4)
        path = put(job / "a__aaaaaaa", text[:200])
        folder = path.parent.stat()
        looking = Looking(job)
        assert (await looking.trials()).done == 0
        path.write_text(text)
        os.utime(path.parent, ns=(folder.st_atime_ns, folder.st_mtime_ns))
        assert (await looking.trials()).done == 1

    async def test_a_retry_makes_the_count_dip_and_comes_back(self, job):
        failed = result(exception_info={"exception_type": "DaytonaError"}, verifier_result=None)
        put(job / "a__aaaaaaa", failed)
        put(job / "b__aaaaaaa", result())
        looking = Looking(job)
        assert (await looking.trials()).exceptions == {"DaytonaError": 1}
        shutil.rmtree(job / "a__aaaaaaa")
        put(job / "a__aaaaaaa", {}, "config.json")
        trials = await looking.trials()
        assert (trials.done, trials.running, trials.errored) == (1, 1, 0)
        put(job / "a__aaaaaaa", result())
        assert (await looking.trials()).done == 2

    async def test_a_resume_takes_unfinished_trials_away(self, job):
        put(job / "a__aaaaaaa", result())
        put(job / "b__aaaaaaa", {}, "config.json")
        looking = Looking(job)
        assert (await looking.trials()).running == 1
        shutil.rmtree(job / "b__aaaaaaa")
        assert (await looking.trials()).running == 0

    async def test_a_torn_job_file_leaves_what_was_known(self, job):
        put(job / "a__aaaaaaa", result())
        text = json.dumps({"n_total_trials": 300, "stats": {"n_trials": 1}})
        put(job, text)
        looking = Looking(job)
        assert (await looking.trials()).total == 300
        put(job, text[:20])
        assert (await looking.trials()).total == 300

    async def test_chunks_below_the_tree(self, tmp_path):
        for i in range(3):
            (tmp_path / "task_chunks" / f"chunk_{i:03d}").mkdir(parents=True)
        shutil.copytree(harbor("0.26.0"), tmp_path / "chunk_000")
        final = harbor("0.26.0").parent / f"{JOB}.result.FINAL.json"
        shutil.copy(final, tmp_path / "chunk_000" / "result.json")
        shutil.copytree(harbor("0.1.17"), tmp_path / "chunk_001" / JOB)
        trials = await Looking(tmp_path).trials()
        assert (trials.chunks_done, trials.chunks_total, trials.done) == (1, 3, 18)
        shutil.rmtree(tmp_path / "task_chunks")
        put(tmp_path, {f"chunk_{i:03d}": i for i in range(20)}, "task_chunk_map.json")
        assert (await Looking(tmp_path).trials()).chunks_total == 20

    async def test_turns_where_results_do_not_say_them(self, job):
        bare = result(agent_result={"n_output_tokens": 5})
        put(job / "a__aaaaaaa", bare)
        steps = [{"source": "user"}, {"source": "agent"}, {"source": "agent"}]
        put(job / "a__aaaaaaa" / "agent", {"steps": steps}, "trajectory.json")
        looking = Looking(job)
        assert (await looking.trials()).avg_turns is None
        trials = await looking.trials()
        assert (trials.avg_turns, trials.turns_source) == (2.0, "agent-steps")
        put(job / "b__aaaaaaa", bare)
        for i in range(4):
            (job / "b__aaaaaaa" / "agent" / f"episode-{i}").mkdir(parents=True)
        trials = await looking.trials()
        assert {t.turns_source for t in trials.recent} == {"agent-steps", "episode-folders"}


class TestHostileTrees:
    async def test_names_are_never_code(self, job, tmp_path):
        names = ["$(touch x)__aaaaaaa", "`touch x`__aaaaaaa", "'; touch x;'__a", "-n__aaaaaaa",
                 "a b  c__aaaaaaa", "*__aaaaaaa", "back\\slash\\n__aaaaaaa", "ünï__aaaaaaa",
                 'quo"te__aaaaaaa', "%s__aaaaaaa"]  # fmt: skip
        for name in names:
            put(job / name, result())
        looking = Looking(job)
        trials = await looking.trials()
        assert sorted(t.name for t in trials.recent) == sorted(names)
        again = await looking.trials()
        assert (again.done, again.whole) == (len(names), True)
        assert not list(tmp_path.rglob("x"))

    async def test_a_line_break_in_a_name_is_no_other_trial(self, job):
        put(job / "a__aaaaaaa", result())
        put(job / "b\nN 1 1 evil__aaaaaaa", result())
        trials = await Looking(job).trials()
        assert [t.name for t in trials.recent] == ["a__aaaaaaa"]

    async def test_what_is_no_trial(self, job, tmp_path):
        put(job / "a__aaaaaaa", result())
        for name in ("_retry_a__aaaaaaa", "lost+found", ".tmp"):
            put(job / name, result())
        (job / "link__aaaaaaa").symlink_to(job / "a__aaaaaaa")
        (job / "fifo__aaaaaaa").mkdir()
        os.mkfifo(job / "fifo__aaaaaaa" / "result.json")
        trials = await Looking(job).trials()
        assert (trials.done, trials.running) == (1, 1)

    async def test_a_file_full_of_nonsense(self, job):
        (job / "a__aaaaaaa").mkdir()
        (job / "a__aaaaaaa" / "result.json").write_bytes(bytes(range(256)) * 4096)
        put(job / "b__aaaaaaa", result())
        trials = await Looking(job).trials()
        assert (trials.done, trials.running) == (1, 1)

    async def test_more_than_is_bearable_is_said(self, job):
        for i in range(5):
            put(job / f"t{i}__aaaaaaa", result())
        assert await Looking(job, entries=3).reading() == Unavailable(
            "more than 3 entries are in a job"
        )


class TestWithoutAnAnswer:
    async def test_nothing_there(self, tmp_path):
        assert await Looking(tmp_path / "nope").reading() == Absent((f"{tmp_path}/nope",))
        assert await Looking(tmp_path).reading() == Absent((str(tmp_path),))

    async def test_the_first_place_that_is_there(self, job, tmp_path):
        put(job / "a__aaaaaaa", result())
        ask = TreeAsk("1", str(tmp_path / "nope"), (str(tmp_path / "no"), str(job)))
        found = await TreeReader(LocalTransport()).read_trees([ask], now=NOW, timeout_s=60)
        assert (found["1"].value.path, found["1"].value.trials.done) == (str(job), 1)
        ask = replace(ask, others=(str(tmp_path / "no"),))
        found = await TreeReader(LocalTransport()).read_trees([ask], now=NOW, timeout_s=60)
        assert found["1"] == Absent((str(tmp_path / "nope"),))

    async def test_paths_that_cannot_be_asked_for(self):
        for path in ("relative", "/a\nb", "/a\0b"):
            assert isinstance(await Looking(path).reading(), Unavailable)

    async def test_a_far_side_that_fails(self, job):
        class Dead(LocalTransport):
            async def run(self, script, *, timeout_s, max_bytes):
                raise TransientTransportError("connection lost")

        found = await TreeReader(Dead()).read_trees([TreeAsk("1", str(job))], now=NOW, timeout_s=9)
        assert found == {"1": Unavailable("connection lost")}

    async def test_an_answer_cut_anywhere_is_never_a_wrong_one(self, job):
        put(job / "a__aaaaaaa", result())
        put(job / "b__aaaaaaa", {}, "config.json")
        put(job, {"n_total_trials": 2, "stats": {"n_trials": 1}})
        ask = TreeAsk("1", str(job))
        script = ask_script("m" * 32, [ask], TreeLimits(), timeout_s=60)
        answer = await LocalTransport().run(script, timeout_s=60, max_bytes=1 << 20)
        whole = readings(answer.stdout, "m" * 32, [ask], now=NOW)["1"]
        for stop in range(len(answer.stdout)):
            part = readings(answer.stdout[:stop], "m" * 32, [ask], now=NOW)["1"]
            assert isinstance(part, Unavailable) or part == whole

    async def test_every_tree_has_its_own_answer(self, job, tmp_path):
        put(job / "a__aaaaaaa", result())
        asks = [TreeAsk("1", str(tmp_path / "nope")), TreeAsk("2", str(job)), TreeAsk("3", "x")]
        found = await TreeReader(LocalTransport()).read_trees(asks, now=NOW, timeout_s=60)
        assert isinstance(found["1"], Absent)
        assert found["2"].value.trials.done == 1
        assert isinstance(found["3"], Unavailable)

    async def test_a_look_without_time_is_put_off(self, job):
        ask = TreeAsk("1", str(job))
        script = ask_script("m" * 32, [ask], TreeLimits(each_s=30), timeout_s=1)
        late = script.replace(b"date +%s) + 1", b"date +%s) - 9")
        assert late != script
        answer = await LocalTransport().run(late, timeout_s=60, max_bytes=1 << 20)
        assert readings(answer.stdout, "m" * 32, [ask], now=NOW) == {"1": Unavailable("budget")}


async def test_when_the_last_trial_ended_is_told_by_the_far_sides_clock(job):
    path = put(job / "a__aaaaaaa", result())
    old = int(datetime.now(UTC).timestamp()) - 3660
    os.utime(path, (old, old))
    trials = await Looking(job).trials()
    assert abs(NOW - trials.last_result_at - timedelta(seconds=3660)) <= timedelta(seconds=3)


async def test_it_can_stand_behind_another_script(job):
    put(job / "a__aaaaaaa", result())
    ask = TreeAsk("1", str(job))
    script = b"set -u\necho before\n" + ask_script("m" * 32, [ask], TreeLimits(), timeout_s=60)
    answer = await LocalTransport().run(script + b"echo after\n", timeout_s=60, max_bytes=1 << 20)
    assert isinstance(answer, Answer)
    assert answer.stdout.startswith(b"before\n")
    assert answer.stdout.endswith(b"after\n")
    assert readings(answer.stdout, "m" * 32, [ask], now=NOW)["1"].value.trials.done == 1


def test_the_script_searches_no_file_system():
    script = ask_script("m" * 32, [TreeAsk("1", "/x")], TreeLimits(), timeout_s=9).decode()
    words = set(script.replace("|", " ").replace("(", " ").replace(";", " ").split())
    assert not {"find", "du", "ls"} & words
    assert Path("/x").is_absolute()


class TestRemains:
    async def look(self, *paths):
        reader = TreeReader(LocalTransport())
        return await reader.read_remains(paths, now=NOW, timeout_s=60)

    async def test_there_and_gone_on_the_same_file_system(self, job, tmp_path):
        gone = str(tmp_path / "a" / "b" / "c")
        found = await self.look(str(job), gone)
        assert found[str(job)].value.there
        assert not found[gone].value.there
        assert found[gone].value.mount == found[str(job)].value.mount is not None
        assert found[gone].value.inodes_free > 0

    async def test_names_are_never_code(self, tmp_path):
        path = str(tmp_path / "$(touch x) 'q")
        (tmp_path / "$(touch x) 'q").mkdir()
        assert (await self.look(path))[path].value.there
        assert not list(tmp_path.rglob("x"))

    async def test_a_far_side_that_fails_or_says_nothing(self, job):
        class Dead(LocalTransport):
            async def run(self, script, *, timeout_s, max_bytes):
                raise TransientTransportError("connection lost")

        found = await TreeReader(Dead()).read_remains([str(job)], now=NOW, timeout_s=9)
        assert found == {str(job): Unavailable("connection lost")}
        assert isinstance((await self.look("relative"))["relative"], Unavailable)
        whole = b"m path 0\nm gone\nm mount /\nm free 7\nm end 0\n"
        assert found_remains(whole, "m", 1) == [Remains(False, 7, "/")]
        for stop in range(len(whole) - 1):
            assert isinstance(found_remains(whole[:stop], "m", 1)[0], Unavailable)
