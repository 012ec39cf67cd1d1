"""Whether this host has a SLURM: asked of squeue itself, once, never for long."""

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from jobmond.app.clusters import Builder, SlurmHere, slurm_here, slurm_not_set_up
from jobmond.errors import TransientTransportError
from jobmond.model.state import Kind
from jobmond.ports import Answer
from jobmond.settings import load
from tests.doubles import ScriptedTransport

NOT_SET_UP = (
    b"squeue: error: fetch_config: DNS SRV lookup failed\n"
    b"squeue: fatal: Could not establish a configuration source\n"
)


FATAL = "squeue: fatal: Could not establish a configuration source"


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (Answer(0, b"slurm 24.11.5\n", b""), SlurmHere(True)),
        (Answer(127, b"", b""), SlurmHere(False)),
        (Answer(1, b"", NOT_SET_UP), SlurmHere(False, FATAL)),
        (TransientTransportError("no whole answer within 10 s"), SlurmHere(True)),
    ],
)
async def test_what_counts_as_slurm(said, found):
    transport = ScriptedTransport(said)
    assert await slurm_here(transport) == found
    assert len(transport.scripts) == 1


def test_the_journal_says_why_only_processes_are_watched():
    with capture_logs() as journal:
        slurm_not_set_up("local", FATAL)
    [line] = journal
    assert (line["log_level"], line["cluster"], line["squeue"]) == ("warning", "local", FATAL)


async def test_processes_wait_for_no_slurm_in_trouble(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(
        "poll_interval = '5m'\n"
        "[clusters.here]\nkind = 'local'\nslurm = true\n"
        "[clusters.far]\nkind = 'slurm'\nhost = 'h'\n"
    )
    settings = load(config, {"HOME": str(tmp_path)}).settings
    clusters = await Builder(settings, tmp_path).all(settings.clusters)
    assert clusters["here"].backoff_max == timedelta(minutes=5)
    assert clusters["far"].backoff_max == timedelta(hours=1)


@pytest.mark.parametrize(
    ("slurm", "watched", "kinds"),
    [
        ("'auto'", {"here"}, {Kind.LOCAL, Kind.SLURM}),
        ("false", {"here"}, {Kind.LOCAL}),
        ("true", set(), {Kind.LOCAL, Kind.SLURM}),
    ],
)
async def test_what_is_watched_there_keeps_its_source(tmp_path, slurm, watched, kinds):
    config = tmp_path / "config.toml"
    config.write_text(f"[clusters.here]\nkind = 'local'\nslurm = {slurm}\n")
    settings = load(config, {"HOME": str(tmp_path)}).settings
    clusters = await Builder(settings, tmp_path, watched).all(settings.clusters)
    assert set(clusters["here"].backends) - {Kind.NEL, Kind.LAUNCHER} == kinds
