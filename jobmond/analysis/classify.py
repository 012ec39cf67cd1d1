"""Where a job belongs: bucket, type, run name and labels.

Order of authority: what a person chose, then the first matching `[[classify]]` rule, then known
name prefixes, then what its log is about.
"""

import re
from collections.abc import Sequence

from jobmond.model.job import Choices, Classified, ClassifyRule
from jobmond.model.observation import Facts
from jobmond.model.state import Bucket

PREFIXES = (
    ("rl__", Bucket.RL),
    ("sft__", Bucket.SFT),
    ("datagen__", Bucket.DATAGEN),
    ("eval-", Bucket.EVAL),
)

# What restart copies of one run append to its name: _r7, -restart2, _2.
_COPY = re.compile(r"(?:_r\d{1,4}|[-_]restart\d{0,4}|_\d{1,2})$")


def classified(
    choices: Choices,
    facts: Facts,
    native_id: str,
    rules: Sequence[ClassifyRule],
    read_as: Bucket | None = None,
) -> Classified:
    """The place of a job in the reports. `read_as` is the bucket that its log shows."""
    name = choices.name or facts.name or native_id
    rule, match = _first_match(rules, name, facts)
    bucket = (
        choices.bucket
        or (rule and rule.bucket)
        or facts.bucket
        or _bucket_by_prefix(name)
        or read_as
        or Bucket.OTHER
    )
    labels = (frozenset(rule.labels if rule else ()) | choices.labels_added) - (
        choices.labels_removed
    )
    return Classified(
        bucket=bucket,
        type=choices.type or (rule and rule.type) or _type(bucket),
        run=choices.run or _run_by_rule(rule, match) or run_name(name),
        labels=labels,
    )


def run_name(name: str) -> str:
    """The name that restart copies share: without a trailing `_r7`, `-restart2` or `_2`."""
    return _COPY.sub("", name) or name


def _type(bucket: Bucket) -> str:
    return "job" if bucket is Bucket.OTHER else bucket.value


def _bucket_by_prefix(name: str) -> Bucket | None:
    return next((b for prefix, b in PREFIXES if name.startswith(prefix)), None)


def _run_by_rule(rule: ClassifyRule | None, match: re.Match[str] | None) -> str | None:
    if rule is None or rule.run is None:
        return None
    return match.expand(rule.run) if match else rule.run


def _first_match(
    rules: Sequence[ClassifyRule], name: str, facts: Facts
) -> tuple[ClassifyRule | None, re.Match[str] | None]:
    for rule in rules:
        others = (
            (rule.partition, facts.partition),
            (rule.account, facts.account),
            (rule.comment, facts.comment),
            (rule.workdir, facts.workdir),
        )
        if any(p is not None and not re.search(p, v or "") for p, v in others):
            continue
        match = re.search(rule.name, name) if rule.name is not None else None
        if rule.name is None or match:
            return rule, match
    return None, None
