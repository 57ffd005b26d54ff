# SPDX-License-Identifier: Apache-2.0
"""The number of round trips of a program, by the statistics of the client library; and the handling of invalid images."""
import os
import random
import re
import struct
import sys
import tempfile

from harness import SOFTWARE, Configured, Daemon, as_tenant, case, main, require, run
from stats import ASKED, read_stats

PROBE = os.environ["GP_PROBE"]
LOOPS = os.environ["GP_LOOPS"]


def trips(daemon, name, *args, more_env=None, **more):
    """Returns the number of round trips of a program's calls, and of all round trips before its first kernel.

    The first number leaves out the Welcome, for which a program waits only if it needs the session before the
    Welcome has arrived, and the connection. In the second, the connection counts once: a client that gets no
    connection for a lane in time tries again."""
    stats = read_stats(daemon.run(name, *args, env={**ASKED, **(more_env or {})}, **more))
    connections = stats.causes.get("connection", 0)
    return stats.trips - connections - stats.causes.get("welcome", 0), stats.before - max(connections - 1, 0)


def loads(daemon, name, more_env=None):
    """How often it asks for code that it is not promised."""
    return read_stats(daemon.run(name, env={**ASKED, **(more_env or {})})).calls.get("gpImageLoad", 0)


@case("launches wait for nothing, however many they are")
def _():
    with Daemon() as daemon:
        # Its code is known from the second time on.
        trips(daemon, "launchrate", "10")
        few, many = trips(daemon, "launchrate", "10")[0], trips(daemon, "launchrate", "1000")[0]
        require(few == many, f"{few} round trips with 10 launches, {many} with 1000")


@case("launches with attributes and settings of kernels wait the first time only")
def _():
    with Daemon() as daemon:
        # Its code is known from the second time on.
        trips(daemon, "attributes", "2")
        few, many = trips(daemon, "attributes", "2")[0], trips(daemon, "attributes", "60")[0]
        require(few == many, f"{few} round trips with 2 rounds, {many} with 60")


@case("launches whose texture references are as before wait for nothing")
def _():
    with Daemon() as daemon:
        # Its code is known from the second time on.
        trips(daemon, "references", "2")
        few, many = trips(daemon, "references", "2")[0], trips(daemon, "references", "60")[0]
        require(few == many, f"{few} round trips with 2 launches, {many} with 60")


def loop(daemon, *args):
    """Round trips of a program that does something once, and 20 times."""
    # Its code is known from the second time on.
    trips(daemon, "loops", *args, "1", path=LOOPS)
    once, often = (trips(daemon, "loops", *args, count, path=LOOPS)[0] for count in ("1", "20"))
    require(once == often, f"{args}: {once} round trips the first time, {often} with 20 times")


@case("graphs are instantiated, updated and launched without waiting")
def _():
    with Daemon() as daemon:
        for what in ("graphs", "together"):
            loop(daemon, what)


@case("kernels whose blocks run together are launched in any grid that fits without waiting")
def _():
    with Daemon() as daemon:
        loop(daemon, "grids")


@case("code that the program has loaded before is loaded again without waiting")
def _():
    with Daemon() as daemon:
        for what in ("modules", "libraries", "copies"):
            loop(daemon, what)


@case("a repeated link of the same code does not wait")
def _():
    with Daemon() as daemon:
        loop(daemon, "links")
        # With another second input: that input and the result; the first input is announced to the daemon with it.
        run = [read_stats(daemon.run("loops", "relinks", count, path=LOOPS, env=ASKED)).causes for count in ("1", "20")]
        found = [(stats["gpLinkAdd"], stats["gpLinkComplete"], stats.get("gpLinkCreate", 0)) for stats in run]
        # The first input once, the second one 20 times, and invalid code 5 times.
        require(found == [(3, 1, 0), (26, 20, 0)], f"{found}")


@case("code is loaded again after host functions, by several threads, and after more unloads than the cache stores")
def _():
    with Daemon() as daemon:
        calls = read_stats(daemon.run("loops", "rotation", "400", path=LOOPS, env=ASKED)).calls
        require(calls.get("gpImageLoad") and calls.get("gpImageRetire"), f"{calls}")
        for _ in range(3):
            daemon.run("loops", "threads", "50", path=LOOPS).expect(out="loops: ok\n")


def many_kernels(count):
    """PTX with count kernels, whose descriptions by the daemon are long."""
    kernels = (f".visible .entry {'a_long_name_' * 8}{i}(.param .u64 where, .param .u32 {'k' * 20})\n{{\n ret;\n}}\n" for i in range(count))
    return ".version 7.0\n.target sm_70\n.address_size 64\n" + "".join(kernels)


