"""The docs site: it is built in strict mode, no link is broken, the search works from the disk, nothing is fetched."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("mkdocs", reason="the site is built with the extra `docs`")

from tests.e2e.processes import ROOT


class Page(HTMLParser):
    """What a page refers to, what it fetches, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") in ("stylesheet", "icon"):
            self.fetched.append(values["href"])
        elif tag in ("script", "img") and "src" in values:
            self.fetched.append(values["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_link_leads_to_a_file_and_every_anchor_is_there(pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in (*page.links, *page.fetched):
            parts = urlsplit(link)
            if parts.scheme or not (parts.path or parts.fragment):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (
                parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors
            ):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_nothing_is_fetched_from_elsewhere(pages: dict[Path, Page]) -> None:
    assert {
        each for page in pages.values() for each in page.fetched if urlsplit(each).scheme not in ("", "data")
    } == set()


def test_the_search_works_without_a_server(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text()
    assert "Consumable capacity" in index


def test_every_document_is_a_page(site: Path) -> None:
    documents = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert [path for path in documents if not (site / path.with_suffix(".html")).is_file()] == []
    home = (site / "index.html").read_text()
    assert [path for path in documents if path.parts[0] == "guides" and f"{path.stem}.html" not in home] == []


def test_make_docs_builds_it() -> None:
    assert re.search(r"^docs: .*\n.*mkdocs build", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium on PATH")
def test_a_browser_finds_words_in_the_site_on_the_disk(site: Path, tmp_path: Path) -> None:
    """`?q=` is what a shared search has in its address."""
    done = subprocess.run(
        [
            *("chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"),
            *("--virtual-time-budget=20000", "--dump-dom", f"file://{site / 'guides' / 'up.html'}?q=taints"),
        ],
        capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    assert re.search(r'md-search-result__link"[^>]*', done.stdout)
    assert "taints.html" in done.stdout.partition("md-search-result__list")[2]
