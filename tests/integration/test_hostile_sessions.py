# SPDX-License-Identifier: Apache-2.0
"""Whole sessions that are hostile: cut short at every boundary, replayed, in another order, with
what belongs to others, in floods and very slowly; over tcp, the local socket and TLS.  All the
while a neighbour works, whose every byte must be right; each cause is one line in the log; and
behind it all the daemon has as much open, and as much of the GPU in use, as before."""
import functools
import hashlib
import json
import os
import random
import re
import select
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

import wire
from harness import (PATIENCE, SANITIZED, Certificates, Daemon, Failed, Program, base_environment, case, main, read_file, require,
                     wait_until)
from wire import BULK, Closed, Conn, Session, field, hello, launch_values, load, message, preamble, record, saxpy

SUCCESS = 0
MIB = 1 << 20
STALL_MS = 400
ROUNDS = 12 if SANITIZED else 40
# What the supervisor's memory may grow by, whatever clients do: connections under way, and what the
# allocator (or a sanitizer's) keeps.
GROWTH_KIB = 65536 if SANITIZED else 16384


class Target(Daemon):
    """A daemon on tcp, a local socket and TLS, with its admin socket."""

    def __init__(self, certificates):
        self.certificates = certificates
        self.files = tempfile.mkdtemp(prefix="gpupool-target-")
        self.local = os.path.join(self.files, "gpupool.sock")
        self.admin = os.path.join(self.files, "admin.sock")
        super().__init__("--listen", f"unix://{self.local}", "--listen", "tls://127.0.0.1:0", *certificates.daemon(),
                         "--admin-socket", self.admin, 
                         # What is freed shall be seen to be: a sanitizer keeps it for a while.
                         env={"GPUPOOL_STALL_MS": str(STALL_MS), "ASAN_OPTIONS": "detect_leaks=1:quarantine_size_mb=4"})
        self.tls_address = re.search(r"^listening on (tls://\S+)$", read_file(self.out_path), re.M)[1]
        self.tls_port = int(self.tls_address.rsplit(":", 1)[1])
        self.remotes = {"tcp": self.address, "unix": f"unix://{self.local}", "tls": self.tls_address}

    def ctl(self, *args):
        done = subprocess.run([os.environ["GP_CTL"], "--socket", self.admin, "--format", "json", *args], capture_output=True,
                              text=True, env=base_environment(), timeout=60, check=True)
        return json.loads(done.stdout)

    def in_use(self):
        """Clients, and bytes of device memory."""
        return len(self.ctl("client", "list")), sum(device["memory_bytes"] for device in self.ctl("device", "list"))

    def memory_kib(self):
        return int(re.search(r"^VmRSS:\s+(\d+)", read_file(f"/proc/{self.pid}/status"), re.M)[1])

    def discard(self):
        super().discard()
        shutil.rmtree(self.files, ignore_errors=True)


class Neighbour:
    """A session by hand whose memory and kernels are checked bit by bit, and programs, one for each
    way to the daemon, while a case goes on."""

    def __init__(self, target):
        self.target, self.problem, self.rounds = target, None, 0
        self.over = threading.Event()

    def work(self):
        chance = random.Random(1)
        kept = chance.randbytes(MIB)
        try:
            with Session(self.target.port, program="neighbour") as session:
                session.create_context()
                require(session.map(0, 4 * MIB) == SUCCESS, "map")
                session.copy_in(session.base, kept)
                result, _ = load(session, 40, saxpy())
                require(result == SUCCESS, f"load: {result}")
                while not self.over.is_set() or self.rounds == 0:
                    self.work_once(session, chance)
                require(session.copy_out(session.base, MIB) == (SUCCESS, kept), "what was written first has changed")
                require(session.errors() == [], f"errors: {session.errors()}")
        except (Failed, Closed, OSError) as error:
            self.problem = f"round {self.rounds}: {error}"

    def work_once(self, session, chance):
        """y = 2 x + y, of whole numbers, so that every bit is known."""
        count = 1000
        x, y = ([chance.randrange(1 << 20) for _ in range(count)] for _ in range(2))
        at = session.base + 2 * MIB
        session.copy_in(at, struct.pack(f"<{count}f", *x))
        session.copy_in(at + MIB, struct.pack(f"<{count}f", *y))
        params = struct.pack("<ifQQ", count, 2.0, at, at + MIB)
        session.post("gpLaunch", launch_values(params=params, grid_x=8, block_x=128))
        right = struct.pack(f"<{count}f", *(2 * a + b for a, b in zip(x, y)))
        require(session.copy_out(at + MIB, len(right)) == (SUCCESS, right), "a kernel's result is wrong")
        self.rounds += 1

    def start_program(self, scheme):
        env = self.target.certificates.client() if scheme == "tls" else None
        return Program("threads", (), self.target.remotes[scheme], env=env)

    def __enter__(self):
        self.workers = self.target.workers()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()
        self.programs = [self.start_program(scheme) for scheme in self.target.remotes]
        return self

    def __exit__(self, kind, error, trace):
        self.over.set()
        self.thread.join(PATIENCE)
        results = [program.finish() for program in self.programs]
        if kind is not None:
            return
        require(not self.thread.is_alive() and not self.problem, f"the neighbour: {self.problem or 'hangs'}")
        for result in results:
            result.expect(out="threads: ok\n", err="")
        require(self.target.workers() == self.workers, "the worker was replaced")
        self.target.settle(20)
        wait_until("nothing is in use any more", lambda: self.target.in_use() == (0, 0), 20)


