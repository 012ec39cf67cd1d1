"""The whole configuration. Attribute names are the keys of the file."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from jobmond.model.job import ClassifyRule
from jobmond.model.state import Bucket
from jobmond.settings.clusters import AnyCluster
from jobmond.settings.fields import (
    Command,
    Count,
    Duration,
    Interval,
    Keep,
    Labels,
    LocalGlobs,
    LocalPath,
    Name,
    Regex,
    Table,
    User,
    Users,
    here,
)
from jobmond.settings.followups import FollowupCommand, FollowupKind

_FIFTEEN_MINUTES = timedelta(minutes=15)
_DATABASES = ("sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg")


def _database_url(url: str) -> str:
    if url.partition("://")[0] not in _DATABASES or "://" not in url:
        raise ValueError("expected sqlite:////PATH or postgresql+psycopg://HOST/NAME")
    return url


class Database(Table):
    """`[database]`."""

    # May hold a password: kept out of every repr.
    url: Annotated[str, AfterValidator(_database_url), Field(repr=False)] = Field(
        default_factory=lambda: f"sqlite:///{quote(str(here().state / 'jobmond.db'))}", repr=False
    )
    """SQLite on this host, or `postgresql+psycopg://…` (extra `postgres`)."""


class Nel(Table):
    """`[nel]`: the nemo-evaluator launcher of this host. A job may have its own, by `add`."""

    command: Command = ()
    """How it is called; default `nemo-evaluator-launcher`, as it is on PATH."""
    home: LocalPath | None = None
    """The home folder of whoever launches, or `.nemo-evaluator` in it; default that of jobmond."""
    exec_db: LocalPath | None = None
    """Its execution database; default `.nemo-evaluator/exec-db/exec.v1.jsonl` in `home`."""
    timeout: Interval = timedelta(seconds=45)
    """How long it may take to tell about one invocation; it has no time limit of its own."""


class Launcher(Table):
    """`[launcher]`: the experiment launcher (NeMo-Run) of this host."""

    home: LocalPath | None = None
    """Its home folder, with its `.slurm_jobs`; default `$NEMORUN_HOME`, or `~/.nemo_run`."""
    experiments_dir: LocalPath | None = None
    """Where it keeps its experiments, if not in `experiments` there."""
    silent: Interval = timedelta(hours=1)
    """An output file that names no job and has not grown for this long is that of a launcher which
    is gone."""


_TEMPLATE = re.compile(r"\\g<([^>]*)>|\\(.?)", re.DOTALL)
_CONDITIONS = ("name", "partition", "account", "comment", "workdir")


class Classify(Table):
    """One `[[classify]]` table: where jobs belong by what they are called. The first match wins."""

    name: Regex | None = None
    """Regular expression searched in the job's name."""
    partition: Regex | None = None
    """Searched in the partition."""
    account: Regex | None = None
    """Searched in the account."""
    comment: Regex | None = None
    """Searched in the comment."""
    workdir: Regex | None = None
    """Searched in the work directory."""
    bucket: Bucket | None = None
    """`rl`, `sft`, `datagen`, `eval` or `other`."""
    labels: Labels = ()
    """Labels that such jobs get."""
    run: str | None = None
    r"""The run's name, with `\g<group>` of `name`; default the name without a restart suffix."""
    type: str | None = None
    """What the Catch-all table calls it."""

    @model_validator(mode="after")
    def _usable(self) -> "Classify":
        if all(getattr(self, word) is None for word in _CONDITIONS):
            raise ValueError(f"needs at least one of {', '.join(_CONDITIONS)}")
        groups = re.compile(self.name or "")
        for group, escaped in _TEMPLATE.findall(self.run or ""):
            if group not in groups.groupindex and not (
                (group or escaped).isdecimal() and int(group or escaped) <= groups.groups
            ):
                raise ValueError(f"run refers to a group that name does not have: {self.run!r}")
        return self

    def rule(self) -> ClassifyRule:
        """The same as the decisions take it."""
        return ClassifyRule(**{key: getattr(self, key) for key in type(self).model_fields})


class Policy(Table):
    """`[policy]`: what may follow from a verdict."""

    on_collapse: Literal["recommend", "cancel"] = "recommend"
    """What a proved collapse of an RL run leads to."""
    no_kill: bool = False
    """Nothing is ever cancelled, anywhere."""
    cancel_again_after: Interval = timedelta(minutes=10)
    """A job that was asked to end and still runs is asked again after this, twice at most."""


class SinkTable(Table):
    """One `[sinks.NAME]`: its kind, and the options that kind takes."""

    model_config = ConfigDict(extra="allow")

    kind: Name
    """`journal`, `file` or `webhook`."""

    @property
    def options(self) -> dict[str, Any]:
        """Everything but the kind, as the sink's constructor takes it."""
        return dict(self.model_extra or {})

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """Options may be secret: only their names are shown."""
        yield "kind", self.kind
        yield "options", sorted(self.options)


