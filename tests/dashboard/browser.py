"""A browser without a window, on the page of a cluster that lives in the test's own process."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from playwright.async_api import Browser, Page, async_playwright, expect

T = TypeVar("T")
CHROMIUM = next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), "")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
PATIENCE = 90_000.0
expect.set_options(timeout=PATIENCE)


class Desk:
    """One loop and one browser for all tests of a module."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._started: Any = None
        self.browser: Browser | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    async def open(self) -> None:
        self._started = await async_playwright().start()
        self.browser = await self._started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)

    async def shut(self) -> None:
        if self.browser is not None:
            await self.browser.close()
        await self._started.stop()

    def close(self) -> None:
        self._runner.run(self.shut())
        self._runner.close()

    @asynccontextmanager
    async def page(
        self, url: str, token: str, view: str = "map", *, acting: tuple[str, str] = ("", ""), **context: Any
    ) -> AsyncIterator[Page]:
        """A page that is logged in, perhaps to act as a user with groups. The test fails when the page throws."""
        if self.browser is None:
            raise RuntimeError("the browser is not open")
        opened = await self.browser.new_context(viewport={"width": 1280, "height": 860}, **context)
        page = await opened.new_page()
        page.set_default_timeout(PATIENCE)
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
        try:
            await page.goto(f"{url}#/{view}")
            await page.get_by_label("Bearer token").fill(token)
            await page.get_by_label("Act as user").fill(acting[0])
            await page.get_by_label("and groups").fill(acting[1])
            await page.get_by_role("button", name="Log in").click()
            yield page
            assert wrong == []
        finally:
            await opened.close()


async def keep_picture(page: Page, directory: Path, name: str = "") -> Path:
    """Kept in the directory of the test; with DRAKIT_ARTEFACTS, the name of a folder, there as well."""
    view = page.url.partition("#/")[2].partition("/")[0] or "login"
    kept = directory / f"{name or view}.png"
    picture = await page.screenshot(path=kept)
    if folder := os.environ.get("DRAKIT_ARTEFACTS"):
        place = Path(folder) / "screenshots"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{directory.name}-{kept.name}").write_bytes(picture)
    return kept


async def serious_violations(page: Page, directory: Path, name: str = "") -> list[str]:
    """What axe-core finds wrong for people who use the page by keyboard or screen reader; a picture is kept."""
    await keep_picture(page, directory, name)
    # Evaluated, not added as a script: the page's own policy forbids scripts of others.
    await page.evaluate(AXE.read_text())
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:120]} {each['nodes'][0]['failureSummary'][:200]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]
