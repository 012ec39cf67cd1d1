"""Reads trees of trials: one script for all of a cluster, and only what is new in each."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime

from jobmond.analysis.treestate import absorbed, known, put_down, taken_up, trials_of
from jobmond.backends._trees.answer import trees
from jobmond.backends._trees.outputs import Found, found_outputs, outputs_script
from jobmond.backends._trees.remains import found_remains, remains_script
from jobmond.backends._trees.script import TreeLimits, TreeLook, tree_script
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.model.observation import Absent, Read, Reading, Unavailable
from jobmond.model.trials import OutputAsk, Outputs, Remains, TreeAsk, TreeNews
from jobmond.ports import Offload, Transport, inline


class TreeReader:
    """Looks at trees through `transport`. What one look may cost is in `limits`; what it could
    not read comes with the next. `offload` computes what may take long with large trees.
    """

    def __init__(
        self, transport: Transport, limits: TreeLimits | None = None, *, offload: Offload = inline
    ) -> None:
        self._transport = transport
        self._offload = offload
        self._limits = limits or TreeLimits()

    async def read_trees(
        self, asks: Sequence[TreeAsk], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[TreeNews]]:
        """One reading for each `TreeAsk.native_id`; never raises for a far side that fails."""
        found: dict[str, Reading[TreeNews]] = {
            ask.native_id: Unavailable(f"cannot be asked for: {wrong}")
            for ask in asks
            if (wrong := next(filter(None, map(_unaskable, (ask.path, *ask.others))), None))
        }
        wanted = [ask for ask in asks if ask.native_id not in found]
        if not wanted:
            return found
        mark = secrets.token_hex(16)
        script = await self._offload(
            lambda: ask_script(mark, wanted, self._limits, timeout_s=timeout_s)
        )
        room = (
            (4 << 20)
            + 4096 * (self._limits.files + 20 * len(wanted))
            + 200 * (self._limits.entries)
        )
        try:
            answer = await self._transport.run(script, timeout_s=timeout_s, max_bytes=room)
        except (TransientTransportError, NeedsPersonError) as error:
            return {**found, **{ask.native_id: Unavailable(str(error)) for ask in wanted}}
        read = await self._offload(lambda: readings(answer.stdout, mark, wanted, now=now))
        return {**found, **read}

    async def read_remains(
        self, paths: Sequence[str], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[Remains]]:
        """Whether each folder is still there; never raises for a far side that fails."""
        wanted = [path for path in paths if _unaskable(path) is None]
        found: dict[str, Reading[Remains]] = {
            path: Unavailable("cannot be asked for") for path in paths
        }
        if not wanted:
            return found
        mark = secrets.token_hex(16)
        script = remains_script(mark, wanted, each_s=self._limits.each_s)
        try:
            answer = await self._transport.run(script, timeout_s=timeout_s, max_bytes=1 << 20)
        except (TransientTransportError, NeedsPersonError) as error:
            return {**found, **{path: Unavailable(str(error)) for path in wanted}}
        for path, one in zip(wanted, found_remains(answer.stdout, mark, len(wanted)), strict=True):
            found[path] = one if isinstance(one, Unavailable) else Read(one, now)
        return found

    async def read_outputs(
        self, asks: Sequence[OutputAsk], *, now: datetime, timeout_s: float
    ) -> Mapping[str, Reading[Outputs]]:
        """One reading for each `OutputAsk.native_id`; never raises for a far side that fails."""
        mark = secrets.token_hex(16)
        script = outputs_script(mark, asks, each_s=self._limits.each_s)
        try:
            answer = await self._transport.run(
                script, timeout_s=timeout_s, max_bytes=(1 << 20) * (4 + len(asks))
            )
        except (TransientTransportError, NeedsPersonError) as error:
            return {ask.native_id: Unavailable(str(error)) for ask in asks}
        found = await self._offload(lambda: found_outputs(answer.stdout, mark, len(asks)))
        return {
            ask.native_id: one if isinstance(one, Unavailable) else Read(_whole(one), now)
            for ask, one in zip(asks, found, strict=True)
        }


def _whole(found: Found) -> Outputs:
    scores = {score.name: score.value for score in found.scores.values()}
    return Outputs(tuple(found.places), found.completion, scores)


def ask_script(
    mark: str, asks: Sequence[TreeAsk], limits: TreeLimits, *, timeout_s: float
) -> bytes:
    """The script for these asks; it may stand behind another one."""
    looks = [
        TreeLook(
            (ask.path, *ask.others),
            {path: known(job) for path, job in taken_up(ask.memory).jobs.items()},
        )
        for ask in asks
    ]
    return tree_script(mark, looks, limits, timeout_s=timeout_s)


def readings(
    stdout: bytes, mark: str, asks: Sequence[TreeAsk], *, now: datetime
) -> dict[str, Reading[TreeNews]]:
    """What the script printed about each ask."""
    found: dict[str, Reading[TreeNews]] = {}
    for ask, tree in zip(asks, trees(stdout, mark, [a.path for a in asks]), strict=True):
        if isinstance(tree, Absent | Unavailable):
            found[ask.native_id] = tree
            continue
        if not tree.jobs:
            found[ask.native_id] = Absent((tree.path,))
            continue
        memory = absorbed(taken_up(ask.memory), tree)
        trials = trials_of(memory, far_now=tree.now, now=now)
        news = TreeNews(tree.path, trials, put_down(memory))
        found[ask.native_id] = Read(news, now)
    return found


def _unaskable(path: str) -> str | None:
    if not path.startswith("/"):
        return "its path is not absolute"
    if "\0" in path or "\n" in path or any("\ud800" <= c <= "\udfff" for c in path):
        return "its path is no text of one line"
    return None
