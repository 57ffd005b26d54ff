# SPDX-License-Identifier: Apache-2.0
"""Graphs with conditional nodes from hostile clients: handles of others, nested bodies, destroyed roots. Each is
rejected and affects its own session only."""
import struct
import sys

from harness import case, main, require
from hostile import SUCCESS, Host
from wire import CALLS, Session, encode_fields, launch_values, load, saxpy

# Errors that the wire promises.
INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONTEXT, INVALID_HANDLE, NOT_SUPPORTED = 1, 2, 201, 400, 801
IF, WHILE, SWITCH = range(3)

daemon = None


def node(call, fields=b"", after=()):
    links = struct.pack(f"<{len(after)}I", *after)
    return struct.pack("<4I", call, len(after), len(fields), 0) + links + bytes(-len(links) % 8) + fields


def fill(address, value, width=16):
    return node(CALLS["gpFill"][0], struct.pack("<IIQQIIQQ", 0, 0, address, width, 1, value, width, 1))


def condition(handle, kind, bodies, count=None, root=3):
    return node(1, struct.pack("<QIIII", handle, kind, len(bodies) if count is None else count, root, 0)
                + b"".join(struct.pack("<Q", len(body)) + body for body in bodies))


def launch(session, **changed):
    """The fields of a launch of saxpy: one cell becomes 2 x 3 + itself."""
    params = struct.pack("<ifQQ", 1, 2.0, session.base, session.base + 64)
    return encode_fields(CALLS["gpLaunch"][1], launch_values(**{"params": params, "stream": 0, **changed}))


def prepared():
    session = Session(daemon.port)
    session.create_context()
    require(session.map(0, session.granularity) == SUCCESS, "map")
    session.post("gpGraphRoot", {"context": 1, "root": 3})
    return session


def create_handle(session, value=1, flags=1, root=3):
    result, reply = session.ask("gpGraphHandle", {"root": root, "value": value, "flags": flags})
    return reply["handle"] if result == SUCCESS else -result


def make(session, plan, name=9):
    return session.ask("gpGraphMake", {"context": 1, "plan": name}, plan)[0]


@case("a graph with conditions follows the values of its handles, after each change")
def _():
    with daemon.neighbour(), prepared() as session:
        yes, no, which = create_handle(session, 1), create_handle(session, 0), create_handle(session, 2)
        at = session.base

        def plan(value):
            return (condition(yes, IF, [fill(at, value), fill(at + 16, value)])
                    + condition(no, IF, [fill(at + 32, value), condition(which, SWITCH, [b"", b"", fill(at + 48, value)])])
                    + node(0, after=(0, 1)))

        require(make(session, plan(1)) == SUCCESS, "make")
        for value in range(1, 20):
            if value > 1:
                session.post("gpGraphRemake", {"plan": 9}, plan(value))
            session.post("gpGraphLaunch", {"plan": 9, "stream": 1})
            wanted = bytes([value] * 16 + [0] * 32 + [value] * 16)
            require(session.copy_out(at, 64) == (SUCCESS, wanted), f"launch {value}")
        # A second graph of the same root: not beside the first one, which stays as it is, but in its place.
        another = plan(77)
        require(make(session, another, 10) == NOT_SUPPORTED, "make another one")
        session.post("gpGraphLaunch", {"plan": 9, "stream": 1})
        require(session.copy_out(at, 1) == (SUCCESS, bytes([19])), "launch of the first one")
        for _ in range(20):
            session.post("gpGraphLaunch", {"plan": 9, "stream": 1})
            session.post("gpGraphDrop", {"plan": 9})
            result = make(session, another, 10)
            require(result == SUCCESS, f"make in the place of one that may still run: {result}")
            session.post("gpGraphLaunch", {"plan": 10, "stream": 1})
            require(session.copy_out(at, 1) == (SUCCESS, bytes([77])), "launch of the one in its place")
            session.post("gpGraphDrop", {"plan": 10})
            result = make(session, plan(19))
            require(result == SUCCESS, f"make the first one again: {result}")
        # Handles without a node: a driver may accept or refuse them, and the session continues.
        session.post("gpGraphDrop", {"plan": 9})
        result = make(session, condition(yes, IF, [fill(at, 78)]), 10)
        require(result in (SUCCESS, INVALID_VALUE, NOT_SUPPORTED), f"make with a part of the handles: {result}")
        if result == SUCCESS:
            session.post("gpGraphLaunch", {"plan": 10, "stream": 1})
            require(session.copy_out(at, 1) == (SUCCESS, bytes([78])), "launch of the one with a part of the handles")
            session.post("gpGraphDrop", {"plan": 10})
        result = make(session, plan(20))
        require(result == SUCCESS, f"make with all handles again: {result}")
        require(session.errors() == [], f"errors: {session.errors()}")


