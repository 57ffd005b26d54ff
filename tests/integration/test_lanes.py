# SPDX-License-Identifier: Apache-2.0
"""Large copies over several data lanes, on the software device: the bytes are right for all limits of both ends. A
lane that is cut or violates the protocol ends its session and affects no other."""
import os
import queue
import random
import re
import socket
import struct
import sys
import threading
import time

import wire
from harness import PATIENCE, SANITIZER, Certificates, Configured, Daemon, Encrypted, Program, Skip, case, main, read_file, require, run, wait_until
from pool import Pool
from test_apps import judge
from wire import Closed, Session, message, record

MIB = 1 << 20
SUCCESS, INVALID_VALUE = 0, 1
OUT = read_file(os.path.join(os.path.dirname(__file__), "..", "apps", "expected", "lanes.out"))
SHORT = "lanes: ok\n"
SOON = PATIENCE / 4
# All lanes that a test gives the client, whose default for this machine may be fewer.
FOUR = {"GPUPOOL_LANES": "4", "GPUPOOL_LOG": "info,error"}
# The thread sanitizer looks at every byte that is copied, and finds no more in many than in some: it has all
# sizes once for each transport, and a little of it all for the rest.
ARGS, SAID = (("short",), SHORT) if SANITIZER == "thread" else ((), OUT)


def data_lanes(text):
    found = re.search(r"(\d+) data lanes", text)
    return int(found[1]) if found else 0


@case("copies of many sizes, of streams and threads, over three data lanes")
def _():
    with Daemon() as daemon:
        result = daemon.run("lanes", env=FOUR).expect(out=OUT)
        require(data_lanes(result.err) == 3, f"not three data lanes: {result}")


@case("the same over lane 0 alone, by the client's wish")
def _():
    with Daemon() as daemon:
        result = daemon.run("lanes", *ARGS, env={**FOUR, "GPUPOOL_LANES": "1"}).expect(out=SAID)
        require(data_lanes(result.err) == 0, f"data lanes: {result}")


@case("the same where the daemon allows one lane, two, or many")
def _():
    # All sizes: the cases above.
    for limit in 1, 2, 16:
        with Daemon(f"--lanes={limit}") as daemon:
            result = daemon.run("lanes", "short", env={**FOUR, "GPUPOOL_LANES": "9"}).expect(out=SHORT)
            require(data_lanes(result.err) == min(9, limit) - 1, f"limit {limit}: {result}")


@case("the limit of the configuration holds, and the command line's goes before it")
def _():
    for more, count in ((), 1), (("--lanes=4",), 3):
        with Configured("[daemon]\nlanes = 2\n", *more) as daemon:
            result = daemon.run("lanes", "short", env=FOUR).expect(out=SHORT)
            require(data_lanes(result.err) == count, f"{more}: {result}")


def no_thread_sanitizer():
    if SANITIZER == "thread":
        raise Skip("it does not see what streams order, and copyorder takes minutes with it")


@case("copies to the same host memory are stored in stream order, over any number of lanes")
def _():
    no_thread_sanitizer()
    with Daemon() as daemon:
        for count in "1", "2", "7":
            judge("copyorder", daemon.run("copyorder", env={"GPUPOOL_LANES": count}))


@case("so they are over a local socket, shared memory or not")
def _():
    no_thread_sanitizer()
    with Pool() as pool:
        for env in {}, {"GPUPOOL_SHM": "0"}:
            judge("copyorder", Program("copyorder", (), pool.local, env={"GPUPOOL_LANES": "7", **env}).finish(), shared=True)


@case("so they are over TLS, compressed or not")
def _():
    no_thread_sanitizer()
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        for mode in "on", "off":
            env = certificates.client(GPUPOOL_LANES="7", GPUPOOL_COMPRESSION=mode)
            judge("copyorder", daemon.run("copyorder", env=env))


@case("an invalid number of lanes is reported")
def _():
    with Daemon() as daemon:
        for text in ("0", "17", "two", "-1", "2x"):
            result = daemon.run("vectoradd", env={"GPUPOOL_LANES": text})
            require(result.status != 0 and f"GPUPOOL_LANES={text}: not a number from 1 to 16" in result.err, str(result))


@case("two clients at once")
def _():
    with Daemon() as daemon:
        for program in [daemon.start("lanes", "short", env=FOUR) for _ in range(2)]:
            program.finish().expect(out=SHORT)


