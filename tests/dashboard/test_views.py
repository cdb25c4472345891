"""The other views in a browser, each with a cluster that changes under it; and what no view may do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from drakit.api.text.yamldump import dump_yaml
from drakit.client import CLAIMS, NODES, PODS, NotFound
from tests.builders.documents import Plain
from tests.builders.podmanifests import claim, node
from tests.dashboard.browser import Desk, serious_violations
from tests.dashboard.shown import ShownCluster, gpu_slice, shown_cluster, until

pytestmark = pytest.mark.timeout(600)
"""A page may take its time on a machine that has much else to do."""
TOO_MANY = 6
"""More than a node has."""


async def go(page: Page, shown: ShownCluster, view: str) -> None:
    await page.goto(f"{shown.url}#/{view}")


def dump_yaml_all(*documents: Plain) -> str:
    return "---\n".join(map(dump_yaml, documents))


def test_pending_pods_say_why_and_a_suggestion_can_be_tried(desk: Desk, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shown_cluster(tmp_path) as shown, shown.serving():
            async with desk.page(shown.url, shown.token, "pending") as page:
                await expect(page.get_by_text("Nothing waits.")).to_be_visible()
                await shown.ask_for("large", TOO_MANY)
                card = page.locator("article")
                await expect(card).to_contain_text("fits on none of 2 nodes")
                await expect(card.locator(".funnel li").first).to_be_visible()
                await expect(page.locator("nav .count")).to_have_text("1")
                await card.get_by_role("button", name="What would help?").click()
                await expect(card).to_contain_text("4 instead of 6 devices")
                before = await shown.client.get(CLAIMS, "large", namespace="default")
                await card.locator("li", has_text="4 instead of 6").get_by_role("button", name="Try it").click()
                await expect(card.locator(".outcome")).to_contain_text("1 pod placed, 0 still pending")
                assert await shown.client.get(CLAIMS, "large", namespace="default") == before
                assert await serious_violations(page, tmp_path) == []
                await shown.client.delete(PODS, "large", namespace="default")
                await expect(page.get_by_text("Nothing waits.")).to_be_visible()

    desk.run(scenario())


def test_the_flow_of_a_pod_grows_as_it_lives_and_leads_to_the_objects(desk: Desk, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shown_cluster(tmp_path) as shown, shown.serving():
            await shown.ask_for("train")
            node = await shown.scheduled("train")
            async with desk.page(shown.url, shown.token, "flow") as page:
                await page.get_by_role("link", name="default/train").click()
                steps = page.locator(".steps")
                await expect(steps.locator("li.allocated")).to_contain_text(f"{node}/gpu-0")
                await expect(steps.locator("li.waiting", has_text="running")).to_have_count(1)
                await shown.run_pod("train")
                await expect(steps.locator("li.running")).to_have_count(1)
                await expect(steps.locator("li.prepared")).to_have_count(1)
                assert await serious_violations(page, tmp_path) == []
                await steps.locator("li.claim").get_by_role("link").click()
                await expect(page.get_by_role("heading", level=1)).to_contain_text("ResourceClaim default/train")
                await expect(page.locator("pre.yaml")).to_contain_text("deviceClassName: gpu.example.com")
                assert await serious_violations(page, tmp_path) == []

    desk.run(scenario())


def test_the_life_of_a_pod_is_told_after_it_was_deleted(desk: Desk, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shown_cluster(tmp_path) as shown, shown.serving():
            await shown.ask_for("short")
            await shown.scheduled("short")
            await shown.run_pod("short")
            async with desk.page(shown.url, shown.token, "flow/default/short") as page:
                steps = page.locator(".steps")
                await expect(steps.locator("li.running")).to_have_count(1)
                await shown.client.delete(PODS, "short", namespace="default", grace=0)
                await expect(steps.locator("li.deleted")).to_have_count(1)
                await expect(steps.locator("li.running")).to_have_count(1)
                await expect(page.get_by_text("This pod was deleted at")).to_be_visible()
                await expect(page.locator("tbody tr", has_text="default/short")).to_contain_text("Deleted")
                assert await serious_violations(page, tmp_path) == []
                await go(page, shown, "object/Pod/default/short")
                await expect(page.get_by_text("This is what was last seen of it")).to_be_visible()
                await expect(page.locator("pre.yaml")).to_contain_text("name: short")
                await go(page, shown, "flow/default/never")
                await expect(page.get_by_role("alert")).to_contain_text("it is not there, or went before you looked")

    desk.run(scenario())


def test_whoever_logs_in_as_another_user_and_groups_sees_what_these_may_see(desk: Desk, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shown_cluster(tmp_path) as shown, shown.serving():
            await shown.allow_group("watchers of gpus")
            for groups, figures in (("strangers", "0 / 0 used"), ("strangers, watchers of gpus", "0 / 8 used")):
                async with desk.page(shown.url, shown.token, acting=("jane", groups)) as page:
                    await expect(page.locator(".user")).to_have_text("jane")
                    await expect(page.locator(".figures .big")).to_have_text(figures)

    desk.run(scenario())


def test_what_if_shows_before_and_after_and_touches_nothing(desk: Desk, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shown_cluster(tmp_path) as shown, shown.serving():
            for name in ("first", "second", "third"):
                await shown.ask_for(name, 4)
            async with desk.page(shown.url, shown.token, "whatif") as page:
                await page.get_by_label("like node").fill("node-1")
                await page.get_by_role("button", name="Ask").click()
                outcome = page.locator(".outcome")
                await expect(outcome).to_contain_text("1 pod placed, 0 still pending")
                await expect(outcome.locator(".side").nth(1).locator(".changed").first).to_have_text("3")
                await expect(page.get_by_label("like node")).to_have_value("node-1")
                assert await serious_violations(page, tmp_path) == []
                await expect(page.get_by_role("button", name="Make these changes")).to_have_count(0)
                await page.get_by_label("like node").fill("h100-8")
                await page.get_by_role("button", name="Ask").click()
                await expect(outcome).to_contain_text("h100-8-new-1")
                await page.get_by_label("Or nodes from a template").fill(
                    dump_yaml_all(node("big"), gpu_slice("big", "gpu-0"))
                )
                await page.get_by_label("How many").fill("3")
                await page.get_by_role("button", name="Ask").click()
                await expect(outcome).to_contain_text("template-new-3")
                await page.get_by_label("Apply YAML").fill("kind: [")
                await page.get_by_role("button", name="Ask").click()
                await expect(page.get_by_role("alert")).to_contain_text("YAML")
            assert len(await shown.client.list(NODES)) == 2

    desk.run(scenario())


def test_changes_are_made_only_where_they_are_allowed_and_with_the_viewers_rights(desk: Desk, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shown_cluster(tmp_path, allow_changes=True) as shown, shown.serving():
            await shown.ask_for("train")
            await shown.scheduled("train")
            async with desk.page(shown.url, shown.token, "whatif") as page:
                page.on("dialog", lambda dialog: dialog.accept())
                await page.get_by_label("Evict a pod").fill("default/train")
                await page.get_by_role("button", name="Ask").click()
                await page.get_by_role("button", name="Make these changes").click()
                await expect(page.get_by_text("deleted pod default/train")).to_be_visible()

            async def gone() -> bool:
                try:
                    found = await shown.client.get(PODS, "train", namespace="default")
                except NotFound:
                    return True
                return found.view.metadata.deletion_timestamp is not None

            assert await until(gone)

    desk.run(scenario())


def test_figures_over_time_are_drawn_and_saved(desk: Desk, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shown_cluster(tmp_path) as shown, shown.serving():
            async with desk.page(shown.url, shown.token, "time", accept_downloads=True) as page:
                await expect(page.locator(".chart")).to_have_count(6)
                await expect(page.locator(".chart").first).to_contain_text("total: 8")
                async with page.expect_download() as saving:
                    await page.get_by_role("button", name="Save as CSV").click()
                saved = await (await saving.value).path()
                lines = (await asyncio.to_thread(saved.read_text)).splitlines()
                assert lines[0].startswith("time,total,allocated,pending,latency_p50_seconds")
                assert lines[1].split(",")[1] == "8"
                assert await serious_violations(page, tmp_path) == []

    desk.run(scenario())


def test_a_user_without_rights_sees_what_is_missing_and_nothing_else(desk: Desk, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shown_cluster(tmp_path) as shown, shown.serving():
            await shown.ask_for("secret-project")
            await shown.scheduled("secret-project")
            async with desk.page(shown.url, await shown.stranger()) as page:
                await expect(page.locator("details.alert")).to_contain_text('cannot list resource "resourceslices"')
                await expect(page.locator(".figures .big")).to_have_text("0 / 0 used")
                for view in ("pending", "flow", "object/Pod/default/secret-project", "time"):
                    await go(page, shown, view)
                    await expect(page.get_by_role("heading", level=1)).to_be_visible()
                    await expect(page.locator("main .state")).to_have_count(0)
                await expect(page.get_by_role("alert")).to_contain_text("whole cluster")
                await expect(page.get_by_text("secret-project")).to_have_count(0)
            async with desk.page(shown.url, "no-such-token") as page:
                await expect(page.get_by_role("alert")).to_contain_text("refused")

    desk.run(scenario())


def test_names_and_texts_with_html_and_script_in_them_are_text(desk: Desk, tmp_path: Path) -> None:
    evil = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'

    async def scenario() -> None:
        async with shown_cluster(tmp_path) as shown, shown.serving():
            attributes = {"model": {"string": evil[:60]}, "index": {"int": 0}}
            await shown.add_node("node-3", {"name": "gpu-evil", "attributes": attributes})
            selectors = [{"cel": {"expression": f"device.driver == '{evil}'"}}]
            await shown.ask_for("evil", 1, selectors=selectors)
            await shown.client.create(claim("noted", namespace="default", annotations={"note": evil}))
            async with desk.page(shown.url, shown.token) as page:
                await page.get_by_label("Group by").select_option("model")
                await page.get_by_role("button", name="As a list").click()
                await page.get_by_role("button", name="gpu-evil").click()
                await expect(page.locator(".details dd", has_text="<img")).to_have_count(1)
                await go(page, shown, "pending")
                await expect(page.locator("article")).to_contain_text("evil")
                await page.get_by_role("button", name="What would help?").click()
                await expect(page.locator(".suggestions")).to_contain_text("<script>")
                await go(page, shown, "object/ResourceClaim/default/noted")
                await expect(page.locator("pre.yaml")).to_contain_text("<script>")
                assert await page.evaluate("window.hit") is None
                assert await page.locator("img, main script").count() == 0

    desk.run(scenario())


def test_every_view_fits_a_phone_and_a_wall_and_both_colour_schemes(desk: Desk, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shown_cluster(tmp_path) as shown, shown.serving():
            await shown.ask_for("a-pod-with-a-rather-long-name-as-controllers-make-them-7f9c4d", TOO_MANY)
            for scheme, wide in (("light", 360), ("dark", 3840)):
                async with desk.page(shown.url, shown.token, color_scheme=scheme) as page:
                    await page.set_viewport_size({"width": wide, "height": 900})
                    for view in ("map", "pending", "flow", "time", "whatif"):
                        await go(page, shown, view)
                        await expect(page.locator(f'nav a[href="#/{view}"]')).to_have_attribute("aria-current", "page")
                        await expect(page.locator("main h1")).to_have_count(1)
                        over = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
                        assert (view, over <= 0) == (view, True)
                        wrong = await serious_violations(page, tmp_path, f"{view}-{scheme}-{wide}")
                        assert (view, wrong) == (view, [])

    desk.run(scenario())
    assert len(list(tmp_path.glob("*-light-360.png"))) == len(list(tmp_path.glob("*-dark-3840.png"))) == 5
