"""Every object of the examples passes the rules of the API server, and every selector compiles."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from drakit.api import Partial, decode_all, decode_file, decode_plain, set_defaults, to_wire
from drakit.base.structs import Model
from drakit.selectors import COST_LIMIT, compile_selector
from drakit.validation import validate_create, validate_status_update
from tests.examples.manifests import EXAMPLES, Manifest, every_object, files, name_of, objects, values_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)

each_file = pytest.mark.parametrize("path", files(), ids=name_of)


def selector_texts() -> Iterator[tuple[str, str]]:
    for path, manifest in every_object():
        for cel in values_of(manifest, "cel"):
            yield name_of(path), cel["expression"]


@pytest.mark.parametrize(("file", "text"), sorted(set(selector_texts())))
def test_a_selector_compiles_within_the_cost_limit(file: str, text: str) -> None:
    selector = compile_selector(text, list_attributes=file.startswith("list-attributes/"))
    assert selector.max_cost <= COST_LIMIT


@each_file
def test_the_objects_of_a_file_may_be_created(path: Path) -> None:
    for each in decode_file(path):
        assert [str(error) for error in validate_create(set_defaults(each.object, NOW))] == []


@each_file
def test_a_status_in_a_file_may_be_written(path: Path) -> None:
    for each in decode_file(path):
        if each.kind.subresource("status"):
            wire = to_wire(each.object, each.version)
            stored = {**wire, "metadata": {**wire["metadata"], "resourceVersion": "1"}}
            without = {name: value for name, value in stored.items() if name != "status"}
            errors = validate_status_update(served(stored), served(without))
            assert [str(error) for error in errors] == []


def test_a_status_that_does_not_fit_its_claim_would_be_found() -> None:
    (claim,) = (each for each in objects(bandwidth_status()) if each["kind"] == "ResourceClaim")
    stored: Manifest = {**claim, "metadata": {**claim["metadata"], "resourceVersion": "1"}}
    result: Manifest = stored["status"]["allocation"]["devices"]["results"][0]
    result["request"] = "no-such-request"
    without = {name: value for name, value in stored.items() if name != "status"}
    (error,) = validate_status_update(served(stored), served(without))
    assert str(error).startswith("status.allocation.devices.results[0].request: Invalid value")


def test_an_object_that_breaks_a_rule_would_be_found() -> None:
    text = bandwidth_status().read_text().replace("name: req-0", "name: Req_0")
    claim = decode_all(text)[-1].object
    assert "spec.devices.requests[0].name" in " ".join(map(str, validate_create(set_defaults(claim, NOW))))


def served(document: Manifest) -> Model | Partial[Any]:
    """The object as a server holds it: decoded, with defaults."""
    return set_defaults(decode_plain(document).object, NOW)


def bandwidth_status() -> Path:
    return EXAMPLES / "consumable-capacity" / "bandwidth-status.yaml"
