"""tqdm's frames."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.analysis.bars import painted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (" 35%|███▌ | 320/916 [2:47:47<5:21:36, 32.38s/it]", ("", 320, 916, 10067.0, True)),
        ("  0%|   | 0/200 [00:00<?, ?it/s]", ("", 0, 200, 0.0, True)),
        ("100%|██| 200/200 [1 day, 0:00:05<00:00,  1.49it/s]", ("", 200, 200, 86405.0, True)),
        (
            "Training Progress:   3%|▎ | 1/30 [00:01<00:52,  1.36s/it]",
            ("Training Progress", 1, 30, 1.0, True),
        ),
        ("Map: 17%|x| 500/3000 [00:00<00:03, 663.78 examples/s]", ("Map", 500, 3000, 0.0, False)),
        ("Loading: 4%|x| 1/4 [00:00<00:00, 10.0MB/s]", ("Loading", 1, 4, 0.0, False)),
        (" 31%|x| 63/200 [00", ("", 63, 200, None, True)),
        (" 1%|x| 1/9 [00:01<00:02, 1.0it/s, loss=2]{'loss': 1}", ("", 1, 9, 1.0, True)),
    ],
)
def test_frames(text, wanted):
    found = painted(text)
    assert (found.desc, found.n, found.total, found.elapsed_s, found.steps) == wanted


@pytest.mark.parametrize(
    "text", ["", "35%", " 31%|███", " 31%|x| 63/20", " 31%|x| 63/200", "50%| cpu"]
)
def test_what_is_none(text):
    assert painted(text) is None


def test_the_last_of_two():
    text = " 1%|x| 1/9 [00:01<00:02, 1.0it/s] 2%|x| 2/9 [00:02<00:02, 1.0it/s]"
    assert painted(text).n == 2


def test_where_it_ends():
    text = " 1%|x| 1/9 [00:01<00:02, 1.0it/s]Terminated"
    assert text[painted(text).end :] == "]Terminated"


@given(st.text(alphabet="0123456789%|/[]<:, its", max_size=200))
def test_any_text(text):
    painted(text + "%|")


@pytest.mark.parametrize("unit", ["1%|", "1%|x|1/1 [", "9" * 10, "1%|1/1[1:", " "])
def test_long_hostile_text_in_linear_time(unit):
    painted("%|" + unit * (200_000 // len(unit)))
