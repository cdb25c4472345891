"""Fuzzing: what nobody would send, for as long as somebody likes."""
