"""Jobs that the last sweeps saw and nobody registered, by what people call them. Pure."""

from collections.abc import Iterable, Sequence

from jobmond.desk.refusals import listed, quoted
from jobmond.desk.shelf import Found
from jobmond.desk.track import Subject
from jobmond.model.state import Kind

# After the registry: recent nel runs, the SLURM queue, recent experiments of the launcher.
_ORDER = (Kind.NEL, Kind.SLURM, Kind.LAUNCHER)


def called(word: str, found: Iterable[Found]) -> Sequence[Found]:
    """Those of the first source that has any with the ref, native id or name `word`."""
    matches = [one for one in found if word in (one.ref, one.native_id, one.seen.facts.name)]
    matches.sort(key=lambda one: (_place(one.kind), one.ref))
    return [one for one in matches if _place(one.kind) == _place(matches[0].kind)]


def _place(kind: Kind) -> int:
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)


def pointer(word: str, found: Iterable[Found]) -> str | None:
    """What to say of a word that no registered job has, None where nothing else has it either."""
    matches = called(word, found)
    if not matches:
        return None
    if len(matches) > 1:
        return (
            f"no tracked job is called {quoted(word)}; found by the last sweep: "
            f"{listed(one.ref for one in matches)}; `jobmonctl add REF` tracks one"
        )
    [one] = matches
    return (
        f"{quoted(word)} is not tracked: it is {one.ref} ({one.kind}), {one.seen.state} at the "
        f"last sweep; `jobmonctl add {one.ref}` tracks it"
    )


def subject_of(found: Found) -> Subject:
    """What is to be tracked of it."""
    facts = found.seen.facts
    return Subject(
        found.cluster,
        found.kind,
        found.native_id,
        birth=found.seen.birth,
        facts=facts,
        submitted_at=facts.submitted_at,
    )