@case("code with many kernels is not waited for when the program comes again")
def _():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        files = []
        for count in (90, 150, 200):
            files.append(os.path.join(folder, f"{count}.ptx"))
            with open(files[-1], "w", encoding="utf-8") as file:
                file.write(many_kernels(count))
        runs = [daemon.run("probe", "libraries", *files, path=PROBE, env=ASKED) for _ in range(2)]
        first, again = [read_stats(run) for run in runs]
        require(runs[0].out == runs[1].out and "200" in runs[0].out, f"{runs[0]}, then {runs[1]}")
        require(first.calls.get("gpImageLoad") == 3 and not again.calls.get("gpImageLoad"), f"{first.calls}, then {again.calls}")
        require(again.calls.get("gpImageUse") == 3, f"{again.calls}")


@case("arrays of every format and number of dimensions are made without waiting")
def _():
    with Daemon() as daemon:
        for program in ("arrays", "textures"):
            stats = read_stats(daemon.run(program, env=ASKED).expect(status=0))
            require(stats.calls.get("gpArrayMake", 0) > 2 and "gpArrayCreate" not in stats.causes, f"{program}: {stats}")


@case("the occupancy of a multiprocessor is queried once")
def _():
    with Daemon() as daemon:
        before, many = trips(daemon, "vectoradd")[0], trips(daemon, "occupancy")[0]
        # Seven block sizes, all at once, shared memory, clusters of 3 to 32 blocks, and what the
        # two programs have besides.
        require(many <= before + 10, f"{many} round trips, {before} without queries")


@case("a program's first kernel is on its way after three round trips")
def _():
    with Daemon() as daemon:
        before = trips(daemon, "vectoradd")[1]
        require(before <= 3, f"{before} round trips before the first kernel")


@case("code that a program has used before is loaded without waiting")
def _():
    with Daemon() as daemon:
        # Code without state, which is loaded for all; and with variables.
        for name in ("vectoradd", "symbols"):
            require(loads(daemon, name) > 0, f"{name} loads nothing")
            again, more = (trips(daemon, name)[0] for _ in range(2))
            require(loads(daemon, name) == 0, f"{name} asks for code that is known")
            require(more == again, f"{name}: {again} round trips the second time, {more} the third")
        require(trips(daemon, "vectoradd")[1] <= 2, "more than two round trips before the first kernel")


@case("the cached code of a program belongs to its tenant")
def _():
    with Configured("[tenant one]\n\n[tenant two]\n") as daemon:
        first = loads(daemon, "vectoradd", more_env=as_tenant("one"))
        require(loads(daemon, "vectoradd", more_env=as_tenant("two")) == first > 0, "another's program is known")
        require(loads(daemon, "vectoradd", more_env=as_tenant("one")) == 0, "its own is not")


@case("small allocations wait for nothing")
def _():
    with Daemon() as daemon:
        few = trips(daemon, "probe", "allocations", "1", "256", path=PROBE)[0]
        many = trips(daemon, "probe", "allocations", "500", "256", path=PROBE)[0]
        require(few == many, f"{few} round trips with one allocation, {many} with 500")


@case("a large allocation that is freed is had again without waiting")
def _():
    with Daemon() as daemon:
        for size in (3 << 20, 256 << 20):
            few = trips(daemon, "probe", "again", "1", str(size), path=PROBE)[0]
            many = trips(daemon, "probe", "again", "100", str(size), path=PROBE)[0]
            require(few == many, f"{few} round trips with one allocation of {size} bytes, {many} with 100")


@case("of many large allocations of a size, all alive at once, few are waited for")
def _():
    with Daemon() as daemon:
        few = trips(daemon, "probe", "allocations", "1", str(3 << 20), path=PROBE)[0]
        many = trips(daemon, "probe", "allocations", "200", str(3 << 20), path=PROBE)[0]
        require(many <= few + 16, f"{few} round trips with one allocation, {many} with 200")


@case("the addresses of pinned memory come with the daemon's welcome")
def _():
    with Daemon() as daemon:
        for name in ("pinned", "zerocopy"):
            calls = read_stats(daemon.run(name, env=ASKED)).calls
            require("gpHostReserve" not in calls, f"{name} asks for addresses: {calls}")


@case("memory allocated and freed in a stream's order waits for nothing")
def _():
    with Daemon() as daemon:
        for size in (256, 8 << 20):
            few = trips(daemon, "probe", "pairs", "1", str(size), path=PROBE)[0]
            many = trips(daemon, "probe", "pairs", "100", str(size), path=PROBE)[0]
            require(few == many, f"{few} round trips with one pair of {size} bytes, {many} with 100")


