"""The daemon's local HTTP interface."""
