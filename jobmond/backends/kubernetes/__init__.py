"""Jobs, bare Pods and queued Workloads of a Kubernetes cluster: `namespace/name`."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from jobmond.backends.kubernetes.listing import Asking
from jobmond.backends.kubernetes.polling import Sweep, Terms, by_namespace
from jobmond.model.observation import Ask, Poll, Unreachable
from jobmond.ports import Clock, KubeApi, Offload, inline
from jobmond.registry import backends

_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_ID = re.compile(rf"(?P<namespace>{_LABEL})/(?P<name>[a-z0-9](?:[-a-z0-9.]{{0,251}}[a-z0-9])?)")


@backends.plugin("kubernetes")
class KubernetesBackend:
    """Lists Jobs and Pods of each namespace once a sweep, and asks no more than it has to.

    `namespaces`: those looked at besides the jobs' own; none means the credentials' own.
    `selector`: what others must match to be found. `max_misses`: looks in a row without pods
    after which a running job is lost, if they lie a few minutes apart. `grace_s`: how young a job
    may be that nobody knows yet. `max_events`: objects whose events one sweep may ask for.
    """

    kind = "kubernetes"
    discovers = True

    def __init__(
        self,
        api: KubeApi,
        *,
        clock: Clock,
        namespaces: Sequence[str] = (),
        selector: str | None = None,
        max_misses: int = 3,
        grace_s: float = 600,
        request_timeout_s: float = 30,
        page: int = 500,
        max_events: int = 20,
        max_bytes: int = 64 << 20,
        offload: Offload = inline,
    ) -> None:
        self._api, self._clock, self._offload = api, clock, offload
        self._namespaces, self._selector = tuple(namespaces), selector
        self._max_misses, self._grace = max_misses, timedelta(seconds=grace_s)
        self._request_timeout_s, self._max_bytes = request_timeout_s, max_bytes
        self._page, self._max_events = page, max_events

    async def poll(
        self, asks: Sequence[Ask], *, since: datetime, now: datetime, timeout_s: float
    ) -> Poll:
        """See `jobmond.ports.Backend`."""
        asking = Asking(
            api=self._api,
            clock=self._clock,
            offload=self._offload,
            deadline=self._clock.monotonic() + timeout_s,
            request_s=self._request_timeout_s,
            max_bytes=self._max_bytes,
            page=self._page,
        )
        parts = [(found, ask) for ask in asks if (found := _ID.fullmatch(ask.native_id))]
        terms = Terms(
            namespaces=self._namespaces,
            selector=self._selector,
            max_misses=self._max_misses,
            grace=self._grace,
            max_events=self._max_events,
            since=since,
            now=now,
        )
        asked = by_namespace([(part["namespace"], part["name"], ask) for part, ask in parts])
        poll = await Sweep(asking, asked, terms).poll()
        odd = {
            ask.native_id: Unreachable(self.valid_id(ask.native_id) or "")
            for ask in asks
            if ask.native_id not in poll.sightings
        }
        return replace(poll, sightings={**poll.sightings, **odd})

    def valid_id(self, native_id: str) -> str | None:
        """See `jobmond.ports.Backend`."""
        if _ID.fullmatch(native_id):
            return None
        return f"{native_id!r} is no job of Kubernetes: write namespace/name, like ml/train"