def load(daemon, images):
    """name -> (name of the result, its number), with one program."""
    with tempfile.TemporaryDirectory(prefix="gpupool-images-") as folder:
        for name, data in images.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        result = daemon.run("probe", "images", *[os.path.join(folder, name) for name in images], path=PROBE)
    require(result.status == 0 and result.out.endswith("probe: ok\n"), f"{result}")
    found = dict((m[1], (m[2], int(m[3]))) for m in re.finditer(r"^(\S+): (\w+) \((\d+)\)$", result.out, re.M))
    require(set(found) == set(images), f"{result}")
    return found


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def app_file(name):
    return read_bytes(os.path.join(os.environ["GP_APPS"], name))


def make_ptx(name):
    return (f".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry {name}()\n{{\n\tret;\n}}\n").encode()


def make_fatbin(ptx):
    """One with this PTX in it, as nvcc writes them."""
    payload = ptx + bytes(8 - len(ptx) % 8)
    # The last 16 bytes of the header, at an offset that a field before them contains, locate the options for ptxas: none.
    entry = struct.pack("<HHIQIIHHIIIQQQQQ", 1, 0x101, 80, len(payload), 0, 64, 0, 7, 70, 0, 0, 0x11, 0, 0, 72, 0) + payload
    return struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(entry)) + entry


def libraries(daemon, names):
    """Returns the number of waits for loading libraries of these names, and how many were loaded."""
    with tempfile.TemporaryDirectory(prefix="gpupool-libraries-") as folder:
        for name in names:
            with open(os.path.join(folder, name), "wb") as file:
                file.write(make_fatbin(make_ptx(name)))
        stats = read_stats(daemon.run("probe", "libraries", *[os.path.join(folder, name) for name in names], path=PROBE,
                                      env=ASKED))
        return stats.causes.get("gpImageLoad", 0), stats.calls.get("gpImageLoad", 0)


@case("all libraries of a program that is not known are asked for at once")
def _():
    with Daemon() as daemon:
        for names in (["one"], [f"many{i}" for i in range(40)]):
            waits, loaded = libraries(daemon, names)
            require(loaded == len(names), f"{loaded} of {len(names)} libraries are loaded")
            require(waits <= 1, f"{waits} waits for {len(names)} libraries")


@case("a library that cannot be loaded is refused when a kernel of it is wanted, and the others are not")
def _():
    contents = {"good": make_fatbin(make_ptx("good")), "bad": make_fatbin(b".version 7.0\n.target sm_70\n.address_size 64\nhello\n"),
                "large": make_fatbin(make_ptx("large") + b"//" + bytes(range(33, 127)) * 5000 + b"\n"),
                "better": make_fatbin(make_ptx("better"))}
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="gpupool-libraries-") as folder:
        for name, data in contents.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        for _ in range(2):
            result = daemon.run("probe", "libraries", *[os.path.join(folder, name) for name in contents], path=PROBE)
            result.expect()
            found = dict(re.findall(r"^(\w+): (.*)$", result.out, re.M))
            # NVIDIA's driver reports no kernels for such PTX.
            require(re.match(r"0 kernels \((?:200|218)\)$" if SOFTWARE else r"0 kernels \((?:0|200|218)\)$", found["bad"]), f"{result}")
            require({found[name] for name in ("good", "large", "better")} == {"1 kernels (0)"}, f"{result}")


