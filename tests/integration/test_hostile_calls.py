# SPDX-License-Identifier: Apache-2.0
"""Calls with invalid arguments, or that name objects that do not exist or belong to another session: they return an
error, or end their session."""
import hashlib
import random
import socket
import struct
import sys

import wire
from harness import case, main, require
from hostile import SUCCESS, Host, expect_closed
from wire import BULK, Closed, Session, launch_values, load, message, record, saxpy

# Errors that the wire promises.
INVALID_VALUE, INVALID_IMAGE, OUT_OF_MEMORY, INVALID_HANDLE = 1, 200, 2, 400

daemon = None


@case("names given twice end the session")
def _():
    with daemon.neighbour():
        daemon.violate(lambda s: s.create_context(1, 9), ".*(twice|in use|taken)")
        daemon.violate(lambda s: s.create_context(2, 1), ".*(twice|in use|taken)")
        daemon.violate(lambda s: [s.post("cuStreamCreateWithPriority", {"phStream": 5}) for _ in range(2)], ".*(twice|in use|taken)")
        daemon.violate(lambda s: [s.post("cuEventCreate", {"phEvent": 5}) for _ in range(2)], ".*(twice|in use|taken)")


@case("unknown names are errors of their calls, and zero is none")
def _():
    with daemon.neighbour(), Session(daemon.port) as session:
        session.create_context()
        for name in (0, 7, 0xffffffff, 0x00100001):
            for call, values in (("cuStreamQuery", {"hStream": name}), ("cuEventQuery", {"hEvent": name}),
                                 ("cuStreamSynchronize", {"hStream": name}), ("cuEventSynchronize", {"hEvent": name}),
                                 ("cuFuncGetAttribute", {"hfunc": name << 32}), ("gpContextSynchronize", {"context": name}),
                                 ("gpImageGlobal", {"context": 1, "image": name, "name": "x"})):
                result, _ = session.ask(call, values)
                require(result in (INVALID_HANDLE, 201), f"{call} of {name}: {result}")
        for call, values in (("cuStreamDestroy_v2", {"hStream": 77}), ("cuEventDestroy_v2", {"hEvent": 77}),
                             ("gpImageUnload", {"image": 77}), ("gpImageRetire", {"image": 77, "device": 0}),
                             ("gpImageAgain", {"context": 1, "image": 78, "like": 77}), ("gpLinkDrop", {"linker": 77}), ("gpContextDestroy", {"context": 77}),
                             ("cuStreamWaitEvent", {"hStream": 77, "hEvent": 77}),
                             ("gpLaunch", {"kernel": 77 << 32, "grid_x": 1, "grid_y": 1, "grid_z": 1, "block_x": 1,
                                           "block_y": 1, "block_z": 1, "stream": 1})):
            before = len(session.errors())
            session.post(call, values)
            require(session.ask("gpFence")[0] == SUCCESS, "fence")
            require(len(session.errors()) == before + 1 and session.errors()[-1][0] in (INVALID_HANDLE, 201),
                    f"{call} of 77: {session.errors()[before:]}")


@case("code is loaded again only as often as it was unloaded, and where it was")
def _():
    with daemon.neighbour(), Session(daemon.port) as session:
        session.create_context()
        image = saxpy()
        sha = hashlib.sha256(image).digest()

        def posts(call, values, error=None):
            before = len(session.errors())
            session.post(call, values)
            require(session.ask("gpFence")[0] == SUCCESS, "fence")
            found = [told[0] for told in session.errors()[before:]]
            require(found == ([error] if error else []), f"{call} {values}: {found}")

        def use(name, error=None):
            posts("gpImageUse", {"context": 1, "image": name, "sha256": sha}, error)

        require(load(session, 20, image)[0] == SUCCESS, "load")
        use(21, INVALID_VALUE)
        posts("gpImageAgain", {"context": 1, "image": 21, "like": 20})
        # On a device that there is not, it is unloaded and no more.
        posts("gpImageRetire", {"image": 21, "device": 99})
        posts("gpImageAgain", {"context": 1, "image": 22, "like": 21}, INVALID_HANDLE)
        use(21, INVALID_VALUE)
        posts("gpImageRetire", {"image": 20, "device": 0})
        posts("gpImageRetire", {"image": 20, "device": 0}, INVALID_HANDLE)
        use(23)
        use(24, INVALID_VALUE)
        session.post("gpLaunch", launch_values(kernel=23 << 32, params=bytes(24)))
        posts("gpImageRetire", {"image": 23, "device": 0})
        posts("gpImageForget", {})
        use(24, INVALID_VALUE)
        require(load(session, 24, image, bulk=False)[0] == SUCCESS, "an image that the daemon has is not loaded")


