"""Pack the krew plugin: `python scripts/krew.py dist` writes kubectl-dra.tar.gz there and prints its checksum.

In:  deploy/krew/kubectl-dra and the license.
Out: the same bytes every time, so that the checksum in deploy/krew/dra.yaml can be checked by anybody.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = {"kubectl-dra": (ROOT / "deploy" / "krew" / "kubectl-dra", 0o755), "LICENSE": (ROOT / "LICENSE", 0o644)}
ARCHIVE = "kubectl-dra.tar.gz"


def archive() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (path, mode) in sorted(FILES.items()):
            data = path.read_bytes()
            about = tarfile.TarInfo(name)  # no owner, no time: only what is in it counts
            about.size, about.mode = len(data), mode
            tar.addfile(about, io.BytesIO(data))
    # The level is 0: what a compressor makes of the bytes may change with its version.
    return gzip.compress(packed.getvalue(), compresslevel=0, mtime=0)


def checksum() -> str:
    return hashlib.sha256(archive()).hexdigest()


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ARCHIVE).write_bytes(archive())
    sys.stdout.write(f"{checksum()}  {folder / ARCHIVE}\n")


if __name__ == "__main__":
    main()
