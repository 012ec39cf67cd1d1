"""What is owed keeps a cluster in sight, is reminded of, and has its command run."""

import json

import pytest

from jobmond.app import open_app
from jobmond.errors import ConfigError
from jobmond.model.commit import SweepCommit
from jobmond.model.job import ClusterHealth
from jobmond.model.outcome import Followup
from jobmond.model.state import ClusterStatus
from jobmond.settings import load
from tests.doubles_store import FixedClock
from tests.unit.builders import NOW

DAY_S = 86400
CONFIG = """
database.url = "sqlite:///{folder}/db"
[clusters.here]
kind = "local"
slurm = false
discover = false
[sinks.news]
kind = "file"
path = "{folder}/news.jsonl"
"""


def loaded(folder, more=""):
    (folder / "config.toml").write_text(more + CONFIG.format(folder=folder))
    return load(folder / "config.toml", {"HOME": str(folder)}).settings


@pytest.fixture
async def opened(tmp_path):
    apps = []

    async def make(more="", *, anew=False):
        if anew:
            apps.clear()
        app = await open_app(loaded(tmp_path, more), tmp_path, FixedClock(NOW))
        apps.append(app)
        return app

    yield make
    for app in apps:
        await app.close()


async def owe(app, kind="cleanup", ref="here/pid-7", **evidence):
    health = ClusterHealth("here", "local", True, ClusterStatus.OK, NOW, last_ok_at=NOW)
    owed = Followup(0, kind, ref, "remove it", app.clock.now(), evidence=evidence)
    at = app.clock.now()
    await app.writer.call(
        app.store.commit, SweepCommit("here", at, at, health=health, opened=(owed,))
    )


async def owed(app):
    return await app.writer.call(app.store.followups, all=True)


def told(tmp_path):
    lines = (tmp_path / "news.jsonl").read_text().splitlines()
    return [one for line in lines if (one := json.loads(line))["type"] in ("digest", "followup")]


class TestWatched:
    async def test_nothing_tracked_and_nothing_owed_is_nothing_to_watch(self, opened):
        app = await opened()
        assert await app.watched() == []

    async def test_a_tree_that_is_to_be_removed_is(self, opened, tmp_path):
        app = await opened()
        (tmp_path / "tree").mkdir()
        await owe(app, path=str(tmp_path / "tree"))
        assert await app.watched() == ["here"]
        await app.sweep("here")
        assert (await owed(app))[0].evidence["inodes_free_before"] is not None
        (tmp_path / "tree").rmdir()
        await app.sweep("here")
        (one,) = await owed(app)
        assert (one.state, one.closed_by) == ("closed", "jobmond")
        assert await app.watched() == [], "and then the cluster is left alone again"
        assert [(e["followup"]["state"], e["job"]["ref"]) for e in told(tmp_path)] == [
            ("closed", "here/pid-7")
        ]

    @pytest.mark.parametrize("kind", ["consolidate", "zombie", "deep-probe"])
    async def test_what_only_a_person_can_close_is_not(self, opened, kind):
        app = await opened()
        await owe(app, kind, path="/s/x")
        await owe(app)  # a cleanup of which no tree is known
        assert await app.watched() == []


class TestReminders:
    async def test_once_a_day_of_what_was_owed_by_then(self, opened, tmp_path):
        app = await opened()
        await app.remind()
        await owe(app, "consolidate")
        await app.remind()
        app.clock.move(DAY_S)
        for _ in range(3):
            await app.remind()
        (one,) = told(tmp_path)
        assert (one["title"], one["job"]) == ("1 follow-up to be done: jobmonctl followups", None)
        assert one["body"] == "1 consolidate here/pid-7 (12h00m): remove it"
        assert one["owed"] == [{"id": 1, "kind": "consolidate", "ref": "here/pid-7"}]
        await app.close()
        again = await opened(anew=True)
        again.clock.move(DAY_S)
        await again.remind()
        assert len(told(tmp_path)) == 1, "a restart reminds of nothing twice"
        again.clock.move(DAY_S)
        await again.remind()
        assert len(told(tmp_path)) == 2

    async def test_nothing_owed_is_no_news_and_none_are_sent_where_none_are_wanted(
        self, opened, tmp_path
    ):
        app = await opened('remind_every = "0s"\n')
        await owe(app, "consolidate")
        app.clock.move(10 * DAY_S)
        await app.remind()
        assert not (tmp_path / "news.jsonl").exists()

    def test_more_often_than_daily_is_refused(self, tmp_path):
        with pytest.raises(ConfigError, match="remind_every must be a day or more"):
            loaded(tmp_path, 'remind_every = "1h"\n')


class TestCommands:
    async def test_run_after_a_sweep_for_the_kind_that_has_one(self, opened, tmp_path):
        more = '[followups.consolidate]\ncommand = ["touch", "{path}.done"]\n'
        app = await opened()
        await owe(app, "zombie", path=str(tmp_path / "no"))
        await owe(app, "consolidate", path=str(tmp_path / "tree"))
        await app.sweep("here")
        await app.errands.idle()
        assert not (tmp_path / "tree.done").exists(), "only where it is configured"
        app.parts.settings = loaded(tmp_path, "").model_copy(
            update={"followups": load_followups(tmp_path, more)}
        )
        await app.sweep("here")
        await app.errands.idle()
        assert (tmp_path / "tree.done").exists()
        assert not (tmp_path / "no.done").exists()
        outcome = {one.kind: one.evidence.get("command") for one in await owed(app)}
        assert outcome["zombie"] is None
        assert outcome["consolidate"]["status"] == 0
        actions = [line.action for line in app.store.audit_trail()]
        assert actions == ["followup-command"] * 2

    @pytest.mark.parametrize(
        ("table", "why"),
        [
            ('[followups.cleanup]\ncommand = ["x", "{tree}"]\n', r"\{tree\} is none of id, kind"),
            ("[followups.cleanup]\ncommand = []\n", "expected"),
            ('[followups.tidy]\ncommand = "x"\n', "tidy"),
        ],
    )
    def test_a_table_that_means_nothing_is_refused(self, tmp_path, table, why):
        with pytest.raises(ConfigError, match=why):
            load_followups(tmp_path, table)


def load_followups(folder, table):
    (folder / "commands.toml").write_text(table)
    return load(folder / "commands.toml", {"HOME": str(folder)}).settings.followups
