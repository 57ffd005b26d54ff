# SPDX-License-Identifier: Apache-2.0
"""Arrays, textures and surfaces of a hostile client: it gets errors for its own calls, and affects neither the worker
nor another session."""
import random
import sys

from harness import Configured, case, main, require, wait_until
from wire import Closed, Session, flat_text, load

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INVALID_DEVICE, INVALID_HANDLE, NOT_FOUND, NOT_SUPPORTED = 0, 1, 2, 101, 400, 500, 801
FLOAT, UINT8 = 0x20, 0x01
SURFACE, LAYERED, CUBE = 2, 1, 4
MIB = 1 << 20
HUGE = (1 << 64) - 1
FIRST, SECOND, OBJECT = 1 << 20 | 1, 1 << 20 | 2, 1 << 20 | 3

daemon = None


class Client(Session):
    def __init__(self):
        super().__init__(daemon.port)
        self.create_context()

    def create(self, name=FIRST, width=64, height=32, depth=0, **more):
        values = {"array": name, "width": width, "height": height, "depth": depth, "format": FLOAT, "channels": 1}
        return self.ask("gpArrayCreate", values | more)[0]

    def fails(self, call, values, bulk=None):
        """The result of a posted call, by its note."""
        before = len(self.errors())
        self.post(call, values, bulk)
        require(self.ask("gpFence")[0] == SUCCESS, "fence")
        found = self.errors()[before:]
        return found[0][0] if found else SUCCESS

    def box(self, name=FIRST, x=0, y=0, z=0, width=4, height=1, depth=1, **more):
        return {"stream": 1, "array": name, "x": x, "y": y, "z": z, "width": width, "height": height,
                "depth": depth} | more

    def read(self, **box):
        """The result and the bytes."""
        before = len(self.notes)
        result, _ = self.ask("gpArrayCopyOut", self.box(**box))
        return result, b"".join(bulk for _, _, _, bulk in self.notes[before:])

    def free(self):
        return self.ask("gpMemoryInfo", {"device": 0})[1]["free"]


@case("arrays that there cannot be are refused")
def _():
    with Client() as client:
        before = client.free()
        for wanted, values in (
                (INVALID_VALUE, {"width": 0}), (INVALID_VALUE, {"width": HUGE}), (INVALID_VALUE, {"height": HUGE}),
                (INVALID_VALUE, {"depth": HUGE}), (INVALID_VALUE, {"width": 1 << 32, "height": 1 << 32}),
                (OUT_OF_MEMORY, {"width": 1 << 18, "height": 1 << 20, "depth": 1 << 16}), (INVALID_VALUE, {"width": 1 << 20}),
                (INVALID_VALUE, {"width": 1 << 18, "height": 0}), (INVALID_VALUE, {"width": 8, "height": 8, "depth": 1 << 16}),
                (INVALID_VALUE, {"format": 0}), (INVALID_VALUE, {"format": 0xffffffff}),
                (INVALID_VALUE, {"channels": 0}), (INVALID_VALUE, {"channels": 3}), (INVALID_VALUE, {"channels": 0xffffffff}),
                (INVALID_VALUE, {"flags": 0x80000000}), (INVALID_VALUE, {"flags": 0x40, "height": 0}), (NOT_SUPPORTED, {"flags": 0x80}),
                (INVALID_VALUE, {"flags": LAYERED}), (INVALID_VALUE, {"flags": CUBE, "depth": 6}),
                (INVALID_VALUE, {"height": 0, "depth": 2}), (INVALID_VALUE, {"levels": 0xffffffff}),
                (INVALID_DEVICE, {"device": 99}), (INVALID_DEVICE, {"device": -1}),
                (OUT_OF_MEMORY, {"width": 16384, "height": 16384, "depth": 64}), (NOT_SUPPORTED, {"format": 0xb0})):
            found = client.create(**values)
            require(found == wanted, f"{values}: {found}")
        require(client.free() == before, "a refused array takes memory")
        for name in (0, 77, 0xffffffff):
            require(client.fails("gpArrayDestroy", {"array": name}) == INVALID_HANDLE, "no array was destroyed")


