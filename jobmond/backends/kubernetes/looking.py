"""One look at a namespace: its Jobs, Pods and Workloads, and whether it is there at all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from jobmond.backends.kubernetes import records
from jobmond.backends.kubernetes.listing import Asking, Listed, Refusal
from jobmond.backends.kubernetes.pods import doing
from jobmond.backends.kubernetes.records import Happening, JobRecord, Meta, Pod, Workload
from jobmond.backends.kubernetes.verdict import Picture, needs_events, silent

_KUEUE = ("v1beta2", "v1beta1")


@dataclass(frozen=True, slots=True)
class World:
    """What one namespace holds. `exists` is None where nothing that was read proves it.

    `unreadable` says by name why a record could not be read. `chosen` are the uids that the
    selector matches; None: there is none.
    """

    namespace: str
    jobs: dict[str, JobRecord]
    pods: dict[str, list[Pod]]  # by the uid of their Job
    bare: dict[str, Pod]
    unreadable: dict[str, str]
    exists: bool | None
    workloads: tuple[Workload, ...] = ()
    chosen: frozenset[str] | None = None
    why_unsure: str | None = None

    def workload_of(self, job: JobRecord) -> Workload | None:
        """The newest workload that stands for the job in a queue."""
        mine = [w for w in self.workloads if job.meta.uid in w.job_uids]
        return max(mine, key=lambda w: _age(w.meta), default=None)

    def named_workload(self, name: str) -> Workload | None:
        return next((w for w in self.workloads if w.meta.name == name), None)

    def knows(self, name: str) -> bool:
        """Whether anything of that name was listed, readable or not."""
        held = name in self.jobs or name in self.bare or name in self.unreadable
        return held or self.named_workload(name) is not None

    def picture(self, job: JobRecord, max_misses: int, patience: timedelta) -> Picture:
        pods = self.pods.get(job.meta.uid, [])
        place = self.workload_of(job)
        return Picture(job, pods, place, max_misses=max_misses, patience=patience)


def _age(meta: Meta) -> float:
    return meta.created_at.timestamp() if meta.created_at else 0.0


async def look(
    asking: Asking, namespace: str, names: Iterable[str], *, selector: str | None
) -> World:
    """See `World`. `names` are those asked about and not given up yet.

    Raises:
        TransportError: no answer.
        Refusal: Jobs or Pods may not be listed, or the answer is no list.
    """
    jobs = await asking.list("jobs", _jobs(namespace), {}, records.job)
    pods = await asking.list("pods", _pods(namespace), {}, records.pod)
    world = _sorted(namespace, jobs, pods)
    if world.exists is None:
        world = await _checked(asking, world)
    wanted = frozenset(names)
    unknown = any(not world.knows(name) for name in wanted)
    queued = any(
        job.suspended and (name in wanted or records.QUEUE in job.meta.labels)
        for name, job in world.jobs.items()
    )
    if world.exists is not False and (unknown or queued):
        world = replace(world, workloads=await _workloads(asking, namespace))
    if selector and world.exists is not False:
        world = replace(world, chosen=await _chosen(asking, namespace, selector))
    return world


def _sorted(namespace: str, jobs: Listed[JobRecord], pods: Listed[Pod]) -> World:
    owned: dict[str, list[Pod]] = {}
    uids = {job.meta.uid for job in jobs.items}
    named = {job.meta.name: job.meta.uid for job in jobs.items}
    bare: dict[str, Pod] = {}
    for pod in pods.items:
        uid = pod.job_uid or next((owner for owner in pod.meta.owners if owner in uids), None)
        uid = uid or named.get(pod.job_name or "")
        if uid is not None:
            owned.setdefault(uid, []).append(pod)
        elif not pod.meta.owners:
            bare[pod.meta.name] = pod
    there = bool(jobs.items or pods.items or jobs.unreadable or pods.unreadable)
    return World(
        namespace,
        {job.meta.name: job for job in jobs.items},
        owned,
        bare,
        {**pods.unreadable, **jobs.unreadable},
        exists=there or None,
    )


async def _checked(asking: Asking, world: World) -> World:
    """A namespace that does not exist is listed like one that is empty."""
    path = f"/api/v1/namespaces/{world.namespace}"
    try:
        await asking.record("namespaces", path)
    except Refusal as no:
        if no.status == 404:
            return replace(world, exists=False, why_unsure=str(no))
        unsure = f"nothing is listed in namespace {world.namespace}, which may not exist: {no}"
        return replace(world, why_unsure=unsure)
    return replace(world, exists=True)


async def _workloads(asking: Asking, namespace: str) -> tuple[Workload, ...]:
    """None where Kueue is not there, or not for us."""
    for version in _KUEUE:
        path = f"/apis/kueue.x-k8s.io/{version}/namespaces/{namespace}/workloads"
        try:
            found = await asking.list("workloads", path, {}, records.workload)
        except Refusal as no:
            if no.status != 404:
                asking.complaints.append(f"workloads of {namespace}: {no}")
                return ()
        else:
            return tuple(found.items)
    return ()


async def _chosen(asking: Asking, namespace: str, selector: str) -> frozenset[str]:
    query = {"labelSelector": selector}
    jobs = await asking.list("jobs", _jobs(namespace), query, records.metadata)
    pods = await asking.list("pods", _pods(namespace), query, records.metadata)
    return frozenset(meta.uid for meta in (*jobs.items, *pods.items))


async def happenings(asking: Asking, namespace: str, uids: Iterable[str]) -> tuple[Happening, ...]:
    """The events about these objects. They explain and never decide: none where they are refused.

    Raises:
        TransportError: no answer.
    """
    found: list[Happening] = []
    for uid in uids:
        query = {"fieldSelector": f"involvedObject.uid={uid}"}
        path = f"/api/v1/namespaces/{namespace}/events"
        try:
            found += (await asking.list("events", path, query, records.happening)).items
        except Refusal as no:
            asking.complaints.append(f"events of {namespace}: {no}")
            break
    return tuple(found)


def in_doubt(pictures: Sequence[Picture], bare: Sequence[Pod], *, limit: int) -> tuple[str, ...]:
    """The objects whose events are worth asking for, at most `limit`."""
    uids = [uid for picture in pictures for uid in needs_events(picture)]
    uids += [pod.meta.uid for pod in bare if pod.live and silent(doing(pod))]
    return tuple(uids[:limit])


async def gone(asking: Asking, namespace: str, name: str) -> bool:
    """Whether a record that no list holds is not to be had by its name either.

    Raises:
        TransportError, Refusal: nobody can say.
    """
    for kind in (_jobs(namespace), _pods(namespace)):
        try:
            await asking.record("records", f"{kind}/{name}")
        except Refusal as no:
            if no.status != 403 and not no.missing:
                raise  # such as the page of a load balancer
        else:
            return False
    return True


def _jobs(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def _pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"
