"""Configuration of claims and classes, in the author's types."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from drakit.api import ResourceClaim, from_plain
from drakit.base.errors import InvalidObject
from drakit.driverkit import PRIVILEGED, DeviceConfig
from drakit.driverkit.claims import AllocatedDevice, allocated_claim
from tests.driverkit.node import DRIVER, claim_on_node, node_allocation

CLASS, CLAIM = "FromClass", "FromClaim"
HEAD = {"apiVersion": "leds.example.com/v1", "kind": "LedConfig"}


class Blink(DeviceConfig):
    """Nested."""

    interval: int = 1000
    pattern: tuple[str, ...] = ()


class LedConfig(DeviceConfig):
    api_version = "leds.example.com/v1"

    color: str = "red"
    brightness: int = 50
    blink: Blink = Blink()
    max_current: Annotated[int, PRIVILEGED] = 20


class FanConfig(DeviceConfig):
    api_version = "leds.example.com/v1"
    kind = "Fan"

    speed: int


def config(source: str, *requests: str, driver: str = DRIVER, **parameters: Any) -> dict[str, Any]:
    opaque = {"driver": driver, "parameters": {**HEAD, **parameters}}
    return {"source": source, "requests": list(requests), "opaque": opaque}


def decoded(*configs: dict[str, Any], request: str = "led") -> AllocatedDevice:
    results = [{"request": request, "driver": DRIVER, "pool": "node-1", "device": "led-0"}]
    document = {
        **claim_on_node("blink", {}),
        "status": {"allocation": node_allocation((), results=results, config=configs)},
    }
    return allocated_claim(from_plain(ResourceClaim, document), DRIVER, (LedConfig, FanConfig)).devices[0]


def errors(*configs: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidObject) as caught:
        decoded(*configs)
    return [str(error) for error in caught.value.errors]


def test_without_configuration_the_defaults_hold() -> None:
    assert decoded().config(LedConfig) == LedConfig()


def test_the_claim_wins_over_the_class_field_by_field() -> None:
    device = decoded(config(CLASS, color="blue", brightness=10), config(CLAIM, brightness=90))
    assert device.config(LedConfig) == LedConfig(color="blue", brightness=90)


def test_the_class_comes_first_wherever_it_stands() -> None:
    device = decoded(config(CLAIM, brightness=90), config(CLASS, color="blue", brightness=10))
    assert device.config(LedConfig) == LedConfig(color="blue", brightness=90)


def test_later_wins_over_earlier() -> None:
    device = decoded(config(CLAIM, color="blue"), config(CLAIM, color="green"))
    assert device.config(LedConfig).color == "green"


def test_objects_within_are_merged_and_null_means_the_default() -> None:
    device = decoded(
        config(CLASS, color="blue", blink={"interval": 5, "pattern": ["a"]}),
        config(CLAIM, color=None, blink={"pattern": ["b"]}),
    )
    assert device.config(LedConfig) == LedConfig(blink=Blink(interval=5, pattern=("b",)))


def test_what_is_for_other_requests_or_drivers_is_left_out() -> None:
    device = decoded(config(CLAIM, "other", color="blue"), config(CLAIM, driver="fan.example.com", color="green"))
    assert device.configs == ()


def test_a_request_covers_the_alternative_that_was_chosen() -> None:
    assert decoded(config(CLAIM, "led", color="blue"), request="led/bright").config(LedConfig).color == "blue"


def test_a_privileged_option_is_taken_from_a_class_only() -> None:
    assert decoded(config(CLASS, maxCurrent=40)).config(LedConfig).max_current == 40
    assert errors(config(CLASS, maxCurrent=40), config(CLAIM, maxCurrent=90)) == [
        "status.allocation.devices.config[1].opaque.parameters.maxCurrent: Forbidden: may only be set in a DeviceClass"
    ]


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"brightness": "much"}, 'brightness: Invalid value: "much": Expected `int`, got `str`'),
        ({"blink": {"interval": "x"}}, 'blink.interval: Invalid value: "x": Expected `int`, got `str`'),
        ({"colour": "red"}, "colour: Forbidden: unknown field"),
        ({"kind": "Fan"}, "speed: Required value"),
        ({"kind": "Lamp"}, 'kind: Unsupported value: "leds.example.com/v1 Lamp"'),
        ({"kind": ""}, "kind: Required value: expected one of leds.example.com/v1 LedConfig"),
    ],
)
def test_an_error_names_the_field_and_the_configuration(parameters: dict[str, Any], error: str) -> None:
    (found,) = errors(config(CLASS, color="blue"), config(CLAIM, **parameters))
    assert found.startswith(f"status.allocation.devices.config[1].opaque.parameters.{error}")


def test_an_error_of_the_class_is_told_as_such() -> None:
    (found,) = errors(config(CLASS, brightness="much"), config(CLAIM, color="blue"))
    assert found.startswith("status.allocation.devices.config[0].")


def test_a_driver_without_types_refuses_configuration() -> None:
    results = [{"request": "led", "driver": DRIVER, "pool": "node-1", "device": "led-0"}]
    given = node_allocation((), results=results, config=[config(CLAIM, color="blue")])
    claim = from_plain(ResourceClaim, {**claim_on_node("blink", {}), "status": {"allocation": given}})
    with pytest.raises(InvalidObject, match="this driver takes no configuration"):
        allocated_claim(claim, DRIVER, ())


def test_admin_access_and_shares_are_told() -> None:
    result = {
        "request": "led", "driver": DRIVER, "pool": "p", "device": "d", "adminAccess": True, "shareID": "s-1",
        "consumedCapacity": {"light": "10"},
    }  # fmt: skip
    document = {**claim_on_node("blink", {}), "status": {"allocation": node_allocation((), results=[result])}}
    (device,) = allocated_claim(from_plain(ResourceClaim, document), DRIVER, ()).devices
    assert (device.admin_access, device.share_id) == (True, "s-1")
    assert str(device.consumed_capacity["light"]) == "10"
