"""What all tests share: where live tests run when several workers do."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that share one live cluster on one worker, so that it is started once."""
    for item in items:
        if "lab" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("live"))
