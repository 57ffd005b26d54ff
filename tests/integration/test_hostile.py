# SPDX-License-Identifier: Apache-2.0
"""Peers that violate protocol/wire.md while they connect and when they send calls."""
import os
import random
import re
import resource
import socket
import struct
import sys
import time

import wire
from harness import Daemon, case, main, require
from hostile import SUCCESS, Host, expect_closed
from wire import BULK, Closed, Conn, Session, field, header, hello, message, preamble, record

# A handshake that does not come is given up after this long.
HANDSHAKE_SECONDS = 15

daemon = None


@case("a well-behaved session by hand: the tests' own words are right")
def _():
    with daemon.neighbour(), Session(daemon.port) as session:
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
    with daemon.neighbour():
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
    with daemon.neighbour():
        for data in (preamble(magic=b"GPUPOOL2"), preamble(wire.LANE_TLS), preamble(kind=4),
                     preamble(kind=0xffff), preamble(tail=b"\1" + bytes(15)),
                     preamble(lane=1), preamble(ticket=b"\1" * 32), preamble(wire.LANE), preamble(wire.LANE, 3, b"x" * 32)):
            with Conn(daemon.port) as conn:
                conn.send(data)
                expect_closed(conn)


@case("a client that requests TLS gets the reply that the address is without TLS")
def _():
    with daemon.neighbour(), Conn(daemon.port) as conn:
        conn.send(preamble(wire.CONTROL_TLS))
        require(struct.unpack_from("<H", conn.take(64), 12) == (wire.CONTROL,), "another kind")
        size, bulk = struct.unpack("<II", conn.take(8))
        require(bulk == 0 and b"without TLS" in conn.take(size), "no reason")
        expect_closed(conn)
    daemon.wait_for_log(r"refused: this address of the daemon is without TLS")


@case("another major version is answered with the daemon's own and closed")
def _():
    with daemon.neighbour(), Conn(daemon.port) as conn:
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
    with daemon.neighbour():
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
    with daemon.neighbour():
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
    with daemon.neighbour():
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
    with daemon.neighbour():
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
    with daemon.neighbour(), Session(daemon.port, lane=False) as session:
        for size in (0, 1, 1 << 21, 1 << 63):
            begin = time.monotonic()
            session.control.send(message(field(4, everything * 500 + field(2, size))))
            data, _ = session.control.take_message()
            reply = wire.fields_of(wire.fields_of(data)[5][0])
            require(2 not in wire.fields_of(reply.get(1, [b""])[0]), f"a window was found: {reply}")
            require(time.monotonic() - begin < 30, f"a window of {size} bytes was searched for too long")


@case("tickets of others, used ones and invented ones")
def _():
    with daemon.neighbour():
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
    with daemon.neighbour():
        for size in (0, 8, 15, 17, 24 + 4, 1 << 20, 0xfffffff8):
            daemon.violate(lambda s, size=size: s.send(header(size, 0x0204, 0, 1) + bytes(8)), "it sent a malformed", False)
        daemon.violate(lambda s: s.send(b"\1\2\3"), "it sent a malformed", False)
        daemon.violate(lambda s: s.lane.send(struct.pack("<II", 262145, 0)), ".*", False)


@case("a message cut short ends the session")
def _():
    with daemon.neighbour():
        for cut in (4, 8, 20):
            session = Session(daemon.port)
            session.lane.send(message(record("gpFence", {}, 1))[:cut])
            session.lane.socket.shutdown(socket.SHUT_WR)
            daemon.expect_ended(session, "closed: .*")
        session = Session(daemon.port)
        session.create_context()
        session.lane.send(struct.pack("<II", 64, 1 << 20) + record(
            "gpCopyIn", {"stream": 1, "dst": session.base, "width": 1 << 20, "height": 1, "pitch": 1 << 20}, flags=BULK) + b"xy")
        session.lane.socket.shutdown(socket.SHUT_WR)
        daemon.expect_ended(session, "closed: .*")


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
        require(quiet.map(0, quiet.granularity) == SUCCESS, "an idle session was affected")
        quiet.close()
        patient.check_works()


def descriptors_at_rest(pid):
    """A worker that has just begun opens and closes some for a while."""
    last, found, alike = None, None, 0
    while alike < 10:
        last, found = found, {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}
        alike = alike + 1 if found == last else 0
        time.sleep(0.05)
    return found


