"""A Kubernetes cluster of the configuration: what it is asked through, and about what."""

import asyncio
from pathlib import Path
from typing import cast
from urllib.parse import quote

from jobmond import registry
from jobmond.backends.kubernetes.logs import KubeLogs
from jobmond.clock import SystemClock
from jobmond.ports import Backend, KubeApi, LogSource
from jobmond.settings.clusters import KubernetesCluster
from jobmond.transports.kube import KubeClient


def client(name: str, table: KubernetesCluster, state: Path) -> KubeClient:
    """The way to its API server; nothing is loaded or contacted before the first question."""
    return KubeClient(
        clock=SystemClock(),
        kubeconfig=table.kubeconfig,
        context=table.context,
        pin=state / f"kube-{quote(name, safe='')}.context",
        connect_timeout_s=table.connect_timeout.total_seconds(),
        exec_timeout_s=table.login_timeout.total_seconds(),
    )


def backend(api: KubeApi, table: KubernetesCluster, *, grace_s: float) -> Backend:
    """Who asks it about jobs; `grace_s` is how young a job may be to be missed."""
    made = registry.backends["kubernetes"](
        api,
        clock=SystemClock(),
        namespaces=table.namespaces,
        selector=table.selector,
        max_misses=table.max_misses,
        grace_s=grace_s,
        request_timeout_s=table.request_timeout.total_seconds(),
        page=table.page,
        max_events=table.max_events,
        max_bytes=table.max_answer_bytes,
        offload=asyncio.to_thread,
    )
    return cast(Backend, made)


def logs(api: KubeApi, table: KubernetesCluster) -> LogSource:
    """Who reads its logs."""
    return KubeLogs(
        api,
        clock=SystemClock(),
        request_timeout_s=table.request_timeout.total_seconds(),
        max_bytes=table.max_answer_bytes,
        offload=asyncio.to_thread,
    )
