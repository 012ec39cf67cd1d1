"""WHAT PEOPLE ASK: requests answered from the store, never from a cluster."""
