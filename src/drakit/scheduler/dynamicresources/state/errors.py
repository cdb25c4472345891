"""What ends a binding: the pod is unreserved and tried again."""

from __future__ import annotations

from drakit.base.errors import DrakitError


class CannotBind(DrakitError):
    """The claim cannot be had for the pod."""
