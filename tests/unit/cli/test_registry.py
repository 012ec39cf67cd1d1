"""`import` and `export`."""

import json

ROW = {"word": "4711", "ref": "leo/4711", "created": True, "note": None, "error": None,
       "exit_code": 0}  # fmt: skip


def test_a_file_is_handed_in_once(fake, ctl, tmp_path):
    bad = {**ROW, "ref": None, "created": False, "error": "1: host 'x' is no cluster",
           "exit_code": 1}  # fmt: skip
    fake.on("POST /v1/import", {"jobs": [ROW, bad], "watched": None})
    file = tmp_path / "active_jobs.json"
    file.write_text('[{"id": "4711"}]')
    result = ctl("import", str(file))
    assert result.exit_code == 1
    assert result.stdout == "leo/4711 added\n"
    assert result.stderr == "jobmonctl: 1: host 'x' is no cluster\n"
    assert fake.bodies("POST /v1/import") == [{"text": '[{"id": "4711"}]'}]


def test_a_file_is_watched_by_its_whole_name(fake, ctl, tmp_path, monkeypatch):
    fake.on(
        "POST /v1/import",
        {"jobs": [ROW], "watched": str(tmp_path / "a.json")},
        {"jobs": [], "watched": None},
    )
    monkeypatch.chdir(tmp_path)
    result = ctl("import", "a.json", "--watch")
    assert result.exit_code == 0
    assert result.stderr == f"jobmonctl: {tmp_path}/a.json is watched from now on\n"
    assert ctl("import", "a.json", "--no-watch", "--json").exit_code == 0
    assert fake.bodies("POST /v1/import") == [
        {"path": f"{tmp_path}/a.json", "watch": True},
        {"path": f"{tmp_path}/a.json", "watch": False},
    ]


def test_what_cannot_be_read_is_a_usage_error(fake, ctl, tmp_path):
    (tmp_path / "bytes").write_bytes(b"\xff")
    for name, said in (("none", "No such file"), ("bytes", "not UTF-8"), (".", "Is a directory")):
        result = ctl("import", str(tmp_path / name))
        assert result.exit_code == 2
        assert said in result.stderr
    assert fake.asked == []


def test_export_is_a_registry_file(fake, ctl):
    jobs = [{"type": "slurm", "id": "4711", "description": "gr\u00f6\u00dfer \u202e"}]
    fake.on("GET /v1/export", {"jobs": jobs})
    result = ctl("export")
    assert json.loads(result.stdout) == jobs
    assert result.stdout.isascii()
