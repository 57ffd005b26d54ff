# SPDX-License-Identifier: Apache-2.0
"""Peers that break the rules of protocol/wire.md against a live daemon with a neighbour at work.
Their session ends with a reason in the log, or the call fails where the wire says so; the daemon,
its worker and the neighbour never notice."""
import hashlib
import os
import random
import re
import resource
import socket
import struct
import sys
import time

import wire
from harness import Daemon, case, main, require, wait_until
from wire import BULK, Closed, Conn, Session, field, header, hello, launch_values, load, message, preamble, record, saxpy

# Errors that the wire promises.
INVALID_VALUE, INVALID_IMAGE, OUT_OF_MEMORY, INVALID_HANDLE, NOT_READY, SUCCESS = 1, 200, 2, 400, 600, 0
# A handshake that does not come is given up after this long.
HANDSHAKE_SECONDS = 15

daemon = None


class Neighbour:
    """A program that runs while a peer is hostile, and must not notice."""

    def __init__(self, name="threads"):
        self.name = name

    def __enter__(self):
        self.workers = daemon.workers()
        self.program = daemon.start(self.name)
        return self

    def __exit__(self, kind, error, trace):
        result = self.program.finish()
        if kind is None:
            result.expect(out=f"{self.name}: ok\n", err="")
            require(daemon.workers() == self.workers, "the worker was replaced")
            daemon.settle()


def closed_lines():
    return re.findall(r"^gpupoold\[\d+\]: \w+: session \d+ \(.*\): closed: .*$", daemon.log(), re.M)


def expect_closed(conn, seconds=10):
    conn.socket.settimeout(seconds)
    try:
        conn.wait_closed()
    except socket.timeout:
        require(False, "the daemon keeps the connection open")


def expect_ended(session, reason):
    """The session's lane is closed, and the log says why."""
    expect_closed(session.lane)
    wait_until(f"the log says {reason!r} of session {session.id}",
               lambda: re.search(rf"session {session.id} \(.*: {reason}", daemon.log()), 10)
    session.close()


def violate(send, reason, prepare=True):
    """A session that does this on its lane ends for this reason."""
    session = Session(daemon.port)
    if prepare:
        session.create_context()
        require(session.map(0, session.granularity) == SUCCESS, "no memory could be mapped")
    try:
        send(session)
    except Closed:
        pass
    expect_ended(session, reason)


@case("a well-behaved session by hand: the tests' own words are right")
def _():
    with Neighbour(), Session(daemon.port) as session:
        session.create_context()
        require(session.map(0, session.granularity) == SUCCESS, "map")
        data = random.Random(3).randbytes(100000)
        session.copy_in(session.base + 64, data)
        require(session.copy_out(session.base + 64, len(data)) == (SUCCESS, data), "the bytes came back changed")
        result, info = session.ask("gpMemoryInfo", {"device": 0})
        require(result == SUCCESS and 0 < info["free"] < info["total"], f"memory: {result} {info}")
        require(session.ask("gpContextSynchronize", {"context": 1})[0] == SUCCESS, "synchronise")
        require(session.errors() == [], f"errors: {session.errors()}")


@case("random bytes in place of a preamble")
def _():
    chance = random.Random(4)
    with Neighbour():
        for size in (1, 63, 64, 65, 1000, 100000):
            with Conn(daemon.port) as conn:
                try:
                    conn.send(chance.randbytes(size))
                except Closed:
                    continue
                if size >= 64:
                    expect_closed(conn)


@case("preambles that are nearly right")
def _():
    with Neighbour():
        for data in (preamble(magic=b"GPUPOOL2"), preamble(wire.LANE_TLS), preamble(kind=4),
                     preamble(kind=0xffff), preamble(tail=b"\1" + bytes(15)),
                     preamble(lane=1), preamble(ticket=b"\1" * 32), preamble(wire.LANE), preamble(wire.LANE, 3, b"x" * 32)):
            with Conn(daemon.port) as conn:
                conn.send(data)
                expect_closed(conn)


@case("a client that wants TLS is told that there is none here")
def _():
    with Neighbour(), Conn(daemon.port) as conn:
        conn.send(preamble(wire.CONTROL_TLS))
        require(struct.unpack_from("<H", conn.take(64), 12) == (wire.CONTROL,), "another kind")
        size, bulk = struct.unpack("<II", conn.take(8))
        require(bulk == 0 and b"without TLS" in conn.take(size), "no reason")
        expect_closed(conn)
    daemon.wait_for_log(r"refused: this address of the daemon is without TLS")


@case("another major version is answered with the daemon's own and closed")
def _():
    with Neighbour(), Conn(daemon.port) as conn:
        conn.send(preamble(major=77) + message(hello()))
        answer = conn.take(64)
        require(answer[:8] == wire.MAGIC and struct.unpack_from("<HHH", answer, 8) == (1, 0, 0), f"answer {answer.hex()}")
        expect_closed(conn)


