"""ResourceClaims from their making to their end: generated, recorded, reserved, released, deleted."""

from drakit.controllers.claims.consumers import is_done
from drakit.controllers.claims.controller import ClaimController

__all__ = ["ClaimController", "is_done"]
