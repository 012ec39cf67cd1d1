import json
from pathlib import Path

import jsonschema
import pytest

from jobmond.reports.schema import schema

LIVE = """\
jobmond on login7: last sweep 3m ago, next in 12m
1 running

Catch-all
┌───────────────┬───────┬─────────┬─────────┬──────────┐
│      Job      │ Type  │  State  │ Elapsed │   Note   │
├───────────────┼───────┼─────────┼─────────┼──────────┤
│ leonardo/4711 │ batch │ RUNNING │ 2h00m   │ tokenise │
└───────────────┴───────┴─────────┴─────────┴──────────┘
"""


@pytest.fixture
def stored(tmp_path, document):
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "report.json").write_text(json.dumps(document()))
    return folder / "report.json"


def test_text(fake, ctl, document):
    fake.on("GET /v1/status", document())
    result = ctl("status")
    assert (result.exit_code, result.stdout, result.stderr) == (0, LIVE, "")


def test_json_is_the_document_and_keeps_the_contract(fake, ctl, document):
    fake.on("GET /v1/status", document())
    result = ctl("status", "--json")
    assert json.loads(result.stdout) == document()
    jsonschema.validate(json.loads(result.stdout), schema("status"))


def test_json_holds_nothing_a_terminal_would_act_on(fake, ctl, document, job):
    fake.on("GET /v1/status", document(job(name="\x1b[31m\x9b31m\u202e数")))
    text = ctl("status", "--json").stdout
    assert text.rstrip("\n").isascii()
    assert text.rstrip("\n").isprintable()
    assert json.loads(text)["jobs"][0]["name"] == "\x1b[31m\x9b31m\u202e数"


def test_without_a_daemon_the_stored_report_and_exit_code_3(ctl, stored):
    result = ctl("status")
    assert result.exit_code == 3
    assert result.stdout == LIVE.replace(
        "jobmond on login7: last sweep 3m ago, next in 12m",
        "No daemon answers. Report of login7, 3m ago (12:57).",
    )
    assert "`jobmond run --detach` starts one" in result.stderr
    assert result.stderr.count("\n") == 1


def test_without_a_daemon_json_says_so(ctl, stored):
    result = ctl("status", "--json")
    assert result.exit_code == 3
    daemon = json.loads(result.stdout)["daemon"]
    assert (daemon["running"], daemon["host"]) == (False, "login7")


def test_the_report_is_looked_for_beside_the_configured_database(ctl, stored, home, tmp_path):
    other = tmp_path / "other dir"
    other.mkdir()
    stored.rename(other / "report.json")
    config = tmp_path / "config.toml"
    config.write_text(f'[database]\nurl = "sqlite:///{other}/jobmond.db"\n')
    home["JOBMOND_CONFIG"] = str(config)
    assert ctl("status").stdout.startswith("No daemon answers. Report of login7")


def test_without_daemon_and_report_one_line(ctl, tmp_path):
    result = ctl("status")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == (
        f"jobmonctl: no daemon is running (no socket at {tmp_path}/socket); "
        "`jobmond run --detach` starts one\n"
    )


@pytest.mark.parametrize("content", ["", "{", "[]", '{"jobs": []}', "\xff"])
def test_a_broken_report_is_one_line(ctl, stored, content):
    stored.write_text(content, encoding="latin-1")
    result = ctl("status")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"jobmonctl: {stored} cannot be read: ")
    assert result.stderr.count("\n") == 1


def test_another_schema_is_refused(fake, ctl, document):
    fake.on("GET /v1/status", document(schema=2))
    result = ctl("status")
    assert result.exit_code == 1
    assert result.stderr == (
        "jobmonctl: this report has schema 2 and jobmonctl reads 1: upgrade it\n"
    )


def test_filters_and_their_summary(fake, ctl, document, job):
    fake.on("GET /v1/status", document(job(), job("vega/1", bucket="rl", state="FAILED")))
    answer = json.loads(ctl("status", "--json", "--bucket", "rl").stdout)
    assert [j["ref"] for j in answer["jobs"]] == ["vega/1"]
    assert answer["summary"]["line"] == "0 of 1 completed, 1 failed"
    answer = json.loads(ctl("status", "4711", "--json").stdout)
    assert [j["ref"] for j in answer["jobs"]] == ["leonardo/4711"]


