"""Scenes and objects for the tests of choosing, here and elsewhere."""

from __future__ import annotations

from typing import Any

from drakit.scheduler.config.args import DynamicResourcesArgs
from drakit.scheduler.dynamicresources import DynamicResources
from drakit.scheduler.plugins import MAKERS


class Plugins:
    """Keeps the plugin that a scheduler makes, so that a test can ask it."""

    def __init__(self, **args: Any) -> None:
        self.made: list[DynamicResources] = []
        self._args = DynamicResourcesArgs(**args)

    def __call__(self, handle: Any, _: Any) -> DynamicResources:
        self.made.append(DynamicResources(handle, self._args))
        return self.made[-1]

    @property
    def makers(self) -> dict[str, Any]:
        return {**MAKERS, "DynamicResources": self}
