"""Addresses of clients, for limits and fair shares, and this machine's address for other machines."""

from __future__ import annotations

import socket
from contextlib import closing
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

from reversi_env import ReversiError
from reversi_env.errors import quoted

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection


#: Addresses that stand for all interfaces.
EVERYWHERE = ("0.0.0.0", "::")


def client_of(connection: HTTPConnection) -> str:
    """Return the name of a request's client; behind a trusted proxy, that of the proxy's client."""
    return known_as(connection.client.host) if connection.client else ""


@lru_cache(4096)
def known_as(host: str) -> str:
    """Return the name of the client at an address: an IPv4 address, or the /64 of an IPv6 address, the least a customer gets."""
    try:
        address = ip_address(host)
    except ValueError:
        return host[:64]
    if not isinstance(address, IPv6Address):
        return str(address)
    return str(address.ipv4_mapped or IPv6Network((int(address) >> 64 << 64, 64)))


def network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError:
        raise ReversiError(f"proxy {quoted(text)}: expected an address or a network, such as 10.0.0.0/8") from None


def url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def url_for_others(host: str, port: int) -> str | None:
    address = host_for_others(host)
    return None if address is None else url(address, port)


def host_for_others(host: str) -> str | None:
    """Return the address of a server that listens on *host* for other machines; None if they cannot reach it."""
    if host in EVERYWHERE:
        host = _own_address()
    try:
        return None if ip_address(host).is_loopback else host
    except ValueError:  # a host name
        return None if host == "localhost" else host


def _own_address() -> str:
    """Return the address that this machine would send from. Nothing is sent."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an unused address (RFC 5737)
            return str(probe.getsockname()[0])
        except OSError:  # no network
            return "127.0.0.1"
