"""Whether this host has a SLURM: asked of squeue itself, once, never for long."""

import pytest
from structlog.testing import capture_logs

from jobmond.app import slurm_here
from jobmond.errors import TransientTransportError
from jobmond.ports import Answer
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
