"""The termination message: what a container left for its status.

In:  the file that the container may write to (mounted at its `terminationMessagePath`), its log.
Out: text, at most 4096 bytes. Where the container failed and left nothing, the end of its log if its policy says so: 80
     lines, at most 2048 bytes.
"""

from __future__ import annotations

import os
from pathlib import Path

_MOST = 4096
_LAST_LINES, _LAST_BYTES, _LOG_BLOCK = 80, 2048, 16 * 1024


def last_words(file: str, *, exit_code: int, log_path: str, log_on_error: bool) -> str:
    if not file:
        return ""
    try:
        content = Path(file).read_bytes()
        if not content and exit_code and log_on_error:
            content = _end_of_log(Path(log_path))
    except OSError:
        return ""
    return content[:_MOST].decode("utf-8", "replace")


def _end_of_log(path: Path) -> bytes:
    """The text of its last lines, without what the log format adds."""
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        # Only the end of the file is read: a log may have gigabytes. The first line may be cut, and is dropped below.
        file.seek(max(file.tell() - _LOG_BLOCK, 0))
        entries = [line.split(b" ", 3) for line in file.read().splitlines()[-_LAST_LINES:]]
    text = b"".join(entry[3] + b"\n" * (entry[2] == b"F") for entry in entries if len(entry) == 4)
    return text[-_LAST_BYTES:]
