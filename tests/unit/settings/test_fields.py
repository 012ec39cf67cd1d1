from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from jobmond.settings.fields import (
    Command,
    Duration,
    Host,
    Interval,
    Jump,
    Keep,
    Name,
    Regex,
    Strings,
    User,
)


def _accepts(kind: Any, value: object) -> bool:
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("15m", 900),
        ("24h", 86400),
        ("7d", 604800),
        ("2w", 1209600),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("0s", 0),
        ("90", 90),
        (90, 90),
        (0.5, 0.5),
        (timedelta(seconds=3), 3),
    ],
)
def test_durations(text: object, seconds: float) -> None:
    assert TypeAdapter(Duration).validate_python(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "m",
        "15 minutes",
        "-5m",
        "1h-5m",
        "15M ",
        "h1",
        "PT15M",
        "1e3s",
        "٣s",
        "9" * 40,
        "999999999w",
        True,
        None,
        -1,
        float("nan"),
        float("inf"),
        [],
    ],
)
def test_what_is_no_duration(text: object) -> None:
    assert not _accepts(Duration, text)


@given(st.text())
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    _accepts(Duration, text)


def test_an_interval_has_a_length() -> None:
    assert not _accepts(Interval, "0s")
    assert not _accepts(Interval, 0.5)
    assert _accepts(Interval, "1s")


def test_forever() -> None:
    assert TypeAdapter(Keep).validate_python("forever") is None
    assert TypeAdapter(Keep).validate_python("90d") == timedelta(days=90)
    assert not _accepts(Keep, "for ever")


@pytest.mark.parametrize("name", ["leonardo", "k8s", "a.b-c_d", "X" * 64])
def test_names(name: str) -> None:
    assert _accepts(Name, name)


@pytest.mark.parametrize(
    "name", ["", "a/b", "a b", "-a", "..", ".a", "a\n", "é", "X" * 65, "a\x1b"]
)
def test_what_is_no_name(name: str) -> None:
    assert not _accepts(Name, name)


@pytest.mark.parametrize("host", ["login.leonardo.example", "alias_1", "10.0.0.1", "::1", "[::1]"])
def test_hosts(host: str) -> None:
    assert _accepts(Host, host)


@pytest.mark.parametrize("word", ["-oProxyCommand=x", "a b", "a;b", "$(x)", "a\nb", "", "a'b"])
def test_words_that_a_shell_or_a_program_could_take_otherwise(word: str) -> None:
    for kind in (Host, User, Jump):
        assert not _accepts(kind, word)


def test_jump_hosts() -> None:
    assert _accepts(Jump, "alice@bastion.example:2222,second")


@pytest.mark.parametrize(
    "pattern",
    ["", "abc", r"^rl__(?P<cell>.*)__seqnorm", r"\d+\.\d+", "(a|b)+", "(?>a+)+", "(a++)+"],
)
def test_regular_expressions(pattern: str) -> None:
    assert _accepts(Regex, pattern)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "not a regular expression"),
        ("*", "not a regular expression"),
        ("(?P<a>x)(?P<a>y)", "not a regular expression"),
        ("(a+)+", "repetition inside a repetition"),
        ("(x(a*)y)*", "repetition inside a repetition"),
        ("(?:a|b+)*?", "repetition inside a repetition"),
        ("(?=(a+)+)", "repetition inside a repetition"),
        ("(a{2,})*", "repetition inside a repetition"),
        ("x" * 501, "longer than 500"),
    ],
)
def test_what_is_no_usable_regular_expression(pattern: str, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        TypeAdapter(Regex).validate_python(pattern)


@given(st.text(max_size=30))
def test_any_text_is_a_regular_expression_or_refused(text: str) -> None:
    _accepts(Regex, text)


def test_one_string_or_a_list() -> None:
    strings = TypeAdapter(Strings)
    assert strings.validate_python("a") == ("a",)
    assert strings.validate_python(["a", "b"]) == ("a", "b")
    assert not _accepts(Strings, 3)


def test_commands() -> None:
    command = TypeAdapter(Command)
    assert command.validate_python("tool --name 'a b'") == ("tool", "--name", "a b")
    assert command.validate_python(["tool", "a b"]) == ("tool", "a b")
    assert not _accepts(Command, "tool 'a")
