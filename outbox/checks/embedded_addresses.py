"""IPv4 addresses inside IPv6 addresses: where a packet to one of these may arrive. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Final

Address = IPv4Address | IPv6Address

MAPPED: Final = IPv6Network("::ffff:0:0/96")
NAT64: Final = IPv6Network("64:ff9b::/96")
LOCAL_NAT64: Final = IPv6Network("64:ff9b:1::/48")
COMPATIBLE: Final = IPv6Network("::/96")
TRANSLATED: Final = IPv6Network("::ffff:0:0:0/96")
SIX_TO_FOUR: Final = IPv6Network("2002::/16")
TEREDO: Final = IPv6Network("2001::/32")
NAT64_LENGTHS: Final = (32, 40, 48, 56, 64, 96)
"""The lengths that a prefix of RFC 6052 may have."""


def unwrap(address: Address, nat64: Iterable[IPv6Network] = ()) -> tuple[Address, ...]:
    """Return the addresses that a packet to this one may reach, with embedded IPv4 ones.

    ``nat64`` are the operator's prefixes of RFC 6052. In the local-use prefix 64:ff9b:1::/48 any
    length may be in use, so the address is taken at each one.
    """
    if isinstance(address, IPv4Address):
        return (address,)
    packed = address.packed
    reached = [_embedded(packed, each.prefixlen) for each in (*nat64, NAT64) if address in each]
    if address in MAPPED:
        reached.append(IPv4Address(packed[12:]))
    elif address in SIX_TO_FOUR:
        reached.append(IPv4Address(packed[2:6]))
    elif address in TEREDO:
        client = bytes(byte ^ 0xFF for byte in packed[12:])
        reached += [IPv4Address(packed[4:8]), IPv4Address(client)]
    return (*(reached or (IPv6Address(packed), *_guessed(address))), *_isatap(packed))


def _guessed(address: IPv6Address) -> Iterator[IPv4Address]:
    """Yield IPv4 addresses that this one may stand for, depending on the network."""
    if address in LOCAL_NAT64:
        yield from (_embedded(address.packed, length) for length in (48, 56, 64, 96))
    plain = address in COMPATIBLE and not address.is_loopback and not address.is_unspecified
    if plain or address in TRANSLATED:
        yield IPv4Address(address.packed[12:])


def _embedded(packed: bytes, prefix_length: int) -> IPv4Address:
    """Return the IPv4 address behind a prefix of RFC 6052, whose ninth byte is never used."""
    behind = packed[prefix_length // 8 :]
    unused = 8 - prefix_length // 8
    return IPv4Address((behind[:unused] + behind[unused + 1 :] if unused >= 0 else behind)[:4])


def _isatap(packed: bytes) -> tuple[IPv4Address, ...]:
    """Return the IPv4 address of an ISATAP interface (RFC 5214), which any prefix may have."""
    is_isatap = packed[8] & 0xFC == 0 and packed[9:12] == b"\x00\x5e\xfe"
    return (IPv4Address(packed[12:]),) if is_isatap else ()