@case("a tenant's bandwidth holds over all lanes")
def _():
    with Configured("[tenant slow]\nbandwidth = 100M\n") as daemon:
        session = Session(daemon.port, lanes=4, more=wire.field(14, "slow"))
        session.create_context()
        require(session.map(0, 32 * MIB) == SUCCESS, "map")
        lanes = [session.connect_lane(n) for n in (1, 2, 3)]
        begin = time.monotonic()
        send_copy(session, lanes, 1, session.base, bytes(30 * MIB))
        require(session.ask("gpContextSynchronize", {"context": 1})[0] == SUCCESS, "synchronise")
        seconds = time.monotonic() - begin
        # The first bytes are sent at once, up to the size of the burst. The time that a busy machine takes may be longer.
        require(0.2 < seconds < SOON, f"30 MiB took {seconds:.2f} s")
        close_all(session, lanes)


@case("a session whose bytes wait for its tenant's bandwidth is not given up for want of them")
def _():
    with Configured("[tenant slow]\nbandwidth = 1M\n", env={"GPUPOOL_STALL_MS": "800"}) as daemon:
        session = Session(daemon.port, lanes=4, more=wire.field(14, "slow"))
        session.create_context()
        require(session.map(0, 4 * MIB) == SUCCESS, "map")
        lanes = [session.connect_lane(n) for n in (1, 2)]
        data = os.urandom(2 * MIB)
        # They come ahead of their record, and take two seconds.
        senders = [threading.Thread(target=lane.send, args=(chunk(1, at, data[at:at + MIB]),))
                   for lane, at in zip(lanes, (0, MIB))]
        begin = time.monotonic()
        for sender in senders:
            sender.start()
        time.sleep(0.2)
        request_copy_in(session, 1, session.base, 2 * MIB)
        require(session.ask("gpContextSynchronize", {"context": 1})[0] == SUCCESS, "synchronise")
        # From the first byte on: this end may be late with the record.
        seconds = time.monotonic() - begin
        require(1.2 < seconds < SOON, f"2 MiB took {seconds:.2f} s")
        for sender in senders:
            sender.join()
        close_all(session, lanes)


@case("a session whose bytes wait to be sent is not idle")
def _():
    with Configured("[daemon]\nidle-timeout = 1\n[tenant slow]\nbandwidth = 1536K\n") as daemon:
        session = Session(daemon.port, lanes=4, more=wire.field(14, "slow"))
        session.create_context()
        require(session.map(0, 4 * MIB) == SUCCESS, "map")
        lanes = [session.connect_lane(n) for n in (1, 2, 3)]
        session.send(record("gpCopyOutLanes", {"stream": 1, "src": session.base, "size": 3 * MIB, "copy": 1}, 100, 1))
        require(session.reply("gpCopyOutLanes", 100) == (SUCCESS, {"sent": 3 * MIB}), "reply")
        recv_chunks(lanes, 3 * MIB)
        close_all(session, lanes)


@case("a program that ends with copies on their way")
def _():
    with Daemon() as daemon:
        for size in (5 * MIB, 64 * MIB):
            daemon.run("lanes", "part", str(size), env=FOUR).expect(out="left\n")
            daemon.settle()
        daemon.check_works()
        daemon.check_log()


@case("a program that is killed in the middle of its copies")
def _():
    with Daemon() as daemon:
        for _ in range(4):
            program = daemon.start("lanes", "loop", env=FOUR)
            program.wait_for_output("looping")
            time.sleep(random.random() / 10)
            program.kill()
            daemon.settle()
        daemon.check_works()


@case("a daemon that goes in the middle of copies")
def _():
    with Daemon() as daemon:
        program = daemon.start("lanes", "loop", env=FOUR)
        program.wait_for_output("looping")
        os.kill(daemon.workers()[0], 9)
        result = program.finish().expect()
        require(re.search(r"cudaError\w+\n$", result.out), str(result))
        wait_until("there is another worker", daemon.workers, 60)
        wait_until("and it works", lambda: daemon.run("vectoradd").status == 0, 60)


def close_all(session, lanes):
    for lane in lanes:
        lane.close()
    session.close()


def chunk(copy, offset, data):
    return message(struct.pack("<IIQ", copy, 0, offset), data)


