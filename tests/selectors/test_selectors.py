"""Selectors on devices."""

from __future__ import annotations

import pytest

from drakit.api import Device, from_plain
from drakit.base.errors import SelectorInvalid
from drakit.cel import Results, as_eval_error
from drakit.selectors import COST_LIMIT, MATCH, NO_MATCH, BoundDevice, Selector, bind, compile_selector

GPU = {
    "attributes": {
        "model": {"string": "a100"},
        "numa": {"int": 1},
        "ecc": {"bool": True},
        "driverVersion": {"version": "1.2.3"},
        "topo.example.com/root": {"string": "pci0"},
    },
    "capacity": {"memory": {"value": "40Gi"}, "topo.example.com/lanes": {"value": "16"}},
    "allowMultipleAllocations": True,
}
_CAPACITY = 'device.capacity["gpu.example.com"]'
_MISSING = 'device.attributes["gpu.example.com"].missing'


@pytest.fixture
def gpu() -> BoundDevice:
    return bind("gpu.example.com", GPU)


@pytest.mark.parametrize(
    "text",
    [
        'device.driver == "gpu.example.com"',
        'device.attributes["gpu.example.com"].model == "a100"',
        'device.attributes["topo.example.com"].root == "pci0"',
        'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.0.0"))',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) == 0',
        'device.capacity["topo.example.com"].lanes.asInteger() == 16',
        "device.allowMultipleAllocations",
        'device.attributes["gpu.example.com"].ecc',
        '!("none.example.com" in device.attributes) && device.attributes["none.example.com"].size() == 0',
        'device.attributes["none.example.com"] == {}',
        'has(device.attributes["gpu.example.com"].model) && !has(device.attributes["gpu.example.com"].x)',
        "has(device.attributes.nowhere) && device.attributes.nowhere.size() == 0",
        'device.attributes[?"none.example.com"].hasValue()',
        'device.attributes["gpu.example.com"].?x.orValue("y") == "y"',
        'device.attributes["gpu.example.com"].exists(k, k == "model")',
        'device.attributes.all(d, d.contains("."))',
        'device.attributes["gpu.example.com"].x == 1 || true',
    ],
)
def test_a_device_answers(text: str, gpu: BoundDevice) -> None:
    selector = Selector(text)
    assert selector.evaluate(gpu) is MATCH
    assert selector.metered(gpu).matches


def test_no_match_is_no_error(gpu: BoundDevice) -> None:
    assert Selector('device.driver == "x"').evaluate(gpu) is NO_MATCH
    assert Selector('device.attributes["gpu.example.com"].ecc == false').evaluate(gpu) is NO_MATCH


def test_an_unknown_attribute_is_an_error_that_names_the_nearest(gpu: BoundDevice) -> None:
    outcome = Selector('device.attributes["gpu.example.com"].modle == "a100"').evaluate(gpu)
    assert not outcome.matches
    assert outcome.error == (
        'no such key: modle, did you mean "model"? (the device has attributes gpu.example.com: driverVersion, ecc,'
        " model, numa; topo.example.com: root | capacity gpu.example.com: memory; topo.example.com: lanes)"
    )
    assert Selector('device.attributes["gpu.example.com"].modle == "a100"').metered(gpu).error == outcome.error


def test_a_device_without_anything_says_so() -> None:
    outcome = Selector('device.capacity["a"].memory.isInteger()').evaluate(bind("d", {}))
    assert outcome.error == "no such key: memory (the device has attributes none | capacity none)"


def test_a_result_that_is_no_bool_is_an_error(gpu: BoundDevice) -> None:
    for evaluate in (Selector.metered, lambda selector, bound: selector.evaluate(bound)):
        outcome = evaluate(Selector('device.attributes["gpu.example.com"].model'), gpu)
        assert outcome.error.startswith("CEL result of type string could not be converted to bool")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1", "must evaluate to bool or the unknown type, not int"),
        ("dyn(true)", "must evaluate to bool or the unknown type, not dyn"),
        ("device", "must evaluate to bool or the unknown type, not kubernetes.DRADevice"),
        ("device.nosuch", "compilation failed: ERROR: <input>:1:7: undefined field 'nosuch'"),
        ('device["driver"] == ""', "found no matching overload for '_[_]' applied to '(kubernetes.DRADevice, string)'"),
        ('device.attributes["a"].b.includes(1)', "undeclared reference to 'includes'"),
        ('device.attributes["a"].b.all(x, true)', "expression of type 'any' cannot be range of a comprehension"),
        ("true || " + "x" * 10240, "expression code point size exceeds limit: size: 10248, limit 10240"),
    ],
)
def test_what_no_device_can_be_checked_against_is_invalid(text: str, reason: str) -> None:
    with pytest.raises(SelectorInvalid) as caught:
        compile_selector(text)
    assert reason in str(caught.value)


def test_gates_decide_on_lists_and_sharing() -> None:
    device = {"attributes": {"numas": {"ints": [0, 1]}, "names": {"strings": ["x"]}, "vs": {"versions": ["1.0.0"]}}}
    bound = bind("gpu.example.com", device)
    for text in (
        'device.attributes["gpu.example.com"].numas.includes(1)',
        '1 in device.attributes["gpu.example.com"].numas',
        'device.attributes["gpu.example.com"].names.exists(n, n == "x")',
        'device.attributes["gpu.example.com"].vs[0].major() == 1',
    ):
        assert compile_selector(text, list_attributes=True).evaluate(bound) is MATCH, text
    off = compile_selector("true").evaluate(bound)
    assert off.error == "attribute names: unsupported attribute value"
    assert compile_selector("true").trace(bound)[0].value == f"error: {off.error}"
    with pytest.raises(SelectorInvalid, match="undefined field 'allowMultipleAllocations'"):
        compile_selector("device.allowMultipleAllocations", consumable_capacity=False)


