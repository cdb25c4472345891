"""Attacks at full size, and what it takes to measure them."""
