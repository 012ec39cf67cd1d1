"""Options of plugins: the keywords of their constructors are the keys of their tables.

Positional-only parameters are ports, which no configuration can give.
"""

import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from jobmond.errors import ConfigError
from jobmond.registry import Registry
from jobmond.settings.complaints import complaint
from jobmond.settings.fields import Duration, LocalPath
from jobmond.settings.shape import hint

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def require(registry: Registry[Any], name: str, where: str) -> None:
    """Check that a plugin exists, without importing it.

    Raises:
        ConfigError: it does not.
    """
    if not registry.offers(name):
        known = registry.offered()
        tail = f"; {hint(name, known)}" if known else ""
        raise ConfigError(
            f"{where}: {registry.kind} {name!r} is not available in this version{tail}"
        )


def validated(
    factory: Callable[..., Any], options: Mapping[str, Any], where: tuple[str, ...]
) -> dict[str, Any]:
    """`options` as `factory` takes them: known keys, right types, paths made absolute.

    Raises:
        ConfigError: a key that is no keyword of `factory`, a value of the wrong type, a missing
            one.
    """
    model = _model(factory)
    if model is None:
        return dict(options)
    try:
        table = model.model_validate(dict(options))
    except ValidationError as error:
        raise ConfigError(complaint(error, model, options, where=where)) from error
    return {key: getattr(table, key) for key in options}


def _model(factory: Callable[..., Any]) -> type[BaseModel] | None:
    """What `factory` can be called with; None where it takes anything."""
    parameters = inspect.signature(factory).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return None
    target = factory.__init__ if inspect.isclass(factory) else factory
    hints = get_type_hints(target, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind in _NAMED:
            annotation = hints.get(parameter.name, Any)
            required = parameter.default is inspect.Parameter.empty
            fields[parameter.name] = (
                _local(annotation),
                ... if required else parameter.default,
            )
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True)
    return create_model("Options", __config__=config, **fields)


def _local(annotation: Any) -> Any:
    """A path in the configuration is relative to its file, a duration is written like `15m`."""
    if annotation is Path:
        return LocalPath
    if annotation is timedelta:
        return Duration
    if get_origin(annotation) in (Union, UnionType):
        return Union[tuple(_local(part) for part in get_args(annotation))]  # noqa: UP007
    return annotation