def request_copy_in(session, copy, address, size, flags=0, stream=1):
    session.post("gpCopyInLanes", {"stream": stream, "dst": address, "size": size, "flags": flags, "copy": copy})


def send_copy(session, lanes, copy, address, data):
    request_copy_in(session, copy, address, len(data))
    for number, at in enumerate(range(0, len(data), MIB)):
        lanes[number % len(lanes)].send(chunk(copy, at, data[at:at + MIB]))


def open_session(daemon, count=3, size=8 * MIB, more=b""):
    session = Session(daemon.port, lanes=4, more=more)
    session.create_context()
    require(session.map(0, size) == SUCCESS, "map")
    return session, [session.connect_lane(n + 1) for n in range(count)]


def recv_chunks(lanes, size):
    """All bytes of a copy, from whichever lanes they come."""
    found, left = bytearray(size), size
    poller = wire.select.poll()
    by_fd = {lane.socket.fileno(): lane for lane in lanes}
    for fd in by_fd:
        poller.register(fd, wire.select.POLLIN)
    while left:
        ready = poller.poll(20000)
        require(ready, "no chunk comes")
        for fd, _ in ready:
            data, bulk = by_fd[fd].take_message()
            _, zero, offset = struct.unpack("<IIQ", data)
            require(zero == 0 and offset + len(bulk) <= size, "a chunk out of range")
            found[offset:offset + len(bulk)] = bulk
            left -= len(bulk)
    return bytes(found)


@case("by hand: chunks in any order, before and after their record, and back")
def _():
    with Daemon() as daemon:
        session, lanes = open_session(daemon, size=16 * MIB)
        data = [random.Random(n).randbytes(5 * MIB + 77) for n in range(2)]
        for at in (5 * MIB, MIB, 3 * MIB):
            lanes[0].send(chunk(1, at, data[0][at:at + MIB]))
        lanes[1].send(chunk(2, 2 * MIB, data[1][2 * MIB:3 * MIB]))
        request_copy_in(session, 1, session.base, len(data[0]))
        request_copy_in(session, 2, session.base + 6 * MIB, len(data[1]), flags=1)
        for at in (4 * MIB, 2 * MIB, 0):
            lanes[2].send(chunk(1, at, data[0][at:at + MIB]))
        for at in (0, 5 * MIB, 4 * MIB, 3 * MIB, MIB):
            lanes[0].send(chunk(2, at, data[1][at:at + MIB]))
        for n in range(2):
            require(session.copy_out(session.base + n * 6 * MIB, len(data[n])) == (SUCCESS, data[n]), f"copy {n}")
            session.requests += 1
            session.send(record("gpCopyOutLanes", {"stream": 1, "src": session.base + n * 6 * MIB,
                                                   "size": len(data[n]), "copy": 77 + n}, session.requests, 1))
            require(recv_chunks(lanes, len(data[n])) == data[n], f"copy {n} over the lanes")
            require(session.reply("gpCopyOutLanes", session.requests) == (SUCCESS, {"sent": len(data[n])}), "reply")
        require(session.errors() == [], f"errors: {session.errors()}")
        close_all(session, lanes)


@case("a copy to where nothing is mapped is an error, and the next one goes well")
def _():
    with Daemon() as daemon:
        session, lanes = open_session(daemon)
        send_copy(session, lanes, 1, session.base + 64 * MIB, bytes(3 * MIB))
        send_copy(session, lanes, 2, session.base, b"z" * 3 * MIB)
        require(session.copy_out(session.base, 3 * MIB) == (SUCCESS, b"z" * 3 * MIB), "the second copy")
        require([error[0] for error in session.errors()] == [INVALID_VALUE], f"errors: {session.errors()}")
        result = session.ask("gpCopyOutLanes", {"stream": 1, "src": session.base + 64 * MIB, "size": MIB, "copy": 1})
        require(result[0] == INVALID_VALUE, f"a copy from nowhere: {result}")
        close_all(session, lanes)


SPREAD = wire.field(7, 8)
LZ4 = wire.field(7, 2)


