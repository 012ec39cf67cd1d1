"""What a look at a log that has grown costs, measured against reading all of it."""

from tests.benchmarks.following import compared

SIZE = 100 << 20


async def test_a_look_after_one_mib_more_costs_what_is_new(tmp_path):
    """In a log of 100 MiB one more is one per cent of it: how large the log is must not matter."""
    (tmp_path / "large").mkdir()
    (tmp_path / "small").mkdir()
    large = await compared(tmp_path / "large", SIZE)
    small = await compared(tmp_path / "small", 1 << 20)
    assert large.later.sweeps == 1
    assert large.moved < 0.01
    assert large.cpu < 0.1
    assert large.later.cpu_s < 1.5 * small.later.cpu_s
    assert large.idle.moved_bytes == 4096  # its last lines
