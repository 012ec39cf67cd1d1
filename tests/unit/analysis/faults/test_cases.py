"""Whole logs with the verdict of an experienced engineer: class, line, and no false alarm."""

import gzip
import json
from functools import cache
from pathlib import Path

import pytest

from jobmond.analysis.choosing import Word, choose
from jobmond.analysis.diagnoser import Evidence, diagnose_chunks
from jobmond.model.state import State

FOLDER = Path(__file__).parents[3] / "failures"
NAMES = sorted(path.name.removesuffix(".json") for path in FOLDER.glob("*.json"))


def truth(name: str) -> dict:
    return json.loads((FOLDER / f"{name}.json").read_text())


def log(name: str) -> bytes:
    return gzip.decompress((FOLDER / f"{name}.log.gz").read_bytes())


@cache
def evidence(name: str) -> Evidence:
    return diagnose_chunks([log(name)])


def word(said: dict | None) -> Word:
    """What a monitor would have beside the log."""
    if said is None:
        return Word()
    code, _, signal = (said["exit_code"] or "").partition(":")
    return Word(
        State(said["state"]),
        int(code) if code else None,
        int(signal or 0) or None,
        said.get("reason"),
    )


def check(name: str, found) -> None:
    expected = truth(name)
    cause = found.cause if found else None
    assert cause == expected["cause"] or cause in expected["acceptable_causes"], found
    if expected["line"] is not None:
        assert found is not None
        assert found.line in expected["acceptable_lines"], found


def test_there_are_cases():
    assert len(NAMES) > 100
    assert sum(truth(name)["cause"] is None for name in NAMES) > 30


@pytest.mark.parametrize("name", NAMES)
def test_from_the_log_alone(name):
    check(name, choose(evidence(name)))


@pytest.mark.parametrize("name", NAMES)
def test_with_the_schedulers_word(name):
    check(name, choose(evidence(name), word(truth(name)["scheduler"])))


@pytest.mark.parametrize("name", [n for n in NAMES if truth(n)["victims"] is not None])
def test_victims(name):
    found = choose(evidence(name))
    assert found is not None
    assert found.victims == truth(name)["victims"]


@pytest.mark.parametrize("name", NAMES)
def test_places_are_true(name):
    data = log(name)
    found = choose(evidence(name))
    if found is None or found.line is None:
        return
    lines = data.split(b"\n")
    assert found.first_line is not None
    assert found.first_line <= found.line <= len(lines)
    assert found.offset == sum(len(line) + 1 for line in lines[: found.first_line - 1])


@pytest.mark.parametrize("name", NAMES)
def test_where_the_reads_are_cut_changes_nothing(name):
    data = log(name)
    size = 1_000 if len(data) < 60_000 else 70_001
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert choose(diagnose_chunks(chunks)) == choose(evidence(name))
