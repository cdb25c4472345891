"""Field paths, field errors and the Status that carries them."""

from __future__ import annotations

import msgspec
import pytest

from drakit.base import fields, status
from drakit.base.errors import InvalidObject
from drakit.base.fields import FieldError, Path
from drakit.base.quantity import Quantity

COUNT = (Path("spec") / "devices" / "requests")[0] / "exactly" / "count"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (fields.required(COUNT), "Required value"),
        (fields.required(COUNT, "must say how many"), "Required value: must say how many"),
        (fields.invalid(COUNT, -1, "must be greater than zero"), "Invalid value: -1: must be greater than zero"),
        (fields.invalid(COUNT, 'a"\n', "x"), 'Invalid value: "a\\"\\n": x'),
        (fields.invalid(COUNT, None, "x"), "Invalid value: null: x"),
        (fields.invalid(COUNT, ["a<b"], "x"), 'Invalid value: ["a\\u003cb"]: x'),
        (fields.invalid(COUNT, ["\u2028"], "x"), 'Invalid value: ["\\u2028"]: x'),
        (fields.invalid(COUNT, True, "x"), "Invalid value: true: x"),
        (fields.invalid(COUNT, 1.5, "x"), "Invalid value: 1.5: x"),
        (fields.invalid(COUNT, Quantity.parse("1.5Gi"), "x"), 'Invalid value: "1536Mi": x'),
        (fields.too_long(COUNT, 63), "Too long: may not be more than 63 bytes"),
        (fields.too_long(COUNT, 1), "Too long: may not be more than 1 byte"),
        (fields.too_many(COUNT, 33, 32), "Too many: 33: must have at most 32 items"),
        (fields.too_few(COUNT, 0, 1), "Too few: 0: must have at least 1 item"),
        (fields.duplicate(COUNT, "gpu"), 'Duplicate value: "gpu"'),
        (fields.not_found(COUNT, "gpu"), 'Not found: "gpu"'),
        (fields.not_supported(COUNT, "Some", ["All", "ExactCount"]),
         'Unsupported value: "Some": supported values: "All", "ExactCount"'),
        (fields.not_supported(COUNT, "ä", ["ä<"]), 'Unsupported value: "ä": supported values: "ä<"'),
        (fields.forbidden(COUNT, "field is immutable"), "Forbidden: field is immutable"),
        (fields.type_invalid(COUNT, "x", "must be a number"), 'Invalid value: "x": must be a number'),
        (fields.internal(COUNT, "lost"), "Internal error: lost"),
    ],
)  # fmt: skip
def test_a_field_error_reads_as_kubernetes_writes_it(error: FieldError, text: str) -> None:
    assert error.body == text
    assert str(error) == f"spec.devices.requests[0].exactly.count: {text}"


def test_paths_address_lists_and_maps() -> None:
    assert str(Path("spec").key("gpu.example.com/memory") / "value") == "spec[gpu.example.com/memory].value"
    assert Path("a") / "b" == Path("a.b")
    assert len({Path("a"), Path() / "a"}) == 1


@pytest.mark.parametrize(
    ("char", "text"), [("\x00", r"\x00"), ("\u200b", r"\u200b"), ("ä", "ä"), ("\U000e0001", r"\U000e0001")]
)
def test_strings_are_quoted_as_go_quotes_them(char: str, text: str) -> None:
    assert fields.quote(char) == f'"{text}"'


def test_a_status_carries_every_error_in_the_order_in_which_rules_found_them() -> None:
    spec = Path("spec") / "items"
    errors = [fields.required(spec[10]), fields.required(spec[2]), fields.required(Path("metadata") / "name")]
    answer = status.invalid("ResourceClaim", "resource.k8s.io", "c", errors)
    assert answer.details is not None
    assert [cause.field for cause in answer.details.causes] == ["spec.items[10]", "spec.items[2]", "metadata.name"]
    assert answer.code == 422
    assert answer.message == (
        'ResourceClaim.resource.k8s.io "c" is invalid: [spec.items[10]: Required value, '
        "spec.items[2]: Required value, metadata.name: Required value]"
    )


def test_a_map_key_of_thousands_of_digits_is_sorted_like_any_other() -> None:
    long, short = fields.required(Path("spec").key("9" * 5000)), fields.required(Path("spec")[2])
    assert fields.in_order([short, long]) == (long, short)


def test_one_message_stands_alone_and_repeated_ones_once() -> None:
    error = fields.required(Path("spec"))
    assert status.invalid("Pod", "", "p", [error, error]).message == 'Pod "p" is invalid: spec: Required value'
    assert str(InvalidObject("Pod", "p", [error])) == 'Pod "p" is invalid: spec: Required value'


def test_a_status_on_the_wire_has_the_fields_that_clients_read() -> None:
    wire = msgspec.json.decode(msgspec.json.encode(status.not_found("pods", "", "p")))
    assert wire == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'pods "p" not found',
        "reason": "NotFound",
        "details": {"name": "p", "kind": "pods"},
        "code": 404,
    }


def test_each_failure_has_its_code_and_words() -> None:
    group = "resource.k8s.io"
    assert status.conflict("resourceclaims", group, "c", "changed").message == (
        'Operation cannot be fulfilled on resourceclaims.resource.k8s.io "c": changed'
    )
    assert status.already_exists("pods", "", "p").message == 'pods "p" already exists'
    assert status.forbidden("pods", "", "", "no").message == "pods is forbidden: no"
    codes = [status.bad_request("x"), status.expired("x"), status.timeout("x", 3), status.forbidden("p", "", "n", "x")]
    assert [each.code for each in codes] == [400, 410, 504, 403]