def packed(byte, size):
    """One block of LZ4: this byte, size times."""
    match = size - 6 - 4 - 15
    return bytes([0x1f, byte, 1, 0]) + b"\xff" * (match // 255) + bytes([match % 255, 0x50]) + bytes([byte] * 5)


def packed_chunk(copy, offset, size, data):
    return message(struct.pack("<IIQ", copy, size, offset), data)


@case("copies that are compressed both ways, one way, or neither, are the same")
def _():
    for tenant, client in (("on", "on"), ("on", "auto"), ("off", "on"), ("auto", "off")):
        with Configured(f"[tenant default]\ncompression = {tenant}\n") as daemon:
            daemon.run("lanes", "short", env={**FOUR, "GPUPOOL_COMPRESSION": client}).expect(out=SHORT)
    with Configured("[tenant default]\ncompression = on\n") as daemon:
        daemon.run("lanes", *ARGS, env={**FOUR, "GPUPOOL_COMPRESSION": "on"}).expect(out=SAID)


@case("by hand: compressed chunks beside others, and compressed ones back")
def _():
    with Configured("[tenant default]\ncompression = on\n") as daemon:
        session = Session(daemon.port, lanes=4, more=LZ4)
        session.create_context()
        require(session.map(0, 8 * MIB) == SUCCESS, "map")
        lanes = [session.connect_lane(n) for n in (1, 2, 3)]
        lanes[0].send(packed_chunk(1, MIB, MIB, packed(7, MIB)))
        request_copy_in(session, 1, session.base, 2 * MIB + 100)
        lanes[1].send(chunk(1, 2 * MIB, b"x" * 100))
        lanes[2].send(packed_chunk(1, 0, MIB, packed(9, MIB)))
        data = b"\x09" * MIB + b"\x07" * MIB + b"x" * 100
        require(session.copy_out(session.base, len(data)) == (SUCCESS, data), "copy")
        session.requests += 1
        session.send(record("gpCopyOutLanes", {"stream": 1, "src": session.base, "size": MIB, "copy": 5},
                            session.requests, 1))
        poller = wire.select.poll()
        by_fd = {lane.socket.fileno(): lane for lane in lanes}
        for fd in by_fd:
            poller.register(fd, wire.select.POLLIN)
        left = MIB
        while left:
            ready = poller.poll(20000)
            require(ready, "no chunk comes")
            for fd, _ in ready:
                head, bulk = by_fd[fd].take_message()
                size = struct.unpack("<IIQ", head)[1]
                require(0 < len(bulk) < size // 50, f"{size} bytes came as {len(bulk)}")
                left -= size
        require(session.reply("gpCopyOutLanes", session.requests) == (SUCCESS, {"sent": MIB}), "reply")
        close_all(session, lanes)


@case("by hand: shorter chunks of a short copy, where both ends know them")
def _():
    with Daemon() as daemon:
        session = Session(daemon.port, lanes=4, more=SPREAD)
        session.create_context()
        require(session.map(0, 4 * MIB) == SUCCESS, "map")
        lanes = [session.connect_lane(n) for n in (1, 2, 3)]
        data = random.Random(5).randbytes(MIB + 77)
        step = 3 << 16
        request_copy_in(session, 1, session.base, len(data))
        for number, at in enumerate(reversed(range(0, len(data), step))):
            lanes[number % 3].send(chunk(1, at, data[at:at + step]))
        require(session.copy_out(session.base, len(data)) == (SUCCESS, data), "copy")
        session.requests += 1
        session.send(record("gpCopyOutLanes", {"stream": 1, "src": session.base, "size": len(data), "copy": 7},
                            session.requests, 1))
        require(recv_chunks(lanes, len(data)) == data, "copy over the lanes")
        require(session.reply("gpCopyOutLanes", session.requests) == (SUCCESS, {"sent": len(data)}), "reply")
        close_all(session, lanes)


@case("by hand: a client that knows no shorter chunks sends whole ones")
def _():
    with Daemon() as daemon:
        session, lanes = open_session(daemon)
        data = random.Random(6).randbytes(2 * MIB + 5)
        send_copy(session, lanes, 1, session.base, data)
        require(session.copy_out(session.base, len(data)) == (SUCCESS, data), "copy")
        close_all(session, lanes)


class FarAway:
    """A context manager that passes bytes to a daemon and back, each with a delay in seconds."""

    def __init__(self, port, seconds):
        self.port, self.seconds = port, seconds
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.port))
            for source, target in ((near, far), (far, near)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                late = queue.Queue()
                threading.Thread(target=self.forward, args=(source, late), daemon=True).start()
                threading.Thread(target=self.give, args=(target, late), daemon=True).start()

    def forward(self, source, late):
        data = b"."
        while data:
            try:
                data = source.recv(1 << 18)
            except OSError:
                data = b""
            late.put((time.monotonic() + self.seconds, data))

    def give(self, target, late):
        while True:
            when, data = late.get()
            time.sleep(max(0.0, when - time.monotonic()))
            try:
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)
            except OSError:
                return


