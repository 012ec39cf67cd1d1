"""Paths of what systemd's LoadCredential= gives a service."""

from pathlib import Path

import pytest

from jobmond.errors import ConfigError
from jobmond.settings import Settings, load
from jobmond.settings.clusters import SlurmCluster

TEXT = """
[clusters.c]
kind = "slurm"
host = "c"
identity_file = "$CREDENTIALS_DIRECTORY/keys_id"
[sinks.team]
kind = "hook"
url_file = "$CREDENTIALS_DIRECTORY/keys_url"
"""


def read(tmp_path: Path, text: str, **env: str) -> Settings:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return load(path, {"HOME": str(tmp_path), **env}).settings


def test_they_are_files_in_the_folder_that_systemd_names(tmp_path: Path) -> None:
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / "keys_id").touch()
    (folder / "keys_url").touch()
    settings = read(tmp_path, TEXT, CREDENTIALS_DIRECTORY=str(folder))
    cluster = settings.clusters["c"]
    assert isinstance(cluster, SlurmCluster)
    assert cluster.identity_file == folder / "keys_id"
    assert settings.sinks["team"].options["url_file"] == folder / "keys_url"


def test_one_that_was_not_given_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"clusters\.c\.identity_file: .*/keys_id: No such file"):
        read(tmp_path, TEXT, CREDENTIALS_DIRECTORY=str(tmp_path))


def test_outside_a_service_the_variable_means_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="LoadCredential") as wrong:
        read(tmp_path, TEXT)
    assert "clusters.c.identity_file" in str(wrong.value)


def test_no_other_variable_is_looked_up(tmp_path: Path) -> None:
    settings = read(tmp_path, 'agent_logs = "$HOME/logs"\n')
    assert settings.agent_logs == tmp_path / "$HOME/logs"