def endings(target):
    """Session -> why it ended, of all that have."""
    return dict(re.findall(r"^gpupoold\[\d+\]: \w+: session (\d+) \(.*\): closed: (.*?);", target.log(), re.M))


def expect_one_ending(target, session, reason=r".*"):
    wait_until(f"the log says how session {session} ended", lambda: str(session) in endings(target), 20)
    lines = re.findall(rf"^gpupoold.*: session {session} \(.*\): closed: .*$", target.log(), re.M)
    require(len(lines) == 1, f"not one line of session {session}: {lines}")
    require(re.match(reason, endings(target)[str(session)]), f"expected {reason!r}: {lines}")


def end(session):
    """Half-closes its lane, and waits until the daemon has ended it."""
    try:
        session.lane.socket.shutdown(socket.SHUT_WR)
        session.lane.wait_closed()
    except OSError as error:
        require(not isinstance(error, TimeoutError), "the daemon keeps the connection open")
    session.close()


def records_of(session):
    """A session's whole life, message by message, each valid in its place."""
    base, image = session.base, saxpy()
    params = struct.pack("<ifQQ", 16, 2.0, base, base + 4096)
    return [message(data, bulk) for data, bulk in (
        (record("gpContextCreate", {"context": 1, "legacy": 1}, 1), b""),
        (record("gpMemoryMap", {"address": base, "size": session.granularity}, 2, 1), b""),
        (record("cuStreamCreateWithPriority", {"phStream": 5}, 0, 1) + record("cuEventCreate", {"phEvent": 7}, 0, 1), b""),
        (record("gpCopyIn", {"stream": 5, "dst": base, "pitch": 64, "width": 64, "height": 2, "flags": 1}, 0, 1, BULK), b"x" * 128),
        (record("gpImageLoad", {"context": 1, "image": 40, "sha256": hashlib.sha256(image).digest(), "size": len(image)}, 3, 1, BULK), image),
        (record("gpLaunch", launch_values(params=params, stream=5), 0, 1) + record("cuEventRecordWithFlags", {"hEvent": 7, "hStream": 5}, 0, 1), b""),
        (record("gpCopyOut", {"stream": 5, "src": base, "pitch": 64, "width": 64, "height": 2}, 4, 1), b""),
        (record("cuStreamSynchronize", {"hStream": 5}, 5, 1) + record("gpFence", {}, 6), b""))]


certificates = target = None


class Attacked:
    """A daemon for one case, for it says no more than so much of one address in its log; with the
    neighbour at work.  Behind the case it serves, and has as much open and in use as before."""

    def __enter__(self):
        global target
        target = self.target = Target(certificates)
        self.memory = target.memory_kib()
        self.neighbour = Neighbour(target)
        self.neighbour.__enter__()
        return target

    def __exit__(self, kind, error, trace):
        try:
            self.neighbour.__exit__(kind, error, trace)
            if kind is None:
                now = self.target.memory_kib()
                require(now - self.memory < GROWTH_KIB, f"the supervisor has grown from {self.memory} to {now} KiB")
                self.target.check_works()
        except Failed as failed:
            kind, error, trace = Failed, failed, failed.__traceback__
            raise
        finally:
            self.target.__exit__(kind, error, trace)


