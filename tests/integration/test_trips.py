# SPDX-License-Identifier: Apache-2.0
"""How often a program waits for the network, by the statistics of the client library; and what
becomes of images that are none."""
import os
import random
import re
import sys
import tempfile

from harness import SOFTWARE, Configured, Daemon, as_tenant, case, main, require, run

PROBE = os.environ["GP_PROBE"]


def trips(daemon, name, *args, more_env=None, **more):
    """(round trips in all, before the first kernel) of a program."""
    result = daemon.run(name, *args, env={"GPUPOOL_LOG": "stats", **(more_env or {})}, **more)
    require(result.status == 0, f"{result}")
    found = re.search(r"(\d+) blocking round trips, (\d+) before the first kernel", result.err)
    require(found, f"no statistics: {result}")
    return int(found[1]), int(found[2])


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


@case("what fits on a multiprocessor is asked once")
def _():
    with Daemon() as daemon:
        before, many = trips(daemon, "vectoradd")[0], trips(daemon, "occupancy")[0]
        # Seven block sizes, all at once, shared memory, and what the two programs have besides.
        require(many <= before + 10, f"{many} round trips, {before} without questions")


@case("a program's first kernel is on its way after five round trips")
def _():
    with Daemon() as daemon:
        before = trips(daemon, "vectoradd")[1]
        require(before <= 5, f"{before} round trips before the first kernel")


@case("code that a program has used before is loaded without waiting")
def _():
    with Daemon() as daemon:
        # Code without state, which is loaded for all; and with variables.
        for name in ("vectoradd", "symbols"):
            first, again, more = (trips(daemon, name)[0] for _ in range(3))
            require(again < first, f"{name}: {first} round trips the first time, {again} later")
            require(more == again, f"{name}: {again} round trips the second time, {more} the third")
        require(trips(daemon, "vectoradd")[1] <= 4, "more than four round trips before the first kernel")


@case("what is remembered of a program is its tenant's")
def _():
    with Configured("[tenant one]\n\n[tenant two]\n") as daemon:
        first = trips(daemon, "vectoradd", more_env=as_tenant("one"))[0]
        require(trips(daemon, "vectoradd", more_env=as_tenant("two"))[0] == first, "another's program is known")
        require(trips(daemon, "vectoradd", more_env=as_tenant("one"))[0] < first, "its own is not")


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
            # The size in the header (bytes 8 to 15) says how much is read: the program's own affair.
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
