"""Containers: images that do not arrive, mounts that fail."""

import re

from jobmond.analysis.faults.fault import Fault, Role, Scope

_ADVICE = "Check image name, tag and mounts on the node itself; the job has not begun."

FAULTS = (
    Fault(
        id="image-missing",
        cause="container",
        role=Role.ROOT,
        needles=(
            "Not Found",
            "returned error code",
            "manifest unknown",
            "not found: manifest",
            "manifest for",
            "No such image",
            "repository does not exist",
            "ErrImagePull",
            "ImagePullBackOff",
            "InvalidImageName",
            "Failed to pull image",
            "failed to pull",
        ),
        pattern=re.compile(
            r"pyxis: .*returned error code: 404|manifest unknown|not found: manifest|manifest for \S+ not found|No such image|repository does not exist|"
            r"(?:[Rr]eason\"?: *\"?|Warning +Failed .*)(?:ErrImagePull|ImagePullBackOff|InvalidImageName)"
        ),
        scope=Scope.LINE,
        any_level=True,
        advice="Check the image's name and tag in the registry.",
        source="enroot, containerd, docker",
        yes=(
            "slurmstepd: error: pyxis:     [ERROR] URL https://registry-1.docker.io/v2/x/manifests/v0 returned error code: 404 Not Found",
        ),
        no=(
            "[error  ] Failed to get manifest digest task=ns_hle error='404 Client Error: Not Found for url'",
        ),
    ),
    Fault(
        id="mount",
        cause="container",
        role=Role.ROOT,
        needles=(
            "failed to mount",
            "failed to create mount",
            "invalid mount",
            "bind source path does not exist",
            "mounting",
            "mount hook",
            "mount source",
        ),
        pattern=re.compile(
            r"enroot-mount: failed to mount|bind source path does not exist|error mounting .* to rootfs|"
            r"^FATAL: .*(?:mount hook function failure|mount .*(?:doesn't|does not) exist)|pyxis: .*invalid mount"
        ),
        scope=Scope.LINE,
        any_level=True,
        advice="Mount only what exists on the compute node; create the directory or drop the mount.",
        source="enroot, docker, apptainer",
        yes=(
            "slurmstepd: error: pyxis:     enroot-mount: failed to mount: /hf-local at /raid/enroot/data/x/hf-local: No such file or directory",
        ),
        no=("MountVolume.SetUp failed for volume kube-api-access: timed out waiting",),
    ),
    Fault(
        id="container-said",
        cause="container",
        role=Role.ROOT,
        needles=("pyxis: ",),
        pattern=re.compile(
            r"pyxis: {4,}(?:enroot-[\w-]+: |\[ERROR\] (?!URL .*returned error code: (?:429|5\d\d)))(?!.*(?:No space left|Permission denied))|pyxis: couldn't chdir"
        ),
        scope=Scope.LINE,
        any_level=True,
        advice=_ADVICE,
        source="enroot under pyxis",
        yes=(
            "slurmstepd: error: pyxis:     enroot-switchroot: failed to execute: /bin/bash: No such file or directory",
            "slurmstepd: error: pyxis:     [ERROR] No such file or directory: /scratch/images/train.sqsh",
        ),
        no=("slurmstepd: error: pyxis:     [INFO] Fetching image manifest",),
    ),
    Fault(
        id="container-start",
        cause="container",
        role=Role.SYMPTOM,
        needles=(
            "pyxis: failed to import",
            "pyxis: couldn't start container",
            "container start failed",
            "nvidia-container-cli",
            "OCI runtime",
            "Error response from daemon",
            "FATAL:  ",
            "exec format error",
            "enroot-nsenter",
            "CreateContainerError",
            "CreateContainerConfigError",
            "RunContainerError",
            "ErrImagePull",
            "ImagePullBackOff",
            "Failed to pull image",
            "failed to create containerd task",
        ),
        pattern=re.compile(
            r"pyxis: (?:failed to import docker image|couldn't start container|container start failed)|nvidia-container-cli: .*error|Error response from daemon: |OCI runtime .*failed|"
            r"^FATAL: {2,}(?:While|Unable|container|Image|could not)|exec format error$|(?:Reason: +|\"reason\":\")(?:CreateContainer(?:Config)?Error|RunContainerError|StartError)|"
            r"Failed to pull image|failed to create containerd task"
        ),
        scope=Scope.LINE,
        weight=40,
        any_level=True,
        advice=_ADVICE,
        source="pyxis, enroot, NVIDIA container toolkit, apptainer, Kubernetes",
        yes=(
            "slurmstepd: error: pyxis: failed to import docker image",
            "FATAL:   Unable to handle docker://x uri: failed to get checksum",
        ),
        no=("pyxis: importing docker image: nvcr.io/x:1",),
    ),
)
