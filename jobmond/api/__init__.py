"""The daemon's local HTTP interface: JSON over a Unix socket."""
