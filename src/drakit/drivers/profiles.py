"""Device profiles: what drivers of real hardware publish, as data.

In:  a YAML file of the package (or anybody's): templates of devices, classes, claims that make sense with them.
Out: pools of devices for a node, or their slices without any driver.

A template is a Device of `resource.k8s.io/v1` with `{placeholders}`. `for` has a list per placeholder, in step: one
device per entry (or `count` of them). `{index}`, `{uuid}` and `{node}` are always there. `parts` are further devices
of each, which know `{parent}` and `{parentUUID}` and everything of theirs. With `placements` and `slices` among the
values there is a device per `{placement}`, and a key with `{slice}` is there once for each slice from there on. Text
that is nothing but a placeholder takes the value as it is: a number stays one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec
import yaml

from drakit.api import (
    CounterSet,
    Device,
    DeviceClass,
    NodeSelector,
    ResourceClaim,
    ResourceSlice,
    decode_plain,
    from_plain,
)
from drakit.base.errors import DecodeError, UsageError
from drakit.base.structs import Model
from drakit.driverkit import DevicePool
from drakit.driverkit.slices.plan import Publication, desired_slices

YAML_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
"""The one in C where there is one: `drakit up` reads profiles while somebody waits."""
_SUFFIX = ".yaml"
_PLACEHOLDER = re.compile(r"\{([A-Za-z]+)\}")
_SLICE = "{slice}"

Values = Mapping[str, Any]


class DeviceTemplate(Model, forbid_unknown_fields=True):
    count: int = 1
    values: Mapping[str, Sequence[Any]] = msgspec.field(default_factory=dict, name="for")
    device: Mapping[str, Any] | None = None
    counters: Mapping[str, Any] | None = None
    """A counter set for each device."""
    parts: tuple[DeviceTemplate, ...] = ()

    def rows(self) -> Iterator[dict[str, Any]]:
        """The values of each device."""
        lengths = {len(each) for each in self.values.values()} or {self.count}
        if len(lengths) > 1:
            raise UsageError(f"lists of different lengths for {', '.join(self.values)}")
        for index in range(lengths.pop()):
            yield {"index": index, **{name: each[index] for name, each in self.values.items()}}


class PoolTemplate(Model, forbid_unknown_fields=True):
    name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    devices: tuple[DeviceTemplate, ...] = ()


class DeviceProfile(Model, forbid_unknown_fields=True):
    """What one kind of machine has, and how its driver calls it."""

    driver: str
    description: str = ""
    node_labels: Mapping[str, str] = {}
    """What a node needs to reach the devices."""
    pools: tuple[PoolTemplate, ...] = ()
    classes: tuple[Mapping[str, Any], ...] = ()
    claims: tuple[Mapping[str, Any], ...] = ()

    def device_pools(self, node_name: str, *, cards: int | None = None) -> tuple[DevicePool, ...]:
        """`cards` keeps that many cards of each pool, each with its parts. Raise UsageError when there are fewer."""
        pools = (_pool(each, self.driver, node_name) for each in self.pools)
        return tuple(pools if cards is None else (_first_cards(pool, cards) for pool in pools))

    def device_classes(self) -> tuple[DeviceClass, ...]:
        """The classes that the driver's installation brings."""
        return tuple(_decoded(each, DeviceClass) for each in self.classes)

    def example_claims(self) -> tuple[ResourceClaim, ...]:
        """Claims that a node of this kind satisfies."""
        return tuple(_decoded(each, ResourceClaim) for each in self.claims)


def profile_names() -> list[str]:
    return sorted(each.name.removesuffix(_SUFFIX) for each in _folder().iterdir() if each.name.endswith(_SUFFIX))


@cache
def load_profile(name: str) -> DeviceProfile:
    """A profile of the package, or of a file (`./mine.yaml`). Raise UsageError if there is none of that name."""
    if name.endswith(_SUFFIX):
        return parse_profile(_read(Path(name)), source=name)
    if name not in profile_names():
        raise UsageError(f"there is no profile {name!r}; profiles are {', '.join(profile_names())}")
    return parse_profile((_folder() / f"{name}{_SUFFIX}").read_text(encoding="utf-8"), source=name)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"profile {path}: {error}") from None


def parse_profile(text: str, *, source: str) -> DeviceProfile:
    """Raise UsageError that names the source and the field."""
    try:
        return from_plain(DeviceProfile, yaml.load(text, Loader=YAML_LOADER))  # noqa: S506 - a safe one
    except (yaml.YAMLError, DecodeError) as error:
        raise UsageError(f"profile {source}: {error}") from None


