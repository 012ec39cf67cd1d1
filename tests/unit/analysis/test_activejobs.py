"""Registry files: liberal in, and back out with nothing changed but what was meant."""

import json
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.activejobs import MalformedRegistry, parsed, rewritten

FLAT = """[
  {
    "type": "nel",
    "id": "4711",
    "host": "login.leonardo.example",
    "user": "alice",
    "submitted": "2026-11-29 18:04",
    "description": "MMLU-Pro of the new checkpoint",
    "last_status": "PENDING",
    "cron": {"every": 15.0, "by": ["a",  "b"]}
  },
  {"type": "slurm", "id": 4712, "host": "leonardo"},

  {"type": "launcher", "id": "cicd_17", "host": "leonardo", "last_status": "RUNNING" }
]
"""
SESSION = """{"owner": {"agent": "codex", "session_id": "s-1"}, "schema": 2,
 "jobs": [{"id": "1", "type": "slurm"}, {"id": "2", "owner": {"agent": "manual"}}]}"""


def keys(text: str) -> list[str]:
    return [entry.key for entry in parsed(text)]


def test_a_flat_list_of_three_kinds():
    first, second, third = parsed(FLAT)
    assert (first.type, first.id, first.host, first.user) == (
        "nel", "4711", "login.leonardo.example", "alice",
    )  # fmt: skip
    assert first.submitted == datetime(2026, 11, 29, 18, 4)
    assert first.description == "MMLU-Pro of the new checkpoint"
    assert (first.last_status, first.owner, first.error) == ("PENDING", None, None)
    assert (second.type, second.id, second.submitted, second.last_status) == (
        "slurm", "4712", None, None,
    )  # fmt: skip
    assert (third.type, third.id) == ("launcher", "cicd_17")


def test_a_session_owns_the_entries_that_name_nobody():
    first, second = parsed(SESSION)
    assert first.owner == {"agent": "codex", "session_id": "s-1"}
    assert second.owner == {"agent": "manual"}
    assert second.type is None


def test_the_list_of_an_object_may_have_its_file_s_name():
    [entry] = parsed('{"active_jobs": [{"id": "7"}]}')
    assert entry.id == "7"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON: line 1, column 1: Expecting value"),
        ('[\n {"id": "4', "not JSON: line 2, column 9: Unterminated string starting at"),
        ('[{"id": "4"}] x', "not JSON: line 1, column 15: Extra data"),
        ("null", "neither a list of jobs nor an object with a list under `jobs`"),
        ('{"jobs": {}}', "neither a list of jobs nor an object with a list under `jobs`"),
        ("[" * 100_000, "nested too deeply"),
        ("[" + "9" * 5000 + "]", "not JSON: a number that is too long"),
    ],
)
def test_what_is_no_registry_is_one_line(text, said):
    with pytest.raises(MalformedRegistry) as error:
        parsed(text)
    assert str(error.value) == said
    with pytest.raises(MalformedRegistry):
        rewritten(text, {})


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('"4711"', "entry 2 is no object"),
        ("{}", "entry 2: it has no id"),
        ('{"id": true}', "entry 2 (id True): it has no id"),
        ('{"id": "  "}', "entry 2 (id   ): it has no id"),
        ('{"id": "4\\u001b[2J"}', "entry 2 (id 4\\x1b[2J): its id is no id"),
        (
            '{"id": "4", "type": "pbs"}',
            "entry 2 (id 4): its type is none of slurm, nel, launcher, local, kubernetes, iris",
        ),
        ('{"id": "4", "host": 3}', "entry 2 (id 4): its host is no host"),
        ('{"id": "4", "user": ["x"]}', "entry 2 (id 4): its user is no user"),
    ],
)
def test_a_bad_entry_is_its_own_error_and_nobody_else_s(entry, said):
    good, bad, other = parsed(f'[{{"id": "1"}}, {entry}, {{"id": "3"}}]')
    assert bad.error == said
    assert (good.id, good.error, other.id, other.error) == ("1", None, "3", None)