@case("control messages that are none, come out of turn or are too large")
def _():
    chance = random.Random(5)
    bad = [message(chance.randbytes(50)), message(hello(), b"bulk"), struct.pack("<II", 262145, 0),
           struct.pack("<II", 0xffffffff, 0xffffffff), message(field(2, b"")), message(field(4, b"")), message(field(7, b"")),
           message(b"\x0a\xff\xff\xff\xff\x0f"), message(hello()[:-3])]
    with Neighbour():
        for data in bad:
            with Conn(daemon.port) as conn:
                conn.send(preamble() + data)
                expect_closed(conn)


@case("a hello with fields of absurd content is welcomed or refused")
def _():
    absurd = [field(10, 0xffffffff), field(9, b"t" * 100000), field(12, b"r" * 1000), field(3, b"\xff\xfe\n\x1b[2J"),
              field(6, "p" * 200000), field(8, field(1, 0) + field(2, (1 << 64) - 1)),
              b"".join(field(8, field(1, i << 40) + field(2, 1 << 39)) for i in range(600)),
              field(11, 0xffffffff), field(7, (1 << 64) - 1), field(13, field(1, 4000) + field(2, 77) + field(3, 1)),
              b"".join(field(10, 0) for _ in range(5000))]
    with Neighbour():
        for more in absurd:
            with Conn(daemon.port) as conn:
                conn.send(preamble() + message(hello(more=more)))
                try:
                    conn.take(64)
                    data, _ = conn.take_message()
                    require(set(wire.fields_of(data)) <= {2, 3}, f"answer {data[:50]!r}")
                except Closed:
                    pass
    require("\x1b" not in daemon.log(), "the log has what a client sent")


@case("a second hello, and other words after the welcome, end the session")
def _():
    with Neighbour():
        for data in (message(hello()), message(field(2, b"")), message(b"\xff\xff"), message(field(8, field(1, 1)), b"bulk"),
                     struct.pack("<II", 1 << 31, 0)):
            session = Session(daemon.port)
            session.create_context()
            session.control.send(data)
            expect_closed(session.control)
            expect_closed(session.lane)
            session.close()


@case("a ping is answered and windows can be asked for until there is a lane")
def _():
    with Neighbour():
        session = Session(daemon.port, lane=False)
        session.control.send(message(field(8, field(1, 4711))))
        data, _ = session.control.take_message()
        require(wire.fields_of(data) == {9: [field(1, 4711)]}, f"answer {data!r}")
        for avoid in (field(1, field(1, session.base) + field(2, session.size)), field(1, field(1, 0) + field(2, 1 << 47)),
                      field(2, 1 << 60), b"".join(field(1, field(1, i << 30) + field(2, 1 << 29)) for i in range(2000))):
            session.control.send(message(field(4, avoid)))
            try:
                data, _ = session.control.take_message()
                require(set(wire.fields_of(data)) == {5}, f"answer {data!r}")
            except Closed:
                session = Session(daemon.port, lane=False)
        session.close()


@case("a window where there is none is searched for in no time")
def _():
    everything = field(1, field(1, 0) + field(2, 1 << 62))
    with Neighbour(), Session(daemon.port, lane=False) as session:
        for size in (0, 1, 1 << 21, 1 << 63):
            begin = time.monotonic()
            session.control.send(message(field(4, everything * 500 + field(2, size))))
            data, _ = session.control.take_message()
            reply = wire.fields_of(wire.fields_of(data)[5][0])
            require(2 not in wire.fields_of(reply.get(1, [b""])[0]), f"a window was found: {reply}")
            require(time.monotonic() - begin < 3, f"a window of {size} bytes was searched for too long")


@case("tickets of others, used ones and invented ones")
def _():
    with Neighbour():
        first, second = Session(daemon.port), Session(daemon.port, lane=False)
        first.create_context()
        # Now its lane has arrived for certain.
        require(first.map(0, first.granularity) == SUCCESS, "map")
        for lane, ticket in ((0, first.ticket), (1, first.ticket), (7, second.ticket), (0xffff, second.ticket),
                             (0, bytes(reversed(first.ticket))), (0, first.ticket[:-1] + b"\0")):
            conn = first.connect_lane(lane, ticket)
            expect_closed(conn)
            conn.close()
        require(first.map(first.granularity, first.granularity) == SUCCESS, "the session suffered from a second lane")
        ticket = first.ticket
        first.close()
        time.sleep(0.5)
        conn = second.connect_lane(0, ticket)
        expect_closed(conn)
        conn.close()
        second.close()


@case("records of impossible size")
def _():
    with Neighbour():
        for size in (0, 8, 15, 17, 24 + 4, 1 << 20, 0xfffffff8):
            violate(lambda s, size=size: s.send(header(size, 0x0204, 0, 1) + bytes(8)), "it sent a malformed", False)
        violate(lambda s: s.send(b"\1\2\3"), "it sent a malformed", False)
        violate(lambda s: s.lane.send(struct.pack("<II", 262145, 0)), ".*", False)


