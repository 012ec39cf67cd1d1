"""Ray: actors and workers that vanish."""

import re

from jobmond.analysis.faults.fault import Fault, Role

FAULTS = (
    Fault(
        id="ray-node-dead",
        cause="node-failure",
        role=Role.SYMPTOM,
        needles=("has been marked dead",),
        pattern=re.compile(
            r"The node with node id: ?\S+ .*has been marked dead because the detector has missed too many heartbeats"
        ),
        weight=25,
        any_level=True,
        advice="A node of the Ray cluster stopped answering: look at the scheduler's word on it.",
        source="Ray, GCS health check",
        yes=(
            "The node with node id: 3d1f and address: 10.9.0.13 and node name: n13 has been marked dead because the detector has missed too many heartbeats from it.",
        ),
        no=("node 3 marked ready",),
    ),
    Fault(
        id="ray-died",
        cause="ray-died",
        role=Role.SYMPTOM,
        needles=(
            "ActorDiedError",
            "ActorUnavailableError",
            "RayActorError",
            "WorkerCrashedError",
            "died or was killed while executing",
            "actor is dead because",
            "actor died unexpectedly",
            "LocalRayletDiedError",
            "OwnerDiedError",
            "ObjectLostError",
            "NodeDiedError",
            "Failed to connect to GCS",
            "raylet died",
            "Raylet is terminated",
            "A worker died",
            "RaySystemError",
        ),
        pattern=re.compile(
            r"\b(?:ActorDied|ActorUnavailable|RayActor|WorkerCrashed|LocalRayletDied|OwnerDied|ObjectLost|NodeDied|RaySystem)Error\b|"
            r"A worker died or was killed while executing a task|The actor is dead because|The actor died unexpectedly|"
            r"Failed to connect to GCS|Raylet is terminated|raylet died"
        ),
        weight=35,
        any_level=True,
        advice="Ray names only possible reasons: look for that worker's own log, and at the node's memory.",
        source="Ray, core worker",
        yes=(
            "A worker died or was killed while executing a task by an unexpected system error.",
            "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        ),
        no=("WARNING: 7 pending tasks were cancelled because the driver exited.",),
    ),
)
