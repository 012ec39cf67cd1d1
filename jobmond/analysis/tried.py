"""Which settings were tried before: a run in a new one is to be probed, whatever its numbers say.

Source: OpenThoughts-Agent, monitor-job-tables notes (new or untested RL run: probe it, do not
trust the row).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobmond.model.job import Job
from jobmond.model.outcome import Followup
from jobmond.model.setting import Setting
from jobmond.model.state import Bucket, State

DEEP_PROBE = "deep-probe"
NAMING = ("model", "image", "config", "commit")
_LONGEST = 2000  # characters of a submit line
# Options of sbatch that say when, under which name and beside what a job runs, not what it does.
_VALUED = frozenset(
    {
        "--dependency", "--job-name", "--output", "--error", "--begin", "--deadline", "--time",
        "--time-min", "--nice", "--priority", "--comment", "--exclude", "--nodelist", "--mail-type",
        "--mail-user", "--reservation", "--account", "--qos", "--chdir", "--signal",
        "-d", "-J", "-o", "-e", "-b", "-t", "-x", "-w", "-A", "-q", "-D",
    }
)  # fmt: skip
_KEPT_VALUED = frozenset(
    {
        "-N", "--nodes", "-n", "--ntasks", "-c", "--cpus-per-task", "-G", "--gpus", "--gres",
        "--gpus-per-node", "--gpus-per-task", "--ntasks-per-node", "--mem", "--mem-per-gpu",
        "--mem-per-cpu", "-C", "--constraint", "--export", "-a", "--array", "--wrap",
        "--cpus-per-gpu", "-M", "--clusters",
    }
)  # fmt: skip
_FLAGS = frozenset({"--parsable", "--hold", "-H", "--requeue", "--no-requeue", "-Q", "--quiet"})
_NODES = re.compile(r"([^\[\],]*)(?:\[([^\]]*)\])?[^,]*")


@dataclass(frozen=True, slots=True)
class Tried:
    """What is known of earlier runs on a cluster: settings of which one completed, and all
    deep probes that were ever owed there.
    """

    completed: Sequence[Setting] = ()
    probes: Sequence[Followup] = ()

    def tested(self, setting: Setting) -> bool:
        """Whether a run of it completed, or a person has probed it."""
        done = [one for one in self.probes if one.state != "open"]
        return any(same(setting, one) for one in self.completed) or any(
            same(setting, probed(one)) for one in done
        )

    def owed(self, setting: Setting) -> bool:
        """Whether a probe of it is open, or was closed."""
        return any(same(setting, probed(one)) for one in self.probes)

    def verdict(self, setting: Setting) -> str | None:
        """What the last probe of it came to: `kill` or `no-kill`."""
        told = [p.verdict for p in self.probes if p.verdict and same(setting, probed(p))]
        return told[-1] if told else None


NOTHING_TRIED = Tried()


def setting_of(job: Job) -> Setting | None:
    """The setting of an RL run; None for other jobs, and where nothing tells it from another."""
    if job.bucket is not Bucket.RL:
        return None
    facts = job.facts
    submit = _submitted(facts.submit_line, job) if facts.submit_line else None
    script = _unnamed(facts.command, job) if facts.command else None
    smoke = job.run if "smoke" in job.labels else None
    pairs = (label.partition("=")[::2] for label in sorted(job.labels))
    named = {name: value for name, value in pairs if name in NAMING and value}
    if not (submit or script or named or smoke):
        return None
    nodes = facts.node_count or (node_count(facts.nodes) if facts.nodes else None)
    return Setting(submit, script, nodes, facts.gpus, named, smoke)


def same(one: Setting, other: Setting) -> bool:
    """Whether nothing that both say differs, and they have something in common to go by."""
    if one.smoke != other.smoke:
        return False
    named = [(one.named.get(name), other.named.get(name)) for name in NAMING]
    launched = [(one.submit, other.submit), (one.script, other.script)]
    sized: list[tuple[object, object]] = [(one.nodes, other.nodes), (one.gpus, other.gpus)]
    known = [(a, b) for a, b in (*named, *launched, *sized) if a is not None and b is not None]
    if any(a != b for a, b in known):
        return False
    return one.smoke is not None or any(
        a is not None and b is not None for a, b in (*launched, *named)
    )


def _submitted(line: str, job: Job) -> str:
    """A submit line without the options that differ between launches of the same thing."""
    words, kept = iter(line[:_LONGEST].split()), []
    for word in words:
        option, valued, _ = word.partition("=")
        if not word.startswith("-"):
            kept.append(word)
            if kept[0] != word or not _is_sbatch(word):
                break
        elif option in _VALUED:
            if not valued:
                next(words, None)
        elif word not in _FLAGS and word[:2] not in _VALUED:
            kept.append(word)
            if not valued and option in _KEPT_VALUED:
                kept.append(next(words, ""))
    return _unnamed(" ".join([*kept, *words]), job)


def _is_sbatch(word: str) -> bool:
    return word.rpartition("/")[2] in ("sbatch", "srun", "salloc")


def _unnamed(text: str, job: Job) -> str:
    """Copies of a run that were started again differ by their name alone."""
    name = job.facts.name or ""
    return text.replace(name, job.run) if name and name != job.run else text


def node_count(nodes: str) -> int | None:
    """How many `n[1-4,7],login1` are; None where that cannot be read."""
    total = 0
    for _, inside in _NODES.findall(nodes):
        if not inside:
            continue
        for span in inside.split(","):
            first, _, last = span.partition("-")
            if not (first.isdigit() and (last or first).isdigit()) or len(span) > 40:
                return None
            if int(last or first) < int(first):
                return None
            total += int(last or first) - int(first) + 1
    plain = re.sub(r"[^,]*\[[^\]]*\][^,]*", "", nodes)
    total += sum(1 for name in plain.split(",") if name.strip())
    return total or None


def plain_setting(setting: Setting) -> dict[str, Any]:
    """As JSON, what is not known left out."""
    held: dict[str, Any] = {
        name: getattr(setting, name) for name in ("submit", "script", "nodes", "gpus", "smoke")
    }
    known = {name: value for name, value in held.items() if value is not None}
    return {**known, **({"named": dict(setting.named)} if setting.named else {})}


def read_setting(held: Mapping[str, Any]) -> Setting:
    """What `plain_setting` made."""
    known = {name: held.get(name) for name in ("submit", "script", "nodes", "gpus", "smoke")}
    return Setting(**known, named=dict(held.get("named") or {}))


def probed(followup: Followup) -> Setting:
    """The setting that a deep probe is about."""
    return read_setting(followup.evidence.get("setting") or {})


def completed_now(jobs: Iterable[Job]) -> list[Setting]:
    """The settings of runs that are COMPLETED; a smoke test proves nothing of another run."""
    ended = (setting_of(job) for job in jobs if job.state is State.COMPLETED)
    return [setting for setting in ended if setting is not None]


def words_of(setting: Setting) -> str:
    """The setting in a few words: geometry and what it is launched by."""
    size = [_many(setting.nodes, "node"), _many(setting.gpus, "GPU")]
    named = [f"{name} {value}" for name, value in setting.named.items()]
    said = ", ".join(filter(None, [*size, *named]))
    return said or (setting.script or setting.submit or "")[:80]


def _many(count: int | None, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}" if count else ""