def test_includes_refuses_lists_that_are_too_long() -> None:
    selector = compile_selector("lists.range(49).includes(48)", list_attributes=True)
    assert (
        selector.evaluate(bind("d", {})).error == "'includes' function cannot be applied to lists longer than 48 values"
    )


def test_a_broken_version_fails_every_expression() -> None:
    bound = bind("d", {"attributes": {"v": {"version": "1.2"}}})
    for evaluate in (compile_selector("true").evaluate, compile_selector("true").metered):
        assert evaluate(bound).error.startswith("attribute v: parse semantic version: ")


def test_devices_of_one_shape_share_one_binding() -> None:
    typed = from_plain(Device, {"name": "gpu-0", **GPU})
    assert bind("gpu.example.com", typed) is bind("gpu.example.com", {"name": "gpu-1", **GPU})
    assert bind("gpu.example.com", typed) is not bind("other.example.com", typed)


def test_selectors_are_compiled_once_per_text_and_gates() -> None:
    assert compile_selector("true") is compile_selector("true")
    assert compile_selector("true") is not compile_selector("true", list_attributes=True)


def test_the_metered_variant_counts_and_holds_the_limit(gpu: BoundDevice) -> None:
    assert Selector('device.driver == "gpu.example.com"').metered(gpu).cost == 4
    endless = "lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))"
    selector = Selector(endless)
    assert selector.max_cost > COST_LIMIT
    assert selector.evaluate(gpu).error == "operation cancelled: actual cost limit exceeded"


def test_estimates_that_only_optionals_blur_do_not_need_counting(gpu: BoundDevice) -> None:
    selector = Selector('device.attributes["gpu.example.com"].?model.orValue("").startsWith(device.driver)')
    assert selector.max_cost < COST_LIMIT
    blurred = Selector('device.driver.startsWith(device.attributes["gpu.example.com"].?model.orValue(""))')
    assert blurred.max_cost > COST_LIMIT
    assert blurred.evaluate(gpu).cost is None


def test_a_trace_explains_an_error_where_it_comes_from(gpu: BoundDevice) -> None:
    lines = [str(line) for line in Selector('device.attributes["gpu.example.com"].modle == "a100" || false').trace(gpu)]
    assert lines[0].endswith("= error: no such key: modle")
    assert 'did you mean "model"?' in lines[2]
    assert lines[2].startswith('1:37       device.attributes["gpu.example.com"].modle = error')


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('(true ? null : quantity("1")).isLessThan(quantity("2"))', "no such overload: isLessThan"),
        (f"{_CAPACITY}.?none.orValue(null).compareTo(quantity('1')) >= 0", "no such overload: compareTo"),
        ("cel.bind(t, true ? null : timestamp(0), t.getFullYear()) == 1", "no such overload: getFullYear"),
        ('"a".endsWith(dyn(optional.of(1)).value())', "no such overload"),
        ('1 < cel.bind(y, dyn(optional.of(1)).value(), y)["a"]', "no such key: a"),
        ('(dyn(["a"]) + [1])[0] + 1 == 2', "no such overload"),
        ('{"a": 1}.transformMapEntry(k, v, dyn(v)).size() == 1', "no such overload: cel.@mapInsert"),
    ],
)
def test_a_value_that_belies_its_static_type_is_an_error_and_never_a_crash(
    text: str, error: str, gpu: BoundDevice
) -> None:
    selector = Selector(text)
    assert selector.evaluate(gpu).error.startswith(error)
    assert selector.metered(gpu).error.startswith(error)
    surprises: list[Exception] = []
    results = Results(True, False, lambda _: False, lambda caught, _: surprises.append(caught))
    if fast := selector.program.function({"device": "scalar_device"}, results):
        fast(gpu)
    assert all(as_eval_error(caught) is not None for caught in surprises), surprises


@pytest.mark.parametrize(
    "text",
    [
        "{{1: 2}: 3}.size() == 1",
        "{[1]: 3}.all(k, k == [1])",
        '!(dyn({1: 2}) in {"a": 3})',
        "{[{}]: 1} != {[{}]: 1}",
    ],
)
def test_lists_and_maps_may_be_keys_that_no_lookup_finds(text: str, gpu: BoundDevice) -> None:
    assert Selector(text).evaluate(gpu) is MATCH


def test_an_error_on_the_way_into_an_empty_list_counts_unless_the_list_is_a_literal(gpu: BoundDevice) -> None:
    assert Selector(f"!({_MISSING} in [])").evaluate(gpu) is MATCH
    assert Selector(f"{_MISSING} in [].distinct()").evaluate(gpu).error.startswith("no such key: missing")


def test_a_key_is_not_looked_at_behind_an_optional_that_holds_nothing(gpu: BoundDevice) -> None:
    assert Selector(f"dyn(optional.none())[{_MISSING}] == optional.none()").evaluate(gpu).matches


def test_a_result_that_is_no_bool_is_named_by_the_full_name_of_its_type() -> None:
    with pytest.raises(SelectorInvalid, match=r"not map\(string, map\(string, google\.protobuf\.Any\)\)$"):
        Selector("device.attributes")
    with pytest.raises(SelectorInvalid, match=r"not list\(google\.protobuf\.Duration\)$"):
        Selector('[duration("1s")]')
