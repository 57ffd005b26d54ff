# SPDX-License-Identifier: Apache-2.0
"""Host functions of clients that reply wrongly or never: the calls that wait for them keep their order, are limited in
number, and are dropped with their session."""
import struct
import sys

import wire
from harness import case, main, require
from hostile import SUCCESS, Host
from wire import Closed, Session, flat_text, header, launch_values, load, message, record

# Errors that the wire promises.
INVALID_HANDLE, NOT_READY = 400, 600

daemon = None


def with_function(session, function=9, stream=5):
    """A host function of this name whose turn has come, in a non-blocking stream of its own."""
    session.create_context()
    require(session.map(0, session.granularity) == SUCCESS, "map")
    session.post("cuStreamCreateWithPriority", {"phStream": stream, "flags": 1})
    session.post("gpHostFunction", {"stream": stream, "function": function})
    require(session.wait_turn() == (function, SUCCESS), "the function has no turn")


@case("records after a host function are queued, in order, and other records pass them")
def _():
    with daemon.neighbour(), Session(daemon.port) as session:
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
        require(session.copy_out(session.base, 5) == (SUCCESS, b"last!"), "the queued records have not been executed")
        require(session.ask("cuEventQuery", {"hEvent": 3})[0] == SUCCESS, "the event is not done")
        session.post("gpHostFunctionDone", {"function": 10})
        require(session.ask("cuStreamSynchronize", {"hStream": 5})[0] == SUCCESS, "the new stream is none")
        require(session.errors() == [], f"errors: {session.errors()}")


@case("memory that is freed after a host function stays in use until the function is done")
def _():
    with daemon.neighbour(), Session(daemon.port) as session:
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
    with daemon.neighbour(), Session(daemon.port) as session, Session(daemon.port) as other:
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

    with daemon.neighbour():
        for name, reason in ((9, ".*in use"), (0, ".*none")):
            def send(session, name=name):
                session.post("cuStreamCreateWithPriority", {"phStream": 5, "flags": 1})
                again(session, name)
            daemon.violate(send, reason)


@case("a client that never answers may send a limited number of bytes after a host function")
def _():
    with daemon.neighbour():
        session = Session(daemon.port)
        with_function(session)
        try:
            for _ in range(40):
                session.copy_in(session.base, bytes(session.granularity), flags=0, stream=5)
        except Closed:
            pass
        daemon.expect_ended(session, "closed: it sent more than 64 MiB after a host function")
        session = Session(daemon.port)
        with_function(session)
        event = record("cuEventRecordWithFlags", {"hEvent": 3, "hStream": 5}, 0, 1)
        session.post("cuEventCreate", {"phEvent": 3})
        try:
            for _ in range(100):
                session.send(event * 4000)
        except Closed:
            pass
        daemon.expect_ended(session, "closed: it sent more than 64 MiB after a host function")


@case("sessions that end while records wait for a host function leave nothing")
def _():
    with daemon.neighbour():
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
                daemon.expect_ended(session, "it sent a malformed call")
            elif end == "violation":
                session.post("cuStreamDestroy_v2", {"hStream": 5})
                session.post("cuStreamCreateWithPriority", {"phStream": 1})
                daemon.expect_ended(session, ".*in use")
            session.close()
        daemon.settle()


# A kernel that ends when the word is not 0, or after "limit" nanoseconds.
AWAIT = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry await(.param .u64 word, .param .u64 limit)
{
 .reg .b64 %at, %end, %now;
 .reg .b32 %value;
 .reg .pred %more;
 ld.param.u64 %at, [word];
 ld.param.u64 %end, [limit];
 mov.u64 %now, %globaltimer;
 add.u64 %end, %end, %now;
again:
 ld.volatile.global.u32 %value, [%at];
 setp.ne.u32 %more, %value, 0;
 @%more bra done;
 mov.u64 %now, %globaltimer;
 setp.lt.u64 %more, %now, %end;
 @%more bra again;
done:
 ret;
}
"""
MIB = 1 << 20


def with_full_stream(session, limit_s):
    """Such a kernel in stream 5, of the word at the window's start, and more work after it than a stream takes: the daemon
    keeps the stream's records until the kernel ends.  Stream 6 is free.  Returns the data lane."""
    lane = session.connect_lane(1)
    session.create_context()
    require(session.map(0, 2 * session.granularity) == SUCCESS, "map")
    for stream in (5, 6):
        session.post("cuStreamCreateWithPriority", {"phStream": stream, "flags": 1})
    require(load(session, 40, flat_text(AWAIT))[0] == SUCCESS, "load")
    session.post("gpLaunch", launch_values(stream=5, params=struct.pack("<QQ", session.base, int(limit_s * 1e9))))
    session.send(record("gpFill", {"stream": 5, "dst": session.base + 64, "pitch": 4, "element_size": 4, "width": 1, "height": 1}, 0, 1) * 900)
    return lane


@case("a copy on the data lanes that a full stream keeps has its bytes, and those that replace them")
def _():
    with daemon.neighbour(), Session(daemon.port, lanes=2) as session:
        lane, to = with_full_stream(session, 60), session.base + session.granularity
        session.post("gpCopyInLanes", {"stream": 5, "dst": to, "size": MIB, "flags": 4 | 7 << 8, "copy": 1})
        lane.send(message(struct.pack("<IIQ", 1, 0, 0), b"a" * MIB))
        short = {"stream": 5, "pitch": 8, "width": 8, "height": 1, "flags": 4 | 8 << 8, "data": b"b" * 8}
        session.post("gpCopyInShort", short | {"dst": session.base + 128})
        for number, offset, data in ((7, 10, b"new"), (8, 0, b"NEW"), (7, MIB - 1, b"beyond"), (8, 6, b"beyond"), (8, 1 << 63, b"x"), (9, 0, b"none")):
            session.post("gpCopyReplace", {"copy": number, "offset": offset, "data": data})
        session.copy_in(session.base, struct.pack("<I", 1), flags=0, stream=6)
        require(session.copy_out(to, MIB, 5) == (SUCCESS, b"a" * 10 + b"new" + b"a" * (MIB - 13)), "other bytes came on the lane")
        require(session.copy_out(session.base + 128, 8, 5) == (SUCCESS, b"NEWbbbbb"), "other bytes came in the record")
        require(session.errors() == [], f"errors: {session.errors()}")
        lane.close()


@case("copies on the data lanes that a full stream may not keep end the session")
def _():
    with daemon.neighbour():
        for size, flags in ((0, 0), (1 << 47, 0), ((1 << 64) - 1, 0), (MIB, 5), (MIB, 8)):
            session = Session(daemon.port, lanes=2)
            lane = with_full_stream(session, 0.5)
            session.post("gpCopyInLanes", {"stream": 5, "dst": session.base, "size": size, "flags": flags, "copy": 1})
            daemon.expect_ended(session, f"copy of {size} bytes with flags {flags:#x} on its data lanes" if flags else f"copy of {size} bytes")
            lane.close()
        # More than is kept, whose chunks never come.
        with Session(daemon.port, lanes=2) as session, with_full_stream(session, 0.5):
            session.post("gpCopyInLanes", {"stream": 5, "dst": session.base, "size": 1 << 46, "copy": 1})


if __name__ == "__main__":
    with Host() as daemon:
        status = main(daemon)
        daemon.check_unharmed()
    sys.exit(status)
