# SPDX-License-Identifier: Apache-2.0
"""REMOTE_GPU names no gpupool daemon of this version: the program gets one clear line on stderr and an error from
CUDA, and does not hang."""
import re
import socket
import subprocess
import os
import sys
import threading
import time

import wire
from harness import Daemon, base_environment, case, driver_options, main, require, run

# The time that the client waits for a reply, and a little more.
ANSWER_SECONDS = 60


class Fake:
    """A TCP server; talk(connection) serves each connection, in a thread of its own: a client may open
    one that it closes unused."""

    def __init__(self, talk):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.talk = talk
        self.connections = []
        self.threads = []
        self.start(self.serve)

    def start(self, function, *args):
        self.threads.append(threading.Thread(target=function, args=args, daemon=True))
        self.threads[-1].start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            self.start(self.serve_one, connection)

    def serve_one(self, connection):
        try:
            self.talk(connection)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        # The one that accepts, which starts the others, is the first.
        for thread in self.threads:
            thread.join(30)
        for connection in self.connections:
            connection.close()


def expect_refusal(remote, pattern, seconds=ANSWER_SECONDS):
    """vectoradd fails in its first call, with one line of the library's on stderr."""
    result = run("vectoradd", remote=remote, seconds=seconds)
    lines = result.err.splitlines()
    require(result.status == 1, f"expected status 1: {result}")
    require(re.match(r"line \d+: cudaMalloc.*: cudaError\w+ \(\d+\)", result.out), f"expected an error of cudaMalloc: {result}")
    require(len(lines) == 1 and re.search(pattern, lines[0]), f"expected one line on stderr like {pattern!r}: {result}")
    return result


def expect_refusal_by(talk, pattern, seconds=ANSWER_SECONDS):
    with Fake(talk) as fake:
        return expect_refusal(f"127.0.0.1:{fake.port}", pattern, seconds)


@case("a scheme that is none is named")
def _():
    for remote in ("http://127.0.0.1:1", "tcp://", "127.0.0.1:notaport", "tcp://127.0.0.1:99999"):
        expect_refusal(remote, r"REMOTE_GPU=" + re.escape(remote) + ": ", 20)


@case("without a listener the connection is refused")
def _():
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    result = expect_refusal(f"127.0.0.1:{port}", rf"127\.0\.0\.1:{port}.*[Cc]onnection refused")
    require(result.seconds < 10, f"took too long: {result}")


@case("a host that does not exist is named")
def _():
    expect_refusal("no-such-host.invalid:4833", r"no-such-host\.invalid", 60)


@case("a server of something else is recognised by its answer")
def _():
    def talk(connection):
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" + b"x" * 64)
    expect_refusal_by(talk, r"is not a gpupool daemon")


@case("a server that greets with a line and waits is recognised")
def _():
    expect_refusal_by(lambda connection: connection.sendall(b"220 mail.example.com ESMTP\r\n"), r"127\.0\.0\.1", 30)


@case("the client gives up on a server that accepts and stays silent")
def _():
    expect_refusal_by(lambda connection: None, r": no answer within 10 s: the daemon hangs or is very busy, or another program listens there", 40)


@case("a server that closes at once is not a daemon")
def _():
    def talk(connection):
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()
    expect_refusal_by(talk, r"is not a gpupool daemon, or it closed the connection at once|[Cc]onnection reset")


@case("a daemon of another major version is named with both versions")
def _():
    expect_refusal_by(lambda connection: connection.sendall(wire.preamble(major=2)),
                      r"speaks protocol 2, this client 1")


@case("a daemon that refuses is quoted")
def _():
    def talk(connection):
        connection.sendall(wire.preamble() + wire.message(wire.field(3, wire.field(1, 4) + wire.field(2, "all places are taken"))))
    expect_refusal_by(talk, r"refused: all places are taken")


@case("bytes instead of a welcome are refused")
def _():
    for data in (wire.message(b"\xff" * 40), wire.message(wire.field(2, b"")), b"\xff" * 64,
                 wire.message(wire.field(8, wire.field(1, 7)))):
        expect_refusal_by(lambda connection, data=data: connection.sendall(wire.preamble() + data), r"127\.0\.0\.1")