@case("handles of others, of no node and of a root that is gone are refused")
def _():
    with daemon.neighbour(), prepared() as session, prepared() as other:
        mine, yours = create_handle(session), create_handle(other)
        # The driver counts: one of them may be 1.
        for handle in {0, 1, mine + 1, mine << 32, (1 << 64) - 1, yours} - {mine}:
            require(make(session, condition(handle, WHILE, [b""])) == INVALID_VALUE, f"handle {handle:#x}")
        session.post("gpGraphRoot", {"context": 1, "root": 4})
        second = create_handle(session, root=4)
        both = condition(mine, IF, [condition(second, IF, [b""], root=4)])
        require(make(session, both) == INVALID_VALUE, "handles of two roots in one graph")
        require(make(session, condition(mine, IF, [b""], root=5)) == INVALID_VALUE, "a root that there is not")
        twice = condition(mine, IF, [condition(mine, IF, [b""])])
        require(make(session, twice) == INVALID_VALUE, "two nodes with one handle")
        require(make(session, condition(mine, IF, [fill(other.base, 1)])) == INVALID_VALUE, "another's memory")
        require(make(session, condition(mine, IF, [fill(session.base, 1)])) == SUCCESS, "make")
        session.post("gpGraphRootDrop", {"root": 3})
        session.post("gpGraphRootDrop", {"root": 3})
        require(create_handle(session) == -INVALID_HANDLE, "a handle of a root that is gone")
        result = make(session, condition(mine, IF, [b""]), 10)
        require(result == INVALID_VALUE, f"a node of a root that is gone: {result}")
        # The driver may count handles for each graph: the same number of another root is that one's.
        require(make(session, condition(second, IF, [fill(session.base, 2)], root=4), 10) == SUCCESS, "a node of another root")
        session.post("gpGraphLaunch", {"plan": 10, "stream": 1})
        require(session.copy_out(session.base, 1) == (SUCCESS, b"\2"), "launch of another root")
        for name, values, error in (("gpGraphRoot", {"context": 77, "root": 8}, INVALID_CONTEXT),
                                    ("gpGraphRootDrop", {"root": 8}, INVALID_HANDLE)):
            session.post(name, values)
            session.ask("gpFence")
            require(session.errors()[-1][0] == error, f"errors: {session.errors()}")
        require(create_handle(session, flags=2, root=4) == -INVALID_VALUE, "unknown flags")
        require(make(other, condition(yours, IF, [fill(other.base, 5)])) == SUCCESS, "make in another session")
        other.post("gpGraphLaunch", {"plan": 9, "stream": 1})
        require(other.copy_out(other.base, 1) == (SUCCESS, b"\5") and other.errors() == [], "another session is harmed")


@case("bodies that are malformed, too deep, too many or of no type are refused")
def _():
    with daemon.neighbour(), prepared() as session:
        handle = create_handle(session)
        deep = fill(session.base, 1)
        for _ in range(40):
            deep = condition(handle, IF, [deep])
        fine = fill(session.base, 1)
        for plan in (deep, condition(handle, IF, [fine], 2), condition(handle, IF, [fine, fine, fine]), condition(handle, WHILE, []),
                     condition(handle, 7, [fine]), condition(handle, SWITCH, []), condition(handle, IF, [fine[:-8]]),
                     condition(handle, IF, [b""], 0xffffffff), node(1), node(1, bytes(8)), node(1, bytes(16)), node(1, bytes(24)),
                     node(1, struct.pack("<QIIII", handle, IF, 0, 3, 1)),
                     condition(handle, IF, [node(CALLS["gpCopyIn"][0], bytes(48))])):
            require(make(session, plan) == INVALID_VALUE, f"{plan[:64]} of {len(plan)} bytes")
        # They count as nodes do: the session may have memory for them, or not.
        result = make(session, condition(handle, SWITCH, [b""] * 500000), 10)
        require(result in (SUCCESS, OUT_OF_MEMORY), f"half a million bodies: {result}")
        if result == SUCCESS:
            session.post("gpGraphDrop", {"plan": 10})
        require(make(session, condition(handle, IF, [fine])) == SUCCESS, "make")
        require(session.errors() == [], f"errors: {session.errors()}")


