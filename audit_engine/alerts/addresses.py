"""Which addresses alerts may be sent to: those of the open Internet, unless the endpoint allows others.

A URL that somebody else can set, or a name whose answer somebody else gives, must not make this process talk
to what is near it: itself, its network, a cloud's metadata service. So it is the address that is judged, not
the name, and the one that was judged is the one that is connected to.

Owns the judgement. Invariant: what is not known to be public is private.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(text: str) -> bool:
    """Whether it is an address of the open Internet, whatever it is wrapped in."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(each.is_global and not each.is_multicast for each in _all_of(address))


def allowed(addresses: Iterable[str], *, is_private_allowed: bool, has_tls: bool) -> list[str]:
    """Those that may be connected to, in their order. Without TLS only private ones, where those are."""
    found = []
    for each in addresses:
        is_open = is_public(each)
        if (is_open and has_tls) or (not is_open and is_private_allowed):
            found.append(each)
    return found


def _all_of(address: Address) -> list[Address]:
    """The address, and those that it stands for."""
    found: list[Address] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return [address.ipv4_mapped]
        found += [each for each in (address.sixtofour, *(address.teredo or ())) if each is not None]
        if address in _NAT64:
            found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return found
