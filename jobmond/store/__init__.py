"""The database, through SQLAlchemy Core."""