@case("a daemon that is far away: copies go over lane 0 and then over more lanes than there are cores")
def _():
    with Daemon() as daemon, FarAway(daemon.port, 0.004) as far:
        run("lanes", "short", remote=far.address, env={"GPUPOOL_LOG": "info,error"}).expect(out=SHORT)


def expect_end(session, lanes, reason):
    def ended():
        return re.search(rf"session {session.id} \(.*: closed: .*{reason}", session.daemon.log())
    try:
        wait_until(f"the log has {reason!r} for session {session.id}", ended, 60)
    finally:
        close_all(session, lanes)


def hostile(reason, count=3, timeout=30, size=8 * MIB, more=b""):
    """A peer that does this while a program copies, which does not notice.  timeout: the seconds that the
    peer may be silent; the program, which may be slow, may be silent for the usual time."""
    def add(function):
        @case(f"hostile: {function.__doc__}")
        def _():
            with Configured(f"[daemon]\ntimeout = {timeout}\n") as daemon:
                workers = daemon.workers()
                session, lanes = open_session(daemon, count, size, more)
                session.daemon = daemon
                # Open connections keep their limit.
                daemon.reload("[daemon]\ntimeout = 30\n")
                program = daemon.start("lanes", "short", env=FOUR)
                try:
                    function(session, lanes)
                except Closed:
                    pass
                expect_end(session, lanes, reason)
                program.finish().expect(out=SHORT)
                require(daemon.workers() == workers, "the worker was replaced")
                daemon.settle()
        return function
    return add


@hostile("data lane 1: a chunk out of place")
def _out_of_range(session, lanes):
    """a chunk beyond the end of its copy"""
    request_copy_in(session, 1, session.base, 2 * MIB)
    lanes[0].send(chunk(1, 2 * MIB, bytes(MIB)))


