"""ResourceClaims from their making to their end: generated, recorded, reserved, released, deleted."""

from drakit.controllers.claims.consumers import FINALIZER, is_done
from drakit.controllers.claims.controller import ClaimController

__all__ = ["FINALIZER", "ClaimController", "is_done"]
