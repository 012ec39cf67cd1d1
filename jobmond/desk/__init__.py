"""What people ask, answered from the store and never from a cluster."""
