"""What trees of trials say, and what is known of each between two looks."""

import sqlalchemy as sa
from alembic import op

revision = "0006_trials"
down_revision = "0005_intents"


def upgrade() -> None:
    op.add_column("incarnations", sa.Column("work", sa.JSON(none_as_null=True)))
    op.create_table(
        "trees",
        sa.Column("incarnation_id", sa.Integer(), nullable=False),
        sa.Column("memory", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("incarnation_id", name="pk_trees"),
        sa.ForeignKeyConstraint(
            ["incarnation_id"],
            ["incarnations.id"],
            name="fk_trees_incarnation_id_incarnations",
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    op.drop_table("trees")
    op.drop_column("incarnations", "work")
