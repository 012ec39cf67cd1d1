"""From a file and an environment to `Settings`, or one clear line."""

import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import InitSettingsSource

from jobmond import registry
from jobmond.errors import ConfigError
from jobmond.settings.clusters import Cluster, IrisCluster, KubernetesCluster, SlurmCluster
from jobmond.settings.complaints import complaint
from jobmond.settings.environment import PREFIX, Environment
from jobmond.settings.fields import Place, place
from jobmond.settings.plugins import require, validated
from jobmond.settings.tables import Settings, SinkTable, builtin_clusters, builtin_sinks

_LARGEST_FILE = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Loaded:
    """`path` is the file that was read, None where there is none. `warnings` are one line each."""

    settings: Settings
    path: Path | None
    warnings: tuple[str, ...]


def load(path: Path | None, env: Mapping[str, str]) -> Loaded:
    """Read and validate the configuration; `path` None means that there is no file.

    Raises:
        ConfigError: one line that names the file, the key and the nearest known one.
    """
    data = read_toml(path) if path is not None else {}
    folder = path.absolute().parent if path is not None else None
    with _placed(Place.of(env, folder)):
        data.setdefault("clusters", builtin_clusters())
        data.setdefault("sinks", builtin_sinks())
        overrides = Environment(Settings, env, data)
        try:
            settings = _settings(data, overrides)
            _check_transports(settings)
            settings = _with_rules(_with_sinks(settings))
            _check_files(settings)
        except ConfigError as error:
            # A variable's name says where to look by itself.
            inside = path is not None and not str(error).startswith(PREFIX)
            raise ConfigError(f"{path}: {error}" if inside else str(error)) from error
    missing = (*_missing_backends(settings),)
    return Loaded(settings, path, (*overrides.warnings, *missing))


def read_toml(path: Path) -> dict[str, Any]:
    """The file as tables.

    Raises:
        ConfigError: it cannot be read, or is no TOML; with the line number.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(f"{path}: not a regular file")
        with path.open("rb") as file:
            raw = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    if len(raw) > _LARGEST_FILE:
        raise ConfigError(f"{path}: larger than {_LARGEST_FILE} bytes")
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}: line {line}: not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {_syntax(str(error), raw)}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: nested too deeply") from error


def _syntax(message: str, raw: bytes) -> str:
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message, re.S)
    if found is None:
        return f"not TOML: {message!r}"
    text, line, column = found.groups()
    line = line or str(raw.count(b"\n") + 1)
    at = f"line {line}, column {column}" if column else f"line {line}"
    return f"{at}: not TOML: {' '.join(text.split())}"


@contextmanager
def _placed(here: Place) -> Iterator[None]:
    token = place.set(here)
    try:
        yield
    finally:
        place.reset(token)


def _settings(data: dict[str, Any], overrides: Environment) -> Settings:
    sources = (overrides, InitSettingsSource(Settings, init_kwargs=data))
    build: Callable[..., Settings] = Settings  # `_build_sources` is no field
    try:
        return build(_build_sources=(sources, data))
    except ValidationError as error:
        merged = _merged(data, overrides())
        raise ConfigError(complaint(error, Settings, merged, origins=overrides.origins)) from error


def _merged(below: Any, above: Any) -> Any:
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    return {**below, **{key: _merged(below.get(key), value) for key, value in above.items()}}


def _check_files(settings: Settings) -> None:
    """Key files that are named must be there: a login that cannot work is not worth a try."""
    for name, cluster in settings.clusters.items():
        if cluster.active:
            for key in _files(cluster):
                _check_file(getattr(cluster, key), f"clusters.{name}.{key}")
    for name, sink in settings.sinks.items():
        for key, value in sink.options.items():
            if key.endswith("_file") and isinstance(value, Path):
                _check_file(value, f"sinks.{name}.{key}")


def _files(cluster: Cluster) -> tuple[str, ...]:
    match cluster:
        case SlurmCluster():
            return ("identity_file", "known_hosts_file", "ssh_config_file")
        case KubernetesCluster():
            return ("kubeconfig",)
        case IrisCluster():
            return ("auth_header_file",)
    return ()


def _check_file(path: Path | None, where: str) -> None:
    if path is None:
        return
    try:
        known = path.stat()
    except OSError as error:
        raise ConfigError(f"{where}: {path}: {error.strerror}") from error
    if not stat.S_ISREG(known.st_mode):
        raise ConfigError(f"{where}: {path}: not a regular file")
    if not os.access(path, os.R_OK):
        raise ConfigError(f"{where}: {path}: permission denied")


def _check_transports(settings: Settings) -> None:
    for name, cluster in settings.clusters.items():
        if isinstance(cluster, SlurmCluster):
            require(registry.transports, cluster.transport, f"clusters.{name}.transport")


def _with_sinks(settings: Settings) -> Settings:
    """The sinks' options as their constructors take them."""
    sinks: dict[str, SinkTable] = {}
    for name, sink in settings.sinks.items():
        require(registry.sinks, sink.kind, f"sinks.{name}.kind")
        factory = registry.sinks[sink.kind]
        if getattr(factory, "internal", False):
            raise ConfigError(f"sinks.{name}.kind: {sink.kind} is set up by registry_files alone")
        options = validated(factory, sink.options, ("sinks", name))
        sinks[name] = SinkTable(kind=sink.kind, **options)
    return settings.model_copy(update={"sinks": sinks})


def _with_rules(settings: Settings) -> Settings:
    """The thresholds as the rules' constructors take them."""
    rules: dict[str, Mapping[str, Any]] = {}
    for name, table in settings.rules.items():
        require(registry.rules, name, f"rules.{name}")
        rules[name] = validated(registry.rules[name], table, ("rules", name))
    return settings.model_copy(update={"rules": rules})


def _missing_backends(settings: Settings) -> Iterator[str]:
    for name, cluster in settings.clusters.items():
        if cluster.active and not registry.backends.offers(cluster.kind):
            yield (
                f"clusters.{name}: kind {cluster.kind!r} is not available in this version;"
                " its jobs are not polled"
            )