def welcome(window=(0x110000000000, 1 << 38), granularity=1 << 21, heap=1 << 22, ticket=bytes(range(32)), device=None):
    device = device or wire.field(2, "fake") + wire.field(3, bytes(16)) + wire.field(6, 1 << 30) + wire.field(7, b"\x12" * 120)
    body = wire.field(1, 0) + wire.field(3, 1) + wire.field(4, ticket) + wire.field(5, b"\xff" * 200) + wire.field(7, device)
    body += wire.field(8, wire.field(1, window[0]) + wire.field(2, window[1]))
    body += wire.field(9, wire.field(1, 1 << 18) + wire.field(2, 1 << 30) + wire.field(5, heap) + wire.field(6, granularity))
    body += wire.field(10, "fake driver") + wire.field(11, 13000) + wire.field(12, 1) + wire.field(13, 1)
    return wire.message(wire.field(2, body))


@case("a welcome that makes no sense is refused")
def _():
    for bad in (welcome(window=(0, 0)), welcome(window=(1 << 60, 1 << 38)), welcome(window=(0x110000000000, 1 << 62)),
                welcome(granularity=0), welcome(granularity=12345), welcome(ticket=b"short"),
                welcome(device=wire.field(2, "x" * 1000)), welcome(device=wire.field(3, b"4"))):
        expect_refusal_by(lambda connection, bad=bad: connection.sendall(wire.preamble() + bad), r"is invalid")


def receive_kind(connection):
    """The kind of connection that its preamble names; None: the client closed it unused."""
    connection.settimeout(ANSWER_SECONDS)
    try:
        return wire.take(connection, 64)[12]
    except wire.Closed:
        return None


def serve_lane(answer, delay=0):
    """A fake daemon that sends its welcome after a delay, and answers the first bytes of the lane's calls
    with these."""
    def talk(connection):
        kind = receive_kind(connection)
        if kind == wire.CONTROL:
            time.sleep(delay)
            connection.sendall(wire.preamble() + welcome())
        elif kind is not None:
            connection.recv(16)
            answer(connection)
    return talk


def expect_lost(answer, seconds=ANSWER_SECONDS, env=None, delay=0):
    with Fake(serve_lane(answer, delay)) as fake:
        result = run("vectoradd", remote=f"127.0.0.1:{fake.port}", seconds=seconds, env=env)
    require(result.status == 1 and re.match(r"line \d+: cuda\w+.*: cudaErrorDevicesUnavailable \(46\)", result.out),
            f"expected cudaErrorDevicesUnavailable: {result}")
    return result


@case("the client waits for a daemon that stops in the middle of its first message, reports it, and then fails with error 46")
def _():
    whole = wire.message(wire.header(32, wire.NOTE_DATA, wire.BULK, 1) + bytes(16), b"1234")
    for cut in (1, 8, 20):
        def answer(connection, cut=cut):
            connection.sendall(whole[:cut])
            time.sleep(4)

        result = expect_lost(answer, env={"GPUPOOL_TIMEOUT": "1", "GPUPOOL_LOG": "error"})
        require(re.search("the daemon has not answered for 1 s, but its machine acknowledges.*\n.*the session ended with error 46: "
                          "(the peer closed the connection inside a message|no first reply within 2 s)", result.err), f"expected the reason on stderr: {result}")


@case("a welcome that stops in the middle is given up")
def _():
    with Fake(lambda connection: connection.sendall(wire.preamble() + welcome()[:100])) as fake:
        result = run("vectoradd", remote=f"127.0.0.1:{fake.port}", seconds=ANSWER_SECONDS, env={"GPUPOOL_TIMEOUT": "1"})
    require(result.status == 1 and "the peer stopped in the middle of a message" in result.err, f"expected the reason: {result}")