def each_way(function):
    """The case, for each way by which this test can speak itself."""
    @functools.wraps(function)
    def run():
        for way in ("tcp", "unix"):
            with Attacked() as attacked:
                function(attacked.port if way == "tcp" else attacked.local)
    return run


@case("what the cases are made of is valid")
@each_way
def _(where):
    session = Session(where)
    for data in records_of(session):
        session.lane.send(data)
    require(session.reply("gpFence", 6)[0] == SUCCESS and session.errors() == [], f"errors: {session.errors()}")
    end(session)
    expect_one_ending(target, session.id, "the client closed it")


@case("sessions that are cut off at every boundary")
@each_way
def _(where):
    with Session(where) as probe:
        whole = records_of(probe)
    ends = [sum(map(len, whole[:n])) for n in range(len(whole) + 1)]
    # Between the messages, inside of their heads and records, and in the bulk.
    cuts = {at + inside for at in ends for inside in (0, 1, 4, 7, 8, 9, 12, 16, 20, 24, 25, 31, 32, 40, 56, 71, 72, 73)} | {ends[-1] - 1}
    for cut in sorted(cut for cut in cuts if cut <= ends[-1]):
        session = Session(where)
        try:
            session.lane.send(b"".join(records_of(session))[:cut])
        except Closed:
            pass
        end(session)
        expect_one_ending(target, session.id, "the client closed it" if cut in ends else "the peer closed the connection inside a message")
    # The same of what comes before: preamble, Hello, and a lane's preamble.
    opening = preamble() + message(hello())
    for cut in range(0, len(opening), 7):
        with Conn(where) as conn:
            conn.send(opening[:cut])
    for cut in range(0, 64, 9):
        with Session(where, lane=False) as session, Conn(where) as conn:
            conn.send(preamble(wire.LANE, 0, session.ticket)[:cut])


@case("sessions that stop at a boundary inside of a message, and keep silent")
@each_way
def _(where):
    sessions = []
    for cut in (4, 8, 12, 40, 60):
        session = Session(where)
        session.create_context()
        session.lane.send(records_of(session)[3][:cut])
        sessions.append(session)
    for session in sessions:
        session.lane.socket.settimeout(20)
        session.lane.wait_closed()
        expect_one_ending(target, session.id, "the peer stopped in the middle of a message")
        session.close()


@case("valid records in any other order, and each of them many times")
@each_way
def _(where):
    chance = random.Random(9)
    for _ in range(ROUNDS):
        session = Session(where)
        messages = records_of(session)
        chance.shuffle(messages)
        try:
            for data in messages + chance.choices(messages, k=6):
                session.lane.send(data)
        except Closed:
            pass
        end(session)
        expect_one_ending(target, session.id)


@case("a recorded session once more: its ticket is worth nothing, and its bytes are another session's")
@each_way
def _(where):
    session = Session(where)
    bytes_ = b"".join(records_of(session))
    session.lane.send(bytes_)
    end(session)
    expect_one_ending(target, session.id, "the client closed it")
    opening = preamble() + message(hello(program="test"))
    before = len(re.findall("a lane with an unknown ticket: closed", target.log()))
    replays = 8
    for _ in range(replays):
        with Conn(where) as control, Conn(where) as lane:
            control.send(opening)
            lane.send(preamble(wire.LANE, 0, session.ticket))
            try:
                lane.send(bytes_)
            except Closed:
                pass
            lane.wait_closed()
    target.wait_for_log("a lane with an unknown ticket: closed", count=before + replays)
    # Under a ticket of its own each is a session, and they have nothing in common.
    first, second = Session(where), Session(where)
    for replayed in (first, second):
        replayed.lane.send(bytes_ if replayed.base == session.base else b"".join(records_of(replayed)))
        end(replayed)
        expect_one_ending(target, replayed.id)


