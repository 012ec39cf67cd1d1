"""`config.example.toml` shows every setting, at its default."""

import inspect
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from jobmond.settings import Settings, load
from jobmond.settings.clusters import IrisCluster, KubernetesCluster, LocalCluster, SlurmCluster
from jobmond.settings.tables import Classify, Database, Launcher, Nel, Policy
from jobmond.sinks.webhook import WebhookSink

EXAMPLE = Path(__file__).parents[3] / "config.example.toml"
KINDS = {"slurm": SlurmCluster, "kubernetes": KubernetesCluster, "iris": IrisCluster}
ONCE = frozenset(LocalCluster.model_fields)  # written out at the local cluster only


def _shown() -> dict[str, Any]:
    """The example with every setting that is off switched on; of two lines the last is kept."""
    lines: list[str] = []
    for line in EXAMPLE.read_text().splitlines():
        text = re.sub(r"^#(?=\S)", "", line)
        key = text.partition(" = ")[0]
        table = max((i for i, old in enumerate(lines) if old.startswith("[")), default=0)
        if " = " in text and not text.startswith("#"):
            lines = [
                old for i, old in enumerate(lines) if i < table or not old.startswith(f"{key} = ")
            ]
        lines.append(text)
    return tomllib.loads("\n".join(lines))


def _tables(shown: Mapping[str, Any]) -> Iterator[tuple[str, type[BaseModel], Mapping[str, Any]]]:
    yield "", Settings, shown
    yield "database", Database, shown["database"]
    yield "nel", Nel, shown["nel"]
    yield "launcher", Launcher, shown["launcher"]
    yield "policy", Policy, shown["policy"]
    yield "classify", Classify, shown["classify"][0]
    yield "clusters.local", LocalCluster, shown["clusters"]["local"]
    for name, table in shown["clusters"].items():
        if table["kind"] in KINDS:
            yield f"clusters.{name}", KINDS[table["kind"]], table


def test_the_example_is_the_default(env: dict[str, str]) -> None:
    loaded = load(EXAMPLE, env)
    assert loaded.warnings == ()
    assert loaded.settings == load(None, env).settings


def test_every_setting_is_in_the_example() -> None:
    for where, model, table in _tables(_shown()):
        once = ONCE - {"kind"} if where not in ("clusters.local", "", "classify") else frozenset()
        missing = set(model.model_fields) - set(table) - once
        assert not missing, f"[{where}] lacks {sorted(missing)}"


def test_every_setting_that_is_off_is_a_setting(env: dict[str, str], tmp_path: Path) -> None:
    for where, model, table in _tables(_shown()):
        unknown = set(table) - set(model.model_fields)
        assert not unknown, f"[{where}] has {sorted(unknown)}"


def _default(field: FieldInfo) -> Any:
    return None if field.is_required() or field.default_factory else field.default


def test_settings_that_are_off_show_their_default_where_they_have_one(
    env: dict[str, str], tmp_path: Path
) -> None:
    home = Path(env["HOME"])
    (home / ".ssh").mkdir()
    (home / ".kube").mkdir()
    for name in (".ssh/id_ed25519", ".ssh/known_hosts", ".ssh/config", ".kube/config"):
        (home / name).touch()
    header = tmp_path / "header"
    header.touch()
    text = re.sub(r"^#(?=\S)", "", EXAMPLE.read_text(), flags=re.M)
    for path in ("iris-header", "webhook-url", "webhook-secret"):
        text = text.replace(f"/etc/jobmond/{path}", str(header))
    text = re.sub(r'^url = "sqlite.*\n|^registry_files = \[\]\n', "", text, flags=re.M)
    path = tmp_path / "on.toml"
    path.write_text(text)
    settings = load(path, env).settings
    for name in ("leonardo", "k8s", "iris"):
        cluster = settings.clusters[name]
        for key in cluster.model_fields_set - {"kind"}:
            default = _default(type(cluster).model_fields[key])
            if default not in (None, ()):
                assert getattr(cluster, key) == default, f"clusters.{name}.{key}"
    assert settings.agent_logs == load(None, env).settings.agent_logs


def test_a_webhook_is_shown_with_every_option_at_its_default() -> None:
    shown = _shown()["sinks"]["team"]
    takes = {
        p.name: p.default
        for p in inspect.signature(WebhookSink).parameters.values()
        if p.kind is p.KEYWORD_ONLY
    }
    assert set(shown) == {"kind", *takes}
    for name in ("format", "max_bytes", "spool"):
        assert shown[name] == takes[name]
    assert takes["timeout"] == timedelta(seconds=10)
    assert takes["give_up_after"] == timedelta(days=3)
    assert (shown["timeout"], shown["give_up_after"]) == ("10s", "3d")


@pytest.mark.parametrize(
    "model",
    [Settings, Database, Nel, Launcher, Policy, Classify, LocalCluster, *KINDS.values()],
)
def test_every_setting_says_what_it_does(model: type[BaseModel]) -> None:
    for name, field in model.model_fields.items():
        assert field.description, f"{model.__name__}.{name}"
