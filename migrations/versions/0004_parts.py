"""Jobs whose parts have jobs in SLURM of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0004_parts"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("incarnations", sa.Column("parts", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("incarnations", "parts")
