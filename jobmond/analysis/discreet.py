"""What a source says about a job, without the secrets that people put into names and comments."""

from dataclasses import replace
from functools import lru_cache

from jobmond.analysis.mask import mask
from jobmond.model.observation import Facts, Link, Seen

_REMEMBERED = 16_384  # texts; a job's are the same from sweep to sweep
_LONG = 1_000  # characters: such a text is not remembered
_masked = lru_cache(_REMEMBERED)(mask)


def discreet_facts(facts: Facts) -> Facts:
    """`facts` with secrets in free text masked. Paths stay as they are: they are asked for."""
    told = replace(
        facts,
        name=_shown(facts.name),
        comment=_shown(facts.comment),
        command=_shown(facts.command),
        submit_line=_shown(facts.submit_line),
        reason=_shown(facts.reason),
        progress=_shown(facts.progress),
        message=_shown(facts.message),
    )
    return facts if told == facts else told


def discreet_seen(seen: Seen) -> Seen:
    """`seen`, the lives before it, and the jobs of its parts."""
    facts = discreet_facts(seen.facts)
    previous = tuple(replace(life, facts=discreet_facts(life.facts)) for life in seen.previous)
    parts = tuple(replace(part, links=tuple(map(_link, part.links))) for part in seen.parts)
    if facts is seen.facts and previous == seen.previous and parts == seen.parts:
        return seen
    return replace(seen, facts=facts, previous=previous, parts=parts)


def _link(link: Link) -> Link:
    return replace(link, facts=discreet_facts(link.facts))


def _shown(text: str | None) -> str | None:
    if text is None:
        return None
    return mask(text) if len(text) > _LONG else _masked(text)