def builtin_clusters() -> dict[str, Any]:
    """The clusters of a configuration that names none: this host."""
    return {"local": {"kind": "local", "discover": True}}


def builtin_sinks() -> dict[str, Any]:
    """The sinks of a configuration that names none: the journal and a file."""
    return {
        "journal": {"kind": "journal"},
        "news": {"kind": "file", "path": str(here().state / "news.jsonl")},
    }


class Settings(BaseSettings):
    """Every setting. Durations are `timedelta`, paths absolute."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
        validate_default=True,
    )

    poll_interval: Interval = _FIFTEEN_MINUTES
    """How often clusters are asked."""
    jitter: Duration = Field(
        # Measured in the period, so that a short one (in a test, on one's own host) stays a period.
        default_factory=lambda known: known.get("poll_interval", _FIFTEEN_MINUTES) / 15
    )
    """A sweep begins up to this long after its tick, so that many daemons do not ask at once;
    default a fifteenth of `poll_interval`."""
    recent: Duration = timedelta(hours=24)
    """How long a job that ended stays in the reports."""
    grace: Duration = timedelta(minutes=10)
    """A job younger than this that no source knows is not lost yet: accounting lags."""
    lost_after: Duration = timedelta(hours=24)
    """An UNKNOWN job is LOST after this."""
    correction_window: Duration = timedelta(hours=24)
    """How long a LOST job is still looked for, in case a proof turns up."""
    post_mortem_sweeps: Count = 3
    """Sweeps in which log and cause of a failed job are looked for."""
    recurrence_window: Duration = timedelta(days=30)
    """For how long a failure is remembered when later ones are compared with it."""
    on_demand_per_hour: Count = 30
    """Sweeps on demand an hour and cluster; beyond that the last answer is given."""
    on_demand_burst: Count = 10
    """Of these, how many may follow each other at once."""
    backoff_min: Interval = timedelta(minutes=1)
    """First pause after a cluster or a sink failed; it doubles with each failure."""
    backoff_max: Interval = timedelta(hours=1)
    """Longest such pause."""
    history_keep: Keep = None
    """How long ended jobs stay in the history."""
    events_keep: Keep = timedelta(days=90)
    """How long events stay readable."""
    outbox_keep: Keep = timedelta(days=30)
    """How long a delivery that was made is remembered; one that is owed is kept until made."""
    readings_keep: Keep = timedelta(days=7)
    """How long the reading of an ended job's log is kept; a successor goes on from it. One that a
    job still waits to go on from is kept until then."""
    audit_keep: Keep = None
    """How long the trail of who changed what is kept."""
    registry_files: LocalGlobs = ()
    """`active_jobs.json` files to watch; `~` and `*` are understood."""
    agent_logs: LocalPath = Field(default_factory=lambda: here().state / "agent_logs")
    """Where an entry for every failed job is written."""
    socket: LocalPath | None = None
    """Where `jobmonctl` finds the daemon; default a folder only the user can enter."""
    socket_group: User | None = None
    """A group whose members may read everything and change only their own jobs."""
    remind_every: Duration = timedelta(hours=24)
    """How often one reminder of all open follow-ups is sent, a day or more; `0s` sends none."""
    admins: Users = ("root",)
    """Users who may change every job."""

    database: Database = Field(default_factory=Database)
    """Where jobmond remembers."""
    clusters: Mapping[Name, AnyCluster] = Field(default_factory=builtin_clusters)
    """By name. A configuration that names none has this host as `local`."""
    nel: Nel = Field(default_factory=Nel)
    """The nemo-evaluator launcher of this host."""
    launcher: Launcher = Field(default_factory=Launcher)
    """The experiment launcher of this host."""
    classify: tuple[Classify, ...] = ()
    """Which bucket, labels and run a job has by what it is called; the first match wins."""
    policy: Policy = Field(default_factory=Policy)
    """What may follow from a verdict."""
    rules: Mapping[Name, Mapping[str, Any]] = Field(default_factory=dict)
    """Thresholds, by rule."""
    followups: Mapping[FollowupKind, FollowupCommand] = Field(default_factory=dict)
    """Commands for what is owed, by kind: run only where one is given here."""
    sinks: Mapping[Name, SinkTable] = Field(default_factory=builtin_sinks)
    """Where news go, by name. A configuration that names none has `journal` and `news`."""

    @model_validator(mode="after")
    def _ordered(self) -> "Settings":
        if self.backoff_max < self.backoff_min:
            raise ValueError("backoff_max is shorter than backoff_min")
        if self.jitter >= self.poll_interval:
            raise ValueError("jitter must be shorter than poll_interval")
        if timedelta() < self.remind_every < timedelta(days=1):
            raise ValueError("remind_every must be a day or more, or 0s for no reminders")
        return self

    @property
    def classify_rules(self) -> tuple[ClassifyRule, ...]:
        """`classify` as the decisions take it."""
        return tuple(table.rule() for table in self.classify)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is passed: the environment is an argument of `load`, never looked up."""
        return (init_settings,)