@case("arrays out of credit take no more than there is, and give it back when there is none")
def _():
    with Client() as client:
        def make(name=FIRST, width=64, height=32, **more):
            values = {"array": name, "device": 0, "width": width, "height": height, "depth": 0, "format": FLOAT, "channels": 1}
            return client.fails("gpArrayMake", values | more)

        before = client.free()
        client.ask("gpMemoryGrant", {"device": 0, "forgo": client.granted[0], "least": 0, "wanted": 0})
        require(make() == INVALID_VALUE, "without credit")
        result, fields = client.ask("gpMemoryGrant", {"device": 0, "forgo": 0, "least": 8 * MIB, "wanted": 8 * MIB})
        require(result == SUCCESS and fields["granted"] == 8 * MIB, f"{result} {fields}")
        for wanted, values in (
                (INVALID_VALUE, {"width": 0}), (INVALID_VALUE, {"width": HUGE}), (INVALID_DEVICE, {"device": 99}),
                (INVALID_VALUE, {"width": 16384, "height": 16384}), (NOT_SUPPORTED, {"format": 0xb0})):
            require(make(**values) == wanted, f"{values}")
        require(make() == SUCCESS and make(SECOND, 1000, 1000) == SUCCESS, "out of credit")
        require(client.read() == (SUCCESS, bytes(4)), "not zeroed")
        require(make(OBJECT, 1000, 1000) == SUCCESS or make(OBJECT, 64, 64) == SUCCESS, "once more")
        for name in (FIRST, SECOND, OBJECT):
            require(client.fails("gpArrayDestroy", {"array": name}) == SUCCESS, "destroy")
        client.ask("gpMemoryGrant", {"device": 0, "forgo": 0, "least": 0, "wanted": 0})
        # More of it is free if the case before this one ended only now.
        require(before - 8 * MIB <= client.free(), "granted memory is lost")


@case("a name given twice ends the session")
def _():
    client = Client()
    require(client.create() == SUCCESS, "create")
    try:
        client.create()
        client.lane.wait_closed()
    except Closed:
        pass
    client.close()


@case("boxes that do not lie in the array are refused")
def _():
    with Client() as client:
        require(client.map(0, client.granularity) == SUCCESS, "map")
        require(client.create() == SUCCESS and client.create(SECOND, 16, 16, levels=3) == SUCCESS, "create")
        for box in ({"x": 256}, {"x": HUGE - 3, "width": 8}, {"x": 2}, {"width": 6}, {"width": 260}, {"y": 32},
                    {"y": HUGE, "height": 2}, {"z": 1}, {"depth": 2}, {"z": HUGE, "depth": 2}, {"width": HUGE - 3},
                    {"height": HUGE}, {"depth": HUGE}, {"width": 0}, {"level": 1}, {"name": SECOND, "level": 3},
                    {"name": SECOND, "level": 2, "width": 20}):
            require(client.read(**box)[0] == INVALID_VALUE, f"read {box}")
            values = client.box(**box)
            values = {"stream": 1, "dst_array": values["array"], "dst_level": values.get("level", 0), "dst_x": values["x"],
                      "dst_y": values["y"], "dst_z": values["z"], "src": client.base, "src_pitch": 256, "src_slice": 8192,
                      "width": values["width"], "height": values["height"], "depth": values["depth"]}
            if values["width"]:
                require(client.fails("gpArrayCopy", values) == INVALID_VALUE, f"copy {box}")
        require(client.read(name=77)[0] == INVALID_HANDLE, "read of no array")
        good = {"stream": 1, "dst_array": FIRST, "src": client.base, "src_pitch": 256, "src_slice": 8192, "width": 256,
                "height": 32, "depth": 1}
        require(client.fails("gpArrayCopy", good) == SUCCESS, "a good copy")
        for wrong in ({"src": 0}, {"src": client.base + client.granularity - 8}, {"src_pitch": HUGE}, {"src_pitch": 8},
                      {"src_x": 4}, {"dst": client.base}, {"dst_pitch": 4}, {"src_array": FIRST}, {"src": HUGE}):
            require(client.fails("gpArrayCopy", good | wrong) == INVALID_VALUE, f"copy with {wrong}")
        require(client.fails("gpArrayCopyIn", client.box(x=1 << 40), b"1234") == INVALID_VALUE, "written outside")
        require(client.fails("gpArrayCopyIn", client.box(name=77), b"1234") == INVALID_HANDLE, "written to none")