@hostile("data lane 1: a chunk out of place")
def _overlap(session, lanes):
    """a chunk that overlaps another one"""
    request_copy_in(session, 1, session.base, 2 * MIB)
    lanes[0].send(chunk(1, MIB // 2, bytes(MIB)))


@hostile("data lane 2: a chunk of the wrong size")
def _short(session, lanes):
    """a chunk that is too short"""
    request_copy_in(session, 1, session.base, 2 * MIB)
    lanes[1].send(chunk(1, 0, bytes(100)))


@hostile("data lane 1: a chunk of the wrong size")
def _long(session, lanes):
    """a chunk that is longer than the rest of its copy"""
    request_copy_in(session, 1, session.base, MIB + 100)
    lanes[0].send(chunk(1, MIB, bytes(101)))


@hostile("data lane 3: a chunk that was received before")
def _twice(session, lanes):
    """a chunk that comes twice"""
    request_copy_in(session, 1, session.base, 3 * MIB)
    lanes[0].send(chunk(1, MIB, bytes(MIB)))
    time.sleep(0.3)
    lanes[2].send(chunk(1, MIB, bytes(MIB)))


@hostile("data lane \\d: a chunk that was received before")
def _twice_early(session, lanes):
    """a chunk that comes twice, before its record"""
    lanes[0].send(chunk(1, MIB, bytes(MIB)))
    lanes[1].send(chunk(1, MIB, bytes(MIB)))
    time.sleep(0.3)
    request_copy_in(session, 1, session.base, 3 * MIB)


@hostile("data lane 1: a chunk out of place")
def _early_out_of_range(session, lanes):
    """a chunk beyond the end of its copy, before its record"""
    lanes[0].send(chunk(1, 1 << 50, bytes(MIB)))
    time.sleep(0.3)
    request_copy_in(session, 1, session.base, 3 * MIB)


@hostile("data lane 1: a chunk of a copy that is over")
def _over(session, lanes):
    """a chunk of a copy that is over"""
    send_copy(session, lanes, 1, session.base, bytes(MIB))
    require(session.ask("gpContextSynchronize", {"context": 1})[0] == SUCCESS, "synchronise")
    lanes[0].send(chunk(1, 0, bytes(MIB)))


@hostile("data lane 1: a chunk of a copy that is over")
def _none(session, lanes):
    """a chunk of no copy"""
    lanes[0].send(chunk(0, 0, bytes(MIB)))


@hostile("data lane 1: a chunk of the wrong size", more=SPREAD)
def _whole(session, lanes):
    """a whole chunk of a copy that has shorter ones"""
    request_copy_in(session, 1, session.base, 2 * MIB)
    lanes[0].send(chunk(1, 0, bytes(MIB)))


@hostile("data lane 1: a chunk that is malformed")
def _packed_unasked(session, lanes):
    """a compressed chunk, though compression was not negotiated"""
    request_copy_in(session, 1, session.base, 2 * MIB)
    lanes[0].send(packed_chunk(1, 0, MIB, packed(1, MIB)))


@hostile("data lane 1: a chunk that is malformed", more=LZ4)
def _packed_too_large(session, lanes):
    """a compressed chunk that would be larger than any may be"""
    request_copy_in(session, 1, session.base, 2 * MIB)
    lanes[0].send(packed_chunk(1, 0, MIB + 1, packed(1, MIB + 1)))


@hostile("data lane 1: a chunk that is compressed wrongly", more=LZ4)
def _packed_short(session, lanes):
    """a compressed chunk of fewer bytes than its header states"""
    request_copy_in(session, 1, session.base, 2 * MIB)
    lanes[0].send(packed_chunk(1, 0, MIB, packed(1, MIB - 1)))


@hostile("data lane 1: a chunk that is compressed wrongly", more=LZ4)
def _packed_long(session, lanes):
    """a compressed chunk of more bytes than its header states"""
    request_copy_in(session, 1, session.base, 2 * MIB)
    lanes[0].send(packed_chunk(1, 0, MIB, packed(1, 64 * MIB)))


@hostile("data lane 1: a chunk that is malformed")
def _too_large(session, lanes):
    """a chunk that is larger than any may be"""
    request_copy_in(session, 1, session.base, 2 * MIB)
    lanes[0].send(chunk(1, 0, bytes(MIB + 1)))


@hostile("data lane 1: a chunk that is malformed")
def _empty(session, lanes):
    """a chunk without bytes"""
    lanes[0].send(chunk(1, 0, b""))


@hostile("data lane 1: a chunk that is malformed")
def _record(session, lanes):
    """a record on a data lane"""
    lanes[0].send(message(record("gpFence", {}, 1, 1)))


@hostile("data lane 1: the peer sent a message of 4294967295 bytes")
def _noise(session, lanes):
    """noise on a data lane"""
    lanes[0].send(b"\xff" * 100)


@hostile("a copy over data lanes is number 7, not 1")
def _number(session, lanes):
    """a copy with another number than its own"""
    request_copy_in(session, 7, session.base, MIB)


@hostile("copy of 0 bytes")
def _nothing(session, lanes):
    """a copy of nothing"""
    request_copy_in(session, 1, session.base, 0)


@hostile("copy of \\d+ bytes")
def _all(session, lanes):
    """a copy of all there is and more"""
    request_copy_in(session, 1, session.base, (1 << 64) - 1)


@hostile("data lane 2 ended in the middle of a copy")
def _cut(session, lanes):
    """a lane that ends between the chunks of a copy"""
    request_copy_in(session, 1, session.base, 3 * MIB)
    lanes[0].send(chunk(1, 0, bytes(MIB)))
    lanes[1].close()
    time.sleep(1)


@hostile("the client closed it in the middle of a copy", count=0)
def _no_lanes(session, lanes):
    """a copy by a client that opens no data lanes, and leaves"""
    request_copy_in(session, 1, session.base, 3 * MIB)
    session.lane.close()


@hostile("data lane 2: the peer closed the connection inside a message")
def _cut_inside(session, lanes):
    """a lane that ends in the middle of a chunk"""
    request_copy_in(session, 1, session.base, 3 * MIB)
    lanes[1].send(chunk(1, 0, bytes(MIB))[:5000])
    lanes[1].close()
    time.sleep(1)


@hostile("2097152 bytes of copy 1 did not come on its data lanes", timeout=1)
def _never(session, lanes):
    """chunks that never come"""
    # Before the record: the copy's time begins with that, and this end may be slow.
    lanes[1].send(chunk(1, MIB, bytes(MIB)))
    request_copy_in(session, 1, session.base, 3 * MIB)


# The lane's time and the copy's end together.
@hostile("(data lane 1: the peer stopped in the middle of a message|bytes of copy 1 did not come on its data lanes)", timeout=1)
def _stops(session, lanes):
    """a chunk that stops in its middle"""
    request_copy_in(session, 1, session.base, 3 * MIB)
    lanes[0].send(chunk(1, MIB, bytes(MIB))[:9000])


@hostile("it sent a copy on its data lanes while a host function is not done")
def _after_function(session, lanes):
    """a copy after a host function"""
    session.post("gpHostFunction", {"stream": 1, "function": 1})
    session.wait_turn()
    request_copy_in(session, 1, session.base, MIB)


@hostile("(the client closed it|the program exited without closing the session)", size=64 * MIB)
def _ahead(session, lanes):
    """more chunks of copies that never come than the daemon takes"""
    for lane in lanes:
        lane.socket.settimeout(1)
        for n in range(30):
            try:
                lane.socket.sendall(chunk(2 + n, 0, bytes(MIB)))
            except TimeoutError:
                break
    # Nothing else waits for them.
    session.copy_in(session.base, b"q" * 3 * MIB)
    require(session.copy_out(session.base, 3 * MIB) == (SUCCESS, b"q" * 3 * MIB), "a copy on lane 0")
    session.lane.close()


@hostile("(the client closed it|the program exited without closing the session)", size=64 * MIB)
def _not_read(session, lanes):
    """copies from the device that the peer does not read"""
    for n in range(40):
        session.send(record("gpCopyOutLanes", {"stream": 1, "src": session.base, "size": 8 * MIB, "copy": n}, 100 + n, 1))
    result = session.ask("gpMemoryInfo", {"device": 0})
    require(result[0] == SUCCESS, f"memory: {result}")
    session.lane.close()


@hostile("data lane \\d: ", size=64 * MIB)
def _not_read_and_blocked(session, lanes):
    """copies from the device that the peer does not read, and later work that must wait for them"""
    for n in range(10):
        session.send(record("gpCopyOutLanes", {"stream": 1, "src": session.base, "size": 8 * MIB, "copy": n}, 100 + n, 1))
    session.copy_in(session.base, b"q" * 1000)
    time.sleep(0.5)
    for lane in lanes:
        lane.close()


@case("lanes that are not the session's are refused, with a line in the log")
def _():
    with Daemon("--lanes=3") as daemon:
        session, lanes = open_session(daemon, 1)
        other, _ = open_session(daemon, 0)
        lanes, (again,) = wire.find_closed([*lanes, session.connect_lane(1)])
        again.close()
        daemon.wait_for_log(re.escape("a lane (1) that the session already has: closed"))
        for number, ticket, why in ((3, None, "beyond the session's limit"),
                                    (0, None, "that the session already has"), (200, None, "beyond the session's limit"),
                                    (2, bytes(32), "with an unknown ticket")):
            with session.connect_lane(number, ticket or session.ticket) as conn:
                conn.wait_closed()
            daemon.wait_for_log(re.escape("lane with an unknown" if ticket else f"a lane ({number}) {why}: closed"))
        # A client that wants one lane has one.
        single = Session(daemon.port)
        single.create_context()
        with single.connect_lane(1) as conn:
            conn.wait_closed()
        daemon.wait_for_log(re.escape("a lane (1) beyond the session's limit: closed"), count=1)
        single.close()
        # A chunk for the other's copy is one for none of this session's.
        request_copy_in(other, 1, other.base, MIB)
        lanes[0].send(chunk(1, 0, b"x" * MIB))
        request_copy_in(session, 1, session.base, MIB)
        require(session.copy_out(session.base, MIB) == (SUCCESS, b"x" * MIB), "the copy")
        more = other.connect_lane(1)
        more.send(chunk(1, 0, b"y" * MIB))
        require(other.copy_out(other.base, MIB) == (SUCCESS, b"y" * MIB), "the other's copy")
        close_all(session, lanes)
        close_all(other, [more])


if __name__ == "__main__":
    sys.exit(main(at_once=4))
