"""What the tables look like from outside: which keys exist where, and which is the nearest."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel

Path = tuple[str | int, ...]


class Shape:
    """One place in the configuration: a table with known keys, tables by name, or a value."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = _bare(annotation)

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The keys of a table; None for anything else."""
        found: dict[str, None] = {}
        for model in _models(self._annotation):
            found |= dict.fromkeys(model.model_fields)
        return tuple(found) or None

    @property
    def named(self) -> bool:
        """Whether people choose the keys here (`[clusters.NAME]`)."""
        return get_origin(self._annotation) in (Mapping, dict)

    def narrowed(self, data: Any) -> "Shape":
        """The one kind that `data` says it is, where there are several."""
        models = _models(self._annotation)
        kind = data.get("kind") if isinstance(data, Mapping) else None
        for model in models:
            if len(models) > 1 and kind in get_args(model.model_fields["kind"].annotation):
                return Shape(model)
        return self

    @property
    def open(self) -> bool:
        """Whether a table takes keys that only its plugin knows."""
        models = _models(self._annotation)
        return any(model.model_config.get("extra") == "allow" for model in models)

    def at(self, key: str | int) -> "Shape | None":
        """The place under `key`; None where there is none."""
        if self.named:
            return Shape(get_args(self._annotation)[1])
        if isinstance(key, int):
            return Shape(get_args(self._annotation)[0])
        for model in _models(self._annotation):
            if key in model.model_fields:
                return Shape(model.model_fields[key].annotation)
        return None


def _bare(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _models(annotation: Any) -> list[type[BaseModel]]:
    bare = _bare(annotation)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        return [bare]
    if get_origin(bare) in (None, Mapping, dict, tuple, list):
        return []
    return [model for part in get_args(bare) for model in _models(part)]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was most likely meant; None where nothing is near."""
    by_fold = {fold(name): name for name in known}
    close = get_close_matches(fold(word), by_fold, n=1, cutoff=0.5)
    return by_fold[close[0]] if close else None


def fold(word: str) -> str:
    """Words that an environment variable cannot tell apart have the same fold."""
    return word.lower().replace("-", "_").replace(".", "_")


def dotted(path: Sequence[str | int]) -> str:
    """`clusters.leonardo.host`, `classify[0].name`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def hint(word: str, known: Iterable[str]) -> str:
    """What to say about a word nobody knows: the nearest, else what there is."""
    words = sorted(known)
    near = nearest(word, words)
    return f"nearest: {near}" if near else f"known: {', '.join(words)}"
