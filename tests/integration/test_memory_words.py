# SPDX-License-Identifier: Apache-2.0
"""Streams that wait for values in memory: later calls keep their order, are limited in number, continue after any
write of the value, and are dropped with their session. A stream that waits forever blocks no other session."""
import struct
import sys

from harness import case, main, require, wait_until
from hostile import SUCCESS, Host
from wire import Closed, Session, record

# Errors and numbers that the wire promises.
INVALID_VALUE, INVALID_HANDLE, NOT_READY = 1, 400, 600
NOTE_WAITS = 0xff07
GEQ, EQ, AND, NOR = range(4)

daemon = None


def prepared(streams=1):
    """A session with memory, and non-blocking streams from 5 on."""
    session = Session(daemon.port)
    session.create_context()
    require(session.map(0, session.granularity) == SUCCESS, "map")
    for i in range(streams):
        session.post("cuStreamCreateWithPriority", {"phStream": 5 + i, "flags": 1})
    return session


def wait_for(session, offset, value, stream=5, size=4, condition=EQ):
    session.post("gpStreamWait", {"stream": stream, "address": session.base + offset, "value": value, "size": size,
                                  "condition": condition})


def write(session, offset, value, stream=1, size=4):
    session.post("gpStreamWrite", {"stream": stream, "address": session.base + offset, "value": value, "size": size})


def state(session, stream=5):
    return session.ask("cuStreamQuery", {"hStream": stream})[0]


def over(session):
    """The number of waits that are over, from the notes received so far."""
    return sum(struct.unpack("<II", body)[0] for call, _, body, _ in session.notes if call == NOTE_WAITS)


@case("work after a wait is deferred, in order, until the word is written, from any source")
def _():
    with daemon.neighbour(), prepared() as session:
        for size, written in ((4, "stream"), (8, "stream"), (4, "copy"), (8, "fill")):
            session.notes.clear()
            session.copy_in(session.base, bytes(64))
            wait_for(session, 8, 0x2a2a2a2a if size == 4 else 0x2a2a2a2a2a2a2a2a, size=size)
            session.copy_in(session.base + 32, b"first", flags=0, stream=5)
            session.copy_in(session.base + 32, b"last!", flags=0, stream=5)
            require(state(session) == NOT_READY and over(session) == 0, "the stream is done")
            require(session.copy_out(session.base + 32, 5) == (SUCCESS, bytes(5)), "a record has not been kept")
            write(session, 8, 0x2a2a2a2b, size=size)
            require(session.ask("cuStreamSynchronize", {"hStream": 1})[0] == SUCCESS, "write")
            require(state(session) == NOT_READY, "another value is enough")
            if written == "stream":
                write(session, 8, 0x2a2a2a2a2a2a2a2a, size=size)
            elif written == "copy":
                session.copy_in(session.base + 8, b"\x2a" * size)
            else:
                session.post("gpFill", {"stream": 1, "dst": session.base + 8, "pitch": 8, "element_size": 1, "value": 0x2a,
                                        "width": 8, "height": 1})
            require(session.ask("cuStreamSynchronize", {"hStream": 5})[0] == SUCCESS, "synchronise")
            require(session.copy_out(session.base + 32, 5) == (SUCCESS, b"last!"), "the deferred work has not been executed")
            require(over(session) == 1 and session.errors() == [], f"{over(session)} are over, errors: {session.errors()}")


@case("invalid waits and writes of a stream are refused, and the stream does not wait")
def _():
    with daemon.neighbour(), prepared() as session, prepared() as other:
        unit = session.granularity
        wrong = [{"address": address} for address in (0, 1, session.base + 2, session.base + unit, session.base + unit - 2,
                                                      other.base, other.base + 64, (1 << 64) - 4, 1 << 20)]
        wrong += [{"size": size} for size in (0, 1, 2, 16, 0xffffffff)]
        wrong += [{"address": session.base + 4, "size": 8}]
        for values in wrong:
            for call in ("gpStreamWait", "gpStreamWrite"):
                session.post(call, {"stream": 5, "address": session.base, "value": 0, "size": 4, **values})
                require(session.ask("gpFence")[0] == SUCCESS, "fence")
        for condition in (4, 1 << 30, 0xffffffff):
            wait_for(session, 0, 0, condition=condition)
            session.ask("gpFence")
        require([e[0] for e in session.errors()] == [INVALID_VALUE] * (2 * len(wrong) + 3), f"errors: {session.errors()}")
        require(over(session) == len(wrong) + 3, f"{over(session)} waits are over")
        wait_for(session, 0, 0, stream=77)
        write(session, 0, 0, stream=77)
        session.ask("gpFence")
        require({e[0] for e in session.errors()[-1:]} == {INVALID_HANDLE}, f"errors: {session.errors()}")
        require(other.copy_out(other.base, 64) == (SUCCESS, bytes(64)), "another session's memory was written")


