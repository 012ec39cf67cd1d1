"""The vocabulary: frozen values, standard library only, no decisions."""
