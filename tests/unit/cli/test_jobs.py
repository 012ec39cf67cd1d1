import json

import pytest

ADDED = {"ref": "leonardo/4711", "created": True, "guessed": None, "error": None}


def test_add(fake, ctl):
    fake.on(
        "POST /v1/jobs",
        {
            "jobs": [
                {**ADDED, "guessed": "cluster leonardo, the only one with that id"},
                {**ADDED, "ref": "leonardo/4712", "created": False},
            ]
        },
    )
    result = ctl(
        "add", "4711", "4712", "--cluster", "leonardo", "--label", "smoke", "--label", "tested",
        "--bucket", "RL", "--run", "r", "--log", "/logs/x.out", "--submitted", "1h",
    )  # fmt: skip
    assert result.exit_code == 0
    assert result.stdout == (
        "leonardo/4711 added (cluster leonardo, the only one with that id)\n"
        "leonardo/4712 was tracked already\n"
    )
    assert fake.bodies("POST /v1/jobs") == [
        {
            "ids": ["4711", "4712"],
            "cluster": "leonardo",
            "labels": ["smoke", "tested"],
            "bucket": "rl",
            "run": "r",
            "log": "/logs/x.out",
            "submitted_at": "2026-11-29T11:00:00Z",
        }
    ]


def test_add_json_is_one_object_a_job(fake, ctl):
    fake.on("POST /v1/jobs", {"jobs": [ADDED]})
    assert json.loads(ctl("add", "4711", "--json").stdout) == {
        "ref": "leonardo/4711",
        "created": True,
    }


def test_one_that_fails_is_exit_code_1_and_the_others_are_told(fake, ctl):
    failed = {"ref": None, "created": False, "guessed": None, "error": "'x y' is no job id"}
    fake.on("POST /v1/jobs", {"jobs": [ADDED, failed]})
    result = ctl("add", "4711", "x y")
    assert result.exit_code == 1
    assert result.stdout == "leonardo/4711 added\n"
    assert result.stderr == "jobmonctl: 'x y' is no job id\n"


def test_add_from_standard_input(fake, ctl):
    fake.on("POST /v1/jobs", {"jobs": [ADDED]})
    text = (
        "Submitted batch job 4711\n"
        "sbatch: Submitted batch job 4712 on cluster vega\n"
        "\n"
        "4713;leonardo\n"
        "vega/4714_3\n"
        "Uploading the \x1b[31mcode\n"
    )
    result = ctl("add", "-", stdin=text)
    assert fake.bodies("POST /v1/jobs")[0]["ids"] == ["4711", "4712", "4713", "vega/4714_3"]
    assert result.stderr == "jobmonctl: no id in 'Uploading the \\x1b[31mcode', left out\n"


@pytest.mark.parametrize(
    "words",
    [("add",), ("add", "-"), ("add", "1", "--log", "x.out"), ("add", "1", "--kind", "slrm")],
)
def test_add_needs_an_id_and_good_options(fake, ctl, words):
    result = ctl(*words, stdin="")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert fake.asked == []


def test_a_local_log_may_be_relative(fake, ctl, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fake.on("POST /v1/jobs", {"jobs": [ADDED]})
    ctl("add", "--kind", "local", "--id", "4711", "--log", "x.out")
    assert fake.bodies("POST /v1/jobs") == [
        {"ids": ["4711"], "kind": "local", "log": str(tmp_path / "x.out")}
    ]


def test_label(fake, ctl, job):
    fake.on("PATCH /v1/job", {"job": job(labels=["no-kill"], bucket="rl")})
    result = ctl("label", "4711", "+no-kill", "~smoke", "bucket=rl", "run=a=b")
    assert result.stdout == "leonardo/4711: bucket rl, run tokenise, labels no-kill\n"
    assert fake.asked == [
        (
            "PATCH /v1/job",
            {"job": "4711"},
            {
                "bucket": "rl",
                "run": "a=b",
                "labels_add": ["no-kill"],
                "labels_remove": ["smoke"],
            },
        )
    ]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("smoke", "'smoke' says nothing to change"),
        ("+", "says nothing to change"),
        ("bukcet=rl", "did you mean 'bucket'?"),
        ("bucket=lr", "no bucket 'lr'"),
        ("run=", "says nothing to change"),
    ],
)
def test_a_wrong_change_changes_nothing(fake, ctl, word, message):
    result = ctl("label", "4711", "+x", word)
    assert result.exit_code == 2
    assert message in result.stderr
    assert fake.asked == []


def test_rm(fake, ctl):
    fake.on("DELETE /v1/job", {"ref": "leonardo/1"}, {"ref": "leonardo/2"})
    result = ctl("rm", "1", "two")
    assert result.stdout == ("leonardo/1 is no longer tracked\nleonardo/2 is no longer tracked\n")
    assert fake.queries("DELETE /v1/job") == [{"job": "1"}, {"job": "two"}]


def test_show(fake, ctl, job):
    fake.on("GET /v1/job", {"job": job(name="x\x1b[31m")})
    result = ctl("show", "4711")
    assert result.stdout.startswith("Job         leonardo/4711\nName        x\\x1b[31m\n")
    assert json.loads(ctl("show", "4711", "--json").stdout)["ref"] == "leonardo/4711"


