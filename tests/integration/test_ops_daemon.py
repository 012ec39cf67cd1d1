"""A real daemon, and what people say in an ops file about the logs of a cluster."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.host import Host, pid_of, until

CONFIG = """
[clusters.here]
kind = "local"
slurm = false
ops_file = "ops.md"
"""
LOG = """\
telemetry: OSError: [Errno 28] No space left on device
Traceback (most recent call last):
  File "train.py", line 9, in <module>
ValueError: bad shape
"""
FAILS = "import os, sys; sys.stdin.read(); os._exit(1)"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "home")
    host.configure(CONFIG)
    host.config.with_name("ops.md").write_text("# As always\n")
    yield host
    host.close()


def failed(host: Host, name: str) -> dict[str, Any]:
    """A process with that log that failed, as `status` shows it."""
    log = host.home / name
    log.write_text(LOG)
    process = host.spawn(sys.executable, "-c", FAILS, stdin=-1)
    added = host.ctl("add", pid_of(process), "--log", str(log))
    assert added.returncode == 0, added.stderr
    ref = f"here/{pid_of(process)}"
    host.until_state(ref, "RUNNING")
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=60)
    assert host.ctl("sweep", "--wait").returncode == 0
    return host.job(ref)


def test_what_people_call_noise_is_never_the_cause(host: Host) -> None:
    daemon = host.daemon()
    before = failed(host, "one")
    assert before["diagnosis"]["cause"] == "disk-full"

    host.config.with_name("ops.md").write_text("---\nbenign: '^telemetry: '\n---\n")
    after = failed(host, "two")
    assert after["state"] == "FAILED"
    assert after["diagnosis"]["summary"] == "ValueError: bad shape"
    [told] = [n for n in host.news(after["ref"]) if n["after"] == "FAILED"]
    assert told["diagnosis"]["summary"] == "ValueError: bad shape"
    until(lambda: Path(told["agent_log"]).exists(), "the entry")
    assert "ValueError: bad shape" in Path(told["agent_log"]).read_text()
    assert "no effect" not in daemon.said
    assert daemon.stop() == 0
