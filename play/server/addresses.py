"""Whom limits and shares are counted by: the address of a client."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

from reversi_env import ReversiError
from reversi_env.errors import shown

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection


def client_of(connection: HTTPConnection) -> str:
    """Whose a request is; behind a proxy that is named to the server, whom that serves."""
    return known_as(connection.client.host) if connection.client else ""


@lru_cache(4096)
def known_as(host: str) -> str:
    """The name of the client at an address: an IPv4 address, or the /64 of an IPv6 one, which is the least that a customer has."""
    try:
        address = ip_address(host)
    except ValueError:
        return host[:64]
    if not isinstance(address, IPv6Address):
        return str(address)
    return str(address.ipv4_mapped or IPv6Network((int(address) >> 64 << 64, 64)))


def network(text: str) -> IPv4Network | IPv6Network:
    """The network, or the address as one, that *text* names."""
    try:
        return ip_network(text)
    except ValueError:
        raise ReversiError(
            f"proxy {shown(text)}: expected an address or a network, as 10.0.0.1 or 10.0.0.0/8"
        ) from None
