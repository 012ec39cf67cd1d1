"""Jobs that are to be cancelled, by whose leave, and how far that has come."""

import sqlalchemy as sa
from alembic import op

revision = "0005_intents"
down_revision = "0004_parts"


def upgrade() -> None:
    op.create_table(
        "intents",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("incarnation_id", sa.Integer(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger()),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("allowed_by", sa.Text(), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True)),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("detail", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_intents"),
        sa.ForeignKeyConstraint(
            ["incarnation_id"],
            ["incarnations.id"],
            name="fk_intents_incarnation_id_incarnations",
            ondelete="CASCADE",
        ),
        sa.UniqueConstraint("incarnation_id", "rule", name="uq_intents_incarnation_id_rule"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_intents_stage", "intents", ["stage"])


def downgrade() -> None:
    op.drop_table("intents")
