"""Registry files handed in and out by people."""

import json
import os

import pytest

from jobmond.desk.peer import Rights
from jobmond.desk.refusals import NotYours
from jobmond.desk.requests import ImportRequest
from jobmond.errors import ConfigError, Refused
from jobmond.model.state import State
from tests.doubles_desk import ALICE, ME, SHARED
from tests.registry_scene import living
from tests.unit.builders import at, seen

ENTRY = {
    "type": "slurm",
    "id": "4711",
    "host": "leo",
    "description": "MMLU-Pro",
    "owner": {"agent": "manual"},
}
NONE = '["/nonexistent/active_jobs.json"]'


def text(*entries):
    return ImportRequest(text=json.dumps(list(entries)))


async def test_a_text_is_taken_in_for_the_person_who_asks(tmp_path):
    async with living(tmp_path, registry_files=NONE) as scene:
        scene.desk.rights = SHARED
        answer = await scene.desk.take_in(
            text(ENTRY, {**ENTRY, "id": "x"}, {**ENTRY, "host": "nowhere", "id": "3"}), ALICE
        )
        assert [(r["ref"], r["created"], r["exit_code"]) for r in answer["jobs"]] == [
            ("leonardo/4711", True, 0), (None, False, 1), (None, False, 1),
        ]  # fmt: skip
        [job] = (await scene.jobs()).values()
        assert (job.choices.owner_uid, job.choices.description) == (ALICE.uid, "MMLU-Pro")
        assert job.choices.session == {"agent": "manual"}
        assert scene.swept == [("leonardo", False)]
        again = await scene.desk.take_in(text(ENTRY), ALICE)
        assert again["jobs"][0]["created"] is False


async def test_a_text_that_is_no_registry_is_refused_in_one_line(tmp_path):
    async with living(tmp_path, registry_files=NONE) as scene:
        with pytest.raises(ConfigError, match="not JSON: line 1, column 2"):
            await scene.desk.take_in(ImportRequest(text="[{"[:1] + "x"), ME)


async def test_a_watched_file_is_watched_for_good(tmp_path):
    path = tmp_path / "my [jobs].json"
    async with living(tmp_path, registry_files=NONE) as scene:
        path.write_text(json.dumps([ENTRY]))
        answer = await scene.desk.take_in(ImportRequest(path=str(path), watch=True), ME)
        assert answer["watched"] == str(path)
        assert [(r["ref"], r["created"]) for r in answer["jobs"]] == [("leonardo/4711", True)]
        await scene.sweep(j4711=seen(State.RUNNING))
    async with living(tmp_path, registry_files=NONE, far=scene.far, clock=scene.clock) as scene:
        await scene.sweep(j4711=seen(State.COMPLETED, ended_at=at(1)))
        assert json.loads(path.read_text()) == []
        await scene.desk.take_in(ImportRequest(path=str(path), watch=False), ME)
        path.write_text(json.dumps([{**ENTRY, "id": "4712"}]))
        await scene.look()
        assert await scene.tracked() == []
        with pytest.raises(Refused, match="is not watched"):
            await scene.desk.take_in(ImportRequest(path=str(path), watch=False), ME)


async def test_only_the_daemon_s_user_and_admins_name_files(tmp_path):
    async with living(tmp_path, registry_files=NONE) as scene:
        scene.desk.rights = SHARED
        with pytest.raises(NotYours):
            await scene.desk.take_in(ImportRequest(path="/etc/passwd", watch=True), ALICE)
        scene.desk.rights = Rights(os.geteuid())
        with pytest.raises(ConfigError, match="not JSON"):
            await scene.desk.take_in(ImportRequest(path="/etc/passwd", watch=True), ME)
        with pytest.raises(ConfigError, match="No such file"):
            await scene.desk.take_in(ImportRequest(path="/no/such", watch=True), ME)


async def test_what_is_given_out_can_be_taken_in(tmp_path):
    async with living(tmp_path, registry_files=NONE) as scene:
        await scene.desk.take_in(text(ENTRY), ME)
        await scene.sweep(
            j4711=seen(State.RUNNING, submitted_at=at(-60), user="alice", name="train")
        )
        given = await scene.desk.give_out(ME)
        submitted = at(-60).astimezone().strftime("%Y-%m-%d %H:%M")
        assert given["jobs"] == [
            {
                "type": "slurm",
                "id": "4711",
                "host": "login.leonardo.example",
                "user": "alice",
                "submitted": submitted,
                "description": "MMLU-Pro",
                "last_status": "RUNNING",
                "owner": {"agent": "manual"},
            }
        ]
        again = await scene.desk.take_in(text(*given["jobs"]), ME)
        assert [row["created"] for row in again["jobs"]] == [False]


@pytest.mark.parametrize(
    "body",
    [{}, {"text": "", "path": "/x", "watch": True}, {"path": "/x"}, {"text": 3}, {"path": "x"}],
)
def test_a_request_is_one_of_two(body):
    with pytest.raises(ConfigError):
        ImportRequest.read(body)
