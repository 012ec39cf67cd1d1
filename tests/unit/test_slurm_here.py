"""Whether this host has a SLURM: asked of squeue itself, once, never for long."""

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from jobmond.app.clusters import Builder, slurm_here
from jobmond.errors import TransientTransportError
from jobmond.model.state import Kind
from jobmond.ports import Answer
from jobmond.settings import load
from tests.doubles import ScriptedTransport

NOT_SET_UP = (
    b"squeue: error: fetch_config: DNS SRV lookup failed\n"
    b"squeue: fatal: Could not establish a configuration source\n"
)


@pytest.mark.parametrize(
    ("said", "there", "lines"),
    [
        (Answer(0, b"slurm 24.11.5\n", b""), True, 0),
        (Answer(127, b"", b""), False, 0),
        (Answer(1, b"", NOT_SET_UP), False, 1),
        (TransientTransportError("no whole answer within 10 s"), True, 0),
    ],
)
async def test_what_counts_as_slurm(said, there, lines):
    transport = ScriptedTransport(said)
    with capture_logs() as journal:
        assert await slurm_here(transport, "local") is there
    assert len(journal) == lines
    assert len(transport.scripts) == 1


async def test_the_journal_says_why_only_processes_are_watched():
    with capture_logs() as journal:
        await slurm_here(ScriptedTransport(Answer(1, b"", NOT_SET_UP)), "local")
    [line] = journal
    assert line["cluster"] == "local"
    assert line["squeue"] == "squeue: fatal: Could not establish a configuration source"


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
    assert set(clusters["here"].backends) == kinds