@case("the names and addresses of another session mean nothing")
def _():
    with daemon.neighbour(), Session(daemon.port) as first, Session(daemon.port) as second:
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
    with daemon.neighbour():
        for offset, from_end, size in ((-(1 << 30), 0, 1 << 21), (1 << 60, 0, 1 << 21), (0, 1, 1 << 21), (-(1 << 21), 1, 1 << 22)):
            daemon.violate(lambda s, offset=offset, from_end=from_end, size=size: s.map(offset + from_end * s.size, size),
                           ".*(window|outside|range)")
        with Session(daemon.port) as session:
            session.create_context()
            unit = session.granularity
            require(session.map(0, 2 * unit) == SUCCESS, "map")
            for offset, size in ((0, unit), (unit, unit), (0, 2 * unit), (3 * unit, 0), (3 * unit + 1, unit), (3 * unit, unit + 8)):
                try:
                    require(session.map(offset, size) == INVALID_VALUE, f"map of {size} at {offset}")
                except Closed:
                    require(False, f"map of {size} at {offset} ended the session")
            require(session.map(4 * unit, session.size - 4 * unit) == OUT_OF_MEMORY, "all of the window is memory")
            require(session.map(4 * unit, unit, device=99) != SUCCESS, "memory of device 99")
            for offset, size in ((unit, unit), (8 * unit, unit), (0, 4 * unit), (1, 5)):
                before = len(session.errors())
                session.post("gpMemoryUnmap", {"address": session.base + offset, "size": size})
                require(session.ask("gpFence")[0] == SUCCESS, "fence")
                require(len(session.errors()) == before + 1, f"unmap of {size} at {offset} was accepted")
            require(session.copy_out(session.base, 2 * unit)[0] == SUCCESS, "the memory is gone")