@case("copies whose bulk is missing, short or long end the session")
def _():
    for values, bulk in (({"width": 64}, None), ({"width": 64}, b"x"), ({"width": 4}, b"x" * 100),
                         ({"width": 1 << 32, "height": 1 << 32}, b""), ({"flags": 8}, b"1234"), ({"flags": 5}, b"1234"), ({"flags": 0x100}, b"1234")):
        client = Client()
        require(client.create() == SUCCESS, "create")
        try:
            client.post("gpArrayCopyIn", client.box() | values, bulk)
            client.ask("gpFence")
            require(False, f"{values} with {bulk and len(bulk)} bytes was taken")
        except Closed:
            pass
        client.close()


@case("arrays and textures of another session mean nothing, and what it left is zero")
def _():
    secret = random.Random(5).randbytes(256)
    with Client() as second:
        with Client() as first:
            require(first.create(flags=SURFACE) == SUCCESS, "create")
            require(first.fails("gpArrayCopyIn", first.box(width=256), secret) == SUCCESS, "write")
            require(first.read(width=256) == (SUCCESS, secret), "read")
            require(second.read(width=256)[0] == INVALID_HANDLE, "a foreign array was read")
            for call in ("gpTextureCreate", "gpSurfaceCreate"):
                result, _ = second.ask(call, {"texture": OBJECT, "surface": OBJECT, "array": FIRST})
                require(result == INVALID_HANDLE, f"{call} of a foreign array: {result}")
            require(second.fails("gpArrayDestroy", {"array": FIRST}) == INVALID_HANDLE, "a foreign array was destroyed")
            require(first.read(width=256) == (SUCCESS, secret), "it was changed")
        for name in (FIRST, SECOND):
            require(second.create(name, flags=SURFACE) == SUCCESS, "create")
            require(second.read(name=name, width=256) == (SUCCESS, bytes(256)), "another one's bytes were seen")


