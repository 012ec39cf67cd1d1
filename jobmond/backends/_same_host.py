"""Whether a launcher means a cluster's host, which it may know by another alias."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from jobmond.ports import Offload

_MOST = 1_000


@dataclass(slots=True)
class SameHost:
    """`names` are those of the cluster and its hosts, in lower case; `real_name` is what
    ssh_config makes of a host, and blocks. What was asked once is remembered."""

    names: frozenset[str]
    real_name: Callable[[str], str | None]
    offload: Offload
    _real: dict[str, str | None] = field(default_factory=dict)

    async def among(self, hosts: Iterable[str]) -> frozenset[str]:
        """`names`, and those of `hosts` (in lower case) that mean one of them."""
        strange = {host.lower() for host in hosts} - self.names
        if not strange:
            return self.names
        unknown = sorted((strange | self.names) - self._real.keys())[:_MOST]
        if unknown:
            self._real |= await self.offload(lambda: {h: self.real_name(h) for h in unknown})
        ours = {(self._real.get(name) or name).lower() for name in self.names}
        return self.names | {h for h in strange if (self._real.get(h) or h).lower() in ours}
