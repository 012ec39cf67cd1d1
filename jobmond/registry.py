"""Name to factory: one file, one plugin.

A plugin module is called like its plugin (`rl-collapse` lives in `rl_collapse.py`: hyphens in
names, underscores in modules, nothing else) and decorates its class or function with the registry
of its kind. Only what is asked for is imported, because
some I/O libraries take seconds to load.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Registry(Generic[F]):
    """The plugins of one kind, by the name used in the configuration.

    `apart` are modules of the package that are no plugins.
    """

    def __init__(self, kind: str, package: str, *, apart: frozenset[str] = frozenset()) -> None:
        self.kind = kind
        self._package = package
        self._apart = apart
        self._factories: dict[str, F] = {}

    def plugin(self, name: str) -> Callable[[F], F]:
        """Decorator that registers a factory.

        Raises:
            ValueError: the name is taken, or is one that no module can stand for.
        """
        if name != _name(_module(name)):
            raise ValueError(f"{self.kind} plugin {name!r}: write the name with hyphens")

        def register(factory: F) -> F:
            if name in self._factories:
                raise ValueError(f"two {self.kind} plugins are called {name!r}")
            self._factories[name] = factory
            return factory

        return register

    def __getitem__(self, name: str) -> F:
        if name not in self._factories:
            if _module(name) in self._apart:
                raise KeyError(name)
            self._load(name)
        return self._factories[name]

    def __iter__(self) -> Iterator[str]:
        for name in self.offered():
            if name not in self._factories:
                self._load(name)
        return iter(sorted(self._factories))

    def __contains__(self, name: object) -> bool:
        return name in tuple(self)

    def offers(self, name: str) -> bool:
        """Whether there is such a plugin, found without importing any."""
        return name in self.offered()

    def offered(self) -> tuple[str, ...]:
        """The names of all plugins, found without importing any."""
        package = importlib.import_module(self._package)
        modules = (m.name for m in pkgutil.iter_modules(package.__path__))
        found = {_name(m) for m in modules if not m.startswith("_") and m not in self._apart}
        return tuple(sorted(found | self._factories.keys()))

    def _load(self, name: str) -> None:
        module = f"{self._package}.{_module(name)}"
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as missing:
            if missing.name != module:
                raise
            raise KeyError(name) from None


def _module(name: str) -> str:
    return name.replace("-", "_")


def _name(module: str) -> str:
    return module.replace("_", "-")


rules: Registry[Any] = Registry("rule", "jobmond.rules")
sinks: Registry[Any] = Registry("sink", "jobmond.sinks")
backends: Registry[Any] = Registry("backend", "jobmond.backends")
# HTTP and the API of Kubernetes carry requests, not scripts: what needs them is handed their port.
transports: Registry[Any] = Registry(
    "transport", "jobmond.transports", apart=frozenset({"http", "kube"})
)
parsers: Registry[Any] = Registry("dialect", "jobmond.parsers")
