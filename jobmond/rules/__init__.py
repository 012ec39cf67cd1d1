"""CASE to SIGNALS: one file a rule, thresholds are constructor keywords."""
