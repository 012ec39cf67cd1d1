"""The tables. What is filtered or joined has a column; what is only carried is JSON."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    UniqueConstraint,
    text,
)

from jobmond.store.columns import Instant, Json, Words

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("cluster", Words, nullable=False),
    Column("name", Words, nullable=False),
    UniqueConstraint("cluster", "name"),
)

# `untracked_at` is when a row left tracking, `untracked_by` the person who said so: a sweep may
# take up again what a sweep dropped (a lost job that turns up alive), never what a person did.
incarnations = Table(
    "incarnations",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("cluster", Words, nullable=False),
    Column("kind", Words, nullable=False),
    Column("native_id", Words, nullable=False),
    Column("birth", Words),
    Column("run_id", ForeignKey("runs.id"), nullable=False),
    Column("life", Integer, nullable=False),
    Column("name", Words, nullable=False),
    Column("bucket", Words, nullable=False),
    Column("type", Words, nullable=False),
    Column("labels", Json, nullable=False),
    Column("choices", Json, nullable=False),
    Column("facts", Json, nullable=False),
    Column("state", Words, nullable=False),
    Column("native", Words, nullable=False),
    Column("added_at", Instant, nullable=False),
    Column("tracked", Boolean, nullable=False),
    Column("untracked_at", Instant),
    Column("untracked_by", Words),
    Column("discovered", Boolean, nullable=False),
    Column("stale", Boolean, nullable=False),
    Column("first_seen_at", Instant),
    Column("seen_at", Instant),
    Column("ended_at", Instant),
    Column("absent_since", Instant),
    Column("proof", Words),
    Column("transitions", Integer, nullable=False),
    Column("post_mortem", Words, nullable=False),
    Column("post_mortem_tries", Integer, nullable=False),
    Column("log", Json, nullable=False),
    Column("training", Json),
    Column("work", Json),
    Column("parts", Json),
    Column("diagnosis", Json),
    Column("agent_log", Words),
    Column("successor", Words),
    Column("predecessor_id", ForeignKey("incarnations.id", ondelete="SET NULL")),
    Column("probe", Words),
    Column("note", Words),
    UniqueConstraint("cluster", "kind", "native_id", "birth"),
    Index(None, "run_id", "life"),
    Index(None, "native_id"),
    Index(None, "name"),
    Index(None, "ended_at"),
    Index(None, "post_mortem"),
    Index(None, "predecessor_id"),
    sqlite_autoincrement=True,
)
Index(
    "uq_incarnations_tracked",
    incarnations.c.cluster,
    incarnations.c.kind,
    incarnations.c.native_id,
    unique=True,
    sqlite_where=text("tracked = 1"),
    postgresql_where=text("tracked"),
)

# Where the reading of each log stands. `place` and `needles` are asked for in every sweep,
# `reading` (JSON, deflated) only when there is something new.
bookmarks = Table(
    "bookmarks",
    metadata,
    Column("incarnation_id", ForeignKey("incarnations.id", ondelete="CASCADE"), primary_key=True),
    Column("path", Words, nullable=False),
    Column("place", Json),
    Column("needles", Json, nullable=False),
    Column("reading", LargeBinary, nullable=False),
)

# Jobs that are to be cancelled. One for a rule and incarnation: nothing is decided twice.
intents = Table(
    "intents",
    metadata,
    Column("id", Integer, primary_key=True),
    Column(
        "incarnation_id",
        ForeignKey("incarnations.id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("rule", Words, nullable=False),
    Column("step", BigInteger),
    Column("evidence", Words, nullable=False),
    Column("allowed_by", Words, nullable=False),
    Column("decided_at", Instant, nullable=False),
    Column("stage", Words, nullable=False, index=True),
    Column("asked_at", Instant),
    Column("attempts", Integer, nullable=False),
    Column("detail", Words),
    UniqueConstraint("incarnation_id", "rule"),
    sqlite_autoincrement=True,
)

# What is known of each tree of trials between two looks (JSON, deflated).
trees = Table(
    "trees",
    metadata,
    Column("incarnation_id", ForeignKey("incarnations.id", ondelete="CASCADE"), primary_key=True),
    Column("memory", LargeBinary, nullable=False),
)

transitions = Table(
    "transitions",
    metadata,
    Column("incarnation_id", ForeignKey("incarnations.id", ondelete="CASCADE"), primary_key=True),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("at", Instant, nullable=False),
    Column("before", Words),
    Column("after", Words, nullable=False),
    Column("native", Words, nullable=False),
    Column("correction", Boolean, nullable=False),
)

# `n` is the place in the life's tuple: a rule that cleared and fired again has two rows.
signals = Table(
    "signals",
    metadata,
    Column("incarnation_id", ForeignKey("incarnations.id", ondelete="CASCADE"), primary_key=True),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("rule", Words, nullable=False),
    Column("severity", Words, nullable=False),
    Column("title", Words, nullable=False),
    Column("evidence", Json, nullable=False),
    Column("action", Words, nullable=False),
    Column("step", BigInteger),
    Column("last_step", BigInteger),
    Column("opened_at", Instant),
    Column("cleared_at", Instant),
    Column("recovered_at", Instant),
)

events = Table(
    "events",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("key", Words, nullable=False, unique=True),
    Column("at", Instant, nullable=False, index=True),
    Column("type", Words, nullable=False),
    Column("severity", Words, nullable=False),
    Column("cluster", Words, nullable=False),
    Column("ref", Words),
    Column("payload", Json, nullable=False),
    sqlite_autoincrement=True,
)

# `settled_at` is when a delivery was delivered or given up.
outbox = Table(
    "outbox",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Words, nullable=False),
    Column("sink", Words, nullable=False),
    Column("body", Json, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("due_at", Instant, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("last_error", Words),
    Column("state", Words, nullable=False),
    Column("settled_at", Instant),
    UniqueConstraint("key", "sink"),
    Index(None, "state", "sink", "id"),
    sqlite_autoincrement=True,
)

followups = Table(
    "followups",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("kind", Words, nullable=False),
    Column("ref", Words, nullable=False),
    Column("title", Words, nullable=False),
    Column("opened_at", Instant, nullable=False),
    Column("state", Words, nullable=False),
    Column("closed_at", Instant),
    Column("closed_by", Words),
    Column("verdict", Words),
    Column("note", Words),
    Column("evidence", Json),
    sqlite_autoincrement=True,
)
Index(
    "uq_followups_open",
    followups.c.kind,
    followups.c.ref,
    unique=True,
    sqlite_where=text("state = 'open'"),
    postgresql_where=text("state = 'open'"),
)

# Settings of which a run completed; `digest` is of the setting's JSON.
settings_tried = Table(
    "settings_tried",
    metadata,
    Column("cluster", Words, primary_key=True),
    Column("digest", Words, primary_key=True),
    Column("setting", Json, nullable=False),
    Column("completed_at", Instant, nullable=False),
)

clusters = Table(
    "clusters",
    metadata,
    Column("name", Words, primary_key=True),
    Column("kind", Words, nullable=False),
    Column("active", Boolean, nullable=False),
    Column("status", Words, nullable=False),
    Column("since", Instant, nullable=False),
    Column("last_ok_at", Instant),
    Column("error", Words),
    Column("remedy", Words),
    Column("notes", Words),
    Column("failures", Integer, nullable=False),
    Column("retry_at", Instant),
    Column("swept_at", Instant, nullable=False),
)

cluster_calls = Table(
    "cluster_calls",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("cluster", Words, nullable=False),
    Column("at", Instant, nullable=False, index=True),
    Column("logins", Integer, nullable=False),
    Column("calls", Json, nullable=False),
    Column("total", Integer, nullable=False),
    Column("moved_bytes", BigInteger, nullable=False, server_default="0"),
)

audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Instant, nullable=False, index=True),
    Column("uid", BigInteger),
    Column("action", Words, nullable=False),
    Column("subject", Words),
    Column("detail", Json, nullable=False),
    sqlite_autoincrement=True,
)

# One row, written by the first migration.
meta = Table(
    "meta",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("created_at", Instant, nullable=False),
    Column("last_sweep_at", Instant),
    Column("next_sweep_at", Instant),
)

# Files that somebody asked to watch, beside those of the configuration.
registry_files = Table(
    "registry_files",
    metadata,
    Column("path", Words, primary_key=True),
    Column("watched_since", Instant, nullable=False),
    Column("watched_by", Words, nullable=False),
)

# `stage`: `present` in the file, `missing` since the last look, `gone` for good. A row outlives its
# entry, so that one whose incarnation has ended is known when a file brings it back. `sole` is
# whether nobody but registry files asked for the job. `last_status` is what stood there last.
registry_entries = Table(
    "registry_entries",
    metadata,
    Column("path", Words, primary_key=True),
    Column("key", Words, primary_key=True),
    Column(
        "incarnation_id",
        ForeignKey("incarnations.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("stage", Words, nullable=False),
    Column("since", Instant, nullable=False),
    Column("sole", Boolean, nullable=False),
    Column("last_status", Words),
)
