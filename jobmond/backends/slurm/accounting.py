"""sacct's answer as rows, and whether the cluster keeps accounting at all."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from jobmond.analysis.visible import readable, visible
from jobmond.backends.slurm.fields import count, epoch, exit_pair, last_line, listed_id, words
from jobmond.backends.slurm.rows import AccountRow
from jobmond.backends.slurm.script import SACCT_FIELDS, Nonce, Section

_LONGEST_LINE = 4000  # bytes of a submit line that are kept
_DISABLED = b"accounting storage is disabled"
_DEPENDENCY = re.compile(
    r"(?:^|\s)(?:--dependency(?:=|\s+)|-d\s*=?)"
    r"((?:after(?:any|ok|notok|corr|burstbuffer)?|singleton|aftercorr)[:\w+,?]*)"
)


@dataclass(frozen=True, slots=True)
class Accounts:
    """What slurmdbd answered.

    `whole` says that no row had to be left out. `named` is the set of master ids asked for by
    name, None where a window was asked for (which hides jobs that were never eligible).
    """

    rows: tuple[AccountRow, ...]
    whole: bool
    named: frozenset[str] | None
    complaints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AccountingFailed:
    """The database exists and did not answer."""

    why: str
    field_refused: bool = False


@dataclass(frozen=True, slots=True)
class NoAccounting:
    """The cluster keeps none: the queue is all there is."""


Accounting = Accounts | AccountingFailed | NoAccounting


def read(
    section: Section | None, nonce: Nonce, *, named: frozenset[str] | None, submit_line: bool
) -> Accounting:
    """What the sacct section of a listing says. None: it did not arrive."""
    if section is None:
        return AccountingFailed("accounting's answer did not arrive whole")
    if _DISABLED in section.err.lower():
        return NoAccounting()
    if section.rc == 0:
        return _parse(section.out, nonce, named, len(SACCT_FIELDS) + submit_line)
    if section.rc in (124, 137):
        return AccountingFailed("sacct did not answer in time")
    text = last_line(section.err) or f"sacct ended with {section.rc}"
    refused = b"Invalid field requested" in section.err
    return AccountingFailed(f"accounting does not answer: {text}", refused)


def _parse(
    out: bytes, nonce: Nonce, named: frozenset[str] | None, width: int
) -> Accounts | AccountingFailed:
    """Rows by counting delimiters: names may hold newlines and anything else."""
    *tokens, rest = out.split(nonce.field.encode())
    if len(tokens) % width or rest.strip():
        return AccountingFailed("accounting's answer cannot be read: a row has too few fields")
    rows: list[AccountRow] = []
    complaints: list[str] = []
    for record in _batched(tokens, width):
        row = _row(record)
        if row is None:
            text = visible(readable(b"|".join(record).strip()))[:200]
            complaints.append(f"sacct: a row that cannot be read: {text}")
        else:
            rows.append(row)
    return Accounts(tuple(rows), not complaints, named, tuple(complaints))


def _batched(tokens: list[bytes], width: int) -> Iterator[list[bytes]]:
    for start in range(0, len(tokens), width):
        yield tokens[start : start + width]


def _row(record: list[bytes]) -> AccountRow | None:
    at = dict(zip(SACCT_FIELDS, record, strict=False))
    job = listed_id(readable(at["JobID"]).strip())
    submit = epoch(at["Submit"])
    if job is None or submit is None:
        return None
    limit = count(at["TimelimitRaw"])
    return AccountRow(
        id=job,
        raw_id=readable(at["JobIDRaw"]).strip(),
        native=visible(readable(at["State"]).strip()),
        submit=submit,
        name=at["JobName"],
        user=words(at["User"]),
        partition=words(at["Partition"]),
        account=words(at["Account"]),
        workdir=at["WorkDir"],
        dependency=_dependency(record[len(SACCT_FIELDS) :]),
        submit_line=words(b"".join(record[len(SACCT_FIELDS) :])[:_LONGEST_LINE]),
        start=epoch(at["Start"]),
        end=epoch(at["End"]),
        elapsed_s=count(at["ElapsedRaw"]),
        limit_s=None if limit is None else limit * 60,
        nodes=words(at["NodeList"]),
        exit=exit_pair(at["ExitCode"]),
    )


def _dependency(submit_line: list[bytes]) -> str | None:
    """The dependency a job was submitted with: the queue forgets it as soon as it is met."""
    if not submit_line:
        return None
    # A script given by --wrap is the job's text, not an option of sbatch.
    options = readable(submit_line[0]).partition("--wrap")[0]
    match = _DEPENDENCY.search(options)
    return match[1] if match else None
