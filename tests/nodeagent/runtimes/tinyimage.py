"""An image made of a few programs of this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

PROGRAMS = ("sh", "cat", "sleep", "ls", "env", "stty", "head", "tail", "hostname")


def make_root_file_system(root: Path) -> Path:
    """The programs, with the libraries that they need."""
    for name in ("bin", "etc", "tmp", "dev", "proc", "sys"):
        (root / name).mkdir(parents=True)
    for program in PROGRAMS:
        path = Path(shutil.which(program) or "").resolve()
        shutil.copy2(path, root / "bin" / program)
        listed = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+)", listed):
            target = root / library.lstrip("/")
            if Path(library).is_file() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(library, target)
    (root / "etc" / "passwd").write_text("app:x:1234:1235::/:/bin/sh\n")
    return root
