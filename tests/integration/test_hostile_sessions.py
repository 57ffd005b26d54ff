# SPDX-License-Identifier: Apache-2.0
"""Hostile sessions: cut at each message boundary, replayed, reordered, with credentials and handles of others, as
floods and very slowly; over tcp, the local socket and shared memory."""
import functools
import hashlib
import random
import re
import socket
import struct
import sys
import time

import attacked
import wire
from attacked import MIB, STALL_MS, SUCCESS, Attacked, expect_one_ending
from harness import SANITIZED, case, require
from wire import BULK, Closed, Conn, Session, field, hello, launch_values, message, preamble, record, saxpy

# All ways are one user's of this machine, whose sessions the log has 100 warnings for (log_budget.h).
ROUNDS = 12 if SANITIZED else 30


def end(session):
    """Half-closes its lane, and waits until the daemon has ended it."""
    try:
        session.lane.socket.shutdown(socket.SHUT_WR)
        session.lane.wait_closed()
    except OSError as error:
        require(not isinstance(error, TimeoutError), "the daemon keeps the connection open")
    session.close()


def make_records(session):
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


def each_way(function):
    """The case, for each way by which this test can speak itself, one after the other of one daemon."""
    @functools.wraps(function)
    def run():
        with Attacked() as target:
            for where in target.port, target.local, wire.Shm(target.local):
                function(target, where)
    return run


@case("the records that the cases use are valid")
@each_way
def _(target, where):
    session = Session(where)
    for data in make_records(session):
        session.lane.send(data)
    require(session.reply("gpFence", 6)[0] == SUCCESS and session.errors() == [], f"errors: {session.errors()}")
    end(session)
    expect_one_ending(target, session.id, "the client closed it")


@case("sessions that are cut off at every boundary")
@each_way
def _(target, where):
    with Session(where) as probe:
        whole = make_records(probe)
    ends = [sum(map(len, whole[:n])) for n in range(len(whole) + 1)]
    # Between the messages, inside of their heads and records, and in the bulk.
    cuts = {at + inside for at in ends for inside in (0, 1, 4, 7, 8, 9, 12, 16, 20, 24, 25, 31, 32, 40, 56, 71, 72, 73)} | {ends[-1] - 1}
    for cut in sorted(cut for cut in cuts if cut <= ends[-1]):
        session = Session(where)
        try:
            session.lane.send(b"".join(make_records(session))[:cut])
        except Closed:
            pass
        end(session)
        expect_one_ending(target, session.id, "the client closed it" if cut in ends else "the program exited without closing the session, or its connection was cut")
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
def _(target, where):
    sessions = []
    for cut in (4, 8, 12, 40, 60):
        session = Session(where)
        session.create_context()
        session.lane.send(make_records(session)[3][:cut])
        sessions.append(session)
    for session in sessions:
        session.lane.socket.settimeout(20)
        session.lane.wait_closed()
        expect_one_ending(target, session.id, "the peer stopped in the middle of a message")
        session.close()


def shuffled(chance, messages):
    """In any order, but that there is a context before memory and that before the kernel: one that reads
    what is not there ends all sessions (test_faults.py)."""
    order = list(range(len(messages)))
    chance.shuffle(order)
    places = sorted(order.index(number) for number in (0, 1, 5))
    for place, number in zip(places, (0, 1, 5)):
        order[place] = number
    return [messages[number] for number in order]


@case("valid records in any other order, and each of them many times")
@each_way
def _(target, where):
    chance = random.Random(9)
    for _ in range(ROUNDS):
        session = Session(where)
        messages = shuffled(chance, make_records(session))
        try:
            for data in messages + chance.choices(messages, k=6):
                session.lane.send(data)
        except Closed:
            pass
        end(session)
        expect_one_ending(target, session.id)


@case("a recorded session once more: its ticket is worth nothing, and its bytes are another session's")
@each_way
def _(target, where):
    session = Session(where)
    bytes_ = b"".join(make_records(session))
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
        replayed.lane.send(bytes_ if replayed.base == session.base else b"".join(make_records(replayed)))
        end(replayed)
        expect_one_ending(target, replayed.id)


@case("lanes with tickets of others, of ended sessions, or guessed")
@each_way
def _(target, where):
    first, second = Session(where, lanes=4), Session(where, lanes=4)
    first.create_context()
    second.create_context()
    with Session(where) as ended:
        ended.create_context()
    expect_one_ending(target, ended.id)
    chance = random.Random(10)
    said = r": a lane (?:\(\d+\) )?\S.*: closed$"
    before = len(re.findall(said, target.log(), re.M))
    guessed = bytes(a ^ b for a, b in zip(first.ticket, b"\1" + bytes(31)))
    refused = 0
    for number, ticket in ((0, ended.ticket), (1, ended.ticket), (0, guessed), (1, guessed), (1, bytes(32)), (1, chance.randbytes(32)),
                           (1, first.ticket[:16] + second.ticket[16:]), (0, first.ticket), (4, first.ticket), (0xffff, second.ticket)):
        with first.connect_lane(number, ticket) as conn:
            conn.wait_closed()
        refused += 1
    require(len(re.findall(said, target.log(), re.M)) >= before + refused, "not a line for each")
    # One of its own, twice; then the other session's chunk numbers on it.
    (own,), (again,) = wire.find_closed([second.connect_lane(1), second.connect_lane(1)])
    again.close()
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
def _(target, where):
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
def _(target, where):
    huge = (0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff)
    for name, (number, kinds, _) in wire.CALLS.items():
        places = [i for i, (kind, _) in enumerate(kinds) if kind in ("bytes", "string")]
        if not places:
            continue
        session = Session(where)
        session.create_context()
        # The length of its first text, without the text.
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
def _(target, where):
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


def drip(session, whole, slow, opening):
    """Sends 40 single bytes, then the rest. The longest pause between two bytes of the session, in seconds."""
    longest, last = 0, time.monotonic()
    try:
        for at in range(40):
            session.lane.send(whole[at:at + 1])
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
            for conn in slow:
                try:
                    conn.send(opening[at:at + 1])
                except Closed:
                    pass
            time.sleep(0.05)
        session.lane.send(whole[40:])
    except Closed:
        pass
    return max(longest, time.monotonic() - last)


@case("many connections that send a byte at a time, or nothing")
@each_way
def _(target, where):
    slow = [Conn(where) for _ in range(60)]
    # On a busy machine this end may not get to it in time.
    for _ in range(5):
        session = Session(where)
        session.create_context()
        if drip(session, make_records(session)[1], slow[:50], preamble() + message(hello())) < STALL_MS / 2000:
            break
        end(session)
    # A byte within the stall time is progress: this one lives, and its record is carried out.
    require(session.reply("gpMemoryMap", 2)[0] == SUCCESS, "a slow session was ended")
    end(session)
    for conn in slow:
        conn.close()


@case("a client that reads nothing of much that it asks for, on all its connections")
@each_way
def _(target, where):
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


if __name__ == "__main__":
    sys.exit(attacked.run())
