"""Acting as somebody else needs a right for every part of that somebody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drakit.apiserver.auth import identities
from drakit.apiserver.http.asgi import Application
from tests.apiserver.auth.people import ADMIN, ALICE, Plain, grant, guarded, rule
from tests.apiserver.calls import CLAIMS, Answer, Api, on_loop

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def who_am_i(api: Api, headers: Mapping[str, str], user: Any = ADMIN) -> Answer:
    return await api.create(WHO, {"kind": "SelfSubjectReview"}, user=user, headers=headers)


async def identity(api: Api, headers: Mapping[str, str]) -> Plain:
    found: Plain = (await who_am_i(api, headers)).body["status"]["userInfo"]
    return found


@on_loop
async def test_the_request_is_made_as_the_other_and_not_as_oneself() -> None:
    async with guarded() as api:
        assert (await api.get(CLAIMS, user=ADMIN, headers={"impersonate-user": "alice"})).code == 403
        assert await identity(api, {"impersonate-user": "alice"}) == {
            "username": "alice", "groups": ["system:authenticated"]
        }  # fmt: skip


@on_loop
async def test_uid_groups_and_extra_are_taken_over() -> None:
    async with guarded() as api:
        headers = {
            "impersonate-user": "alice", "impersonate-uid": "u1", "impersonate-group": "dev\nops",
            "impersonate-extra-example.com%2fscopes": "a\nb",
        }  # fmt: skip
        assert await identity(api, headers) == {
            "username": "alice", "uid": "u1", "groups": ["dev", "ops", "system:authenticated"],
            "extra": {"example.com/scopes": ["a", "b"]},
        }  # fmt: skip


@on_loop
async def test_a_service_account_has_its_groups_by_itself() -> None:
    async with guarded() as api:
        found = await identity(api, {"impersonate-user": "system:serviceaccount:ns:bot"})
        assert found["groups"] == ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]


@on_loop
async def test_the_anonymous_user_stays_unauthenticated() -> None:
    async with guarded() as api:
        answer = await api.get(
            "/apis", user=ADMIN, headers={"impersonate-user": "system:anonymous", "impersonate-group": "x"}
        )
        assert answer.code == 403


@on_loop
async def test_each_part_is_a_right_of_its_own() -> None:
    async with guarded() as api:
        await grant(
            api, "alice", rule("impersonate", "", "users", "bob"), rule("impersonate", "", "groups", "dev"),
            rule("impersonate", "authentication.k8s.io", "userextras/scopes", "view"), namespace="",
        )  # fmt: skip
        allowed = {"impersonate-user": "bob", "impersonate-group": "dev", "impersonate-extra-scopes": "view"}
        assert (await who_am_i(api, allowed, ALICE)).code == 201
        for more in (
            {"impersonate-user": "carol"},
            {"impersonate-group": "dev\nsystem:masters"},
            {"impersonate-extra-scopes": "view\nadmin"},
            {"impersonate-extra-other": "view"},
            {"impersonate-uid": "1"},
        ):
            assert (await who_am_i(api, {**allowed, **more}, ALICE)).code == 403, more


@on_loop
async def test_a_driver_cannot_invent_its_node() -> None:
    async with guarded() as api:
        driver = identities.account("kube-system", "gpu-driver")
        headers = {
            "impersonate-user": driver.name,
            "impersonate-extra-authentication.kubernetes.io%2fnode-name": "node-a",
        }
        assert (await who_am_i(api, headers, driver)).code == 403


@on_loop
async def test_groups_alone_or_two_users_are_refused() -> None:
    async with guarded() as api:
        assert (await who_am_i(api, {"impersonate-group": "system:masters"})).code == 400
        assert (await who_am_i(api, {"impersonate-user": "alice\nroot"})).code == 400
        assert (await who_am_i(api, {"impersonate-user": ""})).code == 400


@on_loop
async def test_headers_that_come_twice_are_not_lost_on_the_wire() -> None:
    async with guarded() as api:
        seen: list[Mapping[str, str]] = []
        handle = api.server.handle

        async def spy(request: Any) -> Any:
            seen.append(request.headers)
            return await handle(request)

        api.server.handle = spy  # type: ignore[method-assign]
        headers = [(b"impersonate-group", b"a"), (b"impersonate-group", b"b"), (b"accept", b"x"), (b"accept", b"y")]
        headers += [(b"authorization", b"Bearer one"), (b"authorization", b"Bearer two")]
        answered: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            answered.append(message)

        scope = {"type": "http", "method": "GET", "path": "/healthz", "query_string": b"", "headers": headers}
        await Application(api.server)(scope, receive, send)
        assert seen[0]["impersonate-group"] == "a\nb"
        assert seen[0]["accept"] == "x, y"
        assert answered[0]["status"] == 401
