# SPDX-License-Identifier: Apache-2.0
"""Attacks on TLS. Data lanes have keys that a test cannot derive by itself, so this one is a proxy between a program
and the daemon, or continues a client's connection."""
import re
import select
import socket
import ssl
import struct
import sys
import threading
import time

import attacked
import wire
from attacked import Attacked, endings
from harness import Program, case, require, wait_until
from wire import Closed, Conn, hello, message, preamble


class Relay:
    """A proxy between a program and the daemon. change(number, records) returns the TLS records to forward
    instead of those that the client sends after the preamble, on its control connection (number 0) or a lane (1 and
    the lane's number). The number is from the preamble, as a lane may be opened twice on a busy machine.
    first(preamble) is called before the preamble is forwarded."""

    def __init__(self, target, change, late=None, first=None):
        self.target = target
        self.change = change
        self.first = first or (lambda preamble: None)
        self.late = late or (lambda number: [])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tls://127.0.0.1:{self.listener.getsockname()[1]}"
        self.server = threading.Thread(target=self.serve, daemon=True)
        self.server.start()

    def serve(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.target.tls_port))
            threading.Thread(target=self.forward, args=(near, far), daemon=True).start()
            threading.Thread(target=self.back, args=(far, near), daemon=True).start()

    @staticmethod
    def back(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        try:
            sink.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    @staticmethod
    def parse_number(held):
        kind, lane = struct.unpack_from("<HH", held, len(wire.MAGIC) + 4)
        return 0 if kind in (wire.CONTROL, wire.CONTROL_TLS) else 1 + lane

    def forward(self, source, sink):
        """A change may ask for the end of the connection by None."""
        held, seen = b"", 0
        try:
            while len(held) < 64:
                held += source.recv(64 - len(held)) or self.stop()
            number = self.parse_number(held)
            self.first(held)
            sink.sendall(held)
            held = b""
            while data := self.recv(source, sink, number):
                held += data
                records = []
                while len(held) >= 5 and len(held) >= 5 + struct.unpack_from(">H", held, 3)[0]:
                    size = 5 + struct.unpack_from(">H", held, 3)[0]
                    records.append((seen, held[:size]))
                    held, seen = held[size:], seen + 1
                for out in self.change(number, records):
                    if out is None:
                        self.stop()
                    sink.sendall(out)
        except OSError:
            pass
        for end_ in (sink, source):
            try:
                end_.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    def recv(self, source, sink, number):
        while not select.select([source], [], [], 0.5)[0]:
            for out in self.late(number):
                sink.sendall(out)
        return source.recv(65536)

    @staticmethod
    def stop():
        raise OSError("the end of it")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A thread that still waited at the number of a closed socket might get what is the next one's.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.server.join()
        self.listener.close()


def on(connection, place, act):
    """A change to records of one connection: act gets one and returns those to send instead."""
    def change(number, records):
        out = []
        for seen, data in records:
            out += act(data) if number == connection and seen >= place else [data]
        return out
    return change


def late_on(connection, act):
    return lambda number: act.late() if number == connection and hasattr(act, "late") else []


def flip(data):
    return [data[:-1] + bytes([data[-1] ^ 1])]


class Drop:
    """One record is lost.  If no other comes, for all wait for an answer to this one, it comes late, and twice."""

    def __init__(self):
        self.lost = None

    def __call__(self, data):
        if self.lost is None:
            self.lost = data
            return []
        return [data]

    def late(self):
        return [self.lost, self.lost] if self.lost else []


class Swap(Drop):
    """The second of two records first."""

    def __call__(self, data):
        if self.lost is None:
            self.lost = data
            return []
        out, self.lost = [data, self.lost], b""
        return [part for part in out if part]


CHANGED = "TLS record failed authentication"
REASONS = {"cut": "connection closed without close_notify", "without a close_notify": "connection closed without close_notify",
           "not of TLS": "received data is not a TLS record"}


@case("TLS records that are damaged, doubled, dropped, swapped, cut or put in from another connection")
def _():
    stolen = []

    def steal(data):
        stolen.append(data)
        return [data]

    changes = {"damaged": flip, "doubled": lambda data: [data, data], "dropped": Drop(), "swapped": Swap(), "cut": lambda data: [data[:len(data) // 2], None],
               "without a close_notify": lambda data: [None], "longer": lambda data: [data[:3] + struct.pack(">H", len(data) + 11) + data[5:] + bytes(16)],
               "not of TLS": lambda data: [b"GET / HTTP/1.1\r\n\r\n"]}
    with Attacked() as target:
        # How many records a program's calls make is a matter of pace: the last of all there were.
        with Relay(target, on(1, 0, steal)) as relay:
            result = Program("vectoradd", (), relay.address, env=target.certificates.client()).finish()
            result.expect(out="vectoradd: ok\n", err="")
        changes["of another session"] = lambda data: [stolen[-1], data]
        for name, act in changes.items():
            # Connection 0 is the control connection, 1 is lane 0; their handshakes take two records.
            # On a busy machine few records may contain the whole exchange: then the lost one may be the last.
            for _ in range(4 if isinstance(act, Drop) else 1):
                before = set(endings(target))
                if isinstance(act, Drop):
                    act.lost = None
                with Relay(target, on(1, 8, act), late_on(1, act)) as relay:
                    result = Program("threads", (), relay.address, env=target.certificates.client()).finish()
                if result.status != 0:
                    break
            require(result.status != 0 and "threads: ok" not in result.out, f"{name}: the program noticed nothing: {result}")
            # The neighbour's programs may end at the same time, well.
            wait_until(f"{name}: the log has {REASONS.get(name, CHANGED)!r}", lambda: any(
                REASONS.get(name, CHANGED) in reason for number, reason in endings(target).items() if number not in before), 20)
        for name, act in changes.items():
            if name in ("dropped", "swapped", "of another session"):
                continue
            with Relay(target, on(0, 1, act)) as relay:
                result = Program("vectoradd", (), relay.address, env=target.certificates.client()).finish()
            require(result.status != 0, f"{name}, on the control connection: the program noticed nothing: {result}")


@case("clients that know the name of a ticket do not block its lanes, and are refused")
def _():
    strangers = []

    def crowd(start):
        """More than may have handshakes at once, each before the client."""
        if struct.unpack_from("<H", start, 12)[0] != wire.LANE_TLS:
            return
        for _ in range(6):
            conn = Conn(target.tls_port)
            conn.send(start)
            strangers.append(conn)
        time.sleep(0.2)

    with Attacked() as target:
        with Relay(target, lambda number, records: [data for _, data in records], first=crowd) as relay:
            environment = target.certificates.client(GPUPOOL_LANES="4")
            Program("lanes", ("short",), relay.address, env=environment).finish().expect(out="lanes: ok\n", err="")
        # The client may have lane 0 before the strangers know the name.
        require(len(strangers) in (3 * 6, 4 * 6), f"{len(strangers)} strangers: the program had other lanes")
        for conn in strangers:
            conn.socket.settimeout(20)
            conn.wait_closed()
            conn.close()
        log = target.log()
        require(" that the session already has" not in log, log)
        for lane in range(4 - len(strangers) // 6, 4):
            require(re.search(rf"a lane \({lane}\) is refused: its handshake is the oldest of too many", log), log)


def client_hello(context):
    """What Python's TLS begins with."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def add_extension(hello_, kind, content):
    """The same ClientHello with one more extension, before the others."""
    body = bytearray(hello_[9:])
    at = 2 + 32
    at += 1 + body[at]
    at += 2 + struct.unpack_from(">H", body, at)[0]
    at += 1 + body[at]
    size, = struct.unpack_from(">H", body, at)
    extension = struct.pack(">HH", kind, len(content)) + content
    body[at:at + 2] = struct.pack(">H", size + len(extension))
    body[at + 2:at + 2] = extension
    handshake = b"\1" + len(body).to_bytes(3, "big") + bytes(body)
    return hello_[:3] + struct.pack(">H", len(handshake)) + handshake


@case("early data, another handshake inside of TLS, and handshakes cut at every place")
def _():
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.load_verify_locations(attacked.certificates.file("ca"))
    greeting = client_hello(made)
    refused = r"gpupoold\[\d+\]: warning: tls://127\.0\.0\.1:\d+: refused: "
    early = add_extension(greeting, 42, b"")
    sent = message(hello())
    garbage = b"\x17\3\3" + struct.pack(">H", len(sent) + 16) + sent + bytes(16)
    with Attacked() as target:
        before = len(re.findall(refused, target.log()))
        sessions = target.in_use()[0]
        for number, data in enumerate((early + garbage, early + garbage * 2000, greeting + garbage, greeting + greeting,
                                       add_extension(greeting, 0xff01, b"\0"), add_extension(greeting, 41, bytes(40))), 1):
            with Conn(target.tls_port) as conn:
                conn.send(preamble(wire.CONTROL_TLS))
                conn.take(64)
                try:
                    conn.send(data)
                    conn.socket.shutdown(socket.SHUT_WR)
                    conn.wait_closed()
                except (Closed, OSError):
                    pass
            target.wait_for_log(refused, count=before + number)
        for cut in range(0, len(greeting), 24):
            with Conn(target.tls_port) as conn:
                conn.send(preamble(wire.CONTROL_TLS) + greeting[:cut])
        # A handshake inside of the connection: TLS 1.3 has no other one.
        raw = socket.create_connection(("127.0.0.1", target.tls_port), timeout=20)
        raw.sendall(preamble(wire.CONTROL_TLS))
        wire.take(raw, 64)
        with made.wrap_socket(raw, server_hostname="127.0.0.1") as tls:
            tls.sendall(greeting)
            try:
                while tls.recv(4096):
                    pass
            except (ssl.SSLError, OSError):
                pass
        require(target.in_use()[0] <= sessions + 4, f"a session is open: {target.in_use()}")


if __name__ == "__main__":
    sys.exit(attacked.run())
