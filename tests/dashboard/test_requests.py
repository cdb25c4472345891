"""What the dashboard answers, and what it refuses: over a real socket, without a browser."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from drakit.dashboard.live import CellChanges
from drakit.dashboard.streams import event
from tests.builders.loop import on_loop
from tests.builders.podmanifests import claim
from tests.dashboard.shown import ShownCluster, shown_cluster, until

WRITE = '{"evict": ["default/train"]}'


class Asker:
    def __init__(self, shown: ShownCluster, session: aiohttp.ClientSession) -> None:
        self.shown = shown
        self._session = session

    async def get(self, path: str, token: str = "", **headers: str) -> tuple[int, str]:
        return await self.send("GET", path, token, **headers)

    async def send(self, method: str, path: str, token: str = "", body: str = "", **headers: str) -> tuple[int, str]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent["authorization"] = f"Bearer {token or self.shown.token}"
        async with self._session.request(
            method, self.shown.url + path, headers=sent, data=io.BytesIO(body.encode())
        ) as answer:
            return answer.status, await answer.text()

    @asynccontextmanager
    async def events(self, last_id: str = "", token: str = "") -> AsyncIterator[aiohttp.StreamReader]:
        headers = {"authorization": f"Bearer {token or self.shown.token}", "last-event-id": last_id}
        async with self._session.get(f"{self.shown.url}/api/events", headers=headers) as answer:
            assert answer.content_type == "text/event-stream"
            yield answer.content


@asynccontextmanager
async def asking(directory: Path) -> AsyncIterator[Asker]:
    async with shown_cluster(directory) as shown, shown.serving(), aiohttp.ClientSession() as session:
        yield Asker(shown, session)


async def next_event(stream: aiohttp.StreamReader, name: str = "map") -> dict[str, Any]:
    async with asyncio.timeout(30):
        said = ""
        while True:
            line = (await stream.readline()).decode().strip()
            said = line.removeprefix("event: ") if line.startswith("event: ") else said
            if line.startswith("data: ") and said == name:
                found: dict[str, Any] = msgspec.json.decode(line.removeprefix("data: "))
                return found


@on_loop
async def test_every_answer_keeps_the_page_to_itself(tmp_path: Path) -> None:
    async with asking(tmp_path) as asker, aiohttp.ClientSession() as session:
        for path in ("", "/static/app.js", "/api/state", "/static/..%2f..%2fsecret", "/nothing"):
            async with session.get(asker.shown.url + path) as answer:
                policy = answer.headers["content-security-policy"]
                assert "script-src 'self'" in policy
                assert "unsafe" not in policy
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert "access-control-allow-origin" not in answer.headers
        async with session.get(asker.shown.url) as answer:
            page = await answer.text()
        assert "<script>" not in page
        assert "//" not in page


@pytest.mark.parametrize("name", ["token", "access_token", "authorization", "anything"])
def test_a_token_in_the_url_is_refused(tmp_path: Path, name: str) -> None:
    @on_loop
    async def run() -> None:
        async with asking(tmp_path) as asker:
            for path in ("/api/state", "/metrics", "/api/events", ""):
                code, said = await asker.get(f"{path}?{name}={asker.shown.token}")
                assert (code, asker.shown.token in said) == (400, False)

    run()


@on_loop
async def test_other_sites_and_strangers_get_nothing(tmp_path: Path) -> None:
    async with asking(tmp_path) as asker, aiohttp.ClientSession() as session:
        code, _ = await asker.get("/api/state", sec_fetch_site="cross-site")
        assert code == 403
        async with session.get(f"{asker.shown.url}/api/pods") as answer:
            assert answer.status == 401
        assert (await asker.get("/api/pods", token="wrong"))[0] == 401


@on_loop
async def test_nothing_is_written_unless_changes_are_allowed(tmp_path: Path) -> None:
    async with asking(tmp_path) as asker:
        code, said = await asker.send("POST", "/api/changes", body=WRITE)
        assert code == 403
        assert "--allow-changes" in said
        for method in ("PUT", "DELETE", "PATCH"):
            assert (await asker.send(method, "/api/pods"))[0] == 404


@on_loop
async def test_what_one_user_may_see_is_never_shown_to_another(tmp_path: Path) -> None:
    async with asking(tmp_path) as asker:
        await asker.shown.ask_for("secret-project")
        assert "secret-project" in (await asker.get("/api/pods"))[1]
        stranger = await asker.shown.stranger()
        assert "secret-project" not in (await asker.get("/api/pods", token=stranger))[1]
        async with asker.events(token=stranger) as stream:
            assert (await next_event(stream)).get("cells") is None
            assert "forbidden" in str(await next_event(stream, "state"))
        for path in ("/api/history", "/api/history.csv", "/metrics"):
            assert (await asker.get(path, token=stranger))[0] == 403
        # Acting as somebody else is the API server's to allow.
        code, _ = await asker.get("/api/pods", token=stranger, impersonate_user="kubernetes-admin")
        assert code == 403
        code, said = await asker.get("/api/pods", impersonate_user="somebody")
        assert (code, "secret-project" in said) == (200, False)


@on_loop
async def test_a_stream_resumes_after_the_version_that_was_heard_last(tmp_path: Path) -> None:
    async with asking(tmp_path) as asker:
        async with asker.events() as stream:
            first = await next_event(stream)
            assert first["whole"]
            assert len(first["cells"]) == 8
            await asker.shown.add_node("node-3", "gpu-0")
            after: list[str] = []
            while "gpu.example.com node-3 gpu-0" not in after:
                heard = await next_event(stream)
                assert not heard["whole"]
                assert int(heard["id"]) > int(first["id"])
                after += [each["key"] for each in heard.get("cells", ())]
        async with asker.events(first["id"]) as stream:
            again = await next_event(stream)
            assert not again["whole"]
        async with asker.events("no-such-version") as stream:
            assert (await next_event(stream))["whole"]


@on_loop
async def test_a_huge_object_is_cut_and_a_huge_question_refused(tmp_path: Path) -> None:
    async with asking(tmp_path) as asker:
        huge = {f"note-{number}": "x" * 20_000 for number in range(12)}
        await asker.shown.client.create(claim("huge", namespace="default", annotations=huge))
        code, said = await asker.get("/api/object?kind=ResourceClaim&namespace=default&name=huge")
        assert code == 200
        assert len(said) < 300_000
        assert '"cut":2' in said
        code, said = await asker.send("POST", "/api/whatif", body='{"yaml": "' + "x" * 1_200_000 + '"}')
        assert (code, "longer than" in said) == (400, True)


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/api/object?kind=Secret&namespace=default&name=x", "", 404),
        ("/api/object?kind=Pod&namespace=default&name=x", "", 404),
        ("/api/explain?kind=Node&name=x", "", 400),
        ("/api/device?key=x", "", 404),
        ("/api/flow?namespace=default&name=x", "", 404),
        ("/api/nothing", "", 404),
        ("/api/whatif", "[]", 400),
        ("/api/whatif", '{"drain": ["x"]}', 400),
        ("/api/whatif", '{"nope": 1}', 400),
        ("/api/whatif", '{"put": [1]}', 400),
        ("/api/whatif", '{"yaml": "a: b"}', 400),
    ],
)
def test_a_bad_question_is_told_what_is_wrong_with_it(tmp_path: Path, path: str, body: str, code: int) -> None:
    @on_loop
    async def run() -> None:
        async with asking(tmp_path) as asker:
            found, said = await asker.send("POST" if body else "GET", path, body=body)
            assert (found, '"message"' in said) == (code, True)

    run()


@on_loop
async def test_prometheus_reads_the_same_figures_with_a_token(tmp_path: Path) -> None:
    async with asking(tmp_path) as asker:

        async def counted() -> str:
            said = (await asker.get("/metrics"))[1]
            return said if "drakit_devices 8.0" in said else ""

        said = await until(counted)
        assert 'drakit_class_devices{class="gpu.example.com"} 8.0' in said


def test_an_event_is_one_line_of_data() -> None:
    sent = event("map", CellChanges(id="7", whole=False, gone=("a\nb\r\n\ndata: x",)), "7")
    assert sent.count(b"\n") == 4
    assert sent.startswith(b"id: 7\nevent: map\ndata: {")