def test_history(fake, ctl, job):
    ended = job(state="FAILED", native_state="FAILED", ended_at="2026-11-29T11:00:00Z", exit_code=3)
    fake.on("GET /v1/history", {"jobs": [ended]})
    result = ctl("history", "--since", "1d", "4711")
    assert "│ leonardo/4711 │ tokenise │ FAILED │ 12:00 │ 2h00m   │ exit code 3 │" in result.stdout
    assert fake.queries("GET /v1/history") == [{"since": "2026-11-28T12:00:00Z", "job": "4711"}]


def test_failures(fake, ctl):
    disk = {
        "fingerprint": "disk-full:OSError:-:0a0b0c0d",
        "cause": "disk-full",
        "summary": "OSError: no space",
        "count": 3,
        "first_at": "2026-11-29T08:00:00Z",
        "last_at": "2026-11-29T11:00:00Z",
        "clusters": ["leonardo"],
        "runs": ["a"],
        "jobs": ["leonardo/4711"],
        "recurrence": {"words": "third time in three hours: not transient"},
        "last": {"ref": "leonardo/4711", "agent_log": "/a/2026-11-29/leonardo-4711-a.md"},
    }
    fake.on("GET /v1/failures", {"failures": [disk]}, {"failures": []})
    shown = ctl("failures", "--since", "1d").stdout
    assert "│ 3     │ 12:00 │ 09:00 │ leonardo/4711 │ disk-full: OSError: no space │" in shown
    assert "third time in three hours: not transient" in shown
    assert "The entry about the last: /a/2026-11-29/leonardo-4711-a.md" in shown
    assert ctl("failures").stdout == "Nothing has failed.\n"
    assert fake.queries("GET /v1/failures") == [{"since": "2026-11-28T12:00:00Z"}, {}]
    assert ctl("failures", "--json").stdout == '{"failures": []}\n'
    assert ctl("failures", "--since", "soon").exit_code == 2
    assert ctl("failures", "extra").exit_code == 2


def test_followups_and_done(fake, ctl):
    fake.on("GET /v1/followups", {"followups": []})
    fake.on("POST /v1/followups/7/close", {"followup": {"id": 7}})
    assert ctl("followups").stdout == "Nothing is owed.\n"
    ctl("followups", "--all")
    assert fake.queries("GET /v1/followups") == [{}, {"all": "1"}]
    assert ctl("done", "7", "--verdict", "no-kill", "--note", "looks fine").exit_code == 0
    assert fake.bodies("POST /v1/followups/7/close") == [
        {"verdict": "no-kill", "note": "looks fine"}
    ]
    assert ctl("done", "0").exit_code == 2
    wrong = ctl("done", "x")
    assert wrong.exit_code == 2
    assert "'x' is not a valid number of a follow-up" in wrong.stderr
    assert ctl("done", "7", "--verdict", "maybe").exit_code == 2


VEGA = {"name": "vega", "status": "ok", "jobs": 2, "changes": 0, "age_s": 0}


def test_sweep(fake, ctl):
    fake.on("POST /v1/sweeps", {"clusters": [VEGA]})
    assert ctl("sweep", "--wait").stdout == "vega: ok, 2 jobs, 0 changes\n"
    assert ctl("sweep", "--cluster", "vega").exit_code == 0
    assert fake.bodies("POST /v1/sweeps") == [
        {"wait": True},
        {"cluster": "vega", "wait": False},
    ]


@pytest.mark.parametrize(
    ("status", "words", "code"),
    [
        ("unreachable", ("--wait",), 1),
        ("needs-login", ("--wait",), 1),
        ("inactive", ("--wait",), 0),  # nobody asked for it
        ("inactive", ("--wait", "--cluster", "vega"), 1),
        ("unreachable", (), 0),  # not known yet
    ],
)
def test_an_asked_cluster_that_did_not_answer_is_exit_code_1(fake, ctl, status, words, code):
    fake.on("POST /v1/sweeps", {"clusters": [{**VEGA, "status": status}]})
    assert ctl("sweep", *words).exit_code == code


def test_discover_and_track(fake, ctl):
    found = [{"ref": "vega/8", "name": "n", "state": "RUNNING", "user": "alice"}]
    fake.on("GET /v1/discover", {"jobs": found})
    fake.on("POST /v1/discover", {"jobs": [{**found[0], "created": True}]})
    assert "│ vega/8 │ n    │ RUNNING │ alice │" in ctl("discover").stdout
    assert ctl("discover", "--track").stdout == "vega/8 added\n"
    assert fake.bodies("POST /v1/discover") == [{"refs": ["vega/8"]}]


def test_a_launchers_job_is_named_by_its_output_until_that_names_it(
    fake, ctl, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    fake.on("POST /v1/jobs", {"jobs": [ADDED]})
    ctl("add", "--kind", "launcher", "--log", "out/ptq.log")
    [body] = fake.bodies("POST /v1/jobs")
    assert body["ids"] == ["file:ptq.log"]
    assert body["log"] == f"{tmp_path}/out/ptq.log"


def test_a_job_may_have_its_own_nel(fake, ctl, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fake.on("POST /v1/jobs", {"jobs": [ADDED]})
    ctl("add", "65f68ad6c803b542", "--nel-command", "uv run nel", "--nel-home", "bob")
    [body] = fake.bodies("POST /v1/jobs")
    assert body["nel_command"] == ["uv", "run", "nel"]
    assert body["nel_home"] == f"{tmp_path}/bob"
