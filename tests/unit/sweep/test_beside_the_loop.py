"""What a sweep computes about a thousand jobs does not hold up the event loop."""

import threading
from datetime import timedelta

from jobmond.analysis import followed, outputs
from jobmond.analysis.followed import Tools, needles_at_first
from jobmond.analysis.settle import Move
from jobmond.model.state import Bucket
from jobmond.sweep import follow, trees
from tests.training import PARSERS
from tests.unit.builders import NOW, job


class Shelf:
    def places(self, ids):
        return {}

    def readings(self, ids):
        return {}


async def call(fn, /, *args):
    return fn(*args)


async def test_the_needles_of_unread_logs_are_made_once(monkeypatch):
    made = []

    def needles(parsers):
        made.append(len(parsers))
        return needles_at_first(parsers)

    monkeypatch.setattr(follow, "needles_at_first", needles)
    tools = Tools(tuple(PARSERS.values()), ())
    moves = {str(n): Move(None, job(str(n), id=n)) for n in range(1, 50)}
    found = await follow.followers(moves, Shelf(), call, tools=tools, max_bytes=9)
    asks = {found.ask(move.job) for move in moves.values()}
    assert made == [len(PARSERS)]
    assert {one.needles for one in asks if one} == {followed.needles_at_first(tools.parsers)}


class Clock:
    def now(self):
        return NOW

    def monotonic(self):
        return NOW.timestamp()


async def test_folders_are_looked_for_in_logs_by_another_thread(monkeypatch):
    threads = []

    def asks(*args, **options):
        threads.append(threading.get_ident())
        return outputs.asks(*args, **options)

    class Cluster:
        trees = None
        trial_dirs = ckpt_dirs = ()

    monkeypatch.setattr(trees, "asks", asks)
    one = Move(None, job("1", id=1, bucket=Bucket.SFT))
    await trees.look_at_trees(
        Cluster(),
        {"1": one},
        Shelf(),
        call,
        owed=(),
        logs={},
        clock=Clock(),
        deadline=NOW.timestamp() + timedelta(minutes=2).total_seconds(),
    )
    assert threads
    assert threading.get_ident() not in threads
