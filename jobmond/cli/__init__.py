"""The jobmonctl program."""
