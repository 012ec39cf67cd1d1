"""`jobmonctl sweep` and `discover`."""

import click

from jobmond.cli.jobs import ADD_S, tell_added
from jobmond.cli.session import Session, show_json, surface
from jobmond.cli.session import show as show_lines
from jobmond.cli.wire import ANSWER_S
from jobmond.reports.lists import discovery_text, sweep_line

# Above a cluster's time budget (120 s) twice over: the sweep in hand, then the one asked for.
_SWEEP_S = 600.0
_SILENT = ("unreachable", "needs-login", "inactive")


@click.command()
@click.option("--wait", is_flag=True, help="Return when a sweep that began after this is stored.")
@click.option("--cluster", help="Only this cluster.")
@surface
def sweep(session: Session, wait: bool, cluster: str | None) -> int:
    """Sweep now. With --wait: exit code 1 if an asked cluster did not answer."""
    body = {"cluster": cluster, "wait": wait}
    timeout_s = _SWEEP_S if wait else ANSWER_S
    clusters = session.daemon().post("/v1/sweeps", body, timeout_s=timeout_s)["clusters"]
    if session.as_json:
        show_json({"clusters": clusters})
    else:
        view = session.view()
        for one in clusters:
            click.echo(sweep_line(one, view))
        if not wait:
            click.echo("A sweep was asked for; --wait shows its answer.")
    silent = _SILENT if cluster else _SILENT[:2]
    return 1 if wait and any(one["status"] in silent for one in clusters) else 0


@click.command()
@click.option("--track", is_flag=True, help="Track all of them.")
@click.option("--ascii", "ascii_only", is_flag=True, help="ASCII only.")
@surface
def discover(session: Session, track: bool, ascii_only: bool) -> int:
    """List jobs that nobody registered."""
    daemon = session.daemon()
    jobs = daemon.get("/v1/discover")["jobs"]
    if track and jobs:
        refs = [job["ref"] for job in jobs]
        timeout_s = max(ANSWER_S, len(refs) * ADD_S)
        jobs = daemon.post("/v1/discover", {"refs": refs}, timeout_s=timeout_s)["jobs"]
    code = max((int(job.get("exit_code") or bool(job.get("error"))) for job in jobs), default=0)
    if session.as_json:
        show_json({"jobs": jobs})
        return code
    if track and jobs:
        for job in jobs:
            tell_added(session, job)
    else:
        show_lines(discovery_text(jobs, session.view(ascii_only=ascii_only)))
    return code