@case("a graph that is created without a reply is refused later and at each launch, and a name is used once")
def _():
    with daemon.neighbour(), prepared() as session, prepared() as other:
        plans = (fill(other.base, 1), fill(session.base, 1)[:-8], node(0, after=(0,)), condition(77, IF, [b""]))
        for name, plan in enumerate(plans, 10):
            session.post("gpGraphPut", {"context": 1, "plan": name}, plan)
            session.ask("gpFence")
            for _ in range(2):
                session.post("gpGraphLaunch", {"plan": name, "stream": 1})
                session.ask("gpFence")
            found = session.errors()[-3:]
            require(len(found) == 3 and {error[0] for error in found} == {INVALID_VALUE}, f"{plan[:64]}: {found}")
            session.post("gpGraphRemake", {"plan": name}, fill(session.base, name))
            session.post("gpGraphLaunch", {"plan": name, "stream": 1})
            require(session.copy_out(session.base, 1) == (SUCCESS, bytes([name])), f"launch of {name} given something else")
            session.post("gpGraphDrop", {"plan": name})
        before = len(session.errors())
        session.post("gpGraphPut", {"context": 77, "plan": 9}, fill(session.base, 1))
        session.post("gpGraphPut", {"context": 1, "plan": 9}, fill(session.base, 2))
        session.post("gpGraphLaunch", {"plan": 9, "stream": 1})
        require(session.copy_out(session.base, 1) == (SUCCESS, b"\2"), "launch of a graph without a reply")
        require([error[0] for error in session.errors()[before:]] == [INVALID_CONTEXT], f"{session.errors()}")
        session.post("gpGraphPut", {"context": 1, "plan": 9}, fill(session.base, 3))
        daemon.expect_ended(session, ".*gives the name.*")


@case("a device-launchable graph refuses unsupported nodes, and changes and launches of another session")
def _():
    with daemon.neighbour(), prepared() as session, prepared() as other:
        at = session.base

        def launchable(plan, name=9, where=session):
            result, reply = where.ask("gpGraphMakeLaunchable", {"context": 1, "plan": name}, plan)
            return reply["exec"] if result == SUCCESS else -result

        require(launchable(fill(at, 1)) > 0, "make")
        require(launchable(fill(at, 1), 10) > 0, "make another one")
        handle = create_handle(session)
        for plan, error in ((b"", INVALID_VALUE), (fill(other.base, 1), INVALID_VALUE), (bytes(15), INVALID_VALUE),
                            (condition(handle, IF, [fill(at, 1)]), 801), (node(0), INVALID_VALUE)):
            require(launchable(plan, 11) == -error, f"{plan[:32]}: {launchable(plan, 11)}")
        # One node more, and another's memory: neither, and what was there is no more.
        for plan in (fill(at, 2) + fill(at, 3), fill(other.base, 2)):
            session.post("gpGraphRemake", {"plan": 9}, plan)
            for call in ("gpGraphUpload", "gpGraphLaunch"):
                session.post(call, {"plan": 9, "stream": 1})
            session.ask("gpFence")
            require([error for error, *_ in session.errors()][-1] == INVALID_VALUE, f"errors: {session.errors()}")
        session.post("gpGraphRemake", {"plan": 9}, fill(at, 4))
        session.post("gpGraphUpload", {"plan": 9, "stream": 1})
        session.post("gpGraphLaunch", {"plan": 9, "stream": 1})
        require(session.copy_out(at, 1) == (SUCCESS, b"\4"), "the last change")
        for values in ({"plan": 77, "stream": 1}, {"plan": 9, "stream": 77}):
            session.post("gpGraphUpload", values)
        other.post("gpGraphUpload", {"plan": 9, "stream": 1})
        for one in (session, other):
            one.ask("gpFence")
            require(one.errors()[-1][0] == INVALID_HANDLE, f"errors: {one.errors()}")


