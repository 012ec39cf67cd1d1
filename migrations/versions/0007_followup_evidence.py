"""What a follow-up is about, for those that close by themselves."""

import sqlalchemy as sa
from alembic import op

revision = "0007_followup_evidence"
down_revision = "0006_trials"


def upgrade() -> None:
    op.add_column("followups", sa.Column("evidence", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("followups", "evidence")
