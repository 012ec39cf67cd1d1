"""Members of JSON documents of any size, fed in pieces cut anywhere."""

import json
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.sifting import EVERYTHING, Sifter, sifted

WANTED = {"a": EVERYTHING, "b": {"c": EVERYTHING}, "s": {"*": {"n": EVERYTHING}}}


def fed(raw, wanted=WANTED, *, cuts=()):
    edges = [0, *sorted(cuts), len(raw)]
    return sifted((raw[start:stop] for start, stop in pairwise(edges)), wanted)


def test_wanted_members_come_out_and_others_do_not():
    raw = b'{"x": [1, {"a": 2}], "a": [1, "two", null], "b": {"c": -1.5e3, "d": {"c": 1}}, "y": 3}'
    assert fed(raw) == {"a": [1, "two", None], "b": {"c": -1500.0}}


def test_a_star_stands_for_every_name_and_lists_are_looked_through():
    assert fed(b'{"s": {"p": {"n": 1, "m": 2}, "q": [{"n": 3}, {"m": 4}]}}') == {
        "s": {"p": {"n": 1}, "q": [{"n": 3}, {}]}
    }


def test_brackets_and_quotes_in_strings_are_text():
    raw = rb'{"x": "}]\"{", "a": "\\\"} \u00e9", "y": ["\\"], "b": {"c": 1}}'
    assert fed(raw) == {"a": '\\"} \u00e9', "b": {"c": 1}}


def test_the_whole_document_is_looked_through_where_everything_is_wanted():
    document = {"k": [1, [2, {"deep": [True, None, "x,y"]}]], "empty": {}, "none": []}
    assert fed(json.dumps(document, indent=4).encode(), EVERYTHING) == document


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"7",
        b"null",
        b'"text"',
        b'{"a": 1',
        b'{"a": 1]',
        b"}",
        b'{"a" 1}',
        b'{"a": 1 2}',
        b'{"a": tru}',
        b'{"x": [[[[, "a": 1}',
        b"[" * 100 + b"]" * 100,
    ],
)
def test_what_is_no_whole_document_is_nothing(raw):
    assert fed(raw, EVERYTHING) is None


def test_a_number_cut_in_two_is_one_number():
    assert fed(b'{"a": [12, 34]}', cuts=(8, 12)) == {"a": [12, 34]}


def test_two_values_that_meet_at_a_cut_stay_two():
    assert fed(b'{"a": 1, "b": {"c": 2}}', cuts=(7, 8)) == {"a": 1, "b": {"c": 2}}


def test_what_follows_the_document_is_ignored():
    assert fed(b'{"a": 1}\n{"a": 2}') == {"a": 1}


def test_tens_of_megabytes_are_skipped_in_little_memory():
    def pieces():
        yield b'{"a": 1, "x": {"ids": ['
        for _ in range(400):
            yield b"151643, " * 8192
        yield b'0], "text": "'
        for _ in range(100):
            yield rb"line \"quoted\" {\n" * 4096
        yield b'"}, "b": {"c": 2}}'

    tracemalloc.start()
    found = sifted(pieces(), WANTED)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == {"a": 1, "b": {"c": 2}}
    assert most < 4 << 20


def test_what_is_kept_is_bounded():
    raw = b'{"a": "' + b"x" * 5000 + b'"}'
    assert sifted([raw], WANTED, most_bytes=1000) is None
    assert sifted([raw], WANTED, most_bytes=9000) == {"a": "x" * 5000}


def test_a_name_without_an_end_is_bounded():
    sifter = Sifter(WANTED, most_bytes=1000)
    sifter.feed(b'{"')
    for _ in range(100):
        sifter.feed(b"k" * 1000)
    assert len(sifter._name) < 3000


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c", "n", "s", "z"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    document=st.dictionaries(st.sampled_from(["a", "b", "s", "z", "y"]), VALUES, max_size=5),
    indent=st.sampled_from([None, 4]),
    where=st.lists(st.floats(0, 1), max_size=6),
    escaped=st.booleans(),
)
def test_any_cuts_give_the_pruned_document(document, indent, where, escaped):
    raw = json.dumps(document, indent=indent, ensure_ascii=escaped).encode()
    cuts = [int(place * len(raw)) for place in where]
    assert fed(raw, cuts=cuts) == pruned(document, WANTED)
    assert fed(raw, EVERYTHING, cuts=cuts) == document


def pruned(value, wanted):
    if not wanted:
        return value
    if isinstance(value, list):
        return [pruned(one, wanted) for one in value]
    if isinstance(value, dict):
        below = {name: wanted.get(name, wanted.get("*")) for name in value}
        return {n: pruned(value[n], kept) for n, kept in below.items() if kept is not None}
    return value


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=4))
def test_any_bytes_are_accepted_however_they_are_cut(raw, where):
    cuts = sorted(min(place, len(raw)) for place in where)
    assert fed(raw, cuts=cuts) == fed(raw)
    assert fed(b'{"a": ' + raw, cuts=cuts) == fed(b'{"a": ' + raw)