@case("lanes with tickets of others, of ended sessions, or guessed")
@each_way
def _(where):
    first, second = Session(where, lanes=4), Session(where, lanes=4)
    first.create_context()
    second.create_context()
    with Session(where) as ended:
        ended.create_context()
    expect_one_ending(target, ended.id)
    chance = random.Random(10)
    guessed = bytes(a ^ b for a, b in zip(first.ticket, b"\1" + bytes(31)))
    refused = 0
    for number, ticket in ((0, ended.ticket), (1, ended.ticket), (0, guessed), (1, guessed), (1, bytes(32)), (1, chance.randbytes(32)),
                           (1, first.ticket[:16] + second.ticket[16:]), (0, first.ticket), (4, first.ticket), (0xffff, second.ticket)):
        with first.connect_lane(number, ticket) as conn:
            conn.wait_closed()
        refused += 1
    require(len(re.findall(r": a lane (?:\(\d+\) )?\S.*: closed$", target.log(), re.M)) >= refused, "not a line for each")
    # One of its own, twice; then the other session's chunk numbers on it.
    own = second.connect_lane(1)
    second.ask("gpContextSynchronize", {"context": 1})
    time.sleep(0.2)
    with second.connect_lane(1) as again:
        again.wait_closed()
    require(first.map(0, 2 * first.granularity) == SUCCESS, "the first session has suffered")
    first.post("gpCopyInLanes", {"stream": 1, "dst": first.base, "size": MIB, "copy": 1})
    own.send(message(struct.pack("<IIQ", 1, 0, 0), b"z" * MIB))
    # The chunk is the second's; the first waits for its own, and no longer than it must.
    expect_one_ending(target, first.id, r"1048576 bytes of copy 1 did not come on its data lanes")
    require(second.ask("gpContextSynchronize", {"context": 1})[0] == SUCCESS, "the second session has suffered")
    own.close()
    end(second)
    first.close()


@case("every call with another session's names and addresses leaves that one as it was")
@each_way
def _(where):
    owner = Session(where)
    owner.create_context(context=77)
    require(owner.ask("gpMemoryMap", {"address": owner.base, "size": owner.granularity}, acting=77)[0] == SUCCESS, "map")
    owner.post("cuStreamCreateWithPriority", {"phStream": 77}, acting=77)
    owner.post("cuEventCreate", {"phEvent": 77}, acting=77)
    secret = random.Random(11).randbytes(65536)
    owner.copy_in(owner.base, secret, stream=77)
    require(owner.copy_out(owner.base, len(secret), 77) == (SUCCESS, secret), "the owner's own")
    for name, (_, kinds, _) in wire.CALLS.items():
        session = Session(where)
        session.create_context()
        before = len(session.notes)
        try:
            for acting in (1, 77):
                values = {key: 77 if kind in ("u32", "i32", "f32") else owner.base + 64 if kind == "u64" else b"" for kind, key in kinds}
                for key in ("width", "pitch", "size", "height", "depth", "count"):
                    if key in values:
                        values[key] = 64
                session.requests += 1
                session.send(record(name, values, session.requests, acting))
            session.ask("gpFence", {}, acting=0)
        except Closed:
            pass
        leaked = [bulk for _, _, _, bulk in session.notes[before:] if bulk and bulk in secret]
        require(not leaked, f"{name} reads what is another's")
        session.close()
    require(owner.copy_out(owner.base, len(secret), 77) == (SUCCESS, secret), "another session has written there")
    require(owner.ask("cuStreamSynchronize", {"hStream": 77}, acting=77)[0] == SUCCESS, "the stream")
    require(owner.errors() == [], f"the owner has errors: {owner.errors()}")
    end(owner)
    expect_one_ending(target, owner.id, "the client closed it")


@case("fields that are as large as can be")
@each_way
def _(where):
    huge = (0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff)
    for name, (number, kinds, _) in wire.CALLS.items():
        places = [i for i, (kind, _) in enumerate(kinds) if kind in ("bytes", "string")]
        if not places:
            continue
        session = Session(where)
        session.create_context()
        # The length of its first text, and nothing behind it.
        good = wire.encode_fields(kinds[:places[0] + 1], {})
        body = good[:-8] + struct.pack("<II", huge[number % 4], 0) + bytes(64)
        try:
            session.send(wire.header(16 + len(body), number, 0, 1, 1) + body)
        except Closed:
            pass
        end(session)
        expect_one_ending(target, session.id, "it sent a malformed")
    for sizes in ((0xffffffff, 0), (262145, 0), (262144, 0xffffffff), (16, 0xffffffff)):
        session = Session(where)
        session.create_context()
        session.lane.send(struct.pack("<II", *sizes) + bytes(1000))
        end(session)
        expect_one_ending(target, session.id)
    for number in (3, 4, 6, 9, 10, 12, 14):
        for size in (15000, 250000):
            with Conn(where) as conn:
                try:
                    conn.send(preamble() + message(hello(more=field(number, b"\xff" * size))))
                    conn.socket.shutdown(socket.SHUT_WR)
                except (Closed, OSError):
                    require(size > 16384, f"field {number} of {size} bytes is too large already")
                conn.wait_closed()


