"""DECISIONS: pure functions from what was seen to what it means."""
