"""Things of which each can be held by one owner at a time: CPUs, addresses, ports of a switch.

In:  a directory, names, and who wants some.
Out: names that nobody else holds. A file per name says who holds it, so that this outlives the process; two processes
     never get the same name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from drakit.base.errors import Unavailable


class Leases:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def take(self, names: Iterable[str], count: int, owner: str) -> list[str]:
        """Take `count` of the names, in order. Idempotent: an owner gets what it holds already. Raise Unavailable."""
        listed = list(names)
        taken = [each for each in listed if self.owner(each) == owner]
        for each in listed:
            if len(taken) >= count:
                break
            if each not in taken and self._hold(each, owner):
                taken.append(each)
        if len(taken) < count:
            # All or nothing: a claim that fails must not keep what others could use.
            self.release(owner)
            raise Unavailable(f"{count} are wanted, and only {len(taken)} of {len(listed)} are free")
        return sorted(taken[:count], key=listed.index)

    def owner(self, name: str) -> str:
        """Who holds it; empty when nobody does."""
        try:
            return (self._directory / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def release(self, owner: str) -> None:
        """Everything that this owner, or a part of it (`owner/…`), holds. Idempotent."""
        for path in self._directory.glob("[!.]*"):
            held = self.owner(path.name)
            if held == owner or held.startswith(f"{owner}/"):
                path.unlink(missing_ok=True)

    def _hold(self, name: str, owner: str) -> bool:
        """A link appears with its content or not at all, and only where nothing is yet."""
        self._directory.mkdir(parents=True, exist_ok=True)
        temporary = self._directory / f".{uuid4().hex}"
        temporary.write_text(owner, encoding="utf-8")
        try:
            # link fails if the name exists, also between processes; a rename would replace it.
            os.link(temporary, self._directory / name)
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        return True
