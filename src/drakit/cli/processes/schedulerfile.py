"""The scheduler's configuration, from the file that `--config` names."""

from __future__ import annotations

from pathlib import Path

from drakit.base.gates import FeatureGates
from drakit.base.inputfiles import read_settings
from drakit.cli.flags.files import explained
from drakit.scheduler.config import SchedulerConfiguration, default_configuration, load_configuration


def read_configuration(path: Path | None, gates: FeatureGates) -> SchedulerConfiguration:
    """The default without a file. Raise UsageError that names the file and the field."""
    if path is None:
        return default_configuration(gates)
    with explained("--config"):
        data = read_settings(path)
    return load_configuration(data, source=str(path), gates=gates)