@case("nodes that kernels change are of one root and in one executable, once each")
def _():
    with daemon.neighbour(), prepared() as session, prepared() as other:
        for one in (session, other):
            require(load(one, 40, saxpy())[0] == SUCCESS, "load")
            one.copy_in(one.base, struct.pack("<f", 3.0))
        kernel = CALLS["gpLaunch"][0]

        def opened(plan, where=session, root=3):
            result, reply = where.ask("gpGraphNode", {"root": root}, plan)
            return reply["node"] if result == SUCCESS else -result

        def updatable(name, fields, after=(), root=3):
            return node(2, struct.pack("<QII", name, root, 0) + fields, after)

        fields = launch(session)
        for plan, error in ((b"", INVALID_VALUE), (node(kernel, fields[:-8]), INVALID_VALUE), (fill(session.base, 1), INVALID_VALUE),
                            (node(0), INVALID_VALUE), (node(kernel, fields) * 2, INVALID_VALUE), (bytes(8), INVALID_VALUE),
                            (node(kernel, launch(session, kernel=77 << 32)), INVALID_HANDLE),
                            (node(kernel, launch(session, params=b"")), INVALID_VALUE), (updatable(1, fields), INVALID_VALUE)):
            require(opened(plan) == -error, f"{plan[:32]}: {opened(plan)}")
        require(opened(node(kernel, fields), root=99) == -INVALID_HANDLE, "no root")
        first, second = opened(node(kernel, fields)), opened(node(kernel, fields))
        require(first > 0 and second > 0 and first != second, f"{first}, {second}")
        yours = opened(node(kernel, launch(other)), other)
        good = updatable(second, fields) + updatable(first, fields, (0,))
        for plan, error in ((updatable(first, fields), 801), (good + updatable(first, fields), INVALID_VALUE),
                            (updatable(yours, fields), INVALID_VALUE), (updatable(first, b""), INVALID_VALUE), (node(2), INVALID_VALUE),
                            (updatable(first, fields, root=4), INVALID_VALUE), (good + updatable(second, fields, root=4), INVALID_VALUE),
                            (good + updatable(yours, fields), INVALID_VALUE), (updatable(first + 1, fields), INVALID_VALUE)):
            require(make(session, plan) == error, f"{len(plan)} bytes: {make(session, plan)}")
        result, _ = session.ask("gpGraphMakeLaunchable", {"context": 1, "plan": 9}, good)
        require(result == 801, f"launchable: {result}")
        result = make(session, good)
        require(result == SUCCESS, f"make: {result}")
        require(make(session, good, 10) == 801, "two executables")
        session.post("gpGraphUpload", {"plan": 9, "stream": 1})
        session.copy_in(session.base + 64, struct.pack("<f", 1.0))
        session.post("gpGraphLaunch", {"plan": 9, "stream": 1})
        require(session.copy_out(session.base + 64, 4) == (SUCCESS, struct.pack("<f", 13.0)), "two kernels")
        # Made anew as often as it is changed, and by another name when that one is gone.
        for _ in range(20):
            session.post("gpGraphRemake", {"plan": 9}, updatable(first, fields) + updatable(second, fields, (0,)))
            session.post("gpGraphLaunch", {"plan": 9, "stream": 1})
        require(session.copy_out(session.base + 64, 4) == (SUCCESS, struct.pack("<f", 253.0)), "remade")
        session.post("gpGraphDrop", {"plan": 9})
        require(make(session, good, 10) == SUCCESS, "make again")
        # The root first, then what was made there.
        session.post("gpGraphRootDrop", {"root": 3})
        session.post("gpGraphLaunch", {"plan": 10, "stream": 1})
        session.post("gpGraphDrop", {"plan": 10})
        session.ask("gpFence")
        require(make(session, good, 11) == INVALID_VALUE, "a root that is gone")
        session.post("gpGraphRoot", {"context": 1, "root": 4})
        inside = updatable(opened(node(kernel, fields), root=4), fields, root=4)
        handle = create_handle(session, root=4)
        for plan in (condition(handle, IF, [inside], root=4), inside):
            require(make(session, plan, 12) == INVALID_VALUE, "in a body, and beside a handle of no node")
        require(make(other, updatable(yours, launch(other))) == SUCCESS and other.errors() == [], "another session is harmed")


@case("roots and handles count for their session and go with it")
def _():
    with daemon.neighbour():
        session = prepared()
        require(len({create_handle(session) for _ in range(500)}) == 500, "handles are not different ones")
        for root in range(10, 60):
            session.post("gpGraphRoot", {"context": 1, "root": root})
        session.ask("gpFence")
        session.close()
        daemon.settle()
        with prepared() as after:
            require(create_handle(after) > 0, "no handle after the end of another session")


if __name__ == "__main__":
    with Host() as daemon:
        status = main(daemon)
        daemon.check_unharmed()
    sys.exit(status)
