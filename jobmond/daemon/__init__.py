"""When to sweep: the bell, requests, signals."""
