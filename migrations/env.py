"""Alembic's environment: it migrates the connection it is handed and opens none itself.

The caller holds the transaction, so that a migration is whole or did not happen.
"""

from alembic import context

from jobmond.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=context.config.attributes["version_table"],
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
