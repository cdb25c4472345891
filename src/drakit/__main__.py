"""`python -m drakit` is `drakit`."""

from drakit.cli.main import run

run()
