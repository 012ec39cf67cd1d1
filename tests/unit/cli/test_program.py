import os
import subprocess
import sys

import pytest

COMMANDS = [
    "add", "discover", "done", "events", "explain", "export", "failures", "followups", "history",
    "import", "inspect", "label", "logs", "rm", "run", "schema", "show", "status", "sweep", "wait",
]  # fmt: skip
HEAVY = (
    "sqlalchemy", "alembic", "pydantic", "pydantic_settings", "asyncssh", "kubernetes_asyncio",
    "apscheduler", "starlette", "uvicorn", "structlog", "yaml", "asyncio", "wcwidth",
)  # fmt: skip


def test_starting_up_loads_none_of_the_daemon_s_libraries():
    code = (
        "import sys, jobmond.cli.main\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])\n"
        "print([m for m in sys.modules if m.startswith(('jobmond.store', 'jobmond.api'))])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n[]\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_socket_and_json(ctl, command):
    result = ctl(command, "--help")
    assert result.exit_code == 0
    assert "--socket" in result.stdout
    assert "--json" in result.stdout


def test_there_are_no_commands_besides(ctl):
    text = ctl("--help").stdout.partition("Commands:")[2]
    assert [line.split()[0] for line in text.splitlines() if line.startswith("  ")] == COMMANDS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("statsu",), "jobmonctl: No such command 'statsu'. Did you mean 'status'?\n"),
        (("show", "x", "--jsn"), "'--json'"),
        (("show",), "Missing argument 'JOB'"),
        (("rm",), "Missing argument 'JOB...'"),
        (("explain", "x\x1b[31m"), r"no rule 'x\x1b[31m'"),
        (("schema", "stats"), "did you mean 'status'?"),
        (("st\x1b[31m",), r"No such command 'st\x1b[31m'"),
    ],
)
def test_usage_errors_are_one_safe_line_and_exit_code_2(ctl, words, message):
    result = ctl(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr


def test_socket_and_json_go_before_or_after_the_command(fake, ctl, tmp_path):
    fake.on("GET /v1/followups", {"followups": []})
    elsewhere = str(tmp_path / "elsewhere")
    assert ctl("--json", "followups").stdout == '{"followups": []}\n'
    assert ctl("followups", "--json").stdout == '{"followups": []}\n'
    assert ctl("--socket", elsewhere, "followups").exit_code == 3
    assert ctl("followups", "--socket", elsewhere).exit_code == 3


def test_a_refusal_is_one_line_with_the_daemon_s_exit_code(fake, ctl):
    fake.on("GET /v1/job", (400, {"error": "no\nway\x1b[2J", "exit_code": 2}))
    result = ctl("show", "x")
    assert (result.exit_code, result.stderr) == (2, "jobmonctl: no way\\x1b[2J\n")


def test_a_configuration_that_was_named_and_is_missing_is_exit_code_2(ctl, home, tmp_path):
    home["JOBMOND_CONFIG"] = str(tmp_path / "none.toml")
    result = ctl("status", "--socket", str(tmp_path / "x"))
    assert result.exit_code == 2
    assert "none.toml" in result.stderr


def test_no_arguments_show_help_with_exit_code_2(ctl):
    result = ctl()
    assert result.exit_code == 2
    assert "Commands:" in result.stdout


def test_a_reader_that_goes_away_leaves_no_traceback():
    run = subprocess.run(
        f"{sys.executable} -m jobmond.cli.main schema | true",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert run.stderr == ""


def test_output_that_knows_only_ascii_gets_ascii(fake, document):
    fake.on("GET /v1/status", document())
    run = subprocess.run(
        [sys.executable, "-m", "jobmond.cli.main", "status", "--socket", str(fake.socket)],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert b"| leonardo/4711 | batch | RUNNING |" in run.stdout
    assert b"\x1b" not in run.stdout


def test_schema_prints_a_schema(ctl):
    import json

    assert json.loads(ctl("schema").stdout)["title"] == "jobmond status, schema 1"
    assert json.loads(ctl("schema", "news").stdout)["title"] == "jobmond news, schema 1"


class FakeRule:
    def explain(self) -> str:
        return "A job that is held.\nSource: sbatch(1)"


def test_explain(ctl, monkeypatch):
    known = {"held": FakeRule, "stall": FakeRule}
    monkeypatch.setattr("jobmond.cli.explain.rules", known)
    assert ctl("explain", "held").stdout == "A job that is held.\nSource: sbatch(1)\n"
    whole = "held (watch): held by its user,\nor by root. It waits.\nSource: sbatch(1)"
    monkeypatch.setattr(FakeRule, "explain", lambda self: whole)
    assert ctl("explain").stdout.splitlines() == [
        "held (watch): held by its user, or by root.",
        "stall: held (watch): held by its user, or by root.",
    ]
    whole = "held (watch): any of these:\n- one\n- two"
    assert ctl("explain").stdout.splitlines()[0] == "held (watch): any of these: …"
    monkeypatch.setattr(FakeRule, "explain", lambda self: "A job that is held.\nSource: sbatch(1)")
    assert ctl("explain").stdout == "held: A job that is held.\nstall: A job that is held.\n"
    result = ctl("explain", "hold")
    assert result.exit_code == 2
    assert "did you mean 'held'?" in result.stderr


def test_explain_names_the_thresholds_and_those_that_were_changed(ctl, home, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text("[rules.rl-collapse]\ngrad_norm_max = 3.5\n")
    home["JOBMOND_CONFIG"] = str(config)
    told = ctl("explain", "rl-collapse").stdout
    assert "raw gradient norm above 3.5 or above 2.0x its window" in told
    assert "Thresholds ([rules.rl-collapse] of the configuration):" in told
    assert "  grad_norm_max = 3.5  (yours; the default is 1.0)" in told.splitlines()
    assert "  window = 10" in told.splitlines()
    assert "monitor-job-tables notes" in told


def test_explain_without_a_usable_configuration_tells_the_defaults(ctl, home, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text("[rules.rl-collapse]\ngrad_norm = 3.5\n")
    home["JOBMOND_CONFIG"] = str(config)
    result = ctl("explain", "rl-collapse")
    assert "  grad_norm_max = 1.0" in result.stdout.splitlines()
    assert "grad_norm" in result.stderr
    assert "these are the defaults" in result.stderr
    assert result.exit_code == 0
