"""Evaluations that write trials, on a real cluster: each rule by its edge, and what is owed then.

What has to grow old is born old; a second stands for an hour.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.lab import Lab, User
from tests.live.product import MakeProduct, Product
from tests.live.runs import words
from tests.live.tape import Tape, tape
from tests.trees import put, result

QUICK = {"rules.eval-stall.quiet": "1s", "rules.zombie.grace": "1s", "recent": "24h"}
YEAR_S = 365 * 86400


@pytest.fixture
def scene(lab: Lab, user: User) -> Iterator[tuple[Lab, User]]:
    yield lab, user
    lab.scancel("-u", user.name)


def tree_of(user: User, name: str, total: int) -> Path:
    tree = user.home / "jobs" / name
    put(tree, {"n_total_trials": total, "stats": {"n_trials": 0}})
    (tree / "job.log").touch()
    return tree


def ends(tree: Path, *names: str) -> None:
    """Trials that ended long before the job began."""
    for name in names:
        path = put(tree / name, result(name))
        long_ago = path.stat().st_mtime - YEAR_S
        os.utime(path, (long_ago, long_ago))


def owed(product: Product, *options: str) -> list[dict[str, Any]]:
    answer = json.loads(product.ctl("followups", "--json", *options).checked().out)
    return list(answer["followups"])


def standing(product: Product, job: Tape) -> list[str]:
    return [signal["rule"] for signal in product.jobs()[job.job]["signals"]]


def test_trials_over_time_and_what_is_owed_in_the_end(
    scene: tuple[Lab, User], make_product: MakeProduct
) -> None:
    lab, user = scene
    slow, good = tape(lab, user, "eval-slow"), tape(lab, user, "eval-good")
    stuck, whole = tree_of(user, "eval-slow", 3), tree_of(user, "eval-good", 2)
    ends(stuck, "a__aaaaaaa")
    for one in (slow, good):
        lab.wait_for_state(one.job, "RUNNING")
    product = make_product(lab, user, settings=QUICK)
    product.add(slow.job, good.job)
    product.swept_until(lambda: "eval-stall" in standing(product, slow), what="a stall")
    row = product.jobs()[slow.job]
    assert (row["metrics"]["trials_done"], row["metrics"]["trials_total"]) == (1, 3)

    ends(stuck, "b__aaaaaaa", "c__aaaaaaa")
    ends(whole, "a__aaaaaaa", "b__aaaaaaa")
    good.end()
    lab.wait_for_accounting(good.job, "COMPLETED")
    product.sweep_well()
    assert standing(product, slow) == ["zombie"]
    assert [(one["kind"], one["state"]) for one in owed(product)] == [
        ("zombie", "open"),
        ("cleanup", "open"),
    ]

    lab.scancel(slow.job)
    lab.wait_for_accounting(slow.job, "CANCELLED")
    product.sweep_well()
    product.stop()
    product.start()
    (cleanup,) = owed(product)
    assert (cleanup["evidence"]["path"], cleanup["state"]) == (str(whole), "open")
    assert [words(e) for e in product.events_of(slow.job)][-3:] == [
        "followup zombie open",
        "transition RUNNING CANCELLED",
        "followup zombie closed",
    ]

    # Nothing is tracked any more, and still it is seen that the tree goes.
    product.sweep_well()
    assert len(owed(product)) == 1
    shutil.rmtree(whole)
    product.swept_until(lambda: not owed(product), what="the cleanup to close")
    (done,) = [one for one in owed(product, "--all") if one["kind"] == "cleanup"]
    assert done["closed_by"] == "jobmond"
    assert done["note"].startswith("the tree is gone; free inodes ")
