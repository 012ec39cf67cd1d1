"""What somebody who starts a daemon with nothing to watch is told."""

from pathlib import Path

import pytest

from jobmond.daemon.start import first_steps


@pytest.fixture
def bin_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    folder = tmp_path / "my venv"
    folder.mkdir()
    program = folder / "jobmonctl"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return folder


def test_the_command_can_be_typed_as_it_stands(bin_dir: Path) -> None:
    first, second = first_steps(str(bin_dir / "jobmond"), None)
    assert first.endswith(f"'{bin_dir}/jobmonctl' run -- CMD")
    assert second.endswith(f"'{bin_dir}/jobmonctl' status")


def test_on_path_the_bare_name_is_enough(bin_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(bin_dir))
    first, second = first_steps(str(bin_dir / "jobmond"), None)
    assert first.endswith("  jobmonctl run -- CMD")
    assert second.endswith("  jobmonctl status")


def test_a_socket_that_was_named_is_named_again(bin_dir: Path) -> None:
    first, second = first_steps("python3", "/tmp/my socket")
    assert first.endswith("  jobmonctl run --socket '/tmp/my socket' -- CMD")
    assert second.endswith("  jobmonctl status --socket '/tmp/my socket'")
