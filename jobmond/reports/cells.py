"""How wide text is on a terminal, and how to make it fit without cutting a character in two."""

import unicodedata

from jobmond.analysis.visible import visible

# One column wide everywhere; they need no width tables, which take longer to load than to use.
_SINGLE = dict.fromkeys(map(ord, "—…·\u00d7→✓✗µ"))
_LONGEST = 4000  # characters; a longer cell is a log, and measuring it would hold up the report
_JOINERS = "\u200d\ufe0f\ufe0e"
_ASCII = str.maketrans({"—": "-", "…": "~", "·": ".", "\u00d7": "x", "→": ">", "✓": "y", "✗": "n"})


def cell(value: object, *, ascii_only: bool = False) -> str:
    """One line of text that a terminal can only print; `—` for None."""
    if value is None:
        text = "—"
    else:
        text = visible((value if isinstance(value, str) else str(value))[:_LONGEST])
    if ascii_only:
        return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")
    return text if _plain(text) else "".join(graphemes(text))


def width(text: str) -> int:
    """Columns `text` takes; text of `cell` only."""
    return len(text) if _plain(text) else sum(map(_grapheme_width, graphemes(text)))


def graphemes(text: str) -> list[str]:
    """User-perceived characters. A joiner with nothing to join and a mark with nothing to stand
    on are dropped, because terminals disagree about them.
    """
    from wcwidth import iter_graphemes

    clean = (g.rstrip("\u200d") for g in iter_graphemes(text))
    return [g if g[:1] and not g[0].isascii() else g.rstrip(_JOINERS) for g in clean if _stands(g)]


def clip(text: str, columns: int, *, mark: str = "…") -> str:
    """`text` in at most `columns` columns, its cut end marked."""
    if width(text) <= columns:
        return text
    room = columns - len(mark)
    if room <= 0:
        return mark[: max(columns, 0)]
    if _plain(text):
        return text[:room] + mark
    kept: list[str] = []
    for grapheme in graphemes(text):
        room -= _grapheme_width(grapheme)
        if room < 0:
            break
        kept.append(grapheme)
    return "".join(kept) + mark


def wrap(text: str, columns: int, *, most: int = 24, mark: str = "…") -> list[str]:
    """`text` in lines of at most `columns` columns, at least one; never more than `most`, the last
    of which then ends in `mark`.

    Lines end between words. Only a word that is wider than a whole line is broken, after
    punctuation where there is some, and never within a number if that fits.
    """
    columns = max(columns, 1)
    if width(text) <= columns:
        return [text]
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        if line and width(line) + 1 + width(word) <= columns:
            line += f" {word}"
            continue
        if line:
            lines.append(line.rstrip(" "))
        *full, line = _broken(word, columns)
        lines += full
        if len(lines) > most:
            break
    lines.append(line)
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], _marked(lines[most - 1], columns, mark)]


def _marked(line: str, columns: int, mark: str) -> str:
    """`line` with its end marked, without the half of a word."""
    while width(line) + 1 + len(mark) > columns and " " in line:
        line = line.rpartition(" ")[0]
    marked = f"{line} {mark}"
    return marked if width(marked) <= columns else mark


def _broken(word: str, columns: int) -> list[str]:
    """A word in pieces that fit."""
    pieces = []
    while width(word) > columns:
        head = _fitting(word, columns)
        if head == word:
            break
        end = next((i for i in range(len(head), 0, -1) if _breakable(word, i)), len(head))
        pieces.append(word[:end])
        word = word[end:]
    return [*pieces, word]


def _fitting(word: str, columns: int) -> str:
    """As many characters as fit, at least one that a person would call so."""
    if _plain(word):
        return word[:columns]
    kept, used = "", 0
    for grapheme in graphemes(word):
        used += _grapheme_width(grapheme)
        if used > columns and kept:
            break
        kept += grapheme
    return kept


def _breakable(word: str, place: int) -> bool:
    """Whether a line may end before this place: behind punctuation that is no part of a number."""
    before, after = word[place - 1], word[place : place + 1]
    if before not in "/_-.,:;=@&?|" or not _stands(after):
        return False
    return before in "/_@&?|=;" or not after.isdigit()


def left(text: str, columns: int) -> str:
    """Padded at the right to `columns`."""
    return text + " " * (columns - width(text))


def centred(text: str, columns: int) -> str:
    """Centred; an odd rest goes to the right."""
    rest = columns - width(text)
    return " " * (rest // 2) + text + " " * (rest - rest // 2)


def _plain(text: str) -> bool:
    return text.isascii() or text.translate(_SINGLE).isascii()


def _stands(grapheme: str) -> bool:
    first = grapheme[:1]
    return bool(first) and first not in _JOINERS and unicodedata.category(first)[0] != "M"


def _grapheme_width(grapheme: str) -> int:
    if grapheme.isascii():
        return len(grapheme)
    from wcwidth import wcswidth

    return max(0, wcswidth(grapheme))
