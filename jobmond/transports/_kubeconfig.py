"""Where the credentials of a Kubernetes cluster are, and what its credential plugin says."""

import base64
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobmond.analysis.mask import mask
from jobmond.analysis.visible import readable, visible
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.transports import _process

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SAID_CHARS = 300
_GRACE_S = 2.0
_FILE_KEYS = ("tokenFile", "client-certificate", "client-key", "certificate-authority")


def kubeconfigs(given: Path | None, env: Mapping[str, str], account: Path) -> tuple[Path, ...]:
    """The files to merge, those that are there; none where the credentials are a pod's `account`.

    Raises:
        NeedsPersonError: there is nothing to log in with.
    """
    if given is not None:
        named = [given]
    elif env.get("KUBECONFIG"):
        named = [Path(p).expanduser() for p in env["KUBECONFIG"].split(os.pathsep) if p]
    else:
        named = [Path(env.get("HOME", "~")).expanduser() / ".kube" / "config"]
    there = tuple(path for path in named if path.is_file())
    in_pod = bool(env.get("KUBERNETES_SERVICE_HOST")) and (account / "token").is_file()
    if there or (given is None and in_pod):
        return there
    where = ", ".join(map(str, named))
    raise NeedsPersonError(
        f"no kubeconfig: {where} is not there", remedy=f"kubectl --kubeconfig {where} get jobs"
    )


def stamps(paths: Iterable[Path]) -> dict[Path, int]:
    """When each file last changed; those that are gone are left out."""
    found = {}
    for path in paths:
        try:
            found[path] = path.stat().st_mtime_ns
        except OSError:
            continue
    return found


def named_files(table: Mapping[str, Any], base: Path) -> Iterable[Path]:
    """The files that a user's or cluster's table in a kubeconfig names."""
    for key in _FILE_KEYS:
        if isinstance(table.get(key), str):
            yield base / table[key]


@dataclass(frozen=True, slots=True)
class Credential:
    """What a plugin gave, as keys of a user's table. `expires_at` None: it did not say."""

    table: Mapping[str, str]
    expires_at: datetime | None


async def ask_plugin(
    spec: Mapping[str, Any], base: Path, env: Mapping[str, str], *, timeout_s: float
) -> Credential:
    """Run the credential plugin that `spec` (a user's `exec` table) describes.

    It has no terminal, and is ended with everything it started when its time is up.

    Raises:
        NeedsPersonError: it cannot be started, or what it says is no credential.
        TransientTransportError: it failed, or said nothing in time.
    """
    command = [_program(spec, base), *map(str, spec.get("args") or ())]
    info = {
        "apiVersion": spec.get("apiVersion"),
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    added = {str(one["name"]): str(one["value"]) for one in spec.get("env") or ()}
    whole = {**env, **added, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    name = f"credential plugin {command[0]}"
    try:
        said = await _process.said(command, timeout_s=timeout_s, grace_s=_GRACE_S, env=whole)
    except TimeoutError as late:
        raise TransientTransportError(f"{name} said nothing within {timeout_s:g} s") from late
    except OSError as error:
        hint = spec.get("installHint")
        raise NeedsPersonError(
            f"{name} cannot be started: {error.strerror or error}",
            remedy=_line(str(hint)) if hint else None,
        ) from error
    if said.status != 0:
        why = _line(readable(said.stderr)) or f"exit {said.status}"
        raise TransientTransportError(f"{name} failed: {why}")
    return _credential(name, said.stdout)


def _program(spec: Mapping[str, Any], base: Path) -> str:
    command = str(spec.get("command") or "")
    if not command:
        raise NeedsPersonError("the credential plugin in the kubeconfig has no command")
    # As kubectl has it: a path is relative to the file, a bare name is found on PATH.
    return str(base / command) if "/" in command else command


def _credential(name: str, stdout: bytes) -> Credential:
    try:
        status = json.loads(stdout)["status"]
        if token := status.get("token"):
            table = {"token": str(token)}
        else:
            table = {
                "client-certificate-data": _packed(status["clientCertificateData"]),
                "client-key-data": _packed(status["clientKeyData"]),
            }
        expires = status.get("expirationTimestamp")
        return Credential(table, _instant(expires) if expires else None)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NeedsPersonError(f"what {name} says is no credential") from error


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _packed(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


def _line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return visible(mask(lines[-1].strip()))[:_SAID_CHARS] if lines else ""
