"""Tables in box-drawing characters: centred headers, cells at the left, fit to a width."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from jobmond.reports.cells import cell, centred, clip, left, width, wrap

_COMFORT = 24  # columns in which text reads well


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `min_width` is taken where there is room.

    `least` is how far it may be narrowed, its cells going over several lines; None means that
    its cells never are, because a number without its end is another number. Words up to `whole`
    columns are broken only where there is no other way.
    """

    title: str
    min_width: int = 0
    least: int | None = None
    whole: int = 0


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

    The widest column gives way first; text goes over several lines, and then a rule stands between
    the rows. Where even the least widths are too many the table is wider than `fit` rather than
    wrong.
    """
    strokes = _ASCII if ascii_only else _BOX
    texts = [[cell(value, ascii_only=ascii_only) for value in row] for row in rows]
    widths = _widths(columns, texts, fit)
    named = [cell(column.title, ascii_only=ascii_only) for column in columns]
    titles = [_title(t, w, strokes.mark) for t, w in zip(named, widths, strict=True)]
    body = [
        [wrap(t, w, mark=strokes.mark) for t, w in zip(row, widths, strict=True)] for row in texts
    ]
    between = any(len(lines) > 1 for row in body for lines in row)
    lines = [_rule(strokes, strokes.top, widths), *_rows(strokes, titles, widths, centred)]
    for place, row in enumerate(body):
        if place == 0 or between:
            lines.append(_rule(strokes, strokes.middle, widths))
        lines += _rows(strokes, row, widths, left)
    if not body:
        lines.append(_rule(strokes, strokes.middle, widths))
    return [*lines, _rule(strokes, strokes.bottom, widths)]


def least_width(
    columns: Sequence[Column], rows: Sequence[Sequence[object]], *, ascii_only: bool = False
) -> int:
    """How narrow the table can be with its titles whole."""
    texts = [[cell(value, ascii_only=ascii_only) for value in row] for row in rows]
    return sum(_floors(columns, texts, _longest_word, words=True)) + 3 * len(columns) + 1


def _title(title: str, columns: int, mark: str) -> list[str]:
    if _longest_word(title) > columns:
        return [clip(title, columns, mark=mark)]
    return wrap(title, columns)


def _longest_word(text: str) -> int:
    return max(map(width, text.split(" ")))


def _widths(
    columns: Sequence[Column], texts: Sequence[Sequence[str]], fit: int | None
) -> list[int]:
    widths = [max(_needed(texts, i), len(c.title), c.min_width) for i, c in enumerate(columns)]
    if fit is None:
        return widths
    room = fit - 3 * len(columns) - 1
    # Text reads well down to a width; below that titles go over two lines first, then words are
    # broken, and titles are cut before numbers would have to be.
    for floors in (
        _floors(columns, texts, len, comfort=_COMFORT, words=True),
        _floors(columns, texts, _longest_word, words=True),
        _floors(columns, texts, _longest_word),
        _floors(columns, texts, _stub),
    ):
        lowest = [min(floor, full) for floor, full in zip(floors, widths, strict=True)]
        if sum(lowest) <= room:
            break
    # What titles of numbers give up, text gets.
    widths = [
        low if c.least is None else full
        for c, low, full in zip(columns, lowest, widths, strict=True)
    ]
    return narrowed(widths, lowest, room)


def _needed(texts: Sequence[Sequence[str]], place: int) -> int:
    return max((width(row[place]) for row in texts), default=0)


def _floors(
    columns: Sequence[Column],
    texts: Sequence[Sequence[str]],
    title_width: Callable[[str], int],
    *,
    comfort: int = 0,
    words: bool = False,
) -> list[int]:
    """The least widths: text as far as it may be narrowed (`words`: without breaking those that
    should be whole), anything else as wide as it is.
    """
    floors = []
    for place, column in enumerate(columns):
        title, needed = title_width(column.title), _needed(texts, place)
        floor = needed
        if column.least is not None:
            longest = max((_longest_word(row[place]) for row in texts), default=0) if words else 0
            floor = min(needed, max(column.least, comfort, min(longest, column.whole)))
        floors.append(max(floor, title))
    return floors


def _stub(_: str) -> int:
    return 3


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


def _rows(
    strokes: _Strokes,
    cells: Sequence[Sequence[str]],
    widths: Sequence[int],
    placed: Callable[[str, int], str],
) -> list[str]:
    """The lines of one row, as many as its longest cell has."""
    return [
        f"{strokes.down} "
        + f" {strokes.down} ".join(placed(t, w) for t, w in zip(texts, widths, strict=True))
        + f" {strokes.down}"
        for texts in zip_longest(*cells, fillvalue="")
    ]
