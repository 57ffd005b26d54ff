# SPDX-License-Identifier: Apache-2.0
"""Peers and readers of the log that do not read: the supervisor never blocks on them. In builds with the address
sanitizer, a blocking call of its main thread ends the daemon (nonblocking.h), so these cases do not depend on time
there."""
import fcntl
import os
import re
import select
import socket
import ssl
import struct
import sys
import tempfile
import time

import wire
from harness import Certificates, Daemon, Encrypted, case, main, read_file, require, wait_until
from wire import Closed, Conn, Session, field, fields_of, flat_text, hello, load, message, preamble

PROGRAM = field(15, bytes(range(1, 33)))
# As many bytes as all messages that a small receive buffer and the smallest packets let through.
WELCOME_MIN = 60 << 10
IMAGES, KERNELS = 16, 18


def remember_images(port):
    """From now on a Welcome to this program lists images with 64 KiB of kernels."""
    with Session(port, more=PROGRAM) as session:
        session.create_context()
        for image in range(IMAGES):
            kernels = "".join(f".visible .entry k{image:04}_{kernel:03}_{'x' * 100}(.param .u64 a, .param .u64 b){{ ret; }}\n"
                              for kernel in range(KERNELS))
            text = f".version 7.0\n.target sm_80\n.address_size 64\n{kernels}"
            result, _ = load(session, image + 1, flat_text(text.encode()))
            require(result == 0, f"image {image}: {result}")


def open_slow(port):
    """A connection with the smallest receive buffer and packets, which has sent Hello."""
    if isinstance(port, str):
        conn = Conn(port)
    else:
        conn = Conn.__new__(Conn)
        conn.socket = socket.socket()
        conn.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        conn.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        conn.socket.settimeout(60)
        conn.socket.connect(("127.0.0.1", port))
    conn.send(preamble() + message(hello(more=PROGRAM)))
    return conn


def open_slow_tls(port, certificates):
    conn = Conn.__new__(Conn)
    conn.socket = socket.socket()
    conn.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    conn.socket.settimeout(60)
    conn.socket.connect(("127.0.0.1", port))
    conn.send(preamble(wire.CONTROL_TLS))
    conn.take(64)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificates.file("ca"))
    conn.socket = context.wrap_socket(conn.socket, server_hostname="127.0.0.1")
    conn.socket.sendall(message(hello(more=PROGRAM)))
    return conn


def expect_welcome(conn, preambled=True):
    if preambled:
        conn.take(64)
    data, _ = conn.take_message()
    require(2 in fields_of(data), f"no Welcome but {sorted(fields_of(data))}")
    require(len(data) > WELCOME_MIN, f"a Welcome of {len(data)} bytes")


def others_come_in(port):
    """With the time of a client that was patient for half of what one Welcome took before."""
    begin = time.monotonic()
    for _ in range(3):
        with Session(port) as session:
            session.create_context()
    require(time.monotonic() - begin < 15, "others had to wait")


def unread_welcome(daemon, port, connect):
    """The unread Welcome waits in the socket's buffer, and a late reader gets all of it."""
    remember_images(port)
    held = [connect() for _ in range(4)]
    try:
        daemon.wait_for_log(r"session \d+ .*", count=1)
        others_come_in(port)
        for conn in held:
            expect_welcome(conn, not isinstance(conn.socket, ssl.SSLSocket))
    finally:
        for conn in held:
            conn.close()
    others_come_in(port)
    daemon.check_works()


@case("clients that do not read their Welcome delay no other client, and may read it later")
def _():
    with Daemon() as daemon:
        unread_welcome(daemon, daemon.port, lambda: open_slow(daemon.port))


@case("the same through a local socket")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        with Daemon("--listen", f"unix://{path}") as daemon:
            unread_welcome(daemon, path, lambda: open_slow(path))


@case("the same over TLS")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        unread_welcome(daemon, daemon.clear_port, lambda: open_slow_tls(daemon.port, certificates))


@case("a client that reads nothing at all is closed when its socket is full")
def _():
    with Daemon() as daemon, Session(daemon.port, lane=False) as session:
        # Without this a machine may keep more replies than the daemon is sent here.
        session.control.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        session.control.socket.setblocking(False)
        pings, sent = message(field(8, field(1, 1))) * 1024, 0

        # The kernel drops data that arrives at a full buffer, perhaps the end of the connection, too: only the
        # daemon's log is sure.
        def is_closed():
            nonlocal sent
            try:
                while True:
                    sent = (sent + session.control.socket.send(pings[sent:])) % len(pings)
            except OSError:
                return re.search(rf"session {session.id} .*: control connection: client does not read", daemon.log())

        wait_until("the client is closed", is_closed, 60)
        others_come_in(daemon.port)
        daemon.settle()


@case("a log that is not read stops nothing, and has the number of lines that are missing")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log")
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
            with Daemon("--log-level", "debug", prefix=("sh", "-c", f'exec "$0" "$@" 2>{path}')) as daemon:
                # More lines than the pipe takes.
                for _ in range(200):
                    Conn(daemon.port).close()
                others_come_in(daemon.port)
                daemon.check_works()
                text = b""

                def is_reported():
                    nonlocal text
                    Conn(daemon.port).close()
                    while select.select([reader], [], [], 0)[0]:
                        text += os.read(reader, 1 << 16)
                    return b" lines dropped: the reader did not keep up" in text

                wait_until("the log has the number of missing lines", is_reported, 60)
                require(b"\n" in text and all(b"gpupoold[" in line for line in text.splitlines()), f"broken lines: {text}")
        finally:
            os.close(reader)


if __name__ == "__main__":
    sys.exit(main(at_once=5))