@pytest.mark.parametrize("submitted", ['"yesterday"', "17", "null", '"2026-99-99 18:00"'])
def test_a_submit_time_that_cannot_be_read_is_no_hint(submitted):
    [entry] = parsed(f'[{{"id": "1", "submitted": {submitted}}}]')
    assert (entry.submitted, entry.error) == (None, None)


def test_hostile_text_is_made_visible_and_bounded():
    big = {"x" * 5000: 1}
    [entry] = parsed(
        json.dumps([{"id": "1", "description": "a\x1b[2Jb" + "c" * 9000, "owner": big}])
    )
    assert entry.description is not None
    assert entry.description.startswith("a\\x1b[2Jb")
    assert len(entry.description) == 4096
    assert entry.owner is None


def test_the_status_of_one_entry_changes_and_not_a_byte_beside_it():
    first, second, _ = keys(FLAT)
    assert rewritten(FLAT, {first: "RUNNING"}) == FLAT.replace('"PENDING"', '"RUNNING"')
    assert rewritten(FLAT, {second: "RUNNING"}) == FLAT.replace(
        '"host": "leonardo"},\n\n', '"host": "leonardo", "last_status": "RUNNING"},\n\n'
    )


def test_an_entry_that_ended_is_cut_with_its_comma():
    first, second, third = keys(FLAT)
    assert rewritten(FLAT, {first: None}) == "[\n  " + FLAT[FLAT.index('{"type": "slurm"') :]
    assert json.loads(rewritten(FLAT, {second: None})) == [json.loads(FLAT)[i] for i in (0, 2)]
    assert rewritten(FLAT, {third: None}) == FLAT[: FLAT.index(",\n\n  {")] + "\n]\n"
    assert rewritten(FLAT, dict.fromkeys((first, second, third))) == "[\n  \n]\n"


def test_a_new_status_is_set_off_like_the_member_before_it():
    text = '[\n\t{\n\t\t"id" : "1",\n\t\t"x" : 1\n\t}\n]'
    [key] = keys(text)
    assert rewritten(text, {key: "RUNNING"}) == (
        '[\n\t{\n\t\t"id" : "1",\n\t\t"x" : 1,\n\t\t"last_status" : "RUNNING"\n\t}\n]'
    )


def test_a_file_with_a_byte_order_mark_keeps_it():
    text = '\ufeff[{"id":"1"}]'
    [key] = keys(text)
    assert rewritten(text, {key: "RUNNING"}) == '\ufeff[{"id":"1", "last_status":"RUNNING"}]'


def test_what_stands_already_is_not_touched():
    first, *_ = keys(FLAT)
    assert rewritten(FLAT, {first: "PENDING", "nobody": None}) == FLAT


def test_a_session_file_keeps_all_around_its_entries():
    first, _ = keys(SESSION)
    assert rewritten(SESSION, {first: None}) == SESSION.replace(
        '{"id": "1", "type": "slurm"}, ', ""
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
ENTRY = st.dictionaries(
    st.sampled_from(["id", "type", "host", "submitted", "last_status", "owner", "x", "é"]), JSON
)


@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "replace")))
def test_any_text_is_taken_or_refused(text):
    try:
        entries = parsed(text)
    except MalformedRegistry as error:
        assert "\n" not in str(error)
    else:
        assert rewritten(text, {entry.key: "X" for entry in entries}) is not None


@given(st.integers(0, len(FLAT)))
def test_a_file_cut_anywhere_is_refused_or_whole(length):
    cut = FLAT[:length]
    if length >= len(FLAT.rstrip()):
        assert len(parsed(cut)) == 3
    else:
        with pytest.raises(MalformedRegistry):
            parsed(cut)


@given(
    st.lists(ENTRY, max_size=4),
    st.sampled_from([None, 0, 2, "\t"]),
    st.data(),
)
def test_changes_do_what_the_same_changes_of_the_values_would(values, indent, data):
    text = json.dumps(values, indent=indent)
    known = keys(text)
    chosen = data.draw(st.dictionaries(st.sampled_from([*known, "none"]), st.none() | st.text()))
    expected = []
    for value, key in zip(values, known, strict=True):
        if key not in chosen:
            expected.append(value)
        elif chosen[key] is not None:
            expected.append({**value, "last_status": chosen[key]})
    assert json.loads(rewritten(text, chosen)) == expected