@case("64 streams that wait for ever hold up no other stream of their session, and no neighbour")
def _():
    with daemon.neighbour(), prepared(64) as one, prepared(64) as gone, prepared() as session:
        for waiting in (one, gone):
            for i in range(64):
                wait_for(waiting, 4096 * (i % 8) + 8 * (i // 8), 1, stream=5 + i)
                waiting.copy_in(waiting.base + 65536, b"never", flags=0, stream=5 + i)
            waiting.post("cuStreamCreateWithPriority", {"phStream": 100, "flags": 1})
        for who, stream in ((one, 100), (gone, 100), (session, 5)):
            for _ in range(100):
                who.copy_in(who.base + 32768, b"at once", flags=0, stream=stream)
                require(who.copy_out(who.base + 32768, 7, stream=stream) == (SUCCESS, b"at once"), "copy")
        require(all(state(who, 5 + i) == NOT_READY for who in (one, gone) for i in range(64)), "a wait is over")
        # One goes away as it is, the other one is let go on, the last stream first.
        gone.close()
        for i in reversed(range(64)):
            write(one, 4096 * (i % 8) + 8 * (i // 8), 1, stream=100)
            require(one.ask("cuStreamSynchronize", {"hStream": 5 + i})[0] == SUCCESS, "synchronise")
            require(i == 0 or state(one, 4 + i) == NOT_READY, "another wait is over")
        require(one.copy_out(one.base + 65536, 5) == (SUCCESS, b"never"), "the deferred work has not been executed")
        require(over(one) == 64 and one.errors() == [], f"{over(one)} are over, errors: {one.errors()}")


@case("more streams wait than one scan of the memory covers")
def _():
    count = 700
    with daemon.neighbour(), prepared(count) as session:
        for i in range(count):
            wait_for(session, 1000 * i // 8 * 8, 3, stream=5 + i, size=8, condition=GEQ)
        for i in range(count):
            require(i % 100 or state(session, 5 + i) == NOT_READY, "a wait is over")
            write(session, 1000 * i // 8 * 8, 4, size=8)
        require(session.ask("gpFence")[0] == SUCCESS, "fence")
        require(over(session) == count and session.errors() == [], f"{over(session)} are over, errors: {session.errors()}")


@case("successive waits in a stream, some of them over before they start")
def _():
    with daemon.neighbour(), prepared() as session:
        for i in range(3000):
            wait_for(session, 0, i // 3, condition=GEQ)
            write(session, 4, i, stream=5)
        for value in range(0, 1000, 111):
            write(session, 0, value)
            wait_until(f"the waits for {value} are over",
                       lambda value=value: session.copy_out(session.base + 4, 4)[1] == struct.pack("<I", 3 * value + 2), 60)
        write(session, 0, 1000)
        require(session.ask("cuStreamSynchronize", {"hStream": 5})[0] == SUCCESS, "synchronise")
        require(over(session) == 3000 and session.errors() == [], f"{over(session)} are over, errors: {session.errors()}")


@case("memory that is freed after a wait for it stays until the wait is over")
def _():
    with daemon.neighbour(), prepared() as session:
        unit, offset = session.granularity, 8 * session.granularity
        require(session.map(offset, unit) == SUCCESS, "map")
        wait_for(session, offset + 64, 1)
        session.post("gpMemoryUnmap", {"address": session.base + offset, "size": unit})
        session.requests += 1
        session.send(record("gpMemoryMap", {"address": session.base + offset, "size": unit, "device": 0}, session.requests, 1))
        request = session.requests
        write(session, offset + 64, 1)
        require(session.reply("gpMemoryMap", request)[0] == SUCCESS, "map again")
        require(session.copy_out(session.base + offset + 64, 4) == (SUCCESS, bytes(4)), "the new memory is not new")
        require(over(session) == 1 and session.errors() == [], f"{over(session)} are over, errors: {session.errors()}")


@case("a client may send a bounded amount after a wait, and no copy on its data lanes")
def _():
    with daemon.neighbour():
        session = prepared()
        wait_for(session, 0, 1)
        try:
            for _ in range(40):
                session.copy_in(session.base, bytes(session.granularity), flags=0, stream=5)
        except Closed:
            pass
        daemon.expect_ended(session, "closed: it sent more than 64 MiB after")
        session = prepared()
        more = record("gpStreamWait", {"stream": 5, "address": session.base, "value": 1, "size": 4, "condition": EQ}, 0, 1)
        try:
            for _ in range(100):
                session.send(more * 4000)
        except Closed:
            pass
        daemon.expect_ended(session, "closed: it sent more than 64 MiB after")

        def on_lanes(session):
            session.post("cuStreamCreateWithPriority", {"phStream": 5, "flags": 1})
            wait_for(session, 0, 1)
            session.post("gpCopyInLanes", {"stream": 1, "dst": session.base, "size": 1 << 20, "copy": 1})
        daemon.violate(on_lanes, "closed: it sent a copy on its data lanes while")


@case("sessions that end while streams wait leave nothing")
def _():
    with daemon.neighbour():
        for end in ("close", "context", "stream", "waits met"):
            session = prepared(8)
            for i in range(50):
                wait_for(session, 8 * i, 1, stream=5 + i % 8)
                session.copy_in(session.base + 4096, bytes(10000), flags=0, stream=5 + i % 8)
            if end == "context":
                session.requests += 1
                session.send(record("gpFence", {}, session.requests))
                session.post("gpContextDestroy", {"context": 1})
            elif end == "stream":
                for i in range(8):
                    session.post("cuStreamDestroy_v2", {"hStream": 5 + i})
            elif end == "waits met":
                session.post("gpFill", {"stream": 1, "dst": session.base, "pitch": 400, "element_size": 1, "value": 1, "width": 400,
                                        "height": 1})
            session.close()
        daemon.settle()


if __name__ == "__main__":
    with Host() as daemon:
        status = main(daemon)
        daemon.check_unharmed()
    sys.exit(status)
