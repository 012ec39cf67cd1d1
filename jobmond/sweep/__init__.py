"""WHERE THEY MEET: observe, decide, commit, deliver."""
