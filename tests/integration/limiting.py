# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of limits: connections of an attacker, of other users and of other machines, and a neighbor
program that must not be affected."""
import fcntl
import functools
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import wire
from harness import PATIENCE, Failed, Skip, main, require
from wire import Closed, Session

ATTACKER = "127.0.0.2"
# Others of this network are other machines; own_network() has it.
FAR = "10.9.0.2"
NOBODY, ALICE = 65534, 65533
SUCCESS = 0
# The extra time that a program may take during an attack.
SOON = PATIENCE / 4


def expect_closed(conn, seconds=60):
    conn.socket.settimeout(seconds)
    try:
        conn.wait_closed()
    except socket.timeout:
        raise Failed("the daemon keeps the connection open") from None


def is_open(conn):
    conn.socket.settimeout(0.001)
    try:
        return conn.socket.recv(1, socket.MSG_PEEK) != b""
    except (socket.timeout, BlockingIOError):
        return True
    except ConnectionResetError:
        return False


def neighbour(daemon):
    """Another client is accepted and works without a delay."""
    begin = time.monotonic()
    daemon.check_works()
    require(time.monotonic() - begin < SOON, "a neighbour had to wait")


def refusal(conn):
    """The reason that a control connection is refused with."""
    conn.take(64)
    kinds = wire.fields_of(conn.take_message()[0])
    require(3 in kinds, f"not refused: {sorted(kinds)}")
    return wire.fields_of(kinds[3][0])[2][0].decode()


def lost(conn):
    """The reason for the lost session, as its control connection reports it."""
    kinds = wire.fields_of(conn.take_message()[0])
    require(6 in kinds, f"not lost: {sorted(kinds)}")
    return wire.fields_of(kinds[6][0])[2][0].decode()


def comes_in(daemon, **more):
    """Whether a session is to be had now."""
    try:
        Session(daemon.port, lane=False, **more).close()
    except (Closed, OSError):
        return False
    return True


def set_loopback(up):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, 0x8914, struct.pack("16sH14x", b"lo", 1 if up else 0))  # SIOCSIFFLAGS, IFF_UP


def add_far_machines():
    """All of 10.9/16 are addresses to come from."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for request, address in ((0x8916, "10.9.0.1"), (0x891c, "255.255.0.0")):  # SIOCSIFADDR, SIOCSIFNETMASK
            fcntl.ioctl(control, request, struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, socket.inet_aton(address)))


own_networks = {}


def own_network(function):
    """The case runs in a network of its own, in another process, which finds it by its name."""
    require(own_networks.setdefault(function.__name__, function) is function, f"two cases named {function.__name__}")

    @functools.wraps(function)
    def run():
        flags = ["-n"] if os.geteuid() == 0 else ["-rn"]
        if subprocess.run(["unshare", *flags, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            raise Skip("no network of one's own can be made here (unshare)")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["unshare", *flags, sys.executable, function.__code__.co_filename, "--own-network", function.__name__],
                                  capture_output=True, text=True, env={**os.environ, "TMPDIR": folder}, timeout=200,
                                  check=False)
        require(done.returncode == 0, done.stdout + done.stderr)
    return run


class Held:
    """Connections that another user of this machine holds, and does not use; a context manager."""

    def __init__(self, user, connect):
        ready, self.go = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.go[1])
                os.setresuid(user, user, user)
                held = connect()
                os.write(ready[1], b"1")
                os.read(self.go[0], 1)
                os._exit(len(held) == 0)
            except OSError as error:
                os.write(2, f"user {user}: {error}\n".encode())
            finally:
                os._exit(1)
        os.close(ready[1])
        os.close(self.go[0])
        self.are_held = os.read(ready[0], 1) == b"1"
        os.close(ready[0])

    def __enter__(self):
        require(self.are_held, "the other user cannot connect")
        return self

    def __exit__(self, *_error):
        os.close(self.go[1])
        os.waitpid(self.pid, 0)


"".encode("idna")  # loads the files that name resolution needs: other users may be unable to read them


def become(user, function, *args):
    """Calls the function as this user, who then owns the sockets that it opens."""
    os.seteuid(user)
    try:
        return function(*args)
    finally:
        os.seteuid(0)


class AtOnce:
    """Connections that are opened in the block reach the daemon together, in their order."""

    def __init__(self, daemon):
        self.daemon = daemon

    def __enter__(self):
        os.kill(self.daemon.pid, signal.SIGSTOP)

    def __exit__(self, *_error):
        os.kill(self.daemon.pid, signal.SIGCONT)


def answer_kinds(conn):
    """The kinds of the messages that answer the Hello, which was sent on connecting."""
    conn.socket.settimeout(5)
    try:
        conn.take(64)
        return set(wire.fields_of(conn.take_message()[0]))
    except (Closed, OSError) as error:
        raise Failed(f"not answered: {error!r}") from None


def run_cases():
    """The last statement of each file of these tests."""
    if sys.argv[1:2] != ["--own-network"]:
        sys.exit(main(at_once=6))
    set_loopback(True)
    add_far_machines()
    own_networks[sys.argv[2]]()
