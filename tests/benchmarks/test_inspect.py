"""What `inspect` costs, measured against grep in the same run."""

import json

import pytest

from tests.benchmarks.cost import inspected, searched
from tests.benchmarks.rl_log import OOM, pieces

SIZE = 100 << 20


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")

    def write(size, *extras):
        path = folder / "-".join(("log", str(size), *extras))
        with path.open("wb") as out:
            for piece in pieces(size, *extras):
                out.write(piece)
        return path

    return write


def test_a_large_log_costs_three_times_a_search_for_four_words(written):
    log, small = written(SIZE), written(1 << 20)
    # Starting costs the same for a log of any size; it is left out.
    start = min(inspected(small).cpu_s for _ in range(2))
    ours = [inspected(log) for _ in range(2)]
    grep = [searched(log) for _ in range(3)]
    assert min(one.cpu_s for one in ours) - start <= 3 * min(one.cpu_s for one in grep)
    assert max(one.rss_mib for one in ours) < 120
    said = json.loads(ours[0].said)
    assert (said["step"], said["dialect"], said["diagnosis"]) == (261, "skyrl", None)
    assert said["lines"] == log.read_bytes().count(b"\n")


@pytest.mark.parametrize("oom", [True, False])
def test_one_failure_among_expected_ones_in_a_large_log(written, oom):
    log = written(SIZE // 2, "trials", *(["oom"] if oom else []))
    found = inspected(log)
    diagnosis = json.loads(found.said)["diagnosis"]
    assert found.rss_mib < 120
    if not oom:
        assert diagnosis is None
        return
    lines = log.read_bytes().split(b"\n")
    assert diagnosis["cause"] == "cuda-oom"
    assert lines[diagnosis["line"] - 1].endswith(OOM.encode())
