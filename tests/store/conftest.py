"""Every test that takes `engine` runs once per engine."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.etcd import etcd_cluster
from tests.store.engines import Engine

_PREFIXES = itertools.count()


@pytest.fixture(scope="session")
def etcd_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server for all tests; each has a prefix of its own."""
    with etcd_cluster(tmp_path_factory.mktemp("etcd")) as (member,):
        yield member.client


@pytest.fixture(params=["memory", "sqlite", "sqlite-process", "etcd"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    address = ""
    if request.param == "etcd":
        if shutil.which("etcd") is None:
            pytest.skip("etcd is not installed (Debian: etcd-server)")
        address = request.getfixturevalue("etcd_address")
    return Engine(request.param, tmp_path / "store.db", address, f"/test-{next(_PREFIXES)}")
