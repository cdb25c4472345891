"""Requests by name, and the devices that containers get for them."""

from __future__ import annotations

from drakit.api import (
    ResourceClaim,
    base_request_name,
    configs_for,
    covers,
    devices_for,
    find_request,
    from_plain,
    is_allocated,
    is_reserved_for,
    named_requests,
    reservation,
    results_of,
    sub_request_name,
)

CLAIM = from_plain(
    ResourceClaim,
    {
        "metadata": {"name": "c", "namespace": "n"},
        "spec": {
            "devices": {
                "requests": [
                    {"name": "nic", "exactly": {"deviceClassName": "nic"}},
                    {
                        "name": "gpu",
                        "firstAvailable": [
                            {"name": "big", "deviceClassName": "big"},
                            {"name": "small", "deviceClassName": "small", "count": 2},
                        ],
                    },
                ]
            }
        },
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {"request": "nic", "driver": "net", "pool": "p", "device": "nic-0"},
                        {"request": "gpu/small", "driver": "gpus", "pool": "p", "device": "gpu-0"},
                        {"request": "gpu/small", "driver": "gpus", "pool": "p", "device": "gpu-1"},
                    ],
                    "config": [
                        {"source": "FromClass", "opaque": {"driver": "gpus", "parameters": {"n": 1}}},
                        {
                            "source": "FromClaim",
                            "requests": ["gpu"],
                            "opaque": {"driver": "gpus", "parameters": {"n": 2}},
                        },
                        {
                            "source": "FromClaim",
                            "requests": ["gpu/big"],
                            "opaque": {"driver": "gpus", "parameters": {}},
                        },
                        {"source": "FromClaim", "requests": ["gpu"], "opaque": {"driver": "net", "parameters": {}}},
                    ],
                }
            },
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        },
    },
)


def devices(request: str = "") -> list[str]:
    return [result.device for result in devices_for(CLAIM, request)]


def test_a_claim_is_allocated_when_it_has_an_allocation() -> None:
    assert is_allocated(CLAIM)
    assert not is_allocated(ResourceClaim())
    assert results_of(ResourceClaim()) == ()


def test_a_claim_is_reserved_by_uid() -> None:
    assert is_reserved_for(CLAIM, "u")
    assert not is_reserved_for(CLAIM, "p")
    found = reservation(CLAIM, "u")
    assert found is not None
    assert found.name == "p"
    assert reservation(CLAIM, "x") is None


def test_requests_and_alternatives_have_names() -> None:
    names = [name for name, _ in named_requests(CLAIM.spec.devices)]
    assert names == ["nic", "gpu", "gpu/big", "gpu/small"]
    assert sub_request_name("gpu", "big") == "gpu/big"
    assert base_request_name("gpu/big") == base_request_name("gpu") == "gpu"


def test_a_request_is_found_by_name() -> None:
    exact, alternative = find_request(CLAIM.spec.devices, "nic"), find_request(CLAIM.spec.devices, "gpu/small")
    assert exact is not None
    assert exact.device_class_name == "nic"
    assert alternative is not None
    assert alternative.count == 2
    assert find_request(CLAIM.spec.devices, "gpu") is None
    assert find_request(CLAIM.spec.devices, "small") is None


def test_a_container_gets_the_devices_of_the_request_that_it_names() -> None:
    assert devices() == ["nic-0", "gpu-0", "gpu-1"]
    assert devices("nic") == ["nic-0"]
    assert devices("gpu") == ["gpu-0", "gpu-1"]
    assert devices("gpu/small") == ["gpu-0", "gpu-1"]
    assert devices("gpu/big") == []


def test_references_cover_a_request_and_its_alternatives() -> None:
    assert covers((), "gpu/small")
    assert covers(("gpu",), "gpu/small")
    assert covers(("gpu/small",), "gpu/small")
    assert not covers(("gpu/big",), "gpu/small")
    assert not covers(("gpu/small",), "gpu")


def test_configuration_applies_by_request_and_driver_in_order() -> None:
    found = [config.opaque.parameters for config in configs_for(CLAIM, results_of(CLAIM)[1]) if config.opaque]
    assert found == [{"n": 1}, {"n": 2}]
    assert configs_for(CLAIM, results_of(CLAIM)[0]) == ()
    assert configs_for(ResourceClaim(), results_of(CLAIM)[0]) == ()
