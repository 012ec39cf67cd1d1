"""Tables in box-drawing characters: centred headers, cells at the left, fit to a width."""

from collections.abc import Sequence
from dataclasses import dataclass

from jobmond.reports.cells import cell, centred, clip, left, width


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `min_width` is taken where there is room.

    `least` is how far it may be narrowed, its cells clipped; None means that cells are never
    clipped, because a number without its end is another number.
    """

    title: str
    min_width: int = 0
    least: int | None = None


@dataclass(frozen=True, slots=True)
class _Strokes:
    across: str
    down: str
    top: str
    middle: str
    bottom: str
    mark: str


_BOX = _Strokes("─", "│", "┌┬┐", "├┼┤", "└┴┘", "…")
_ASCII = _Strokes("-", "|", "+++", "+++", "+++", "~")


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[object]],
    *,
    fit: int | None = None,
    ascii_only: bool = False,
) -> list[str]:
    """The lines of a table. `fit` is the number of columns it should keep within, None no limit.

    The widest column gives way first. Where even the least widths are too many the table is
    wider than `fit` rather than wrong.
    """
    strokes = _ASCII if ascii_only else _BOX
    texts = [[cell(value, ascii_only=ascii_only) for value in row] for row in rows]
    widths = _widths(columns, texts, fit)
    heads = [
        centred(clip(c.title, w, mark=strokes.mark), w)
        for c, w in zip(columns, widths, strict=True)
    ]
    body = [
        [left(clip(t, w, mark=strokes.mark), w) for t, w in zip(row, widths, strict=True)]
        for row in texts
    ]
    return [
        _rule(strokes, strokes.top, widths),
        _row(strokes, heads),
        _rule(strokes, strokes.middle, widths),
        *(_row(strokes, row) for row in body),
        _rule(strokes, strokes.bottom, widths),
    ]


def _widths(
    columns: Sequence[Column], texts: Sequence[Sequence[str]], fit: int | None
) -> list[int]:
    needed = [max((width(row[i]) for row in texts), default=0) for i in range(len(columns))]
    widths = [max(n, len(c.title), c.min_width) for n, c in zip(needed, columns, strict=True)]
    if fit is None:
        return widths
    room = fit - 3 * len(columns) - 1
    floors = [
        max(n, len(c.title)) if c.least is None else min(w, c.least)
        for n, c, w in zip(needed, columns, widths, strict=True)
    ]
    widths = narrowed(widths, floors, room)
    # Still too wide: titles of unclipped columns give way before their numbers would have to.
    tight = [
        min(f, max(n, 3)) if c.least is None else f
        for f, n, c in zip(floors, needed, columns, strict=True)
    ]
    return narrowed(widths, tight, room)


def narrowed(widths: Sequence[int], floors: Sequence[int], room: int) -> list[int]:
    """`widths` taken down to a sum of `room`, the widest first, none below its floor."""
    result = list(widths)
    while (excess := sum(result) - room) > 0:
        able = [i for i, w in enumerate(result) if w > floors[i]]
        if not able:
            break
        widest = max(able, key=lambda i: result[i])
        others = [result[i] for i in able if i != widest]
        level = max([floors[widest], min(max(others, default=0), result[widest] - 1)])
        result[widest] -= min(excess, result[widest] - level)
    return result


def _rule(strokes: _Strokes, corners: str, widths: Sequence[int]) -> str:
    spans = corners[1].join(strokes.across * (w + 2) for w in widths)
    return f"{corners[0]}{spans}{corners[2]}"


def _row(strokes: _Strokes, texts: Sequence[str]) -> str:
    return f"{strokes.down} " + f" {strokes.down} ".join(texts) + f" {strokes.down}"
