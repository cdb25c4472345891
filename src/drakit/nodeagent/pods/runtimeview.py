"""What the runtime has of one pod.

In:  everything that the runtime lists.
Out: the pod's sandboxes and containers, newest first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from drakit.nodeagent.runtimes.contract import ContainerInfo, ContainerState, SandboxInfo, SandboxState


@dataclass(frozen=True, slots=True)
class RuntimeView:
    sandboxes: tuple[SandboxInfo, ...] = ()
    containers: tuple[ContainerInfo, ...] = ()

    @staticmethod
    def of(uid: str, sandboxes: Iterable[SandboxInfo], containers: Iterable[ContainerInfo]) -> RuntimeView:
        return RuntimeView(
            tuple(sorted((s for s in sandboxes if s.pod.uid == uid), key=lambda s: s.attempt, reverse=True)),
            # By time too: an agent of an earlier version may have left two of one attempt.
            tuple(sorted((c for c in containers if c.pod.uid == uid), key=_age, reverse=True)),
        )

    @property
    def latest_sandbox(self) -> SandboxInfo | None:
        return self.sandboxes[0] if self.sandboxes else None

    @property
    def ready_sandbox(self) -> SandboxInfo | None:
        """Only the newest counts: one that was replaced is not used again."""
        latest = self.latest_sandbox
        return latest if latest is not None and latest.state is SandboxState.READY else None

    def attempts(self, name: str) -> list[ContainerInfo]:
        return [each for each in self.containers if each.name == name]

    def latest(self, name: str) -> ContainerInfo | None:
        return next((each for each in self.containers if each.name == name), None)

    def running(self) -> list[ContainerInfo]:
        return [each for each in self.containers if each.state is ContainerState.RUNNING]

    def is_running(self, name: str) -> bool:
        latest = self.latest(name)
        return latest is not None and latest.state is ContainerState.RUNNING


def _age(container: ContainerInfo) -> tuple[int, datetime]:
    return container.attempt, container.created
