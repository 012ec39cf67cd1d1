"""A real daemon, a registry file and an ops file, written as another program would."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.host import Host, pid_of, programs_without_slurm, until

CONFIG = """
registry_files = ["~/.claude/active_jobs.json"]
[clusters.here]
kind = "local"
slurm = false
ops_file = "ops.md"
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "home", str(programs_without_slurm(tmp_path / "bin")))
    host.configure(CONFIG)
    (host.home / ".claude").mkdir()
    host.config.with_name("ops.md").write_text("# As always\n")
    yield host
    host.close()


def test_jobs_come_and_go_with_the_file(host: Host) -> None:
    file = host.home / ".claude" / "active_jobs.json"
    daemon = host.daemon()
    until(file.exists, "the file is created")
    assert file.read_text() == "[]\n"
    work = host.spawn("sleep", "300")
    entry = {"type": "local", "id": work.pid, "description": "a long sleep", "mine": [1.50]}
    file.write_text(json.dumps([entry, {"id": 7, "type": "nel", "host": "x"}], indent=1))
    assert host.ctl("sweep", "--wait").returncode == 0
    job = host.job(f"here/{pid_of(work)}")
    assert (job["state"], job["tracked"]) == ("RUNNING", True)
    assert host.status()["daemon"]["problems"] == [
        f"{file}: 7: host 'x' is no cluster, no host of one and no alias of such a host"
        " (clusters: here)"
    ]
    assert daemon.says("registry entry not taken") == 1
    native = json.loads(file.read_text())[0]["last_status"]
    assert native == job["native_state"]
    assert [e["id"] for e in json.loads(host.ctl("export").stdout)] == [pid_of(work)]

    host.config.with_name("ops.md").write_text("---\nactive: false\nnotes: moving\n---\n")
    work.kill()
    work.wait()
    assert "inactive" in host.ctl("sweep", "--wait").stdout
    job = host.job(f"here/{pid_of(work)}")
    assert (job["state"], job["stale"]) == ("RUNNING", True)
    host.config.with_name("ops.md").write_text("---\nactive: true\n---\n")
    host.ctl("sweep", "--wait")
    job = host.job(f"here/{pid_of(work)}")
    assert (job["state"], job["tracked"]) == ("LOST", False), (job, daemon.said)
    assert json.loads(file.read_text()) == [{"id": 7, "type": "nel", "host": "x"}]
    assert daemon.stop() == 0

    file.write_text(json.dumps([entry]))  # a stale writer, while nobody watches
    again = host.spawn("sleep", "300")
    extra = host.home / "extra.json"
    extra.write_text(json.dumps({"jobs": [{"type": "local", "id": again.pid}]}))
    assert host.jobmond("sweep").returncode == 0
    assert json.loads(file.read_text()) == []
    host.daemon()
    assert host.ctl("import", str(extra), "--watch").returncode == 0
    assert host.job(f"here/{pid_of(again)}")["tracked"] is True
    checked = host.jobmond("check", "--offline")
    assert f"registry file {file}" in checked.stdout