@case("a message cut short ends the session")
def _():
    with Neighbour():
        for cut in (4, 8, 20):
            session = Session(daemon.port)
            session.lane.send(message(record("gpFence", {}, 1))[:cut])
            session.lane.socket.shutdown(socket.SHUT_WR)
            expect_ended(session, "closed: .*")
        session = Session(daemon.port)
        session.create_context()
        session.lane.send(struct.pack("<II", 64, 1 << 20) + record(
            "gpCopyIn", {"stream": 1, "dst": session.base, "width": 1 << 20, "height": 1, "pitch": 1 << 20}, flags=BULK) + b"xy")
        session.lane.socket.shutdown(socket.SHUT_WR)
        expect_ended(session, "closed: .*")


@case("a message that stops in the middle ends the session, and silence between messages does not")
def _():
    copy = struct.pack("<II", 64, 1 << 20) + record(
        "gpCopyIn", {"stream": 1, "dst": 1 << 40, "width": 1 << 20, "height": 1, "pitch": 1 << 20}, flags=BULK) + b"xy"
    with Daemon(env={"GPUPOOL_STALL_MS": "300"}) as patient:
        quiet = Session(patient.port)
        quiet.create_context()
        for data in (message(record("gpFence", {}, 1))[:4], message(record("gpFence", {}, 1))[:20], copy):
            session = Session(patient.port)
            session.create_context()
            session.lane.send(data)
            expect_closed(session.lane)
            patient.wait_for_log(rf"session {session.id} \(.*: closed: the peer stopped in the middle of a message")
            session.close()
        session = Session(patient.port)
        session.control.send(message(field(8, field(1, 1)))[:9])
        expect_closed(session.lane)
        patient.wait_for_log(rf"session {session.id} \(.*: the peer stopped in the middle of a message")
        session.close()
        require(quiet.map(0, quiet.granularity) == SUCCESS, "a session that said nothing has suffered")
        quiet.close()
        patient.check_works()


@case("a session whose lane the worker cannot take is told why")
def _():
    with Daemon() as full:
        worker, = full.workers()
        taken = {int(fd) for fd in os.listdir(f"/proc/{worker}/fd")}
        before = resource.prlimit(worker, resource.RLIMIT_NOFILE)
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (min(set(range(len(taken) + 1)) - taken), before[1]))
        reason = "the daemon has no descriptor left for its connection"
        result = full.run("vectoradd", env={"GPUPOOL_LOG": "error"})
        require(result.status == 1 and "(802)" in result.out and f"error 802: {reason}" in result.err, f"expected the reason: {result}")
        require(len(re.findall(rf"^gpupoold.*warning: session \d+ \(.*\): closed: {reason}$", full.log(), re.M)) == 1, "no line in the log")
        resource.prlimit(worker, resource.RLIMIT_NOFILE, before)
        full.check_works()
        require(full.workers() == [worker], "the worker was replaced")


@case("unknown calls and notes from a client")
def _():
    with Neighbour():
        for number in (0, 0x0100, 0x0199, 0x7fff, 0xff01, 0xff02, 0xff03, 0xffff):
            violate(lambda s, number=number: s.send(header(16, number, 0, 1)), "it sent a malformed call", False)


@case("flags, requests and lengths that do not fit the call")
def _():
    fence = record("gpFence", {}, 1)
    bad = [header(16, 0x0204, 0, 0), header(16, 0x0204, 2, 1), header(16, 0x0204, 4, 1), header(16, 0x0204, 0xffff, 1),
           header(24, 0x0204, 0, 1) + bytes(8), header(24, 0x0204, 0, 1) + b"\1" * 8, header(16, 0x0201, 0, 1),
           record("gpContextDestroy", {"context": 5}, request=9), fence + header(16, 0x0204, 0, 0)]
    with Neighbour():
        for data in bad:
            violate(lambda s, data=data: s.send(data), "it sent a malformed call", False)
        violate(lambda s: s.send(record("gpFence", {}, 1, flags=BULK), b"12345678"), "it sent a malformed call", False)


@case("bulk that no record owns, or in the middle of a message")
def _():
    with Neighbour():
        violate(lambda s: s.send(record("gpFence", {}, 1), b"12345678"), ".*", False)
        violate(lambda s: s.send(b"", b"12345678"), ".*", False)
        copy = record("gpCopyIn", {"stream": 1, "width": 8, "height": 1, "pitch": 8}, flags=BULK)
        violate(lambda s: s.send(copy + record("gpFence", {}, 1), b"12345678"), "data belongs to a record's middle", False)


@case("copies whose bulk is missing, short or long")
def _():
    with Neighbour():
        for size, bulk in ((64, None), (64, b""), (64, b"x" * 63), (64, b"x" * 65), (1 << 20, b"x"), (1, b"x" * (1 << 20))):
            session = Session(daemon.port)
            session.create_context()
            session.map(0, session.granularity)
            try:
                session.post("gpCopyIn", {"stream": 1, "dst": session.base, "pitch": size, "width": size, "height": 1}, bulk)
                result = session.ask("gpFence")[0]
            except Closed:
                session.close()
                continue
            require(session.errors() or result, f"a copy of {size} bytes with {bulk and len(bulk)} succeeded")
            session.close()


