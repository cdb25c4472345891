"""A selector, tried on every device. Pure.

In:  a cluster and the text of a CEL selector.
Out: where it is wrong; or what it says to each device and why not, what it costs, and the attributes that there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from drakit.api import Device, DeviceClass, ResourceSlice
from drakit.base.errors import SelectorInvalid, UsageError
from drakit.explain.cluster import ClusterObjects
from drakit.explain.devices import attribute_text
from drakit.selectors import COST_LIMIT, BoundDevice, Selector, bind, compile_selector

_FALSE, _TRUE = "false", "true"


class ExpressionFault(msgspec.Struct, frozen=True):
    """What is wrong where. `snippet` is the line with a caret under the place."""

    message: str
    line: int = 0
    column: int = 0
    snippet: str = ""


class ExpressionValue(msgspec.Struct, frozen=True):
    """A part of the expression and its value on a device; the whole has depth zero."""

    text: str
    value: str
    depth: int


class SelectedDevice(msgspec.Struct, frozen=True):
    """`why` is the smallest part that is false, with its values. `values` is empty unless devices were named."""

    device: str
    matches: bool
    error: str = ""
    why: str = ""
    cost: int | None = None
    values: tuple[ExpressionValue, ...] = ()


class SelectorTrial(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`attributes` has the values of all devices that were tried, by path as an expression writes it."""

    expression: str
    faults: tuple[ExpressionFault, ...] = ()
    max_cost: int | None = None
    cost_limit: int = COST_LIMIT
    matching: int = 0
    devices: tuple[SelectedDevice, ...] = ()
    attributes: Mapping[str, tuple[str, ...]] = {}


class SelectorLab:
    """The devices of a cluster, ready for any number of expressions."""

    def __init__(self, cluster: ClusterObjects, *, device_class: str = "", devices: Sequence[str] = ()) -> None:
        """`device_class`: only devices of the class. `devices`: only those, by the end of driver/pool/device.

        Raise UsageError for a class or device that is not there.
        """
        self._lists = cluster.gates.enabled("DRAListTypeAttributes")
        self._asked = bool(devices)
        found = {name: each for name, each in _all_devices(cluster) if _is_wanted(name, devices)}
        missing = [each for each in devices if not any(_is_wanted(name, [each]) for name in found)]
        if missing:
            raise UsageError(f'device "{missing[0]}": no ResourceSlice has one of that name')
        self._devices = {name: each for name, each in found.items() if self._is_of(cluster, device_class, each)}

    def attributes(self) -> dict[str, tuple[str, ...]]:
        """Every attribute and capacity that there is, as an expression writes it, with its values."""
        found: dict[str, dict[str, None]] = {}
        for driver, device in self._devices.values():
            found.setdefault("device.driver", {})[driver] = None
            for name, value in device.attributes.items():
                found.setdefault(_path("attributes", driver, name), {})[attribute_text(value)] = None
            for name, capacity in device.capacity.items():
                found.setdefault(_path("capacity", driver, name), {})[str(capacity.value)] = None
        return {path: tuple(sorted(values)) for path, values in sorted(found.items())}

    def attempt(self, text: str) -> SelectorTrial:
        try:
            selector = compile_selector(text, list_attributes=self._lists)
        except SelectorInvalid as error:
            return SelectorTrial(expression=text, faults=tuple(_faults(error)), attributes=self.attributes())
        devices = tuple(self._tried(selector, name, *each) for name, each in sorted(self._devices.items()))
        return SelectorTrial(
            expression=text,
            max_cost=selector.max_cost,
            matching=sum(each.matches for each in devices),
            devices=devices,
            attributes=self.attributes(),
        )

    def _tried(self, selector: Selector, name: str, driver: str, device: Device) -> SelectedDevice:
        bound = bind(driver, device)
        found = selector.metered(bound)
        if found.matches and not self._asked:
            return SelectedDevice(name, True, cost=found.cost)
        values = tuple(_values(selector, bound))
        # Evaluated again for the error: the metered message has no hint about the attributes of the device.
        error = selector.evaluate(bound).error
        why = "" if found.matches or error else _why(values)
        return SelectedDevice(name, found.matches, error, why, found.cost, values if self._asked else ())

    def _is_of(self, cluster: ClusterObjects, name: str, each: tuple[str, Device]) -> bool:
        if not name:
            return True
        found = cluster.find(DeviceClass, name)
        if found is None:
            raise UsageError(f'deviceclasses.resource.k8s.io "{name}" not found')
        texts = [one.cel.expression for one in found.spec.selectors if one.cel]
        bound = bind(*each)
        return all(compile_selector(text, list_attributes=self._lists).evaluate(bound).matches for text in texts)


def _all_devices(cluster: ClusterObjects) -> Iterator[tuple[str, tuple[str, Device]]]:
    for each in cluster.all(ResourceSlice):
        for device in each.spec.devices:
            yield f"{each.spec.driver}/{each.spec.pool.name}/{device.name}", (each.spec.driver, device)


def _is_wanted(name: str, devices: Sequence[str]) -> bool:
    return not devices or any(f"/{name}".endswith(f"/{each}") for each in devices)


def _path(kind: str, driver: str, name: str) -> str:
    domain, slash, key = name.partition("/")
    return f'device.{kind}["{domain if slash else driver}"].{key if slash else name}'


def _faults(error: SelectorInvalid) -> Iterable[ExpressionFault]:
    issues = getattr(error.__cause__, "issues", ())
    if not issues:
        yield ExpressionFault(str(error))
    for each in issues:
        yield ExpressionFault(each.message, each.line, each.column, each.snippet.strip("\n"))


def _values(selector: Selector, bound: BoundDevice) -> Iterator[ExpressionValue]:
    for line in selector.trace(bound):
        yield ExpressionValue(line.text, line.value, line.depth)


def _why(values: Sequence[ExpressionValue]) -> str:
    """The smallest part that makes the expression false: go down while exactly one part is false."""
    position = 0
    while True:
        below = _children(values, position)
        false = [each for each in below if values[each].value == _FALSE]
        others = [each for each in below if values[each].value == _TRUE]
        if len(false) != 1 or (len(below) == 1 and not others):
            break
        position = false[0]
    if not values:
        return ""
    parts = [values[each] for each in _children(values, position) if values[each].value not in (_TRUE, _FALSE)]
    told = ", ".join(f"{each.text} is {each.value}" for each in parts)
    return f"{values[position].text} is false" + (f": {told}" if told else "")


def _children(values: Sequence[ExpressionValue], position: int) -> list[int]:
    if position >= len(values):
        return []
    depth, found = values[position].depth, []
    for number in range(position + 1, len(values)):
        if values[number].depth <= depth:
            break
        if values[number].depth == depth + 1:
            found.append(number)
    return found
