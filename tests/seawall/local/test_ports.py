"""Reserved ports: nobody else gets them, a server can still listen on them."""

from __future__ import annotations

import socket
import socketserver

import pytest

from seawall.local.ports import LOOPBACK, ReservedPort, is_listening


class Server(socketserver.TCPServer):
    allow_reuse_address = True


def test_a_server_listens_on_a_port_that_stays_reserved() -> None:
    """The reservation does not stand in the server's way, before or after a restart of it."""
    with ReservedPort() as port:
        for _ in range(2):
            with Server((LOOPBACK, port.number), socketserver.BaseRequestHandler):
                assert is_listening(port.number)
            assert not is_listening(port.number)


def test_a_reserved_port_is_given_to_nobody_else() -> None:
    """As many other ports as the system will give are all different from it."""
    with ReservedPort() as port:
        others = [socket.socket() for _ in range(500)]
        try:
            for other in others:
                other.bind((LOOPBACK, 0))
            assert port.number not in {other.getsockname()[1] for other in others}
        finally:
            for other in others:
                other.close()


def test_a_released_port_can_be_bound_by_anyone() -> None:
    """Without SO_REUSEADDR the bind fails while the port is reserved and works after the release."""
    port = ReservedPort()
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind((LOOPBACK, port.number))

    port.release()

    with socket.socket() as stranger:
        stranger.bind((LOOPBACK, port.number))
        assert stranger.getsockname()[1] == port.number