@case("images that are none are refused with the errors of CUDA")
def _():
    fatbin, ptx = app_file("saxpy.fatbin"), app_file("saxpy.ptx")
    with Daemon() as daemon:
        found = load(daemon, {
            "whole.fatbin": fatbin,
            "whole.ptx": ptx,
            "zeros": bytes(4096),
            "noise": random.Random(1).randbytes(4096).replace(b"\0", b"\1") + b"\0",
            "half.ptx": ptx[:len(ptx) // 2],
            "sass.fatbin": read_bytes(os.environ["GP_SASS"]),
            "words.ptx": b".version 8.0\n.target sm_52\n.address_size 64\nhello\n",
        })
    require(found["whole.fatbin"][1] == 0 and found["whole.ptx"][1] == 0, f"{found}")
    require(found["zeros"][1] == 200 and found["noise"][1] in (200, 218), f"{found}")
    require(found["half.ptx"][1] == 218 and found["words.ptx"][1] == 218, f"{found}")
    # A GPU may be the one that it is for.
    require(found["sass.fatbin"][1] == 209 or (found["sass.fatbin"][1] == 0 and not SOFTWARE), f"{found}")


@case("a fatbin with any bytes changed is loaded or refused, and the daemon goes on")
def _():
    fatbin = app_file("saxpy.fatbin")
    chance = random.Random(2)
    images = {}
    for i in range(60):
        data = bytearray(fatbin)
        for _ in range(chance.choice((1, 1, 4, 50))):
            # The size in the header (bytes 8 to 15) determines the bytes that are read from the program's own memory.
            at = chance.randrange(16, len(data) if i % 2 else min(len(data), 200))
            data[at] = chance.randrange(256)
        images[f"changed{i}"] = bytes(data)
    with Daemon() as daemon:
        workers = daemon.workers()
        found = load(daemon, images)
        known = {0, 1, 2, 200, 209, 218, 220, 222, 301, 801}
        require({number for _, number in found.values()} <= known, f"{found}")
        require(any(number for _, number in found.values()), "nothing was refused")
        require(daemon.workers() == workers, "the worker was lost")
        daemon.check_works()


def list_entries(fatbin):
    at = 16
    while at < len(fatbin):
        header, payload = struct.unpack_from("<IQ", fatbin, at + 4)
        yield at, header
        at += header + payload


@case("an entry with any value in a word of its header is loaded or refused, and the daemon continues")
def _():
    images = {"whole": make_fatbin(make_ptx("plain"))}
    for name, fatbin in (("nvcc", app_file("saxpy.fatbin")), ("plain", make_fatbin(make_ptx("plain")))):
        for begin, header in list_entries(fatbin):
            for word in range(0, header, 4):
                for value in (0, 1, header - 8, header, 0x7ffffff8, 0xffffffff):
                    data = bytearray(fatbin)
                    struct.pack_into("<I", data, begin + word, value)
                    images[f"{name}_{begin}_{word}_{value}"] = bytes(data)
    with Daemon() as daemon:
        workers = daemon.workers()
        found = load(daemon, images)
        # Refused: the offset of the options is missing, and the driver would use the bytes in its place.
        require(found["plain_16_20_0"][1] == 200, f"{found['plain_16_20_0']}")
        require(found["whole"][1] == 0, f"{found['whole']}")
        require(daemon.workers() == workers, "the worker was lost")
        daemon.check_works()


def list_sections(elf):
    """where the header of each section is, but for the first"""
    table, = struct.unpack_from("<Q", elf, 40)
    size, count = struct.unpack_from("<HH", elf, 58)
    return range(table + size, table + size * count, size)


@case("a cubin with any value in a word of its section table is loaded or refused, and the daemon continues")
def _():
    fatbin = read_bytes(os.environ["GP_SASS"])
    (begin, header), = list_entries(fatbin)
    cubin = fatbin[begin + header:]
    # Of a bare cubin, offsets and sizes determine the bytes that are read from the program's own memory.
    parts = (("fatbin", fatbin, begin + header, range(0, 64, 4)), ("cubin", cubin, 0, (0, *range(8, 24, 4), *range(40, 64, 4))))
    images = {}
    for name, whole, start, words in parts:
        images[name] = whole
        for section in list_sections(cubin):
            for word in words:
                for value in (0, 0x7ffffff8, 0xffffffff):
                    data = bytearray(whole)
                    struct.pack_into("<I", data, start + section + word, value)
                    images[f"{name}_{section}_{word}_{value}"] = bytes(data)
    strings = list_sections(cubin)[0]
    with Daemon() as daemon:
        workers = daemon.workers()
        found = load(daemon, images)
        # The section names are outside of the bytes. The code may be for another GPU.
        require(found[f"fatbin_{strings}_28_{0xffffffff}"][1] in (200, 209), f"{found[f'fatbin_{strings}_28_{0xffffffff}']}")
        require({number for _, number in found.values()} <= {0, 1, 2, 200, 209, 218, 220, 222, 301, 801}, f"{found}")
        require(daemon.workers() == workers, "the worker was lost")
        daemon.check_works()


@case("the daemon keeps device code, and what is kept is not sent again")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-cache-") as folder:
        with Daemon(env={"GPUPOOL_CACHE_DIR": folder}) as daemon:
            first = trips(daemon, "vectoradd")[0]
            second = trips(daemon, "vectoradd")[0]
            require(second <= first, f"{first} round trips, then {second}")
            kept = [os.path.join(path, name) for path, _, names in os.walk(folder) for name in names]
            require(kept, "nothing is kept")
        for path in kept:
            with open(path, "r+b") as file:
                file.seek(os.path.getsize(path) // 2)
                file.write(b"\xff\xff\xff\xff")
        with Daemon(env={"GPUPOOL_CACHE_DIR": folder}) as daemon:
            daemon.check_works()
            run("vectoradd", remote=daemon.address).expect(out="vectoradd: ok\n")


if __name__ == "__main__":
    sys.exit(main())
