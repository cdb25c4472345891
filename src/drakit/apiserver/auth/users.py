"""A user in the form of `UserInfo`, for reviews, webhooks and the audit log."""

from __future__ import annotations

from typing import Any

from drakit.api.exchange import User


def user_info(user: User) -> dict[str, Any]:
    info: dict[str, Any] = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info
