"""Service accounts with their tokens, and what a server says to who bears one."""

from __future__ import annotations

from typing import Any

from tests.apiserver.auth.people import ADMIN
from tests.apiserver.calls import Api

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def account(api: Api, name: str = "bot") -> None:
    answer = await api.create(ACCOUNTS, {"kind": "ServiceAccount", "metadata": {"name": name}}, user=ADMIN)
    assert answer.code == 201


async def token(api: Api, **spec: Any) -> str:
    answer = await api.create(f"{ACCOUNTS}/bot/token", {"spec": spec}, user=ADMIN)
    assert answer.code == 201, answer.body
    return str(answer.body["status"]["token"])


async def code(api: Api, bearer: str) -> int:
    answer = await api.create(WHO, {"kind": "SelfSubjectReview"}, headers={"authorization": f"Bearer {bearer}"})
    return answer.code
