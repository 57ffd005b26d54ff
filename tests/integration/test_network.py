# SPDX-License-Identifier: Apache-2.0
"""bench/network, which simulates a network on loopback; and that the client library counts exactly the round trips
that pass through it."""
import os
import re
import socket
import sys
import threading
import time

from harness import Daemon, case, main, require
from stats import ASKED, read_stats

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "network"))
from network import Network

PROGRAM = os.environ["GP_NETWORK"]
PROBE = os.environ["GP_PROBE"]
MIB = 1 << 20
# Milliseconds. A thread of the client or of the network that is held up for half of this between two
# sends changes the number of round trips, and one that is held up before it waits waits for less;
# such a run is discarded and repeated over a longer way, relative to which the delay is short.
RTTS = (200, 400, 800, 1600)


class Echo:
    """Sends back what comes, on a connection of its own."""

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        return self

    def serve(self):
        connection, _ = self.listener.accept()
        with connection:
            while data := connection.recv(65536):
                connection.sendall(data)

    def __exit__(self, *_):
        self.thread.join()
        self.listener.close()


def connect(network):
    host, port = network.address.split(":")
    connection = socket.create_connection((host, int(port)))
    connection.settimeout(60)
    return connection


def receive(connection, size):
    data = bytearray()
    while len(data) < size:
        more = connection.recv(size - len(data))
        require(more, f"the connection ended after {len(data)} bytes")
        data += more
    return bytes(data)


@case("data that is sent through the network arrives complete and counted, in a small window")
def _():
    sent = os.urandom(3 * MIB + 17)
    with Echo() as echo, Network(PROGRAM, echo.address, rtt=1, rate=10, window=100000) as network:
        with connect(network) as connection:
            sender = threading.Thread(target=connection.sendall, args=(sent,))
            sender.start()
            came = receive(connection, len(sent))
            sender.join()
            counts = network.counts()
    require(came == sent, "not the bytes that were sent")
    require((counts.connections, counts.up, counts.down) == (1, len(sent), len(sent)), f"{counts}")


@case("nothing comes sooner than the round trip, and a connection costs one")
def _():
    with Echo() as echo, Network(PROGRAM, echo.address, rtt=50) as network:
        require(network.rtt >= 50, f"a round trip of 50 ms takes {network.rtt} ms")
        begin = time.monotonic()
        with connect(network) as connection:
            for number in range(1, 4):
                connection.sendall(b"x")
                receive(connection, 1)
                took = time.monotonic() - begin
                require(took >= 0.05 * (number + 1), f"{number} times there and back after {took} s")
                counts = network.counts()
                require(counts.trips == number + 1, f"{number} times there and back: {counts}")


@case("nothing comes faster than the rate")
def _():
    size = 2 * MIB
    with Echo() as echo, Network(PROGRAM, echo.address, rate=0.1) as network:
        with connect(network) as connection:
            begin = time.monotonic()
            sender = threading.Thread(target=connection.sendall, args=(bytes(size),))
            sender.start()
            receive(connection, size)
            took = time.monotonic() - begin
            sender.join()
    require(took >= size * 8 / 1e8, f"{size} bytes at 100 Mbit/s in {took} s")


@case("an end of one side reaches the other")
def _():
    with Echo() as echo, Network(PROGRAM, echo.address, rtt=1) as network:
        with connect(network) as connection:
            connection.sendall(b"bytes")
            connection.shutdown(socket.SHUT_WR)
            require(receive(connection, 5) == b"bytes" and connection.recv(1) == b"", "no end after the bytes")


def compare(rtt, name, *args):
    """(counted by the library, by the network)"""
    with Daemon() as daemon, Network(PROGRAM, daemon.address, rtt=rtt) as network:
        result = daemon.run(name, *args, env={**ASKED, "REMOTE_GPU": network.address})
        return read_stats(result), network.counts()


def agree(name, *args):
    seen = []
    for rtt in RTTS:
        stats, counts = compare(rtt, name, *args)
        # A thread that is held up between sending and waiting waits for less.
        if stats.trips == counts.trips and sum(stats.milliseconds.values()) >= rtt * stats.trips:
            return
        seen.append((stats, counts))
    require(False, f"the network counts other round trips, or they are too short, over each of {RTTS}: {seen}")


@case("the round trips of a program that computes and reads are those of the network")
def _():
    agree("vectoradd")


@case("the round trips of a program that launches often are those of the network")
def _():
    agree("launchrate", "1000")


@case("the round trips of a program that allocates, copies and synchronises are those of the network")
def _():
    agree("memset")


def often(daemon, address, count, size):
    """(statistics, kind of wait -> milliseconds of one) of a program that waits so often in each way for work that
    writes to memory that kernels reach."""
    result = daemon.run("probe", "waits", str(count), str(size), path=PROBE, env={**ASKED, "REMOTE_GPU": address})
    took = {kind: float(ms) for kind, ms in re.findall(r"^(\w+) ([\d.]+) ms$", result.out, re.M)}
    require(list(took) == ["stream", "event", "context", "copy", "copied", "pinned", "again"], f"{result}")
    return read_stats(result), took


@case("a wait is one round trip beside memory that kernels reach, and brings what they have written")
def _():
    seen = []
    for rtt in RTTS:
        with Daemon() as daemon, Network(PROGRAM, daemon.address, rtt=rtt) as network:
            stats, took = often(daemon, network.address, 4, 4096)
        causes = [stats.causes.get(name) for name in ("cuStreamSynchronize", "cuEventSynchronize", "gpCopyOut")]
        # Stream three times: for the copy to pinned memory, and as it is asked again; the last wait of all is for the context.
        require(causes == [12, 4, 8] and stats.causes["gpContextSynchronize"] in (4, 5), f"other waits: {stats}")
        require("gpHostTake" not in stats.causes and "gpHostTakeBehind" not in stats.causes,
                f"changes are waited for apart: {stats}")
        # Some for each wait, not one in each 0.1 ms that a wait takes.
        require(stats.calls["gpHostTakeChanged"] + stats.calls["gpHostTake"] < 150, f"asked again and again: {stats}")
        if all(rtt <= ms < 1.5 * rtt for ms in took.values()):
            return
        seen.append(took)
    require(False, f"waits take more than a round trip, or less, over each of {RTTS}: {seen}")


@case("beside more memory that kernels reach than the daemon looks at meanwhile a wait is two round trips")
def _():
    with Daemon() as daemon:
        stats, _ = often(daemon, daemon.address, 4, (1 << 20) + 4096)
        require(stats.causes["gpHostTake"] >= 24 and "gpHostTakeBehind" not in stats.calls, f"{stats}")


if __name__ == "__main__":
    sys.exit(main())
