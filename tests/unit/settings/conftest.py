"""Settings are tested against plugins of the tests, so that what is installed does not matter."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jobmond import registry
from jobmond.registry import Registry
from jobmond.settings import Loaded, load
from jobmond.sinks.registry_file import RegistryFileSink
from jobmond.sinks.webhook import WebhookSink

Read = Callable[..., Loaded]


class FileSink:
    def __init__(self, path: Path) -> None:
        self.path = path


class JournalSink:
    pass


class HookSink:
    def __init__(self, *, url_file: Path | None = None, format: str = "generic") -> None:
        self.url_file = url_file


class HeldRule:
    def __init__(self, *, minutes: float = 30.0, words: tuple[str, ...] = ()) -> None:
        self.minutes = minutes


@pytest.fixture(autouse=True)
def plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    sinks: Registry[object] = Registry("sink", "jobmond.sinks")
    sinks.plugin("file")(FileSink)
    sinks.plugin("journal")(JournalSink)
    sinks.plugin("hook")(HookSink)
    sinks.plugin("webhook")(WebhookSink)
    sinks.plugin("registry-file")(RegistryFileSink)
    transports: Registry[object] = Registry("transport", "jobmond.transports")
    backends: Registry[object] = Registry("backend", "jobmond.backends")
    for known, names in ((transports, ("ssh", "local")), (backends, ("slurm", "local"))):
        for name in names:
            known.plugin(name)(JournalSink)
    rules: Registry[object] = Registry("rule", "jobmond.rules")
    rules.plugin("test-held")(HeldRule)
    monkeypatch.setattr(registry, "rules", rules)
    monkeypatch.setattr(registry, "sinks", sinks)
    monkeypatch.setattr(registry, "transports", transports)
    monkeypatch.setattr(registry, "backends", backends)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    return {"HOME": str(home)}


@pytest.fixture
def read(tmp_path: Path, env: dict[str, str]) -> Read:
    """Load a configuration given as text, with variables as keywords."""

    def read_text(text: str = "", **variables: str) -> Loaded:
        path = tmp_path / "config.toml"
        path.write_text(text, encoding="utf-8")
        return load(path, env | variables)

    return read_text
