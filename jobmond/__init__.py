"""jobmond keeps watch over machine-learning jobs: what changed, why it failed, what is owed."""

__version__ = "0.1.0"
