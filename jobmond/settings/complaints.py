"""What a person reads when the configuration is wrong: one line that names the key."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from jobmond.settings.shape import Path, Shape, dotted, hint

_OURS = {"a valid dictionary": "a table", "a valid tuple": "a list"}
_FOLLOWS = "default_factory_not_called"  # a default that depends on a wrong value
_TAG_ERRORS = ("union_tag_not_found", "union_tag_invalid")


def complaint(
    error: ValidationError,
    model: type[BaseModel],
    data: Mapping[str, Any],
    *,
    where: Sequence[str] = (),
    origins: Mapping[Path, str] | None = None,
) -> str:
    """The first thing that is wrong, and how many more there are.

    `where` is the table that `model` describes, `origins` the variables that values came from.
    Never shows a value: it may be a secret.
    """
    details = sorted(
        (d for d in error.errors(include_url=False, include_input=False) if d["type"] != _FOLLOWS),
        key=lambda detail: detail["type"] != "extra_forbidden",  # it explains what is missing
    )
    path, shape = _placed(details[0]["loc"], Shape(model), data)
    full = (*where, *path)
    if details[0]["type"] == "union_tag_invalid":
        full = (*full, "kind")
    name = (origins or {}).get(full) or dotted(full)
    text = _said(details[0], name, dotted((*where, *path[:-1])), shape, path)
    return text if len(details) == 1 else f"{text} (and {len(details) - 1} more)"


def _placed(loc: Path, shape: Shape, data: Any) -> tuple[Path, Shape]:
    """The keys of the file along `loc`, and the table that the last of them is in."""
    path: list[str | int] = []
    table = shape
    for part in loc:
        narrowed = shape.narrowed(data)
        if narrowed is not shape and part == data.get("kind"):
            shape = narrowed  # pydantic names the kind it chose in between
            continue
        if part == "[key]":
            continue
        table, shape = narrowed, narrowed.at(part) or Shape(Any)
        path.append(part)
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            data = None
    return tuple(path), table


def _said(detail: ErrorDetails, name: str, table: str, shape: Shape, path: Path) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        inside = f" in [{table}]" if table else ""
        return f"unknown key {name}{inside}; {hint(str(path[-1]), shape.keys or ())}"
    if kind == "missing":
        return f"{name} is missing"
    if kind in _TAG_ERRORS:
        kinds = [word.strip("' ") for word in context.get("expected_tags", "").split(",")]
        if kind == "union_tag_invalid":
            tag = str(context["tag"])
            return f"{name}: unknown kind {tag[:64]!r}; {hint(tag, kinds)}"
        return f"{name}.kind is missing: slurm, kubernetes, iris or local"
    if kind == "value_error":
        return f"{name}: {context['error']}" if name else str(context["error"])
    text = detail["msg"].removeprefix("Input should be ")
    text = _OURS.get(text, text)
    return f"{name}: expected {text}" if text != detail["msg"] else f"{name}: {text}"
