"""What is written down of a collapse before anything is done about it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from jobmond import __version__
from jobmond.analysis.logscan import Scan
from jobmond.analysis.objects import plain
from jobmond.analysis.outputs import saved_steps
from jobmond.model.job import Job
from jobmond.model.outcome import Signal
from jobmond.reports.entry import entry_path
from jobmond.reports.markdown import code, fence, time, yaml_value

_SHOWN = (
    "reward",
    "pass_at_n",
    "policy_loss",
    "entropy",
    "grad_norm",
    "clip_ratio",
    "importance_ratio",
    "log_ratio_abs_mean",
    "log_ratio_abs_max",
    "kl",
)


def collapse_entry(
    job: Job,
    signal: Signal,
    *,
    steps: Sequence[tuple[int, Mapping[str, float]]],
    scan: Scan | None,
    decision: str,
    now: datetime,
) -> tuple[str, str]:
    """Path below the folder of entries, and text. `steps` are the last logged ones, ascending;
    `decision` says what follows and by whose leave. The same values give the same text.
    """
    saved = salvage(job, signal)
    parts = [
        "---",
        *_front_matter(job, signal, decision, saved, now),
        "---",
        "",
        f"# Collapse at step {signal.step}: {code(job.name)} ({code(job.ref)})",
        "",
        f"- What: {code(signal.title)}",
        *(f"- {name}: {value}" for name, value in sorted(plain(signal.evidence).items())),
        f"- Decision: {code(decision)}",
        f"- Salvage: {_salvage(saved, signal)}",
        f"- Run: {code(job.run)}, life {job.life}",
        f"- Work directory: {code(job.facts.workdir or 'not known')}",
        f"- Command: {code(job.facts.command or 'not known')}",
        f"- Nodes: {code(job.facts.nodes or 'not known')}",
        f"- Log: {code(job.log.path or job.facts.log_path or 'not known')}",
        "",
        "## Last steps",
        "",
        *_table(steps),
        "",
        *_tail(scan),
    ]
    path = entry_path(job, now=now).removesuffix(".md")
    return f"{path}-collapse-{signal.step}.md", "\n".join(parts) + "\n"


def salvage(job: Job, signal: Signal) -> int | None:
    """The last checkpoint before the first firing step: a complete one of those on disk, where
    they were looked at, else of those that the log says were saved.
    """
    saved = saved_steps(job)
    return max((step for step in saved if signal.step is None or step < signal.step), default=None)


def _front_matter(
    job: Job, signal: Signal, decision: str, saved: int | None, now: datetime
) -> Iterable[str]:
    values = {
        "schema": 1,
        "jobmond": __version__,
        "written_for": "collapse",
        "ref": job.ref,
        "birth": job.birth,
        "cluster": job.cluster,
        "kind": job.kind.value,
        "native_id": job.native_id,
        "name": job.name,
        "bucket": job.bucket.value,
        "run": job.run,
        "life": job.life,
        "rule": signal.rule,
        "step": signal.step,
        "last_step": signal.last_step,
        "evidence": plain(signal.evidence),
        "decision": decision,
        "salvage_step": saved,
        "checkpoints": list(saved_steps(job)),
        "log_path": job.log.path or job.facts.log_path,
        "log_bytes": job.log.size_bytes,
        "at": time(now),
    }
    return [f"{name}: {yaml_value(value)}" for name, value in values.items()]


def _salvage(saved: int | None, signal: Signal) -> str:
    if saved is None:
        return f"no complete checkpoint is known before step {signal.step}"
    return f"checkpoint of step {saved}, the last complete one before step {signal.step}"


def _table(steps: Sequence[tuple[int, Mapping[str, float]]]) -> Iterable[str]:
    names = [name for name in _SHOWN if any(name in values for _, values in steps)]
    if not names:
        yield "No metrics were read."
        return
    yield f"| step | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    for step, values in steps:
        cells = (f"{values[name]:.6g}" if name in values else "—" for name in names)
        yield f"| {step} | {' | '.join(cells)} |"


def _tail(scan: Scan | None) -> Iterable[str]:
    yield from ("## End of the log", "")
    if scan is None or not scan.last_lines:
        yield "It could not be read."
        return
    yield from fence(scan.last_lines)
