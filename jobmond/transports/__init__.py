"""BYTES: one I/O library, one file."""
