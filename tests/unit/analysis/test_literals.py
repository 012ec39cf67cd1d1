"""Numbers and dictionaries as they are printed."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.literals import flat, number, translated


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", 0.5),
        ("'0.1234'", 0.1234),
        ("1,832", 1832),
        ("1.000", 1),
        ("6.5e-06", 6.5e-6),
        ("2.504220E+00", 2.50422),
        ("np.float64(0.3)", 0.3),
        ("np.int64(3)", 3),
        ("np.float32(-1e-05)", -1e-5),
        ("tensor(0.3)", 0.3),
        ("tensor(0.3, device='cuda:0')", 0.3),
        ("inf", math.inf),
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        ("np.float64(-inf)", -math.inf),
        ("True", 1),
        (" 7 ", 7),
    ],
)
def test_numbers(text, value):
    assert number(text) == value


@pytest.mark.parametrize("text", ["nan", "-nan", "NaN", "NAN", "'nan'", "np.float64(nan)"])
def test_no_numbers(text):
    assert math.isnan(number(text))


@pytest.mark.parametrize("text", ["", "None", "abc", "0:02:11", "[1, 2]", "f(g(1))", "1.2.3"])
def test_what_is_none(text):
    assert number(text) is None


TABLE = {"grad_norm": ("raw", "plain"), "pass_at_n": ("pass_at_*",)}


class TestFlat:
    def test_numbers_texts_and_what_is_nested(self):
        text = "x {'a': 1, 'b': 'nan', \"c\": 'word', 'd': {'e': [1, '}']}, 'f': None} rest"
        found = flat(text, 2)
        assert found.numbers.keys() == {"a", "b"}
        assert found.texts == {"c": "word", "f": "None"}
        assert text[found.end :] == " rest"

    def test_keys_with_spaces_and_parentheses(self):
        found = flat("{'memory/max_active (GiB)': 12.5, \"it's\": 2}", 0)
        assert found.numbers == {"memory/max_active (GiB)": 12.5, "it's": 2}

    def test_wrapped_values(self):
        found = flat("{'a': np.float64(0.5), 'b': tensor(2., device='cuda:0')}", 0)
        assert found.numbers["a"] == 0.5

    def test_an_empty_one(self):
        assert flat("{}", 0).numbers == {}

    @pytest.mark.parametrize(
        "text", ["{'a': 1", "{'a': 1,", "{'a", "{", "{'a': 1 'b': 2}", "{a: 1}"]
    )
    def test_torn_ones(self, text):
        assert flat(text, 0) is None

    @given(st.text(alphabet="{}'\",: a1()[]\\", max_size=200))
    def test_any_text(self, text):
        flat("{" + text, 0)

    @pytest.mark.parametrize("unit", ["'a': {", "'a': [", "'a': 1, ", "'a': '", "(", "{'a': "])
    def test_long_hostile_text_in_linear_time(self, unit):
        flat("{" + unit * 20_000, 0)

    @given(st.dictionaries(st.text("abc/_ ", min_size=1, max_size=8), st.floats(allow_nan=False)))
    def test_what_python_prints(self, metrics):
        said = str(metrics)
        found = flat(said, 0)
        assert found.numbers == metrics
        assert found.end == len(said)


class TestTranslated:
    def test_the_first_name_that_is_there(self):
        assert translated(TABLE, {"plain": 1, "raw": 2}) == {"grad_norm": 2}
        assert translated(TABLE, {"plain": 1}) == {"grad_norm": 1}

    def test_the_greatest_number_in_a_name(self):
        metrics = {"pass_at_8": 0.8, "pass_at_16": 0.9, "pass_at_x": 1.0, "pass_at_": 1.0}
        assert translated(TABLE, metrics) == {"pass_at_n": 0.9}

    def test_what_is_not_emitted_is_absent(self):
        assert translated(TABLE, {"other": 1}) == {}