@case("textures of what is none, and of numbers that are none")
def _():
    with Client() as client:
        require(client.map(0, client.granularity) == SUCCESS, "map")
        require(client.create() == SUCCESS and client.create(SECOND, levels=3) == SUCCESS, "create")
        linear = {"type": 2, "address": client.base, "format": FLOAT, "channels": 1, "width": 4096}
        pitched = {"type": 3, "address": client.base, "format": UINT8, "channels": 4, "width": 64, "height": 64, "pitch": 512}
        for good in ({"array": FIRST}, {"array": SECOND, "level": 2}, {"array": SECOND, "type": 1, "flags": 2}, linear, pitched):
            result, reply = client.ask("gpTextureCreate", {"texture": OBJECT} | good)
            require(result == SUCCESS and reply["object"], f"{good}: {result}")
            require(client.fails("gpTextureDestroy", {"texture": OBJECT}) == SUCCESS, "destroy")
            require(client.fails("gpTextureDestroy", {"texture": OBJECT}) == INVALID_HANDLE, "destroyed twice")
        for wanted, values in (
                (INVALID_HANDLE, {"array": 77}), (INVALID_VALUE, {"array": FIRST, "level": 1}),
                (INVALID_VALUE, {"array": FIRST, "type": 1}), (INVALID_VALUE, {"array": SECOND, "level": 3}),
                (INVALID_VALUE, {"array": FIRST, "type": 9}), (INVALID_DEVICE, {"array": FIRST, "device": 9}),
                (INVALID_VALUE, {"array": FIRST, "address_mode_x": 4}), (INVALID_VALUE, {"array": FIRST, "filter_mode": 9}),
                (INVALID_VALUE, {"array": FIRST, "has_view": 2}), (INVALID_VALUE, {"array": FIRST, "flags": 0x80000000}),
                (INVALID_VALUE, {"array": FIRST, "has_view": 1, "view_last_layer": 0xffffffff}),
                (INVALID_VALUE, {"array": FIRST, "has_view": 1, "view_first_level": 7, "view_last_level": 7}),
                (INVALID_VALUE, linear | {"address": 0}), (INVALID_VALUE, linear | {"width": HUGE}),
                (INVALID_VALUE, linear | {"address": client.base + client.granularity}),
                (INVALID_VALUE, linear | {"format": 0x99}), (INVALID_VALUE, pitched | {"height": HUGE}),
                (INVALID_VALUE, pitched | {"width": HUGE // 2}), (INVALID_VALUE, pitched | {"pitch": HUGE}),
                (INVALID_VALUE, pitched | {"height": 0})):
            result, _ = client.ask("gpTextureCreate", {"texture": OBJECT} | values)
            require(result == wanted, f"{values}: {result}")
        result, _ = client.ask("gpSurfaceCreate", {"surface": OBJECT, "array": FIRST})
        require(result == SUCCESS, f"a surface of an array with default flags: {result}")


@case("references of what is none, and to what is none")
def _():
    code = (b".version 7.0\n.target sm_75\n.address_size 64\n.global .texref image;\n.global .surfref plane;\n"
            b".global .u32 number;\n.visible .entry nothing()\n{\n ret;\n}\n")
    image, surface, texture = 1 << 20 | 40, 1 << 20 | 41, 1 << 20 | 42
    with Client() as client, Client() as other:
        require(client.create(flags=SURFACE) == SUCCESS, "create")
        require(client.ask("gpTextureCreate", {"texture": texture, "array": FIRST})[0] == SUCCESS, "texture")
        require(client.ask("gpSurfaceCreate", {"surface": surface, "array": FIRST})[0] == SUCCESS, "surface")
        require(load(client, image, flat_text(code))[0] == SUCCESS, "load")
        find = {"context": 1, "image": image, "name": b"image", "surface": 0}
        for wanted, values in (
                (SUCCESS, {}), (SUCCESS, {"name": b"plane", "surface": 1}), (NOT_FOUND, {"surface": 1}),
                (NOT_FOUND, {"name": b"number"}), (INVALID_VALUE, {"name": b""}), (NOT_FOUND, {"name": b"x" * 5000}),
                (INVALID_HANDLE, {"image": 77})):
            result, _ = client.ask("gpReferenceFind", find | values)
            require(result == wanted, f"{values}: {result}")
        for wanted, values in (
                (SUCCESS, {}), (SUCCESS, {"name": b"plane", "surface": 1, "texture": surface}),
                (INVALID_VALUE, {"texture": surface}), (INVALID_VALUE, {"name": b"plane", "surface": 1}),
                (NOT_FOUND, {"name": b"number"}), (INVALID_HANDLE, {"texture": 77}), (INVALID_HANDLE, {"image": 77})):
            result = client.fails("gpReferenceSet", find | {"texture": texture} | values)
            require(result == wanted, f"{values}: {result}")
        require(other.ask("gpReferenceFind", find)[0] == INVALID_HANDLE, "a foreign image")


@case("arrays and textures are freed with their session")
def _():
    daemon.wait_for_ends()
    with Client() as watcher:
        before = watcher.free()
        for _ in range(3):
            client = Client()
            for i in range(20):
                require(client.create(1 << 20 | 10 + i, 1024, 512, flags=SURFACE) == SUCCESS, "create")
                require(client.ask("gpTextureCreate", {"texture": 1 << 20 | 10 + i, "array": 1 << 20 | 10 + i})[0] == SUCCESS,
                        "texture")
                if i % 2:
                    client.post("gpArrayDestroy", {"array": 1 << 20 | 10 + i})
            # Those that were destroyed may be gone already.
            require(watcher.free() <= before - 20 * MIB, "the arrays take no memory")
            client.close()
            wait_until("the memory is back", lambda: watcher.free() == before, 60)


if __name__ == "__main__":
    with Configured("[tenant default]\nmemory = 256M\n") as daemon:
        status = main(daemon)
        daemon.check_works()
    sys.exit(status)
