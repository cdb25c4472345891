"""IP addresses and CIDR ranges. No zones, no IPv4 inside IPv6."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from drakit.cel.checking.declarations import Function, Overload
from drakit.cel.checking.types import BOOL, INT, STRING, opaque
from drakit.cel.errors import EvalError
from drakit.cel.values import Opaque

IP, CIDR = opaque("net.IP"), opaque("net.CIDR")
Address = IPv4Address | IPv6Address


class IPValue(Opaque):
    __slots__ = ("address",)
    type_name = "net.IP"

    def __init__(self, address: Address) -> None:
        self.address = address

    def same(self, other: Any) -> bool:
        return bool(self.address == other.address)

    def __hash__(self) -> int:
        return hash(self.address)

    def __repr__(self) -> str:
        return str(self.address)

    def cel_size(self) -> int:
        return self.address.max_prefixlen // 8


class CIDRValue(Opaque):
    """A range as written: the address keeps its host bits."""

    __slots__ = ("address", "bits")
    type_name = "net.CIDR"

    def __init__(self, address: Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    def same(self, other: Any) -> bool:
        return (self.address, self.bits) == (other.address, other.bits)

    def __hash__(self) -> int:
        return hash((self.address, self.bits))

    def __repr__(self) -> str:
        return f"{self.address}/{self.bits}"

    def cel_size(self) -> int:
        return -(-self.bits // 8)

    def masked(self) -> CIDRValue:
        network = ip_network((self.address, self.bits), strict=False)
        return CIDRValue(network.network_address, self.bits)

    def covers(self, address: Address) -> bool:
        """Whether the first bits of an address are those of this range."""
        # An IPv4 range never covers an IPv6 address; there are no mapped addresses here.
        if address.version != self.address.version:
            return False
        shift = address.max_prefixlen - self.bits
        return int(address) >> shift == int(self.address) >> shift


@lru_cache(maxsize=1024)
def ip_from_text(text: str) -> IPValue:
    try:
        address = ip_address(text)
    except ValueError as error:
        raise EvalError(f'IP Address "{text}" parse error during conversion from string: {error}') from None
    if "%" in text:
        raise EvalError(f'IP address "{text}" with zone value is not allowed')
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise EvalError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return IPValue(address)


@lru_cache(maxsize=1024)
def cidr_from_text(text: str) -> CIDRValue:
    head, slash, tail = text.rpartition("/")
    wrong = "network address parse error during conversion from string"
    # As netip of Go: no sign and no leading zero.
    if not slash or not re.fullmatch(r"0|[1-9][0-9]{0,2}", tail, re.ASCII):
        raise EvalError(f'{wrong}: netip.ParsePrefix("{text}"): bad bits after slash')
    try:
        address = ip_from_text(head).address
    except EvalError as error:
        raise EvalError(f"{wrong}: {error.message}") from None
    if int(tail) > address.max_prefixlen:
        raise EvalError(f'{wrong}: netip.ParsePrefix("{text}"): prefix length out of range')
    return CIDRValue(address, int(tail))


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def test(text: str) -> bool:
        try:
            parse(text)
        except EvalError:
            return False
        return True

    return test


def _contains_ip(cidr: CIDRValue, ip: IPValue) -> bool:
    return cidr.covers(ip.address)


def _contains_cidr(cidr: CIDRValue, other: CIDRValue) -> bool:
    return cidr.bits <= other.bits and cidr.covers(other.address)


def _is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return int(address) >> 8 == 0xE00000
    return int(address) >> 112 & 0xFF0F == 0xFF02  # whatever the flags are


def _is_link_local_unicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return int(address) >> 16 == 0xA9FE
    return int(address) >> 118 == 0x3FA


def _is_global_unicast(address: Address) -> bool:
    if isinstance(address, IPv4Address) and int(address) == 0xFFFFFFFF:
        return False
    special = address.is_unspecified or address.is_loopback or address.is_multicast
    return not special and not _is_link_local_unicast(address)


_TESTS: tuple[tuple[str, str, Callable[[Address], bool]], ...] = (
    ("isUnspecified", "ip_is_unspecified", lambda address: address.is_unspecified),
    ("isLoopback", "ip_is_loopback", lambda address: address.is_loopback),
    ("isLinkLocalMulticast", "ip_is_link_local_multicast", _is_link_local_multicast),
    ("isLinkLocalUnicast", "ip_is_link_local_unicast", _is_link_local_unicast),
    ("isGlobalUnicast", "ip_is_global_unicast", _is_global_unicast),
)


def _test(test: Callable[[Address], bool]) -> Callable[[IPValue], bool]:
    return lambda ip: test(ip.address)


FUNCTIONS = (
    Function(
        "ip",
        (
            Overload("string_to_ip", (STRING,), IP, ip_from_text),
            Overload("cidr_ip", (CIDR,), IP, lambda cidr: IPValue(cidr.address), member=True, raises=False),
        ),
    ),
    Function("family", (Overload("ip_family", (IP,), INT, lambda ip: ip.address.version, member=True, raises=False),)),
    Function(
        "ip.isCanonical",
        (Overload("ip_is_canonical", (STRING,), BOOL, lambda text: str(ip_from_text(text).address) == text),),
    ),
    *(
        Function(name, (Overload(overload, (IP,), BOOL, _test(test), member=True, raises=False),))
        for name, overload, test in _TESTS
    ),
    Function("isIP", (Overload("is_ip", (STRING,), BOOL, _parses(ip_from_text), raises=False),)),
    Function("cidr", (Overload("string_to_cidr", (STRING,), CIDR, cidr_from_text),)),
    Function("isCIDR", (Overload("is_cidr", (STRING,), BOOL, _parses(cidr_from_text), raises=False),)),
    Function(
        "containsIP",
        (
            Overload(
                "cidr_contains_ip_string",
                (CIDR, STRING),
                BOOL,
                lambda cidr, text: _contains_ip(cidr, ip_from_text(text)),
                member=True,
            ),
            Overload("cidr_contains_ip_ip", (CIDR, IP), BOOL, _contains_ip, member=True, raises=False),
        ),
    ),
    Function(
        "containsCIDR",
        (
            Overload(
                "cidr_contains_cidr_string",
                (CIDR, STRING),
                BOOL,
                lambda cidr, text: _contains_cidr(cidr, cidr_from_text(text)),
                member=True,
            ),
            Overload("cidr_contains_cidr", (CIDR, CIDR), BOOL, _contains_cidr, member=True, raises=False),
        ),
    ),
    Function(
        "prefixLength", (Overload("cidr_prefix_length", (CIDR,), INT, lambda c: c.bits, member=True, raises=False),)
    ),
    Function("masked", (Overload("cidr_masked", (CIDR,), CIDR, CIDRValue.masked, member=True, raises=False),)),
    Function(
        "string",
        (
            Overload("ip_to_string", (IP,), STRING, repr, raises=False),
            Overload("cidr_to_string", (CIDR,), STRING, repr, raises=False),
        ),
    ),
)
