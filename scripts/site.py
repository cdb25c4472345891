"""What `mkdocs build` needs beside mkdocs.yml: a home page, a table of contents, and links that lead out of docs/.

In:  the repository. Its documents link to one another, and to code and examples, as files.
Out: the README as the home page; a file that a document links to, outside of docs/, as a part of the site.

mkdocs calls the functions that begin with `on_`.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
HOME = ROOT / "README.md"
OUTSIDE = "repository"
"""Where files of the repository are in the site."""
FIRST = ("guides/up.md", "guides/why-is-my-pod-pending.md")
_LINK = re.compile(r"(\]\()(?!https?:|#|mailto:)([^)#\s]+)")


def on_config(config: Any) -> Any:
    config["nav"] = navigation()
    return config


def navigation() -> list[Any]:
    """Every page that there is has its place, also those that come later."""
    guides = [each for each in FIRST if (DOCS / each).exists()]
    guides += [each for each in _pages("guides") if each not in FIRST]
    top = [each for each in _pages(".") if each != "index.md"]
    return [
        {"Home": "index.md"},
        {"Guides": guides},
        {"Features": ["guides/features/index.md", *_pages("guides/features")]},
        {"Background": top},
        {"Decisions": _pages("decisions")},
    ]


def _pages(folder: str) -> list[str]:
    found = sorted((DOCS / folder).glob("*.md"))
    return [each.relative_to(DOCS).as_posix() for each in found if each.name != "index.md" or folder == "."]


def on_files(files: Any, config: Any) -> Any:
    """The home page, and what documents link to outside of docs/."""
    for path in sorted(linked()):
        files.append(_file(config, site_uri(path), path))
    files.append(File.generated(config, "index.md", content=rewritten(HOME.read_text(), HOME, "index.md")))
    return files


def _file(config: Any, uri: str, path: Path) -> File:
    if path.suffix == ".md":
        return File.generated(config, uri, content=rewritten(path.read_text(), path, uri))
    return File.generated(config, uri, abs_src_path=str(path))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    path = DOCS / page.file.src_uri
    return rewritten(markdown, path, page.file.src_uri) if path.exists() else markdown


def linked() -> set[Path]:
    """Files outside of docs/ that documents link to; what Markdown among them links to as well."""
    found: set[Path] = set()
    waiting = [HOME, *DOCS.rglob("*.md")]
    while waiting:
        path = waiting.pop()
        for _, target in _LINK.findall(path.read_text()):
            aim = aimed_at(path, target)
            if DOCS not in aim.parents and aim not in (HOME, DOCS) and aim.is_file() and aim not in found:
                found.add(aim)
                waiting += [aim] if aim.suffix == ".md" else []
    return found


def aimed_at(path: Path, target: str) -> Path:
    """The file that a link means: of a folder, what introduces it."""
    aim = (path.parent / target).resolve()
    if aim.is_dir():
        introductions = (aim / name for name in ("README.md", "index.md", "__init__.py"))
        others = (*sorted(aim.glob("*.md")), *sorted(aim.glob("*.yaml")), aim)
        return next((each for each in introductions if each.is_file()), others[0])
    return aim


def rewritten(text: str, path: Path, uri: str) -> str:
    """The text of a file of the repository, as the page of that place in the site."""
    here = posixpath.dirname(uri) or "."
    return _LINK.sub(lambda found: found[1] + posixpath.relpath(site_uri(aimed_at(path, found[2])), here), text)


def site_uri(path: Path) -> str:
    if path == HOME:
        return "index.md"
    if DOCS in path.parents:
        return path.relative_to(DOCS).as_posix()
    return f"{OUTSIDE}/{path.relative_to(ROOT).as_posix()}"
