# SPDX-License-Identifier: Apache-2.0
"""Sparse arrays of a hostile client: the memory that it may map to their tiles, the charge for it, and that another
session does not see its contents."""
import random
import struct
import sys

from harness import Configured, case, main, require, wait_until
from wire import Session

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INVALID_HANDLE, NOT_SUPPORTED = 0, 1, 2, 400, 801
UINT32, SPARSE, LAYERED = 0x03, 0x40, 0x01
TILE = 64 << 10
# Names.
ARRAY, OTHER, PLAIN_ARRAY, TILES, MORE_TILES, PLAIN = 5, 6, 7, 20, 21, 22
# struct gp_array_tiles
FIELDS = ["array", "memory", "tail", "level", "layer", "x", "y", "z", "width", "height", "depth", "zero",
          "tail_offset", "tail_size", "offset"]

daemon = None


class Client(Session):
    """With memory for 32 tiles, and an array of 2 by 2."""

    def __init__(self, prepare=True):
        super().__init__(daemon.port)
        self.create_context()
        self.tile = (TILE // 4, 1)
        if prepare:
            require(self.create() == SUCCESS and self.make_tiles() == SUCCESS, "create")

    def create(self, array=ARRAY, across=2, down=2, flags=SPARSE, depth=0, levels=0):
        return self.ask("gpArrayCreate", {"array": array, "width": across * self.tile[0], "height": down * self.tile[1],
                                          "depth": depth, "format": UINT32, "channels": 1, "flags": flags,
                                          "levels": levels})[0]

    def make_tiles(self, memory=TILES):
        return self.ask("gpTilePoolCreate", {"memory": memory, "size": self.granularity, "device": 0})[0]

    def part(self, **more):
        values = dict.fromkeys(FIELDS, 0) | {"array": ARRAY, "memory": TILES, "width": 2 * self.tile[0],
                                             "height": 2 * self.tile[1], "depth": 1} | more
        return struct.pack("<12I3Q", *(values[name] for name in FIELDS))

    def put(self, tiles, stream=1):
        return self.ask("gpArrayTiles", {"stream": stream, "tiles": tiles})[0]

    def box(self, array=ARRAY):
        return {"stream": 1, "array": array, "width": 256, "height": 1, "depth": 1}

    def write(self, data, array=ARRAY):
        self.post("gpArrayCopyIn", self.box(array), data)
        require(self.ask("gpFence")[0] == SUCCESS and not self.errors(), "write")

    def read(self, array=ARRAY):
        before = len(self.notes)
        result, _ = self.ask("gpArrayCopyOut", self.box(array))
        require(result == SUCCESS, f"read: {result}")
        return b"".join(bulk for _, _, _, bulk in self.notes[before:])

    def free(self):
        return self.ask("gpMemoryInfo", {"device": 0})[1]["free"]


@case("an array is as the device cuts it, and only a sparse one")
def _():
    with Client() as client:
        result, reply = client.ask("gpArrayTiling", {"array": ARRAY})
        width, height, depth, _, tail, flags, _ = struct.unpack("<4IQ2I", reply["tiling"])
        require(result == SUCCESS and (width, height, depth) == (*client.tile, 1) and not tail and not flags, "tiling")
        require(client.create(PLAIN_ARRAY, flags=0) == SUCCESS, "create")
        require(client.ask("gpArrayTiling", {"array": PLAIN_ARRAY})[0] == INVALID_VALUE, "of one that is not sparse")
        require(client.ask("gpArrayTiling", {"array": 99})[0] == INVALID_HANDLE, "of none")


@case("a write through a tile is visible through all mappings of the tile's memory")
def _():
    data = random.Random(1).randbytes(256)
    with Client() as client:
        require(client.create(OTHER) == SUCCESS, "create")
        require(client.put(client.part(offset=TILE) + client.part(array=OTHER, offset=TILE)) == SUCCESS, "put")
        client.write(data)
        require(client.read(OTHER) == data, "read")
        require(client.put(client.part(memory=0)) == SUCCESS and client.read() == bytes(256), "taken away")
        require(client.read(OTHER) == data, "and not from the other")


@case("a tile cannot be mapped to memory of another session, of another kind, or to none")
def _():
    data = random.Random(2).randbytes(256)
    with Client() as first, Client(prepare=False) as second:
        require(first.put(first.part()) == SUCCESS, "put")
        first.write(data)
        require(second.put(second.part()) == INVALID_HANDLE, "a foreign array")
        require(second.create() == SUCCESS, "create")
        require(second.put(second.part()) == INVALID_HANDLE, "foreign memory")
        require(second.put(second.part(memory=0, array=OTHER)) == INVALID_HANDLE, "no array")
        require(second.ask("gpMemoryCreate", {"memory": PLAIN, "size": second.granularity, "device": 0})[0] == SUCCESS, "plain")
        require(second.put(second.part(memory=PLAIN)) == INVALID_HANDLE, "memory that is not for tiles")
        require(second.put(second.part(memory=0), stream=99) == INVALID_HANDLE, "no stream")
        require(second.create(PLAIN_ARRAY, flags=0) == SUCCESS and second.make_tiles() == SUCCESS, "create")
        require(second.put(second.part(array=PLAIN_ARRAY)) == INVALID_VALUE, "an array that is not sparse")
        for call in ("gpMemoryAttach", "gpMemoryPlace"):
            values = {"memory": TILES, "address": second.base, "size": second.granularity}
            before = len(second.errors())
            if call == "gpMemoryAttach":
                require(second.ask(call, values)[0] == INVALID_VALUE, "tiles' memory was mapped")
            else:
                second.post(call, values)
                require(second.ask("gpFence")[0] == SUCCESS and len(second.errors()) == before + 1, "tiles' memory was placed")
        require(second.ask("gpPhysicalShare", {"share": 3, "memory": TILES})[0] == INVALID_VALUE, "tiles' memory was shared")
        require(first.read() == data, "the first session's bytes changed")


@case("no part beyond the array, the memory or a tile's edge is taken")
def _():
    with Client() as client:
        width = client.tile[0]
        for bad in ({"width": 0}, {"height": 0}, {"depth": 0}, {"depth": 2}, {"x": 1}, {"x": width, "width": 2 * width},
                    {"width": 3 * width}, {"width": width + 1}, {"y": 1}, {"z": 1}, {"layer": 1}, {"level": 1},
                    {"width": 0xffffffff}, {"height": 0xffffffff, "y": 1}, {"x": 0xffffffff}, {"tail": 1, "tail_size": TILE},
                    {"tail": 2}, {"offset": 1}, {"offset": client.granularity - 3 * TILE}, {"offset": 1 << 63},
                    {"offset": (1 << 64) - TILE}, {"memory": 0, "offset": TILE}):
            require(client.put(client.part(**bad)) == INVALID_VALUE, f"{bad}")
            # Nothing of a list that has one of these.
            require(client.put(client.part() + client.part(**bad)) == INVALID_VALUE, f"after a valid part: {bad}")
        require(client.put(client.part(offset=client.granularity - 4 * TILE)) == SUCCESS, "the last tiles")
        for length in (0, 1, 71, 73, 1025 * 72):
            require(client.put(bytes(length)) in (INVALID_VALUE, INVALID_HANDLE), f"{length} bytes")
        require(client.put(client.part(memory=0) * 1024) == SUCCESS, "the maximum number")


@case("thousands of parts of any kind end no worker")
def _():
    numbers = random.Random(3)
    choices = [0, 1, 2, 3, ARRAY, TILES, TILE // 4, TILE // 2, TILE, 0x7fffffff, 0xffffffff]
    with daemon.neighbour(), Client() as client:
        require(client.create(OTHER, 2, 4, SPARSE | LAYERED, 3) == SUCCESS, "layers")
        require(client.create(OTHER + 10, 4, 8, SPARSE, 0, 6) == SUCCESS, "levels")
        taken = 0
        for _ in range(1500):
            part = {name: numbers.choice(choices) for name in numbers.sample(FIELDS, numbers.randrange(4))}
            tiles = client.part(**{"array": numbers.choice((ARRAY, OTHER, OTHER + 10))} | part)
            result = client.put(tiles)
            require(result in (SUCCESS, INVALID_VALUE, INVALID_HANDLE), f"{part}: {result}")
            taken += result == SUCCESS
        require(taken > 20, f"of 1500 parts {taken} were taken")


@case("the memory counts as long as its name, or an array, has it")
def _():
    daemon.wait_for_ends()
    with Client(prepare=False) as watcher:
        before = watcher.free()
        with Client(prepare=False) as client:
            require(client.make_tiles() == SUCCESS, "memory")
            own = client.granted[0]
            size = client.granularity
            wait_until("it counts", lambda: watcher.free() == before - own - size, 20)
            require(client.create() == SUCCESS, "array")
            arrays = before - own - size - watcher.free()
            require(arrays < 1 << 20, f"a sparse array takes {arrays} bytes")
            require(client.put(client.part()) == SUCCESS, "put")
            client.post("gpMemoryRelease", {"memory": TILES})
            require(client.ask("gpFence")[0] == SUCCESS, "fence")
            require(watcher.free() == before - own - size - arrays, "it does not count while an array has it")
            require(client.read() == bytes(256), "the array has it")
            client.post("gpArrayDestroy", {"array": ARRAY})
            wait_until("it is free", lambda: client.ask("gpFence")[0] == SUCCESS and watcher.free() == before - own, 60)
            # And so it is if the session ends with all of it.
            require(client.create() == SUCCESS and client.make_tiles() == SUCCESS and client.put(client.part()) == SUCCESS, "again")
        wait_until("all is free", lambda: watcher.free() == before, 60)
        with Client(prepare=False) as client:
            for values in ({"size": 0}, {"size": 1}, {"size": client.granularity + 4096}):
                wanted = {"memory": 99, "size": client.granularity, "device": 0} | values
                require(client.ask("gpTilePoolCreate", wanted)[0] == INVALID_VALUE, f"{values}")
            require(client.ask("gpTilePoolCreate", {"memory": 99, "size": 1 << 21, "device": 99})[0] == 101, "no device")
            for i in range(200):
                result = client.make_tiles(100 + i)
                if result != SUCCESS:
                    break
            require(result == OUT_OF_MEMORY and i > 50, f"{i} times, then {result}")
        wait_until("all is free again", lambda: watcher.free() == before, 60)


@case("data that a session left in such memory is not visible to another")
def _():
    with Client() as client:
        require(client.put(client.part()) == SUCCESS, "put")
        client.write(random.Random(4).randbytes(256))
    for _ in range(5):
        with Client() as client:
            require(client.put(client.part()) == SUCCESS and client.read() == bytes(256), "another session's bytes")


if __name__ == "__main__":
    from hostile import Host

    class Pool(Configured, Host):
        """A daemon that continues to serve after hostile clients."""

    with Pool("[tenant default]\nmemory = 256M\n") as daemon:
        status = main(daemon)
        daemon.check_works()
    sys.exit(status)
