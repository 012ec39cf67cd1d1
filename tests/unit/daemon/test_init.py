"""The text of a first configuration, and where it is written."""

import stat
from pathlib import Path

import pytest

from jobmond.daemon.init import Tried, check_free, configuration, tried, write
from jobmond.errors import ConfigError, Refused
from jobmond.settings import Settings, load
from jobmond.settings.clusters import SlurmCluster

SLURM = frozenset({"squeue", "sacct"})
LOCKED = Tried("vault", error="vault: login refused", remedy="ssh vault")


def loaded(text: str, tmp_path: Path) -> Settings:
    path = tmp_path / "config.toml"
    path.write_text(text)
    found = load(path, {"HOME": str(tmp_path)})
    assert found.warnings == ()
    return found.settings


def test_a_cluster_that_answered_is_watched(tmp_path: Path) -> None:
    settings = loaded(configuration([Tried("leonardo", SLURM)], None), tmp_path)
    assert list(settings.clusters) == ["local", "leonardo"]
    cluster = settings.clusters["leonardo"]
    assert isinstance(cluster, SlurmCluster)
    assert (cluster.host, cluster.active, cluster.discover) == (("leonardo",), True, True)
    assert (cluster.transport, cluster.ssh_config_file) == ("ssh", None)


def test_one_that_needs_a_person_is_switched_off_with_the_fix(tmp_path: Path) -> None:
    text = configuration([LOCKED], None)
    assert not loaded(text, tmp_path).clusters["vault"].active
    assert "# vault: vault: login refused (try: ssh vault)." in text
    assert '# Where it wants a second factor, add: transport = "openssh"' in text


def test_one_that_did_not_answer_is_switched_off(tmp_path: Path) -> None:
    text = configuration([Tried("far", error="far: timed out")], None)
    assert not loaded(text, tmp_path).clusters["far"].active
    assert "second factor" not in text


def test_one_without_slurm_is_only_a_comment(tmp_path: Path) -> None:
    text = configuration([Tried("web", frozenset({"kubectl"}))], None)
    assert list(loaded(text, tmp_path).clusters) == ["local"]
    assert "# web: answers, but there is no squeue." in text
    uncommented = "\n".join(
        line.removeprefix("#") if line.startswith("#") and line[1:2] != " " else line
        for line in text.splitlines()
    )
    assert list(loaded(uncommented, tmp_path).clusters) == ["local", "web"]


def test_the_ssh_config_that_was_read_is_the_one_that_is_used(tmp_path: Path) -> None:
    ssh_config = tmp_path / 'ssh "config"'
    ssh_config.touch()
    settings = loaded(configuration([Tried("a", SLURM)], ssh_config), tmp_path)
    cluster = settings.clusters["a"]
    assert isinstance(cluster, SlurmCluster)
    assert cluster.ssh_config_file == ssh_config


def test_names_that_no_cluster_can_have_are_changed(tmp_path: Path) -> None:
    found = [Tried(host, SLURM) for host in ("local", "[::1]", "a.b", "a:b", "a%b")]
    settings = loaded(configuration(found, None), tmp_path)
    assert list(settings.clusters) == ["local", "local-2", "c---1-", "a.b", "a-b", "a-b-2"]


def test_what_a_host_said_stays_a_comment(tmp_path: Path) -> None:
    text = configuration([Tried("a", error="x\\n[clusters.evil]")], None)
    assert list(loaded(text, tmp_path).clusters) == ["local", "a"]


def test_it_is_written_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new/config.toml"
    write(path, configuration([], None), {}, force=False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_one_that_is_there_is_left_alone_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("# mine\n")
    with pytest.raises(Refused, match="--force"):
        check_free(path, force=False)
    with pytest.raises(Refused, match="--force"):  # even where it appeared meanwhile
        write(path, configuration([], None), {}, force=False)
    assert path.read_text() == "# mine\n"
    check_free(path, force=True)
    write(path, configuration([], None), {}, force=True)
    assert "[clusters.local]" in path.read_text()
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_that_leads_nowhere_is_somebodys_too(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.symlink_to(tmp_path / "dotfiles")
    with pytest.raises(Refused):
        check_free(path, force=False)


def test_what_is_not_valid_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    with pytest.raises(ConfigError):
        write(path, "colour = 7\n", {}, force=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "alice@a", "", "a b"])
async def test_what_is_no_host_is_not_tried(host: str) -> None:
    with pytest.raises(ConfigError, match="no host name"):
        await tried([host], None)
