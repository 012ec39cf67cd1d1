"""What logs say about their training, and where the reading of each log stands."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("incarnations", sa.Column("training", sa.JSON(none_as_null=True)))
    op.add_column(
        "cluster_calls",
        sa.Column("moved_bytes", sa.BigInteger(), nullable=False, server_default="0"),
    )
    op.create_table(
        "bookmarks",
        sa.Column("incarnation_id", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("place", sa.JSON(none_as_null=True)),
        sa.Column("needles", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("reading", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("incarnation_id", name="pk_bookmarks"),
        sa.ForeignKeyConstraint(
            ["incarnation_id"],
            ["incarnations.id"],
            name="fk_bookmarks_incarnation_id_incarnations",
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    op.drop_table("bookmarks")
    op.drop_column("cluster_calls", "moved_bytes")
    op.drop_column("incarnations", "training")
