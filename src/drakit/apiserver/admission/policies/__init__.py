"""Admission policies, validating and mutating, and their bindings."""