@case("a daemon that breaks the protocol on the lane is lost to the program: error 46")
def _():
    reply = wire.header(16, 0x0501, wire.REPLY, 77, 0)
    for data in (b"\xff" * 64, wire.message(b""), wire.message(b"\0" * 16), wire.message(reply),
                 wire.message(wire.header(8, 1)), wire.message(wire.header(1 << 31, 1)),
                 wire.message(wire.header(32, wire.NOTE_ERROR) + bytes(16)),
                 wire.message(wire.header(32, wire.NOTE_DATA, wire.BULK, 1) + b"\xff" * 16, b"1234")):
        expect_lost(lambda connection, data=data: connection.sendall(data))
    # After a welcome that comes late the client uses another connection than the one that it opened early.
    expect_lost(lambda connection: connection.sendall(b"\xff" * 64), delay=0.3)


@case("a daemon that closes the lane is lost to the program: error 46")
def _():
    expect_lost(lambda connection: connection.close())


@case("the client accepts the end of a session that a daemon reports")
def _():
    state = {}

    def talk(connection):
        kind = receive_kind(connection)
        if kind == wire.CONTROL:
            state["control"] = connection
            connection.sendall(wire.preamble() + welcome())
        elif kind is not None:
            connection.recv(16)
            state["control"].sendall(wire.message(wire.field(6, wire.field(1, 710) + wire.field(2, "over"))))
            connection.close()
    with Fake(talk) as fake:
        result = run("vectoradd", remote=f"127.0.0.1:{fake.port}", seconds=ANSWER_SECONDS)
    require(result.status == 1 and "(710)" in result.out, f"expected error 710: {result}")


def daemon_fails(*args):
    done = subprocess.run([os.environ["GP_DAEMON"], *args], capture_output=True, text=True, timeout=120,
                          env=base_environment(), check=False)
    require(done.returncode not in (0, -6, -11), f"ended with {done.returncode}: {done.stderr}")
    require("Sanitizer" not in done.stderr, done.stderr)
    return done.stderr


@case("gpupoold reports that its port is in use")
def _():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = daemon_fails("--listen", f"127.0.0.1:{port}", *driver_options())
    require(re.search(rf"{port}.*in use", text), f"expected a word about the port: {text}")


@case("gpupoold reports an invalid driver library")
def _():
    text = daemon_fails("--listen", "127.0.0.1:0", "--driver", "/no/such/libcuda.so.1")
    require("/no/such/libcuda.so.1" in text, f"expected a word about the path: {text}")
    text = daemon_fails("--listen", "127.0.0.1:0", "--driver", "libc.so.6")
    require("libc.so.6" in text and re.search(r"cu[A-Z]\w+", text), f"expected a word about the symbol: {text}")


@case("gpupoold refuses options and addresses that are none")
def _():
    daemon_fails("--no-such-option")
    daemon_fails("--listen", "http://127.0.0.1:1", *driver_options())
    daemon_fails("--listen", "127.0.0.1:notaport", *driver_options())


@case("a program without REMOTE_GPU finds no device or the machine's own")
def _():
    result = run("vectoradd")
    require(result.status in (0, 1) and (result.status == 0 or "cudaError" in result.out), f"{result}")


@case("a real daemon is found by address with and without its scheme")
def _():
    with Daemon() as daemon:
        run("vectoradd", remote=f"127.0.0.1:{daemon.port}").expect(out="vectoradd: ok\n")
        run("vectoradd", remote=f"tcp://127.0.0.1:{daemon.port}").expect(out="vectoradd: ok\n")
        run("vectoradd", remote=f"localhost:{daemon.port}/0").expect(out="vectoradd: ok\n")
        result = run("vectoradd", remote=f"localhost:{daemon.port}/99")
        require(result.status == 1, f"device 99: {result}")


@case("a daemon without a free session slot reports it, and has a slot again when a session ends")
def _():
    with Daemon("--max-sessions=2") as daemon:
        first, second = (daemon.start("memhog", "1", stdin=True) for _ in range(2))
        first.wait_for_output("free after")
        second.wait_for_output("free after")
        expect_refusal(daemon.address, r"refused: no free session slot")
        first.finish().expect()
        daemon.check_works()
        second.finish().expect()


if __name__ == "__main__":
    sys.exit(main(at_once=4))
