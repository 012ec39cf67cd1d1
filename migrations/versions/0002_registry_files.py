"""Registry files: which are watched, and which incarnation each of their entries means."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "registry_files",
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("watched_since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("watched_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("path", name="pk_registry_files"),
    )
    op.create_table(
        "registry_entries",
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("incarnation_id", sa.Integer(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sole", sa.Boolean(), nullable=False),
        sa.Column("last_status", sa.Text()),
        sa.PrimaryKeyConstraint("path", "key", name="pk_registry_entries"),
        sa.ForeignKeyConstraint(
            ["incarnation_id"],
            ["incarnations.id"],
            name="fk_registry_entries_incarnation_id_incarnations",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_registry_entries_incarnation_id", "registry_entries", ["incarnation_id"])


def downgrade() -> None:
    op.drop_table("registry_entries")
    op.drop_table("registry_files")