def profile_slices(profile: DeviceProfile, node_name: str, *, cards: int | None = None) -> tuple[ResourceSlice, ...]:
    """What the driver of a node of this kind publishes, ready to be stored: no driver runs."""
    who = Publication(driver=profile.driver, node_name=node_name)
    pools = profile.device_pools(node_name, cards=cards)
    return tuple(_named(each) for pool in pools for each in desired_slices(pool, who))


def positive(text: str, name: str) -> int:
    if not text.isdecimal() or not int(text):
        raise UsageError(f"{name}: expected a number of at least 1, got {text!r}")
    return int(text)


def _first_cards(pool: DevicePool, count: int) -> DevicePool:
    """Devices that take from the same counter sets are parts of one card."""
    card_of = {device.name: _card(device) for device in pool.devices}
    cards = list(dict.fromkeys(card_of.values()))
    if count > len(cards):
        raise UsageError(f"the profile has {len(cards)} cards, not {count}")
    kept = set(cards[:count])
    return msgspec.structs.replace(
        pool,
        devices=tuple(device for device in pool.devices if card_of[device.name] in kept),
        shared_counters=tuple(
            each for each in pool.shared_counters if (each.name,) in kept or not _is_of_card(each, cards)
        ),
    )


def _card(device: Device) -> tuple[str, ...]:
    return tuple(sorted({each.counter_set for each in device.consumes_counters})) or (device.name,)


def _is_of_card(counters: CounterSet, cards: Sequence[tuple[str, ...]]) -> bool:
    return any(counters.name in card for card in cards)


def _named(slice_: ResourceSlice) -> ResourceSlice:
    """A name that is the same every time, in the order that the driver's own names would have."""
    metadata = slice_.metadata
    name = metadata.generate_name.rstrip("-")
    return msgspec.structs.replace(slice_, metadata=msgspec.structs.replace(metadata, name=name, generate_name=""))


def _folder() -> Any:
    return files("drakit.drivers") / "data" / "profiles"


def _decoded(document: Mapping[str, Any], kind: type[Any]) -> Any:
    found = decode_plain(document, strict=True).object
    if not isinstance(found, kind):
        raise UsageError(f"expected a {kind.__name__}, found a {type(found).__name__}")
    return found


def _pool(template: PoolTemplate, driver: str, node_name: str) -> DevicePool:
    name = template.name or node_name
    devices: list[Device] = []
    counters: list[CounterSet] = []
    for each in template.devices:
        _expand(each, {"node": node_name}, f"{driver}/{name}", devices, counters)
    return DevicePool(
        name=name,
        node_selector=template.node_selector,
        all_nodes=template.all_nodes,
        devices=tuple(devices),
        shared_counters=tuple(counters),
    )


def _expand(
    template: DeviceTemplate, outer: Values, seed: str, devices: list[Device], counters: list[CounterSet]
) -> None:
    for row in template.rows():
        identity = f"{seed}/{len(devices)}"
        for values in _placed({**outer, **row, "uuid": str(uuid5(NAMESPACE_URL, identity))}):
            if template.counters is not None:
                counters.append(from_plain(CounterSet, fill_template(template.counters, values)))
            if template.device is not None:
                devices.append(from_plain(Device, fill_template(template.device, values)))
            inner = {**values, "parent": values["index"], "parentUUID": values["uuid"]}
            for part in template.parts:
                _expand(part, inner, identity, devices, counters)


def _placed(values: Values) -> Iterator[Values]:
    """Once for every placement, or just once."""
    if "placements" not in values:
        yield values
        return
    for placement in values["placements"]:
        yield {**values, "placement": placement}


def fill_template(node: Any, values: Values) -> Any:
    """The same with the values in place of the placeholders. Raise UsageError for one that has no value."""
    if isinstance(node, str):
        return _text(node, values)
    if isinstance(node, Mapping):
        return {key: fill_template(each, values) for name, each in node.items() for key in _keys(name, values)}
    if isinstance(node, list):
        return [fill_template(each, values) for each in node]
    return node


def _keys(name: str, values: Values) -> Iterator[str]:
    if _SLICE not in name:
        yield str(_text(name, values))
        return
    start = values["placement"]
    for number in range(start, start + values["slices"]):
        yield name.replace(_SLICE, str(number))


def _text(text: str, values: Values) -> Any:
    def value(found: re.Match[str]) -> Any:
        if found[1] not in values:
            raise UsageError(f"{text!r}: there is no value {found[1]!r}")
        return values[found[1]]

    whole = _PLACEHOLDER.fullmatch(text)
    return value(whole) if whole else _PLACEHOLDER.sub(lambda found: str(value(found)), text)
