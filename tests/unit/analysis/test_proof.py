"""A place in a log is kept only where it holds what is quoted."""

from dataclasses import replace

from jobmond.analysis.proof import proved
from jobmond.model.observation import LogPart
from jobmond.model.outcome import Diagnosis

LOG = b"one\ntwo\nTraceback (most recent call last):\n  File x\nValueError: bad shape\nend\n"
FOUND = Diagnosis(
    "python-exception", "ValueError: bad shape", line=5, first_line=3, offset=8, excerpt=("x",)
)


def test_a_place_that_holds_it():
    assert proved(FOUND, [LogPart(0, LOG, 1)]) == FOUND
    assert proved(FOUND, [LogPart(4, LOG[4:], 2)]) == FOUND


def test_a_place_that_does_not():
    nowhere = replace(FOUND, line=None, first_line=None, offset=None)
    assert proved(replace(FOUND, line=6), [LogPart(0, LOG, 1)]) == nowhere
    assert proved(replace(FOUND, line=99), [LogPart(0, LOG, 1)]) == nowhere
    assert proved(replace(FOUND, offset=9), [LogPart(0, LOG, 1)]) == nowhere
    assert proved(FOUND, [LogPart(0, LOG, 2)]) == nowhere


def test_bytes_that_were_not_read_or_not_numbered_prove_nothing():
    assert proved(FOUND, [LogPart(50, LOG[50:], 5)]).line is None
    assert proved(FOUND, [LogPart(0, LOG, None)]).line is None
    assert proved(FOUND, []).line is None


def test_what_names_no_place_needs_no_proof():
    unknown = Diagnosis("unknown", "nothing")
    assert proved(unknown, []) == unknown


def test_colours_ranks_and_secrets_do_not_hide_it():
    token = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
    raw = f"[rank3]: \x1b[31mValueError: no\x1b[0m access with {token}\n".encode()
    said = Diagnosis(
        "auth", "ValueError: no access with ***", line=1, first_line=1, offset=0, excerpt=()
    )
    masked = proved(replace(said, summary="ValueError: no access with"), [LogPart(0, raw, 1)])
    assert masked.line == 1
