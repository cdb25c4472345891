"""`drakit driver profile`, and profiles for `drakit driver run`."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from drakit.base.errors import UsageError
from drakit.cli.commands.allocate import allocate
from drakit.cli.commands.driver import driver, load_driver
from drakit.drivers import DRIVERS, profile_names

ALLOCATE = typer.Typer()
ALLOCATE.command()(allocate)


def profile(*arguments: str) -> str:
    answer = CliRunner().invoke(driver, ["profile", *arguments])
    if answer.exception:
        raise answer.exception
    return answer.stdout


def test_all_profiles_are_listed_with_their_drivers() -> None:
    listed = profile().splitlines()[1:]
    assert [line.split()[0] for line in listed] == profile_names()


@pytest.mark.parametrize("name", profile_names())
def test_what_a_profile_shows_can_be_allocated_as_it_is(name: str) -> None:
    answer = CliRunner().invoke(ALLOCATE, ["-f", "-"], input=profile(name, "--node-name", "worker"))
    assert answer.exit_code == 0, answer.output
    assert "worker" in answer.output


def test_every_node_that_is_named_has_its_own_slices_and_claims_can_be_left_out() -> None:
    shown = profile("h100-8", "--node-name", "a", "--node-name", "b", "--no-claims")
    assert shown.count("kind: ResourceSlice") == 2
    assert "kind: ResourceClaim" not in shown


def test_a_profile_of_ones_own_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("driver: mine.example.com\npools: [{devices: [{count: 2, device: {name: 'mine-{index}'}}]}]\n")
    assert "mine-1" in profile(str(file))
    assert load_driver("gpu", [f"profile={file}"]).name == "mine.example.com"
    with pytest.raises(UsageError, match=r"profile .*other\.yaml: .*No such file"):
        profile(str(tmp_path / "other.yaml"))


@pytest.mark.parametrize("name", sorted(DRIVERS))
def test_an_example_driver_is_known_by_a_short_name(name: str) -> None:
    assert load_driver(name, []).name


def test_a_profile_that_there_is_not_is_told_before_anything_starts() -> None:
    with pytest.raises(UsageError, match="there is no profile 'h300'"):
        load_driver("gpu", ["profile=h300"])
