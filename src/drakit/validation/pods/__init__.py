"""Rules of pods."""
