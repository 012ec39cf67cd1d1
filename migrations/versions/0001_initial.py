"""Runs and their incarnations, what happened to them, and what is owed."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _runs()
    _incarnations()
    _transitions()
    _signals()
    _events()
    _outbox()
    _followups()
    _clusters()
    _cluster_calls()
    _audit()
    _meta()
    op.execute("INSERT INTO meta (id, created_at) VALUES (1, CURRENT_TIMESTAMP)")


def downgrade() -> None:
    tables = (
        "runs",
        "incarnations",
        "transitions",
        "signals",
        "events",
        "outbox",
        "followups",
        "clusters",
        "cluster_calls",
        "audit",
        "meta",
    )
    for table in reversed(tables):
        op.drop_table(table)


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("cluster", "name", name="uq_runs_cluster_name"),
    )


def _incarnations() -> None:
    op.create_table(
        "incarnations",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("native_id", sa.Text(), nullable=False),
        sa.Column("birth", sa.Text()),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("life", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("bucket", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("choices", sa.JSON(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("native", sa.Text(), nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("tracked", sa.Boolean(), nullable=False),
        sa.Column("untracked_at", sa.DateTime(timezone=True)),
        sa.Column("untracked_by", sa.Text()),
        sa.Column("discovered", sa.Boolean(), nullable=False),
        sa.Column("stale", sa.Boolean(), nullable=False),
        sa.Column("first_seen_at", sa.DateTime(timezone=True)),
        sa.Column("seen_at", sa.DateTime(timezone=True)),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("absent_since", sa.DateTime(timezone=True)),
        sa.Column("proof", sa.Text()),
        sa.Column("transitions", sa.Integer(), nullable=False),
        sa.Column("post_mortem", sa.Text(), nullable=False),
        sa.Column("post_mortem_tries", sa.Integer(), nullable=False),
        sa.Column("log", sa.JSON(), nullable=False),
        sa.Column("diagnosis", sa.JSON()),
        sa.Column("agent_log", sa.Text()),
        sa.Column("successor", sa.Text()),
        sa.Column("predecessor_id", sa.Integer()),
        sa.Column("note", sa.Text()),
        sa.ForeignKeyConstraint(
            ["predecessor_id"],
            ["incarnations.id"],
            name="fk_incarnations_predecessor_id_incarnations",
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_incarnations_run_id_runs"),
        sa.PrimaryKeyConstraint("id", name="pk_incarnations"),
        sa.UniqueConstraint(
            "cluster",
            "kind",
            "native_id",
            "birth",
            name="uq_incarnations_cluster_kind_native_id_birth",
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_incarnations_ended_at", "incarnations", ["ended_at"])
    op.create_index("ix_incarnations_name", "incarnations", ["name"])
    op.create_index("ix_incarnations_native_id", "incarnations", ["native_id"])
    op.create_index("ix_incarnations_post_mortem", "incarnations", ["post_mortem"])
    op.create_index("ix_incarnations_predecessor_id", "incarnations", ["predecessor_id"])
    op.create_index("ix_incarnations_run_id_life", "incarnations", ["run_id", "life"])
    op.create_index(
        "uq_incarnations_tracked",
        "incarnations",
        ["cluster", "kind", "native_id"],
        unique=True,
        sqlite_where=sa.text("tracked = 1"),
        postgresql_where=sa.text("tracked"),
    )


def _transitions() -> None:
    op.create_table(
        "transitions",
        sa.Column("incarnation_id", sa.Integer(), nullable=False),
        sa.Column("n", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("before", sa.Text()),
        sa.Column("after", sa.Text(), nullable=False),
        sa.Column("native", sa.Text(), nullable=False),
        sa.Column("correction", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["incarnation_id"],
            ["incarnations.id"],
            name="fk_transitions_incarnation_id_incarnations",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("incarnation_id", "n", name="pk_transitions"),
    )


def _signals() -> None:
    op.create_table(
        "signals",
        sa.Column("incarnation_id", sa.Integer(), nullable=False),
        sa.Column("n", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger()),
        sa.Column("last_step", sa.BigInteger()),
        sa.Column("opened_at", sa.DateTime(timezone=True)),
        sa.Column("cleared_at", sa.DateTime(timezone=True)),
        sa.Column("recovered_at", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(
            ["incarnation_id"],
            ["incarnations.id"],
            name="fk_signals_incarnation_id_incarnations",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("incarnation_id", "n", name="pk_signals"),
    )


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("ref", sa.Text()),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_events"),
        sa.UniqueConstraint("key", name="uq_events_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_at", "events", ["at"])


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("sink", sa.Text(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("last_error", sa.Text()),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
        sa.UniqueConstraint("key", "sink", name="uq_outbox_key_sink"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_outbox_state_sink_id", "outbox", ["state", "sink", "id"])


def _followups() -> None:
    op.create_table(
        "followups",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("ref", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True)),
        sa.Column("closed_by", sa.Text()),
        sa.Column("verdict", sa.Text()),
        sa.Column("note", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_followups"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_followups_open",
        "followups",
        ["kind", "ref"],
        unique=True,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )


def _clusters() -> None:
    op.create_table(
        "clusters",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_ok_at", sa.DateTime(timezone=True)),
        sa.Column("error", sa.Text()),
        sa.Column("remedy", sa.Text()),
        sa.Column("notes", sa.Text()),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("retry_at", sa.DateTime(timezone=True)),
        sa.Column("swept_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_clusters"),
    )


def _cluster_calls() -> None:
    op.create_table(
        "cluster_calls",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("logins", sa.Integer(), nullable=False),
        sa.Column("calls", sa.JSON(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_cluster_calls"),
    )
    op.create_index("ix_cluster_calls_at", "cluster_calls", ["at"])


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("uid", sa.BigInteger()),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text()),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_at", "audit", ["at"])


def _meta() -> None:
    op.create_table(
        "meta",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_sweep_at", sa.DateTime(timezone=True)),
        sa.Column("next_sweep_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_meta"),
    )
