"""Scenes and objects for the tests of poolstatus, here and elsewhere."""

from __future__ import annotations

from typing import Any

from tests.builders.documents import DRIVER, Plain


def question(**spec: Any) -> Plain:
    return {
        "apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourcePoolStatusRequest", "metadata": {"name": "q"},
        "spec": {"driver": DRIVER, **spec},
    }  # fmt: skip