@case("physical memory that is none, foreign, or released while it is mapped")
def _():
    with daemon.neighbour():
        daemon.violate(lambda s: (s.ask("gpMemoryCreate", {"memory": 1 << 20 | 9, "size": s.granularity, "device": 0}),
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
    with daemon.neighbour():
        for heap in (0x1000, 1 << 62, 0):
            daemon.violate(lambda s, heap=heap: s.ask("gpContextCreate", {
                "context": 5, "legacy": 6, "heap": heap or s.base + s.size - (1 << 21), "heap_size": 1 << 22}), ".*outside its window")
        with Session(daemon.port) as session:
            require(session.create_context(device=99) != SUCCESS, "a context of device 99")
            require(session.create_context(heap_size=1 << 62) == OUT_OF_MEMORY, "a heap larger than the device")


def use_granted(session, **values):
    """The errors that mapping it brings."""
    before = len(session.errors())
    session.post("gpMemoryUse", {"address": session.base, "size": session.granted[0], "device": 0, **values})
    require(session.ask("gpFence")[0] == SUCCESS, "fence")
    return [result for result, _, _ in session.errors()[before:]]


@case("granted memory is mapped once, as it was granted, and nothing else is")
def _():
    with daemon.neighbour():
        with Session(daemon.port) as session:
            session.create_context()
            granted = session.granted[0]
            require(granted > 0 and granted % session.granularity == 0, f"granted {session.granted}")
            for wrong in ({"size": granted + session.granularity}, {"size": 0}, {"device": 99}):
                require(use_granted(session, **wrong) == [INVALID_VALUE], f"{wrong}")
            require(use_granted(session) == [], "as it was granted")
            require(session.copy_out(session.base, 4096) == (SUCCESS, bytes(4096)), "not zeroed")
            require(use_granted(session, address=session.base + granted) == [INVALID_VALUE], "twice")
            session.post("gpMemoryUnmap", {"address": session.base, "size": granted})
            require(session.ask("gpFence")[0] == SUCCESS, "fence")
            require(use_granted(session) == [INVALID_VALUE], "after it was given back")
        with Session(daemon.port) as session:
            # Where something is mapped already; then it is gone.
            require(session.create_context(heap_size=session.granularity) == SUCCESS, "context")
            require(use_granted(session) == [INVALID_VALUE], "over another mapping")
            require(use_granted(session, address=session.base + session.granted[0]) == [INVALID_VALUE], "once more")
        for address in (0x1000, 1 << 62):
            daemon.violate(lambda s, address=address: use_granted(s, address=address), ".*outside its window")


@case("credit is what was granted and no more, and counts for its session")
def _():
    with daemon.neighbour(), Session(daemon.port) as session:
        session.create_context()
        unit, own = session.granularity, session.granted[0]
        total = session.ask("gpMemoryInfo", {"device": 0})[1]["total"]

        def grant(forgo, least, wanted, device=0):
            result, fields = session.ask("gpMemoryGrant", {"device": device, "forgo": forgo, "least": least, "wanted": wanted})
            return result, fields["granted"] if result == SUCCESS else 0

        for values in ((own + 1, 0, 0), (1 << 63, 0, 0), (0, 2, 1), (0, 1 << 63, 1)):
            require(grant(*values) == (INVALID_VALUE, 0), f"{values}")
        require(grant(0, unit, unit, 99)[0] != SUCCESS, "of device 99")
        for least in (total, total // unit * unit * 2, 1 << 62, (1 << 64) - 1):
            require(grant(0, least, (1 << 64) - 1) == (SUCCESS, 0), f"least {least}")
        result, granted = grant(own, unit, (1 << 64) - 1)
        require(result == SUCCESS and unit <= granted <= total // 4, f"granted {granted} of {total}")
        require(use_granted(session, size=granted + unit) == [INVALID_VALUE], "more than there is")
        require(use_granted(session, size=2 * unit) == [], "a part")
        session.post("gpMemoryMake", {"memory": 1 << 20 | 1, "size": granted, "device": 0})
        require(session.ask("gpFence")[0] == SUCCESS and session.errors()[-1][0] == INVALID_VALUE, "too much physical memory")
        require(grant(granted - 2 * unit, 0, 0) == (SUCCESS, 0), "the rest is not given back")
        require(use_granted(session, address=session.base + 2 * unit, size=unit) == [INVALID_VALUE], "nothing is left")
        require(session.ask("gpMemoryInfo", {"device": 0})[1]["free"] <= total - 2 * unit, "mapped memory does not count")


@case("memory that is asked for ahead is refused as any other is, and at once")
def _():
    with daemon.neighbour():
        with Session(daemon.port) as session:
            session.create_context()
            unit = session.granularity
            total = session.ask("gpMemoryInfo", {"device": 0})[1]["total"]

            def ahead(address, size, device=0):
                return session.ask("gpMemoryTry", {"address": session.base + address, "size": size, "device": device})[0]
            require(ahead(0, unit) == SUCCESS and ahead(unit, 2 * unit) == SUCCESS, "ahead")
            for values in ((0, unit), (2 * unit, unit), (4 * unit, unit + 1), (4 * unit + 1, unit), (4 * unit, 0)):
                require(ahead(*values) == INVALID_VALUE, f"{values}")
            require(ahead(4 * unit, unit, 99) != SUCCESS, "of device 99")
            require(ahead(4 * unit, total // unit * unit) == OUT_OF_MEMORY, "more than there is")
            require(session.copy_out(session.base, 4096) == (SUCCESS, bytes(4096)), "not zeroed")
            session.post("gpMemoryUnmap", {"address": session.base, "size": unit})
            require(ahead(0, unit) == SUCCESS and not session.errors(), f"again: {session.errors()}")
        for address in (0x1000, 1 << 62):
            daemon.violate(lambda s, address=address: s.ask("gpMemoryTry", {
                "address": address, "size": s.granularity, "device": 0}), ".*outside its window")


@case("copies out of range are errors")
def _():
    with daemon.neighbour(), Session(daemon.port) as session:
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
                       {"dst": session.base + 1, "width": 4, "height": 1, "element_size": 4},
                       {"dst": session.base, "width": 2, "height": 2, "pitch": 9, "element_size": 4}, {"dst": 0, "width": 4, "height": 1}):
            before = len(session.errors())
            session.post("gpFill", {"stream": 1, "element_size": 1, **values})
            session.ask("gpFence")
            require(len(session.errors()) == before + 1, f"fill {values} was accepted")
        for stream in (0, 2, 0xffffffff):
            require(session.copy_out(session.base, 8, stream)[0] == INVALID_HANDLE, f"copy on stream {stream}")


@case("images with a wrong hash end the session, and garbage is an error")
def _():
    noise = random.Random(6).randbytes(5000)
    with daemon.neighbour():
        daemon.violate(lambda s: load(s, 9, noise, sha=b"\0" * 32), ".*(hash|SHA|sha)")
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
            daemon.violate(lambda s, sha=sha: load(s, 9, noise, sha=sha or b"y"), "it sent a malformed call")


@case("an image with offsets that the driver must not follow is refused, also by the linker, with a reason in the log")
def _():
    good, FATBINARY, OBJECT = saxpy(), 2, 3
    at = good.index(struct.pack("<HH", 1, 0x101))
    bad = good[:at + 20] + struct.pack("<I", 0) + good[at + 24:]
    begin = good.index(struct.pack("<I", 0xba55ed50))
    why = "an entry of a fatbin, PTX for sm_.* the option reference is outside of the header, at 0"
    with daemon.neighbour(), Session(daemon.port) as session:
        session.create_context()
        for _ in range(2):
            result, _ = load(session, 1, bad)
            require(result == INVALID_IMAGE, f"{result}")
        daemon.wait_for_log(f"session {session.id} .*an image is refused: {why}")
        require(load(session, 1, good)[0] == SUCCESS, "a valid image is refused")
        require(session.ask("gpLinkCreate", {"linker": 9})[0] == SUCCESS, "no linker")
        for kind, data in ((FATBINARY, bad[begin:]), (OBJECT, b"x" * 13 + bad[begin:]), (FATBINARY, b"\xb1\x43\x62\x46" + bytes(20))):
            result, _ = session.ask("gpLinkAdd", {"linker": 9, "type": kind}, data)
            require(result == INVALID_IMAGE, f"{kind}: {result}")
        daemon.wait_for_log(f"linking refused: {why}")
        daemon.wait_for_log("linking refused: missing fatbin header")


@case("launches with wrong parameters, shapes and attributes are errors")
def _():
    with daemon.neighbour(), Session(daemon.port) as session:
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
        # A window of memory for the cache is a hint: of memory that is not the session's it is none.
        for address, size in ((session.base, 64), (session.base, 1 << 40), (session.base - 4096, 4096), (0x1000, 64), (session.base, 0)):
            window = struct.pack("<IIQQfII", 1, 0, address, size, 1.0, 2, 1) + bytes(36)
            result, _ = session.ask("gpLaunchChecked", launch_values(params=good, attributes=window))
            require(result == SUCCESS, f"a launch with a window of {size} bytes at {address:#x}: {result}")
        for what in range(20):
            for args in ({"attrib": what}, {"attrib": -what - 1}, {"attrib": 1 << 30}):
                session.ask("cuFuncGetAttribute", {**args, "hfunc": 40 << 32})
                session.ask("cuFuncSetAttribute", {**args, "hfunc": 40 << 32, "value": -1})
                session.ask("gpFunctionAttributes", {"kernel": 40 << 32})
                session.post("gpFunctionAttribute",
                             {"attribute": args["attrib"], "kernel": 40 << 32, "value": -1})
            session.ask("gpContextSetLimit", {"context": 1, "limit": what - 3, "value": (1 << 64) - 1})
        session.ask("gpOccupancyCluster", {"what": 77, "kernel": 40 << 32, "attributes": b"x" * 1000})


@case("records of every call with random fields do not reach the worker's life")
def _():
    chance = random.Random(7)
    with daemon.neighbour():
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


def working(image):
    """A session with one object of each kind, and the value of each field in a valid call."""
    session = Session(daemon.port)
    session.lane.socket.settimeout(30)
    session.create_context()
    unit, base = session.granularity, session.base
    require(session.map(0, 2 * unit) == SUCCESS, "map")
    session.post("cuStreamCreateWithPriority", {"phStream": 5})
    session.post("cuEventCreate", {"phEvent": 7})
    session.post("cuEventRecordWithFlags", {"hEvent": 7, "hStream": 5})
    require(load(session, 40, image)[0] == SUCCESS, "load")
    array = {"array": 60, "device": 0, "width": 64, "height": 4, "depth": 0, "format": 0x20, "channels": 1, "flags": 2, "levels": 1}
    require(session.ask("gpArrayCreate", array)[0] == SUCCESS, "array")
    require(session.ask("gpArrayCreate", {**array, "array": 63, "flags": 0x40, "levels": 0})[0] == SUCCESS, "sparse array")
    require(session.ask("gpTilePoolCreate", {"memory": 11, "size": unit, "device": 0})[0] == SUCCESS, "tiles")
    for memory in (9, 10):
        require(session.ask("gpMemoryCreate", {"memory": memory, "size": unit, "device": 0})[0] == SUCCESS, "memory")
    good = {"context": 1, "stream": 5, "hStream": 5, "phStream": 6, "hEvent": 7, "phEvent": 8, "hStart": 7, "hEnd": 7, "hfunc": 40 << 32,
            "kernel": 40 << 32, "func": 40 << 32, "image": 40, "memory": 9, "texture": 61, "surface": 62, "type": 0, "function": 3,
            "dst": base, "src": base + unit, "address": base + 8 * unit, "size": unit, "width": 64, "height": 1, "depth": 1,
            "pitch": 64, "dst_pitch": 64, "src_pitch": 64, "dst_slice": 64, "src_slice": 64, "element_size": 1,
            "format": 0x20, "channels": 1, "array": 60, "src_array": 0, "dst_array": 60, "limit": 1, "attrib": 8, "blockSize": 32,
            "numBlocks": 1, "legacy": 9, "params": struct.pack("<ifQQ", 1, 2.0, base, base + 64),
            "tiles": struct.pack("<12I3Q", 63, 11, 0, 0, 0, 0, 0, 0, 64, 4, 1, 0, 0, 0, 0),
            **{f"{what}_{axis}": 1 for what in ("grid", "block") for axis in "xyz"}}
    return session, good


# Invalid and large values of a field; kernel parameters would be used as addresses.
SENSELESS = {
    "u32": (0, 1, 2, 3, 4, 16, 77, 1 << 16, 1 << 31, (1 << 32) - 1),
    "i32": (*range(-20, 21), 1 << 16, 1 << 30, (1 << 31) - 1, -(1 << 31)),
    "u64": (0, 1, 2, 3, 77, 1 << 20, 1 << 32, 1 << 40, 1 << 63, (1 << 64) - 64, (1 << 64) - 1),
    "f32": (0.0,),
    "bytes": (b"", b"x", b"\0" * 72, b"\xff" * 72, bytes(range(256)) * 9),
    "string": (b"", b"\xff" * 300),
}
# Lanes, functions and words would be waited for (test_lanes.py, test_hostile_callbacks.py, test_memory_words.py), and images have cases of their own.
ELSEWHERE = ("gpCopyInLanes", "gpCopyOutLanes", "gpHostFunction", "gpHostFunctionDone", "gpStreamWait", "gpImageLoad")


def send_call(session, name, values, bulk):
    """Whether the session is open after the call, which may fail."""
    try:
        if name in wire.WAITS:
            session.ask(name, values, bulk)
        else:
            session.post(name, values, bulk)
        session.ask("gpFence")
        return True
    except Closed:
        session.close()
        return False


@case("each field of each call is invalid in turn, in a session with one object of each kind")
def _():
    image, said = saxpy(), 0
    with daemon.neighbour():
        for name, (_, kinds, _) in wire.CALLS.items():
            session = None
            for kind, key in kinds:
                for value in SENSELESS[kind]:
                    if name in ELSEWHERE or (key == "params" and len(value) > 1):
                        continue
                    if not session:
                        session, good = working(image)
                    bulk = b"b" * 64 if name in ("gpCopyIn", "gpArrayCopyIn") else None
                    said += 1
                    if not send_call(session, name, {**{field: good[field] for _, field in kinds if field in good}, key: value}, bulk):
                        session = None
            if session:
                session.close()
        require(said > 1000, f"only {said} records")
    daemon.check_unharmed()


@case("mutations of valid traffic do not reach the worker's life")
def _():
    chance, image = random.Random(8), saxpy()
    with daemon.neighbour():
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
    daemon.check_unharmed(ended=60)


if __name__ == "__main__":
    with Host() as daemon:
        status = main(daemon)
    sys.exit(status)
