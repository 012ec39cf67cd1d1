"""What a test needs of the machine it runs on."""

import os
import shutil

import pytest


def need(condition: object, reason: str) -> None:
    """Skip the test, or fail where nothing may be skipped, unless `condition` holds.

    A text is a program: its name or path. Anything else is true or false. `reason` says what is
    missing. With JOBMOND_REQUIRE_LIVE=1 a missing thing is a failure, so that a machine that is
    meant to have everything cannot pass by skipping.
    """
    met = shutil.which(condition) is not None if isinstance(condition, str) else bool(condition)
    if met:
        return
    if os.environ.get("JOBMOND_REQUIRE_LIVE") == "1":
        pytest.fail(f"JOBMOND_REQUIRE_LIVE=1, but {reason}", pytrace=False)
    pytest.skip(reason)
