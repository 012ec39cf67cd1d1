"""Nothing that a terminal could act on comes through."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.visible import readable, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain name", "plain name"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\tb\nc", "a\\tb\\nc"),
        ("rtl\u202eevil", "rtl\\u202eevil"),
        ("nbsp\xa0", "nbsp\\xa0"),
        ("訓練🧪", "訓練🧪"),
        ("👩\u200d🔬", "👩\u200d🔬"),
        ("half\ud800", "half\\ud800"),
    ],
)
def test_shown_as(text, shown):
    assert visible(text) == shown


def test_what_is_kept_is_kept():
    assert visible("a\nb\x1b", keep="\n") == "a\nb\\x1b"


@given(st.text(alphabet=st.characters()))
def test_any_text_comes_out_safe(text):
    out = visible(text)
    assert all(unicodedata.category(c)[0] != "C" or c in "\u200d" for c in out)
    assert "\n" not in out
    assert visible(out) == out


@given(st.binary())
def test_any_bytes_can_be_read(raw):
    assert readable(raw).encode("utf-8") is not None


def test_bytes_that_are_no_utf8_are_spelled_out():
    assert readable(b"a\xff\xe8\xa8\x93") == "a\\xff訓"
