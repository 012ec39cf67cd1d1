"""Which settings of RL runs completed, and how a probe of a job's setting stands."""

import sqlalchemy as sa
from alembic import op

revision = "0008_settings_tried"
down_revision = "0007_followup_evidence"


def upgrade() -> None:
    op.add_column("incarnations", sa.Column("probe", sa.Text()))
    op.create_table(
        "settings_tried",
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("setting", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "digest", name="pk_settings_tried"),
    )


def downgrade() -> None:
    op.drop_table("settings_tried")
    op.drop_column("incarnations", "probe")