@case("floods of control messages are no burden, read or not")
@each_way
def _(where):
    ping = message(field(8, field(1, 7)))
    window = message(field(4, field(2, 1 << 21)))
    pong, unknown = message(field(9, field(1, 7))), message(field(2000, b"x"))
    for flood in (ping, window, pong, unknown, ping + window, message(field(4, b"".join(field(1, field(1, i << 30)) for i in range(3000))))):
        session = Session(where)
        session.create_context()
        data = flood * (2 * MIB // len(flood))
        try:
            session.control.socket.settimeout(2)
            for at in range(0, len(data), 65536):
                session.control.send(data[at:at + 65536])
        except (Closed, OSError):
            pass
        session.close()
        expect_one_ending(target, session.id)


@case("many connections that send a byte at a time, or nothing")
@each_way
def _(where):
    slow = [Conn(where) for _ in range(60)]
    opening = preamble() + message(hello())
    session = Session(where)
    session.create_context()
    whole = records_of(session)[1]
    for at in range(40):
        for conn in slow[:50]:
            try:
                conn.send(opening[at:at + 1])
            except Closed:
                pass
        session.lane.send(whole[at:at + 1])
        time.sleep(0.05)
    # A byte within the stall time is progress: this one lives, and its record is carried out.
    session.lane.send(whole[40:])
    require(session.reply("gpMemoryMap", 2)[0] == SUCCESS, "a slow session was ended")
    end(session)
    for conn in slow:
        conn.close()


@case("a client that reads nothing of much that it asks for, on all its connections")
@each_way
def _(where):
    session = Session(where, lanes=4)
    session.create_context()
    require(session.map(0, 16 * MIB) == SUCCESS, "map")
    lanes = [session.connect_lane(number) for number in (1, 2, 3)]
    session.ask("gpContextSynchronize", {"context": 1})
    try:
        for copy in range(1, 9):
            session.send(record("gpCopyOutLanes", {"stream": 1, "src": session.base, "size": 16 * MIB, "copy": copy}, copy + 100, 1))
        for request in range(200, 240):
            session.send(record("gpCopyOut", {"stream": 1, "src": session.base, "pitch": MIB, "width": MIB, "height": 1}, request, 1))
    except (Closed, TimeoutError):
        pass
    time.sleep(1)
    for lane in lanes:
        lane.close()
    session.close()
    expect_one_ending(target, session.id)


# TLS.  Lanes have keys that this test cannot use by itself: it sits between a program and the daemon.

class Relay:
    """Between a program and the daemon: change(number, records) says what becomes of the TLS records
    that the client sends on its connection of this number, behind the preamble; first(preamble) is called
    before the daemon gets that."""

    def __init__(self, change, late=None, first=None):
        self.change = change
        self.first = first or (lambda preamble: None)
        self.late = late or (lambda number: [])
        self.count = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tls://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", target.tls_port))
            threading.Thread(target=self.forward, args=(near, far, self.count), daemon=True).start()
            threading.Thread(target=self.back, args=(far, near), daemon=True).start()
            self.count += 1

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

    def forward(self, source, sink, number):
        """A change may ask for the end of the connection by None."""
        held, seen = b"", 0
        try:
            while len(held) < 64:
                held += source.recv(64 - len(held)) or self.stop()
            self.first(held)
            sink.sendall(held)
            held = b""
            while data := self.take(source, sink, number):
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

    def take(self, source, sink, number):
        while not select.select([source], [], [], 2)[0]:
            for out in self.late(number):
                sink.sendall(out)
        return source.recv(65536)

    @staticmethod
    def stop():
        raise OSError("the end of it")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def on(connection, place, act):
    """A change to one record of one connection: act gets it, and says what is sent instead."""
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


CHANGED = "what came is not what the peer has sent"
REASONS = {"cut": "the connection was cut, its end not announced", "without a close_notify": "the connection was cut, its end not announced",
           "not of TLS": "what came is no TLS record"}


@case("TLS records that are damaged, doubled, dropped, swapped, cut or put in from another connection")
def _():
    stolen = []

    def steal(data):
        stolen.append(data)
        return [data]

    changes = {"damaged": flip, "doubled": lambda data: [data, data], "dropped": Drop(), "swapped": Swap(), "cut": lambda data: [data[:len(data) // 2], None],
               "without a close_notify": lambda data: [None], "longer": lambda data: [data[:3] + struct.pack(">H", len(data) + 11) + data[5:] + bytes(16)],
               "not of TLS": lambda data: [b"GET / HTTP/1.1\r\n\r\n"]}
    with Attacked():
        with Relay(on(1, 3, steal)) as relay:
            result = Program("vectoradd", (), relay.address, env=target.certificates.client()).finish()
            result.expect(out="vectoradd: ok\n", err="")
        changes["of another session"] = lambda data: [stolen[0], data]
        for name, act in changes.items():
            # Connection 0 is the control connection, 1 is lane 0; their handshakes take two records.
            # On a busy machine few records may hold all there is to say: then the one that is lost is the last.
            for _ in range(4 if isinstance(act, Drop) else 1):
                before = set(endings(target))
                if isinstance(act, Drop):
                    act.lost = None
                with Relay(on(1, 8, act), late_on(1, act)) as relay:
                    result = Program("threads", (), relay.address, env=target.certificates.client()).finish()
                if result.status != 0:
                    break
            require(result.status != 0 and "threads: ok" not in result.out, f"{name}: the program noticed nothing: {result}")
            # The neighbour's programs may end at the same time, well.
            wait_until(f"{name}: the log says {REASONS.get(name, CHANGED)!r}", lambda: any(
                REASONS.get(name, CHANGED) in reason for number, reason in endings(target).items() if number not in before), 20)
        for name, act in changes.items():
            if name in ("dropped", "swapped", "of another session"):
                continue
            with Relay(on(0, 1, act)) as relay:
                result = Program("vectoradd", (), relay.address, env=target.certificates.client()).finish()
            require(result.status != 0, f"{name}, on the control connection: the program noticed nothing: {result}")


@case("who has seen the name of a ticket keeps nobody from the lanes, and is given up")
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

    with Attacked():
        with Relay(lambda number, records: [data for _, data in records], first=crowd) as relay:
            environment = target.certificates.client(GPUPOOL_LANES="4")
            Program("lanes", ("short",), relay.address, env=environment).finish().expect(out="lanes: ok\n", err="")
        # The client may have lane 0 before anybody knows the name.
        require(len(strangers) in (3 * 6, 4 * 6), f"{len(strangers)} strangers: the program had other lanes")
        for conn in strangers:
            conn.socket.settimeout(20)
            conn.wait_closed()
            conn.close()
        log = target.log()
        require(" that the session has already" not in log, log)
        for lane in range(4 - len(strangers) // 6, 4):
            require(re.search(rf"a lane \({lane}\) is refused: its handshake takes its time while others come", log), log)


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
    """The same ClientHello with one more extension, in front of the others."""
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
    made.load_verify_locations(certificates.file("ca"))
    greeting = client_hello(made)
    refused = r"gpupoold\[\d+\]: warning: tls://127\.0\.0\.1:\d+: refused: "
    early = add_extension(greeting, 42, b"")
    sent = message(hello())
    garbage = b"\x17\3\3" + struct.pack(">H", len(sent) + 16) + sent + bytes(16)
    with Attacked():
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
        answer = b""
        while len(answer) < 64:
            answer += raw.recv(64 - len(answer))
        with made.wrap_socket(raw, server_hostname="127.0.0.1") as tls:
            tls.sendall(greeting)
            try:
                while tls.recv(4096):
                    pass
            except (ssl.SSLError, OSError):
                pass
        require(target.in_use()[0] <= sessions + 4, f"somebody has a session: {target.in_use()}")


if __name__ == "__main__":
    with Certificates() as certificates:
        status = main()
    sys.exit(status)
