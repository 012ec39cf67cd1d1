"""LINES to METRIC POINTS: pure, one file a dialect."""
