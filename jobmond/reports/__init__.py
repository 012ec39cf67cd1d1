"""VALUES to TEXT: pure."""
