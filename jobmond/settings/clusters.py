"""The `[clusters.NAME]` tables, one model a kind."""

from datetime import timedelta
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from jobmond.settings.fields import (
    Bytes,
    Command,
    Count,
    Hosts,
    Interval,
    Jump,
    LocalPath,
    Name,
    Port,
    Regexes,
    Strings,
    Table,
    User,
    Users,
)


def _controller_url(url: str) -> str:
    """Without what a request may not hold; a password in it would be shown with it."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("expected http://HOST:PORT or https://HOST")
    if parts.username is not None or parts.password is not None:
        raise ValueError("no user or password here: use auth_header_file or auth_command")
    if parts.query or parts.fragment:
        raise ValueError("no ? and no # in it: expected http://HOST:PORT or https://HOST")
    return url.rstrip("/")


class Cluster(Table):
    """What every cluster has, whatever its kind."""

    active: bool = True
    """An inactive cluster is never contacted; its jobs are shown as not polled."""
    users: Users = ()
    """Whose jobs; empty means the login user."""
    discover: bool = False
    """Every job of `users` found there is tracked without `add`."""
    no_kill: bool = False
    """Nothing there is ever cancelled; evidence is captured and reported instead."""
    ckpt_dirs: Strings = ()
    """Further folders, at the far side, where a launcher may bank steps."""
    log_dirs: Strings = ()
    """Further folders, at the far side, where logs may be, under names that end in the job's id."""
    trial_dirs: Strings = ()
    """Further folders, at the far side, in which jobs have their trees of trials."""
    tunnel_lines: Regexes = ()
    """Log lines that show a working tunnel between sandboxes and engine."""
    tunnel_down_lines: Regexes = ()
    """Log lines that show a broken one."""
    api_base_lines: Regexes = ()
    """Log lines that show sandboxes using the engine's public URL."""
    api_base_down_lines: Regexes = ()
    """Log lines that show them using an address that they cannot reach."""
    notes: str | None = None
    """A line for people, shown with the cluster."""
    ops_file: LocalPath | None = None
    """Markdown whose YAML front matter wins over this table; read again at every sweep."""
    benign: Regexes = ()
    """Regular expressions of log lines that are noise there, searched in each line: never the cause
    of a failure."""
    sweep_budget: Interval = timedelta(seconds=120)
    """How long one sweep of this cluster may take; what was not read comes first next time."""
    log_failed_bytes: Bytes = 1310720
    """How many bytes of a log are fetched at most once its job has failed: its beginning, its end,
    and what stands around lines that can matter."""
    log_tail_bytes: Bytes = 65536
    """How much of the end of a log one look fetches."""
    log_read_bytes: Bytes = 268435456
    """How much of one log a sweep looks through for new lines; it catches up over sweeps."""
    max_answer_bytes: Bytes = 67108864
    """An answer that is longer than this is an error, never cut short."""


class _Scheduler(Cluster):
    max_scontrol: Annotated[int, Field(ge=0)] = 50
    """How many jobs a sweep may ask `scontrol` about; it takes one id a call."""
    bin_dir: str | None = None
    """Folder of `squeue` at the far side, where a script does not find it on PATH."""


class SlurmCluster(_Scheduler):
    """A SLURM cluster, reached over SSH or from this host."""

    kind: Literal["slurm"]
    """`slurm`."""
    transport: Name = "ssh"
    """`ssh`, `openssh` (through your own master connection) or `local` (SLURM of this host)."""
    host: Hosts = ()
    """A name or an alias of the ssh_config; a list is tried in order, after transient failures."""
    user: User | None = None
    """The login user; default what the ssh_config says, else the user of the daemon."""
    port: Port | None = None
    """The port; default what the ssh_config says, else 22."""
    identity_file: LocalPath | None = None
    """The private key; default what the ssh_config says, and the agent's keys."""
    known_hosts_file: LocalPath | None = None
    """Host keys are always checked; default `~/.ssh/known_hosts`."""
    ssh_config_file: LocalPath | None = None
    """Default `~/.ssh/config`."""
    proxy_jump: Jump | None = None
    """Hosts to go through, as `ssh -J` takes them; default what the ssh_config says."""
    control_path: LocalPath | None = None
    """Socket of your own master connection, for transport openssh; the tokens of ssh_config (`%r`)
    are understood. Default its ControlPath, else a file in the state folder."""
    connect_timeout: Interval = timedelta(seconds=20)
    """How long connecting and logging in may take; with openssh, finding the master."""
    keepalive: Interval = timedelta(seconds=15)
    """A silent connection is asked for a sign of life this often, given up after three."""
    max_channels: Count = 6
    """Scripts that run at once over the one connection; sshd's MaxSessions is 10 by default."""

    @model_validator(mode="after")
    def _reachable(self) -> "SlurmCluster":
        if self.transport != "local" and not self.host:
            raise ValueError(f"host is missing, transport {self.transport} needs it")
        return self


class KubernetesCluster(Cluster):
    """A Kubernetes cluster."""

    kind: Literal["kubernetes"]
    """`kubernetes`."""
    kubeconfig: LocalPath | None = None
    """Default `$KUBECONFIG`, else `~/.kube/config`."""
    context: str | None = None
    """The context in it; default the current one."""
    namespaces: Strings = ()
    """Which namespaces; default the context's."""
    selector: str | None = None
    """A label selector that jobs must match to be discovered."""
    max_misses: Count = 3
    """Sweeps in a row without pods after which a running job is lost."""
    connect_timeout: Interval = timedelta(seconds=10)
    """How long connecting to the API server may take."""
    request_timeout: Interval = timedelta(seconds=30)
    """How long one answer may take, waiting out being throttled included."""
    login_timeout: Interval = timedelta(seconds=30)
    """How long a credential plugin of the kubeconfig may take."""
    page: Annotated[int, Field(ge=1, le=10000)] = 500
    """How many records one request lists."""
    max_events: Annotated[int, Field(ge=0)] = 20
    """Of how many waiting jobs a sweep may ask for the events, which say what their pods do not."""


class IrisCluster(Cluster):
    """An iris controller."""

    kind: Literal["iris"]
    """`iris`."""
    url: Annotated[str, AfterValidator(_controller_url)]
    """Where its interface is."""
    auth_header_file: LocalPath | None = None
    """A file whose one line is sent as the Authorization header, or as the header it names."""
    auth_command: Command = ()
    """A command whose output is sent as the Authorization header, or as the header it names."""
    auth_timeout: Interval = timedelta(seconds=30)
    """How long that command may take."""
    call_timeout: Interval = timedelta(seconds=20)
    """How long one call may take."""
    max_misses: Count = 3
    """Sweeps in a row without a live task after which a running job is lost."""
    max_pages: Count = 10
    """How much of the list of each user's jobs is read, in pages of 500, the newest first."""


class LocalCluster(_Scheduler):
    """This host: its processes, and its SLURM where there is one."""

    kind: Literal["local"]
    """`local`."""
    slurm: Literal["auto"] | bool = "auto"
    """Ask this host's SLURM too; `auto` does where `squeue` is on PATH and finds its
    configuration."""


AnyCluster = Annotated[
    SlurmCluster | KubernetesCluster | IrisCluster | LocalCluster, Field(discriminator="kind")
]