@case("names given twice end the session")
def _():
    with Neighbour():
        violate(lambda s: s.create_context(1, 9), ".*(twice|in use|taken)")
        violate(lambda s: s.create_context(2, 1), ".*(twice|in use|taken)")
        violate(lambda s: [s.post("cuStreamCreateWithPriority", {"phStream": 5}) for _ in range(2)], ".*(twice|in use|taken)")
        violate(lambda s: [s.post("cuEventCreate", {"phEvent": 5}) for _ in range(2)], ".*(twice|in use|taken)")


@case("unknown names are errors of their calls, and zero is none")
def _():
    with Neighbour(), Session(daemon.port) as session:
        session.create_context()
        for name in (0, 7, 0xffffffff, 0x00100001):
            for call, values in (("cuStreamQuery", {"hStream": name}), ("cuEventQuery", {"hEvent": name}),
                                 ("cuStreamSynchronize", {"hStream": name}), ("cuEventSynchronize", {"hEvent": name}),
                                 ("cuFuncGetAttribute", {"hfunc": name << 32}), ("gpContextSynchronize", {"context": name}),
                                 ("gpImageGlobal", {"context": 1, "image": name, "name": "x"})):
                result, _ = session.ask(call, values)
                require(result in (INVALID_HANDLE, 201), f"{call} of {name}: {result}")
        for call, values in (("cuStreamDestroy_v2", {"hStream": 77}), ("cuEventDestroy_v2", {"hEvent": 77}),
                             ("gpImageUnload", {"image": 77}), ("gpContextDestroy", {"context": 77}),
                             ("cuStreamWaitEvent", {"hStream": 77, "hEvent": 77}),
                             ("gpLaunch", {"kernel": 77 << 32, "grid_x": 1, "grid_y": 1, "grid_z": 1, "block_x": 1,
                                           "block_y": 1, "block_z": 1, "stream": 1})):
            before = len(session.errors())
            session.post(call, values)
            require(session.ask("gpFence")[0] == SUCCESS, "fence")
            require(len(session.errors()) == before + 1 and session.errors()[-1][0] in (INVALID_HANDLE, 201),
                    f"{call} of 77: {session.errors()[before:]}")


@case("the names and addresses of another session mean nothing")
def _():
    with Neighbour(), Session(daemon.port) as first, Session(daemon.port) as second:
        for session in (first, second):
            session.create_context()
        require(first.map(0, first.granularity) == SUCCESS, "map")
        first.copy_in(first.base, b"secret" * 10)
        first.post("cuStreamCreateWithPriority", {"phStream": 33})
        require(first.ask("gpFence")[0] == SUCCESS, "fence")
        require(second.ask("cuStreamQuery", {"hStream": 33})[0] == INVALID_HANDLE, "a foreign stream is known")
        result, data = second.copy_out(first.base, 60)
        require(result != SUCCESS and data == b"", f"a foreign address was read: {result} {data!r}")
        second.copy_in(first.base, b"x" * 60)
        second.post("gpFill", {"stream": 1, "dst": first.base, "element_size": 1, "value": 0, "width": 60, "height": 1, "pitch": 60})
        second.post("gpCopyDevice", {"stream": 1, "dst": second.base, "src": first.base, "width": 60, "height": 1, "depth": 1})
        second.post("gpMemoryUnmap", {"address": first.base, "size": first.granularity})
        second.ask("gpFence")
        require(first.copy_out(first.base, 60) == (SUCCESS, b"secret" * 10), "a foreign address was written")