@case("a session that the worker has no descriptor for gets the reason")
def _():
    with Daemon() as full:
        worker, = full.workers()
        taken = descriptors_at_rest(worker)
        before = resource.prlimit(worker, resource.RLIMIT_NOFILE)
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (min(set(range(len(taken) + 1)) - taken), before[1]))
        reason = "the daemon has no descriptor left for another session"
        result = full.run("vectoradd", env={"GPUPOOL_LOG": "error"})
        require(result.status == 1 and "(802)" in result.out and reason in result.err, f"expected the reason: {result}")
        require(len(re.findall(rf"gpupoold.*warning: session \d+ \(.*\): not opened: {reason}$", full.log(), re.M)) == 1,
                "no line in the log")
        resource.prlimit(worker, resource.RLIMIT_NOFILE, before)
        full.check_works()
        require(full.workers() == [worker], "the worker was replaced")


@case("unknown calls and notes from a client")
def _():
    with daemon.neighbour():
        for number in (0, 0x0100, 0x0199, 0x7fff, 0xff01, 0xff02, 0xff03, 0xffff):
            daemon.violate(lambda s, number=number: s.send(header(16, number, 0, 1)), "it sent a malformed call", False)


@case("replacements of listed copies: data outside of any copy is ignored, an invalid one ends the session")
def _():
    copy = {"stream": 1, "pitch": 8, "width": 8, "height": 1, "flags": 4 | 7 << 8, "data": b"12345678"}

    def replace(session, number, offset, data):
        session.post("gpCopyReplace", {"copy": number, "offset": offset, "data": data})

    with daemon.neighbour():
        session = Session(daemon.port)
        session.create_context()
        require(session.map(0, session.granularity) == SUCCESS, "no memory could be mapped")
        session.post("gpCopyInShort", copy | {"dst": session.base})
        for wanted in ((7, 4, b"1" * 8), (7, 1 << 40, b"1"), (8, 0, b"1"), (0, 0, b"1"), (7, (1 << 64) - 9, b"1" * 8)):
            replace(session, *wanted)
        require(session.ask("gpFence")[0] == SUCCESS, "the session did not go on")
        session.close()
        for wrong in ((1 << 24, 0, b"1"), (7, 0, b""), (7, (1 << 64) - 4, b"1" * 8), (7, 0, bytes((64 << 10) + 1))):
            daemon.violate(lambda s, wrong=wrong: replace(s, *wrong), "it replaces")
        for flags in (5, 6, 8, 0x100):
            daemon.violate(lambda s, flags=flags: s.post("gpCopyInShort", copy | {"dst": s.base, "flags": flags}), "copy of 1 slices")


@case("flags, requests and lengths that do not fit the call")
def _():
    fence = record("gpFence", {}, 1)
    bad = [header(16, 0x0204, 0, 0), header(16, 0x0204, 2, 1), header(16, 0x0204, 4, 1), header(16, 0x0204, 0xffff, 1),
           header(24, 0x0204, 0, 1) + bytes(8), header(24, 0x0204, 0, 1) + b"\1" * 8, header(16, 0x0201, 0, 1),
           record("gpContextDestroy", {"context": 5}, request=9), fence + header(16, 0x0204, 0, 0)]
    with daemon.neighbour():
        for data in bad:
            daemon.violate(lambda s, data=data: s.send(data), "it sent a malformed call", False)
        daemon.violate(lambda s: s.send(record("gpFence", {}, 1, flags=BULK), b"12345678"), "it sent a malformed call", False)


@case("bulk that no record owns, or in the middle of a message")
def _():
    with daemon.neighbour():
        daemon.violate(lambda s: s.send(record("gpFence", {}, 1), b"12345678"), ".*", False)
        daemon.violate(lambda s: s.send(b"", b"12345678"), ".*", False)
        copy = record("gpCopyIn", {"stream": 1, "width": 8, "height": 1, "pitch": 8}, flags=BULK)
        daemon.violate(lambda s: s.send(copy + record("gpFence", {}, 1), b"12345678"), "data belongs to a record's middle", False)


@case("copies whose bulk is missing, short or long")
def _():
    with daemon.neighbour():
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


@case("a client that sends many requests and reads no replies does not affect other clients")
def _():
    with daemon.neighbour(), Session(daemon.port) as session:
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


@case("half-open handshakes do not block other clients, and time out")
def _():
    with daemon.neighbour():
        silent = [Conn(daemon.port) for _ in range(64)]
        for i, conn in enumerate(silent):
            conn.send(preamble()[:i])
        daemon.check_works()
        # A connection with a preamble and no hello.
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
    with daemon.neighbour():
        session = Session(daemon.port)
        session.create_context()
        require(session.map(0, session.granularity) == SUCCESS, "map")
        session.control.close()
        expect_closed(session.lane)
        session.close()


@case("the daemon still serves, and never lost its worker")
def _():
    daemon.check_unharmed(ended=70)


if __name__ == "__main__":
    with Host() as daemon:
        status = main(daemon)
    sys.exit(status)