def test_fields(fake, ctl, document):
    fake.on("GET /v1/status", document())
    answer = json.loads(ctl("status", "--json", "--fields", "ref,state,log.status").stdout)
    assert answer["jobs"] == [{"ref": "leonardo/4711", "state": "RUNNING", "log.status": "none"}]
    assert ctl("status", "--fields", "ref,labels,stale").stdout == (
        "┌───────────────┬────────┬───────┐\n"
        "│      ref      │ labels │ stale │\n"
        "├───────────────┼────────┼───────┤\n"
        "│ leonardo/4711 │        │ false │\n"
        "└───────────────┴────────┴───────┘\n"
    )


def test_changed_since_asks_for_events_so_that_a_late_discovery_counts(fake, ctl, document, job):
    # vega/1 ended before T, and a sweep after T found out.
    ended = job("vega/1", state="FAILED", ended_at="2026-11-29T10:50:00Z")
    fake.on("GET /v1/status", document(job("vega/2"), ended))
    fake.on("GET /v1/events", {"events": [{"job": {"ref": "vega/1"}}, {"job": None}], "last": "k"})
    answer = json.loads(ctl("status", "--json", "--changed-since", "1h").stdout)
    assert [j["ref"] for j in answer["jobs"]] == ["vega/1"]
    assert fake.queries("GET /v1/events")[0]["since"] == "2026-11-29T11:00:00Z"


def test_exit_code(fake, ctl, document, job):
    fake.on("GET /v1/status", document(), document(job(state="FAILED")))
    assert ctl("status", "--exit-code").exit_code == 0
    assert ctl("status", "--exit-code").exit_code == 4
    assert ctl("status").exit_code == 0


def test_no_daemon_wins_over_an_alarm(ctl, stored, document, job):
    stored.write_text(json.dumps(document(job(state="FAILED"))))
    assert ctl("status", "--exit-code").exit_code == 3


def test_watch_redraws_until_interrupted(fake, ctl, document, time):
    def stop():
        if len(time.pauses) == 2:
            raise KeyboardInterrupt

    time.on_pause = stop
    fake.on("GET /v1/status", document())
    result = ctl("status", "--watch", color=True)
    assert result.exit_code == 130
    assert result.stdout.count("\x1b[H\x1b[2J" + LIVE.splitlines()[0][:7]) == 2


def test_ascii(fake, ctl, document):
    fake.on("GET /v1/status", document())
    assert ctl("status", "--ascii").stdout.isascii()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--bucket", "evl"), "did you mean 'eval'?"),
        (("--fields", "sate"), "did you mean 'state'?"),
        (("--changed-since", "soon"), "is no time"),
        (("--watch", "--json"), "--watch draws for people"),
        (("--wath",), "'--watch'"),
        (("--columns", "few"), "'few'"),
    ],
)
def test_usage_is_one_line_and_exit_code_2(fake, ctl, document, words, message):
    fake.on("GET /v1/status", document())
    result = ctl("status", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_an_unknown_job_is_exit_code_1(fake, ctl, document):
    fake.on("GET /v1/status", document())
    result = ctl("status", "4712")
    assert result.exit_code == 1
    assert "did you mean '4711'?" in result.stderr


def test_a_report_that_is_a_pipe_does_not_hang(ctl, tmp_path):
    import os

    (tmp_path / "state").mkdir()
    os.mkfifo(tmp_path / "state" / "report.json")
    assert ctl("status").exit_code == 1


def test_the_configured_database_may_be_elsewhere(home):
    from jobmond.cli.places import report_path

    home["JOBMOND_DATABASE__URL"] = "postgresql+psycopg://h/db"
    assert report_path(home) == Path(home["STATE_DIRECTORY"]) / "report.json"
    home["JOBMOND_DATABASE__URL"] = "sqlite:////var/lib/x/j.db?timeout=3"
    assert report_path(home) == Path("/var/lib/x/report.json")