@case("memory outside the window, unaligned, overlapping or without bound")
def _():
    with Neighbour():
        for offset, size in ((-(1 << 30), 1 << 21), (1 << 60, 1 << 21), (1 << 34, 1 << 21), ((1 << 34) - (1 << 21), 1 << 22),
                             ):
            violate(lambda s, offset=offset, size=size: s.map(offset, size), ".*(window|outside|range)")
        with Session(daemon.port) as session:
            session.create_context()
            unit = session.granularity
            require(session.map(0, 2 * unit) == SUCCESS, "map")
            for offset, size in ((0, unit), (unit, unit), (0, 2 * unit), (3 * unit, 0), (3 * unit + 1, unit), (3 * unit, unit + 8)):
                try:
                    require(session.map(offset, size) == INVALID_VALUE, f"map of {size} at {offset}")
                except Closed:
                    require(False, f"map of {size} at {offset} ended the session")
            require(session.map(4 * unit, session.size // 2) == OUT_OF_MEMORY, "half of the window is memory")
            require(session.map(4 * unit, unit, device=99) != SUCCESS, "memory of device 99")
            for offset, size in ((unit, unit), (8 * unit, unit), (0, 4 * unit), (1, 5)):
                before = len(session.errors())
                session.post("gpMemoryUnmap", {"address": session.base + offset, "size": size})
                require(session.ask("gpFence")[0] == SUCCESS, "fence")
                require(len(session.errors()) == before + 1, f"unmap of {size} at {offset} was accepted")
            require(session.copy_out(session.base, 2 * unit)[0] == SUCCESS, "the memory is gone")


@case("physical memory that is none, foreign, or released while it is mapped")
def _():
    with Neighbour():
        violate(lambda s: (s.ask("gpMemoryCreate", {"memory": 1 << 20 | 9, "size": s.granularity, "device": 0}),
                           s.ask("gpMemoryAttach", {"memory": 1 << 20 | 9, "address": 0x1000, "size": s.granularity})),
                ".*(window|outside|range)")
        with Session(daemon.port) as session, Session(daemon.port) as other:
            session.create_context()
            other.create_context()
            unit, name = session.granularity, 1 << 20 | 9

            def attach(s, at, size=unit, memory=name):
                return s.ask("gpMemoryAttach", {"memory": memory, "address": s.base + at, "size": size})[0]

            def release(memory=name):
                before = len(session.errors())
                session.post("gpMemoryRelease", {"memory": memory})
                require(session.ask("gpFence")[0] == SUCCESS, "fence")
                return len(session.errors()) == before

            for size, device in ((unit, 99), (unit // 2, 0), (0, 0), (1 << 60, 0)):
                require(session.ask("gpMemoryCreate", {"memory": name, "size": size, "device": device})[0] != SUCCESS,
                        f"{size} bytes of device {device}")
            require(session.ask("gpMemoryCreate", {"memory": name, "size": unit, "device": 0})[0] == SUCCESS, "create")
            require(session.ask("gpMemoryCreate", {"memory": name, "size": unit, "device": 0})[0] != SUCCESS, "a name twice")
            require(attach(other, 0) == INVALID_VALUE, "a foreign name is known")
            require(attach(session, 0, 2 * unit) == INVALID_VALUE, "more was mapped than there is")
            require(attach(session, 0) == SUCCESS and attach(session, unit) == SUCCESS, "attach")
            require(attach(session, 0) == INVALID_VALUE, "mapped over another")
            require(not release() and not release(77), "released what is mapped, or none")
            for at in (0, unit):
                session.post("gpMemoryUnmap", {"address": session.base + at, "size": unit})
            require(release() and not release(), "release")
            result, reserved = session.ask("gpAddressReserve", {"size": 1 << 62})
            require(result == OUT_OF_MEMORY, "addresses without bound")
            before = len(session.errors())
            session.post("gpAddressFree", {"address": session.base})
            require(session.ask("gpFence")[0] == SUCCESS, "fence")
            require(len(session.errors()) == before + 1, "the window was given back")


@case("contexts with a heap outside the window, and of devices that are none")
def _():
    with Neighbour():
        for heap in (0x1000, 1 << 62, 0):
            violate(lambda s, heap=heap: s.ask("gpContextCreate", {
                "context": 5, "legacy": 6, "heap": heap or s.base + s.size - (1 << 21), "heap_size": 1 << 22}), ".*outside its window")
        with Session(daemon.port) as session:
            require(session.create_context(device=99) != SUCCESS, "a context of device 99")
            require(session.create_context(heap_size=1 << 62) == OUT_OF_MEMORY, "a heap larger than the device")


@case("copies out of range are errors")
def _():
    with Neighbour(), Session(daemon.port) as session:
        session.create_context()
        unit = session.granularity
        require(session.map(0, unit) == SUCCESS, "map")
        for address, size in ((unit - 4, 8), (unit, 1), (-8, 16), (-(1 << 44), 64), (0, unit + 1), (0, 1 << 40), (0, 1 << 63), (8, (1 << 64) - 8)):
            result, data = session.copy_out(session.base + address, size)
            require(result == INVALID_VALUE and data == b"", f"copy of {size} at {address}: {result}")
        for values in ({"dst": session.base, "src": session.base + unit, "width": 64, "height": 1, "depth": 1},
                       {"dst": session.base + unit, "src": session.base, "width": 64, "height": 1, "depth": 1},
                       {"dst": session.base, "src": session.base, "width": 64, "height": 1 << 62, "depth": 4, "src_pitch": 64, "dst_pitch": 64},
                       {"dst": session.base, "src": session.base, "width": 64, "height": 2, "depth": 2, "src_pitch": 1 << 63, "dst_pitch": 64,
                        "src_slice": 1 << 63, "dst_slice": 128},
                       {"dst": session.base, "src": session.base, "width": (1 << 64) - 1, "height": 1, "depth": 1}):
            before = len(session.errors())
            session.post("gpCopyDevice", {"stream": 1, **values})
            session.ask("gpFence")
            require(len(session.errors()) == before + 1, f"copy {values} was accepted")
        for values in ({"dst": session.base + unit, "width": 4, "height": 1}, {"dst": session.base, "width": 1 << 62, "height": 1, "element_size": 4},
                       {"dst": session.base, "width": 4, "height": 1 << 40, "pitch": 1 << 40}, {"dst": session.base, "width": 4, "height": 1, "element_size": 3},
                       {"dst": session.base + 1, "width": 4, "height": 1, "element_size": 4}, {"dst": 0, "width": 4, "height": 1}):
            before = len(session.errors())
            session.post("gpFill", {"stream": 1, "element_size": 1, **values})
            session.ask("gpFence")
            require(len(session.errors()) == before + 1, f"fill {values} was accepted")
        for stream in (0, 2, 0xffffffff):
            require(session.copy_out(session.base, 8, stream)[0] == INVALID_HANDLE, f"copy on stream {stream}")


@case("images with a wrong hash end the session, and garbage is an error")
def _():
    noise = random.Random(6).randbytes(5000)
    with Neighbour():
        violate(lambda s: load(s, 9, noise, sha=b"\0" * 32), ".*(hash|SHA|sha)")
        with Session(daemon.port) as session:
            session.create_context()
            for i, data in enumerate((noise, b"\0" * 64, b".version 8.0\n.target sm_52\nhello\0", b"\x7fELF" + bytes(200))):
                result, _ = load(session, 10 + i, data)
                require(result in (INVALID_IMAGE, 218, 209), f"garbage {i}: {result}")
            result, reply = load(session, 20, noise, sha=b"\1" * 32, bulk=False)
            require(result == SUCCESS and reply["missing"] == 1 or result == 0, f"an unknown hash: {result} {reply}")
        for size in (0, 1, len(noise) - 1, len(noise) + 1, 1 << 63, (1 << 64) - 1):
            with Session(daemon.port) as session:
                session.create_context()
                try:
                    result, _ = load(session, 30, noise, size=size)
                    require(result != SUCCESS, f"an image of {len(noise)} bytes passed for {size}")
                except Closed:
                    pass
        for sha in (b"", b"x", b"x" * 31, b"x" * 33, b"x" * 10000):
            violate(lambda s, sha=sha: load(s, 9, noise, sha=sha or b"y"), "it sent a malformed call")


@case("launches with wrong parameters, shapes and attributes are errors")
def _():
    with Neighbour(), Session(daemon.port) as session:
        session.create_context()
        require(session.map(0, session.granularity) == SUCCESS, "map")
        result, reply = load(session, 40, saxpy())
        require(result == SUCCESS and reply["info"], f"load: {result}")
        good = struct.pack("<ifQQ", 1, 1.0, session.base, session.base + 64)
        require(session.ask("gpLaunchChecked", launch_values(params=good))[0] == SUCCESS, "a good launch")
        bad = [{"params": b""}, {"params": good[:-1]},
               {"params": good, "grid_x": 0}, {"params": good, "block_x": 0}, {"params": good, "block_x": 4096},
               {"params": good, "grid_y": 0xffffffff}, {"params": good, "shared": 0xffffffff}, {"params": good, "stream": 99},
               {"params": good, "kernel": 40 << 32 | 1}, {"params": good, "kernel": 40 << 32 | 0xffffffff},
               {"params": good, "attributes": b"x"}, {"params": good, "attributes": b"\xff" * 72}, {"params": good, "attributes": b"x" * 72000}]
        for changed in bad:
            name = f"{list(changed.items())[-1]!r:.80}"
            try:
                result, _ = session.ask("gpLaunchChecked", launch_values(**changed))
            except Closed:
                require(False, f"launch with {name} ended the session")
            require(result != SUCCESS, f"launch with {name} was accepted")
        require(session.ask("gpLaunchChecked", launch_values(params=good))[0] == SUCCESS, "a good launch afterwards")
        for what in range(20):
            for args in ({"attrib": what}, {"attrib": -what - 1}, {"attrib": 1 << 30}):
                session.ask("cuFuncGetAttribute", {**args, "hfunc": 40 << 32})
                session.ask("cuFuncSetAttribute", {**args, "hfunc": 40 << 32, "value": -1})
            session.ask("gpContextSetLimit", {"context": 1, "limit": what - 3, "value": (1 << 64) - 1})
        session.ask("gpOccupancyCluster", {"what": 77, "kernel": 40 << 32, "attributes": b"x" * 1000})


@case("records of every call with random fields do not reach the worker's life")
def _():
    chance = random.Random(7)
    with Neighbour():
        for _ in range(40):
            session = Session(daemon.port)
            session.lane.socket.settimeout(20)
            session.create_context()
            try:
                for _ in range(60):
                    name = chance.choice(list(wire.CALLS))
                    number, kinds, _ = wire.CALLS[name]
                    values = {}
                    for kind, key in kinds:
                        if kind in ("bytes", "string"):
                            values[key] = chance.randbytes(chance.choice((0, 1, 8, 32, 72, 500)))
                        else:
                            values[key] = chance.choice((0, 1, 1, 2, 3, 5, session.base, session.base + 512, session.granularity, 64,
                                                         chance.getrandbits(chance.choice((8, 32, 64)))))
                        if key == "sha256":
                            values[key] = chance.randbytes(32)
                    waits = chance.random() < 0.5
                    flags = chance.choice((0, 0, 0, BULK))
                    session.send(record(name, values, 9 if waits else 0, chance.choice((0, 1, 2)), flags),
                                 chance.randbytes(64) if flags else b"")
            except Closed:
                pass
            session.close()


@case("mutations of valid traffic do not reach the worker's life")
def _():
    chance, image = random.Random(8), saxpy()
    with Neighbour():
        for _ in range(60):
            session = Session(daemon.port)
            stream = b"".join([
                message(record("gpContextCreate", {"context": 1, "legacy": 1, "heap": session.base, "heap_size": session.granularity}, 3)),
                message(record("gpCopyIn", {"stream": 1, "dst": session.base, "pitch": 64, "width": 64, "height": 1, "flags": 1}, flags=BULK), b"y" * 64),
                message(record("gpImageLoad", {"context": 1, "image": 40, "sha256": hashlib.sha256(image).digest(), "size": len(image)}, 1, 1, BULK), image),
                message(record("gpLaunch", launch_values(params=struct.pack("<ifQQ", 1, 2.0, session.base, session.base + 64)))),
                message(record("gpFence", {}, 2))])
            data = bytearray(stream)
            for _ in range(chance.choice((1, 2, 8))):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            session.lane.send(bytes(data))
            session.lane.socket.shutdown(socket.SHUT_WR)
            expect_closed(session.lane, 30)
            session.close()


@case("a client that asks much and reads nothing is a burden to nobody")
def _():
    with Neighbour(), Session(daemon.port) as session:
        session.create_context()
        require(session.map(0, 4 * session.granularity) == SUCCESS, "map")
        session.lane.socket.settimeout(3)
        size = 4 * session.granularity
        ask = record("gpCopyOut", {"stream": 1, "src": session.base, "pitch": size, "width": size, "height": 1}, 5, 1)
        try:
            for _ in range(2000):
                session.send(ask * 20)
        except (socket.timeout, Closed):
            pass
        daemon.check_works()


@case("half-open handshakes hold nobody up, and are given up")
def _():
    with Neighbour():
        silent = [Conn(daemon.port) for _ in range(64)]
        for i, conn in enumerate(silent):
            conn.send(preamble()[:i])
        daemon.check_works()
        # One that greets and never says hello.
        silent.append(Conn(daemon.port))
        silent[-1].send(preamble())
        silent[-1].take(64)
        slow = Conn(daemon.port)
        begin = time.monotonic()
        try:
            for byte in preamble():
                slow.send(bytes([byte]))
                time.sleep(0.3)
                if time.monotonic() - begin > 3:
                    break
        except Closed:
            pass
        for conn in silent + [slow]:
            expect_closed(conn, HANDSHAKE_SECONDS)
            conn.close()
        sessions = [Session(daemon.port, lane=False) for _ in range(32)]
        daemon.check_works()
        for session in sessions:
            session.close()


@case("a session whose control connection ends is over")
def _():
    with Neighbour():
        session = Session(daemon.port)
        session.create_context()
        require(session.map(0, session.granularity) == SUCCESS, "map")
        session.control.close()
        expect_closed(session.lane)
        session.close()


@case("the daemon still serves, and never lost its worker")
def _():
    daemon.check_works()
    require("lost its GPU" not in daemon.log() and "killed" not in daemon.log(), "a worker was lost")
    require(len(closed_lines()) > 100, "the log does not say how sessions end")


def with_function(session, function=9, stream=5):
    """A host function of this name whose turn has come, in a non-blocking stream of its own."""
    session.create_context()
    require(session.map(0, session.granularity) == SUCCESS, "map")
    session.post("cuStreamCreateWithPriority", {"phStream": stream, "flags": 1})
    session.post("gpHostFunction", {"stream": stream, "function": function})
    require(session.wait_turn() == (function, SUCCESS), "the function has no turn")


@case("what comes behind a host function is kept, in order, and what does not goes past")
def _():
    with Neighbour(), Session(daemon.port) as session:
        with_function(session)
        session.post("cuEventCreate", {"phEvent": 3})
        session.copy_in(session.base, b"first", flags=0, stream=5)
        session.post("cuEventRecordWithFlags", {"hEvent": 3, "hStream": 5})
        session.copy_in(session.base, b"last!", flags=0, stream=5)
        session.post("gpHostFunction", {"stream": 5, "function": 10})
        require(session.ask("cuStreamQuery", {"hStream": 5})[0] == NOT_READY, "the stream is done")
        require(session.ask("cuEventQuery", {"hEvent": 3})[0] == NOT_READY, "the event is done")
        require(session.ask("cuEventElapsedTime_v2", {"hStart": 3, "hEnd": 3})[0] == NOT_READY, "the event has a time")
        require(session.copy_out(session.base, 5) == (SUCCESS, bytes(5)), "a record has not been kept")
        session.post("cuStreamDestroy_v2", {"hStream": 5})
        session.post("cuStreamCreateWithPriority", {"phStream": 5, "flags": 1})
        session.post("gpHostFunctionDone", {"function": 9})
        require(session.wait_turn() == (10, SUCCESS), "the second function has no turn")
        require(session.copy_out(session.base, 5) == (SUCCESS, b"last!"), "what was kept has not been carried out")
        require(session.ask("cuEventQuery", {"hEvent": 3})[0] == SUCCESS, "the event is not done")
        session.post("gpHostFunctionDone", {"function": 10})
        require(session.ask("cuStreamSynchronize", {"hStream": 5})[0] == SUCCESS, "the new stream is none")
        require(session.errors() == [], f"errors: {session.errors()}")


@case("memory that is given back behind a host function is in use until it is done")
def _():
    with Neighbour(), Session(daemon.port) as session:
        with_function(session)
        unit, at = session.granularity, session.base + 8 * session.granularity
        require(session.ask("gpMemoryCreate", {"memory": 4, "size": unit, "device": 0})[0] == SUCCESS, "create")
        require(session.ask("gpMemoryAttach", {"memory": 4, "address": at, "size": unit})[0] == SUCCESS, "attach")
        session.copy_in(at, b"used", flags=0, stream=5)
        session.post("gpMemoryUnmap", {"address": at, "size": unit})
        session.post("gpMemoryRelease", {"memory": 4})
        session.requests += 1
        session.send(record("gpMemoryMap", {"address": at, "size": unit, "device": 0}, session.requests, 1))
        session.post("gpHostFunctionDone", {"function": 9})
        require(session.reply("gpMemoryMap", session.requests)[0] == SUCCESS, "map")
        require(session.copy_out(at, 4) == (SUCCESS, bytes(4)), "the new memory is not new")
        require(session.errors() == [], f"errors: {session.errors()}")


@case("answers for host functions that are none, twice, too early or another's")
def _():
    with Neighbour(), Session(daemon.port) as session, Session(daemon.port) as other:
        with_function(session)
        with_function(other, 11)
        session.post("gpHostFunction", {"stream": 5, "function": 12})
        done = [9] + [0, 9, 10, 11, 0xffffffff]
        for function in done:
            session.post("gpHostFunctionDone", {"function": function})
            require(session.ask("gpMemoryInfo", {"device": 0})[0] == SUCCESS, "memory")
        require([e[0] for e in session.errors()] == [INVALID_HANDLE] * 5, f"errors: {session.errors()}")
        require(other.ask("cuStreamQuery", {"hStream": 5})[0] == NOT_READY, "another session's function is done")
        require(session.wait_turn() == (12, SUCCESS), "the second function has no turn")
        session.post("gpHostFunctionDone", {"function": 12})
        require(session.ask("gpFence")[0] == SUCCESS, "fence")
        session.post("gpHostFunction", {"stream": 77, "function": 13})
        require(session.wait_turn() == (13, INVALID_HANDLE), "a function in no stream")
        session.ask("gpFence")
        require(len(session.errors()) == 6, f"errors: {session.errors()}")


@case("a host function's name in use, or none, ends the session")
def _():
    def again(session, name):
        session.post("gpHostFunction", {"stream": 1, "function": name})
        session.post("gpHostFunction", {"stream": 5, "function": name})

    with Neighbour():
        for name, reason in ((9, ".*in use"), (0, ".*none")):
            def send(session, name=name):
                session.post("cuStreamCreateWithPriority", {"phStream": 5, "flags": 1})
                again(session, name)
            violate(send, reason)


@case("a client that never answers may send so much behind a host function and no more")
def _():
    with Neighbour():
        session = Session(daemon.port)
        with_function(session)
        try:
            for _ in range(40):
                session.copy_in(session.base, bytes(session.granularity), flags=0, stream=5)
        except Closed:
            pass
        expect_ended(session, "closed: it sent more than 64 MiB behind a host function")
        session = Session(daemon.port)
        with_function(session)
        event = record("cuEventRecordWithFlags", {"hEvent": 3, "hStream": 5}, 0, 1)
        session.post("cuEventCreate", {"phEvent": 3})
        try:
            for _ in range(100):
                session.send(event * 4000)
        except Closed:
            pass
        expect_ended(session, "closed: it sent more than 64 MiB behind a host function")


@case("sessions that end while records wait for a host function leave nothing")
def _():
    with Neighbour():
        for end in ("close", "context", "malformed", "violation"):
            session = Session(daemon.port)
            with_function(session)
            for i in range(50):
                session.copy_in(session.base, bytes(100000), flags=0, stream=5)
                session.post("gpHostFunction", {"stream": 5, "function": 100 + i})
            session.requests += 1
            session.send(record("gpFence", {}, session.requests))
            if end == "context":
                session.post("gpContextDestroy", {"context": 1})
                session.post("cuStreamCreateWithPriority", {"phStream": 6})
                session.post("gpHostFunctionDone", {"function": 9})
                session.wait_turn()
            elif end == "malformed":
                session.send(header(24, wire.CALLS["gpFill"][0]) + bytes(8))
                expect_ended(session, "it sent a malformed call")
            elif end == "violation":
                session.post("cuStreamDestroy_v2", {"hStream": 5})
                session.post("cuStreamCreateWithPriority", {"phStream": 1})
                expect_ended(session, ".*in use")
            session.close()
        daemon.settle()


if __name__ == "__main__":
    with Daemon() as daemon:
        status = main()
    sys.exit(status)
