# SPDX-License-Identifier: Apache-2.0
"""Quotas of memory: reported as the size of the device, and exact to the byte for each kind of allocation."""
import os
import re
import sys
import tempfile
import time

from harness import PATIENCE, SOFTWARE, Configured, Daemon, as_tenant, case, main, need_software, require, run, software_env, wait_until
from wire import Session, field, record

MIB = 1 << 20
PROBE = os.environ["GP_PROBE"]
LIMIT = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"


def limited(daemon, mib, name, *args, **more):
    return daemon.run(name, *args, env={LIMIT: f"0={mib}M"}, **more)


def check_way(daemon, way, mib, least):
    result = limited(daemon, mib, "quota", way).expect(err="")
    found = re.fullmatch(rf"device {mib} MiB, total {mib} MiB, free \d+ MiB\n"
                         rf"{way}: cudaErrorMemoryAllocation after (\d+\.\d+) % of the total, (\d+\.\d+) % free\n"
                         r"again: cudaErrorMemoryAllocation after (\d+\.\d+) % of the total\nquota: ok\n", result.out)
    require(found, f"output of another shape: {result}")
    require(least <= float(found[1]) <= 100, f"refused after {found[1]} % of the quota: {result}")
    require(least <= float(found[3]) <= 100, f"then refused after {found[3]} % of the quota: {result}")


@case("a client's wish is the size of its device, and every way of allocating stops there")
def _():
    with Daemon() as daemon:
        check_way(daemon, "malloc", 64, 99.9)
        check_way(daemon, "pitch", 64, 99.9)
        check_way(daemon, "small", 64, 99.9)
        check_way(daemon, "async", 64, 99.9)
        check_way(daemon, "virtual", 64, 99.9)
        check_way(daemon, "array", 64, 99.9)
        check_way(daemon, "managed", 64, 99.9)
        daemon.settle()


@case("programs one after the other find the memory of the one before")
def _():
    # Little, for the daemon waits two seconds for memory that is on its way back, and a busy machine is slow.
    with Daemon(env=software_env(GPUPOOL_SOFT_MEMORY="64M")) as daemon:
        free = int(re.match(r"free before: (\d+) MiB", daemon.run("memhog", "1").expect().out)[1])
        for _ in range(8):
            daemon.run("memhog", str(free * 3 // 4)).expect(err="")


@case("memory that a graph needs by turns fits into a quota that is too small for all of it at once")
def _():
    with Daemon() as daemon:
        limited(daemon, 160, "graphmemory").expect(out="graphmemory: ok\n")
        limited(daemon, 100, "graphmemory").expect(status=1)


@case("a limit of the context that a session raises counts as its memory, and goes back with it")
def _():
    env = {"GPUPOOL_SOFT_MEMORY": "4G"}
    need_software(env)
    with Configured("[daemon]\nisolation = shared\n[tenant a]\nmemory = 400M\n[tenant b]\nmemory = 64M\n", env=env) as daemon:
        def open_session(tenant):
            session = Session(daemon.port, more=field(14, tenant))
            require(session.create_context() == 0, "no context")
            return session

        def set_limit(session, limit, value):
            return session.ask("gpContextSetLimit", {"context": 1, "limit": limit, "value": value})[0]

        def free(session):
            return session.ask("gpMemoryInfo", {"device": 0})[1]["free"]

        stack, printf, heap = 0, 1, 2
        with open_session("a") as first, open_session("b") as other:
            before = free(first)
            # The worker's own values are 16 and 128 MiB.
            require(set_limit(first, printf, 16 * MIB) == 0 and free(first) == before, "the worker's own value counts")
            require(set_limit(first, printf, 80 * MIB) == 0 and free(first) == before - 64 * MIB, f"{before - free(first)}")
            require(set_limit(first, heap, 228 * MIB) == 0 and free(first) == before - 164 * MIB, f"{before - free(first)}")
            require(set_limit(first, heap, 511 * MIB) == 2, "a heap above the quota is allowed")
            require(set_limit(first, stack, 1 << 20) == 2, "stacks above the quota are allowed")
            require(free(first) == before - 164 * MIB, "a refused limit counts")
            # Another session that needs it is charged as well.
            require(set_limit(other, heap, 512 * MIB) == 2 and set_limit(other, printf, 81 * MIB) == 2, "above the quota of b")
            require(set_limit(other, printf, 40 * MIB) == 0, "within the quota of b")
            require(free(other) <= 40 * MIB, "a limit that is in effect already costs nothing")
        workers = daemon.workers()
        daemon.settle()
        with open_session("a") as session:
            require(free(session) >= before, "limits of a session that has ended count")
            require(session.map(0, 380 * MIB) == 0, "there is less memory")
        daemon.settle()
        require(daemon.workers() == workers, "the worker was replaced though the limits went back")


@case("variables of device code count from the moment that it is loaded")
def _():
    with Daemon() as daemon:
        limited(daemon, 128, "bigglobal").expect(out="bigglobal: ok\n")
        limited(daemon, 32, "bigglobal").expect(status=1, out="cudaErrorMemoryAllocation\n")
        daemon.run("bigglobal").expect(out="bigglobal: ok\n")


def open_with_cache(daemon, size, **more):
    """A client that caches size bytes of memory, and the number of its request."""
    session = Session(daemon.port, **more)
    require(session.create_context() == 0, "no context")
    # Memory of another session is free a moment after the fence that follows its unmapping.
    wait_until("there is memory to keep", lambda: session.map(0, size) == 0, PATIENCE)
    session.requests += 1
    session.send(record("gpMemoryKeep", {}, session.requests, 1))
    require(session.ask("gpFence")[0] == 0, "it is answered at once")
    return session, session.requests - 1


@case("memory that one client caches is freed for another client, which waits for it")
def _():
    env = {"GPUPOOL_SOFT_MEMORY": "64M"}
    need_software(env)
    with Daemon(env=env) as daemon:
        first, question = open_with_cache(daemon, 40 * MIB)
        with Session(daemon.port) as second:
            require(second.create_context() == 0, "no context")
            second.requests += 1
            second.send(record("gpMemoryMap", {"address": second.base, "size": 40 * MIB, "device": 0}, second.requests, 1))
            require(first.reply("gpMemoryKeep", question)[0] == 0, "it is not asked for its memory")
            first.post("gpMemoryUnmap", {"address": first.base, "size": 40 * MIB})
            first.post("gpMemoryKept")
            require(second.reply("gpMemoryMap", second.requests)[0] == 0, "the freed memory is not available")
        first.close()
        daemon.settle()


@case("a client that does not free its cached memory on request delays others for a bounded time")
def _():
    env = {"GPUPOOL_SOFT_MEMORY": "64M"}
    need_software(env)
    with Daemon(env=env) as daemon:
        first, question = open_with_cache(daemon, 40 * MIB)
        require(first.ask("gpMemoryKeep")[0] == 1, "it may ask twice")
        with Session(daemon.port) as second:
            require(second.create_context() == 0, "no context")
            require(second.map(0, 40 * MIB) == 2, "there was memory")
            require(second.map(0, 16 * MIB) == 0, "the free memory is not available")
        require(first.reply("gpMemoryKeep", question)[0] == 0, "it was not asked")
        first.close()
        daemon.settle()


@case("cached memory of a client that was slow once to free it is not waited for again, and does not count as free")
def _():
    env = {"GPUPOOL_SOFT_MEMORY": "64M"}
    need_software(env)
    with Daemon(env=env) as daemon:
        first, question = open_with_cache(daemon, 40 * MIB)
        first.post("gpMemoryCountKept", {"device": 0, "bytes": 40 * MIB})
        require(first.ask("gpFence")[0] == 0, "fence")
        with Session(daemon.port) as second:
            def free():
                return second.ask("gpMemoryInfo", {"device": 0})[1]["free"]

            require(second.create_context() == 0, "no context")
            require(free() > 40 * MIB, "the cached memory does not count as free")
            second.requests += 1
            second.send(record("gpMemoryMap", {"address": second.base, "size": 40 * MIB, "device": 0}, second.requests, 1))
            require(first.reply("gpMemoryKeep", question)[0] == 0, "it is not asked for its memory")
            time.sleep(1.2)
            first.post("gpMemoryKept")
            first.requests += 1
            question = first.requests
            first.send(record("gpMemoryKeep", {}, question, 1))
            require(second.reply("gpMemoryMap", second.requests)[0] == 2, "there was memory")
            require(first.ask("gpFence")[0] == 0, "fence")
            require(free() <= 24 * MIB, "memory of the slow client counts as free")
            for _again in range(2):
                begin = time.monotonic()
                require(second.map(0, 40 * MIB) == 2, "there was memory")
                # It was 5 s each time.
                require(time.monotonic() - begin < 4, "it is waited for again")
            require(first.reply("gpMemoryKeep", question)[0] == 0, "it is not asked any more")
        first.close()
        daemon.settle()


@case("a tenant that was slow once to give back what it keeps delays others no more with new sessions")
def _():
    env = {"GPUPOOL_SOFT_MEMORY": "64M"}
    need_software(env)
    with Configured("[daemon]\nisolation = shared\n[tenant a]\n[tenant b]\n", env=env) as daemon:
        first, question = open_with_cache(daemon, 40 * MIB, more=field(14, "b"))
        with Session(daemon.port, more=field(14, "a")) as second:
            require(second.create_context() == 0, "no context")
            second.requests += 1
            second.send(record("gpMemoryMap", {"address": second.base, "size": 40 * MIB, "device": 0}, second.requests, 1))
            require(first.reply("gpMemoryKeep", question)[0] == 0, "it is not asked for its memory")
            time.sleep(1.2)
            first.close()
            second.reply("gpMemoryMap", second.requests)
            second.post("gpMemoryUnmap", {"address": second.base, "size": 40 * MIB})
            require(second.ask("gpFence")[0] == 0, "fence")
            for _again in range(2):
                first, question = open_with_cache(daemon, 40 * MIB, more=field(14, "b"))
                begin = time.monotonic()
                require(second.map(0, 40 * MIB) == 2, "there was memory")
                # It was 5 s each time.
                require(time.monotonic() - begin < 4, "its new session is waited for")
                require(first.reply("gpMemoryKeep", question)[0] == 0, "it is not asked any more")
                first.close()
                daemon.wait_for_log(f"session {first.id} .*: closed: ")
                wait_until("its memory is back", lambda: second.map(0, 40 * MIB) == 0, 60)
                second.post("gpMemoryUnmap", {"address": second.base, "size": 40 * MIB})
                require(second.ask("gpFence")[0] == 0, "fence")
        daemon.settle()


@case("memory that one program keeps or was granted, and does not use, another one gets")
def _():
    env = {"GPUPOOL_SOFT_MEMORY": "512M"}
    need_software(env)
    for held, wanted in (200, "400"), (3, "490"):
        with Daemon(env=env) as daemon:
            holder = daemon.start("probe", "hold", str(held * MIB), path=PROBE, stdin=True)
            holder.wait_for_output("held\n")
            daemon.run("memhog", wanted).expect(err="")
            holder.finish().expect(out="held\nprobe: ok\n")
            daemon.settle()


ACCOUNT = {"GPUPOOL_SOFT_MEMORY": "640M"}


def account(daemon, programs, seed, remote=None, **more):
    """Free memory and the memory of all programs must add up to the total, after each step."""
    if remote:
        result = run("memaccount", str(programs), str(seed), "60", remote=remote, **more)
    else:
        result = daemon.run("memaccount", str(programs), str(seed), "60", **more)
    result.expect(out="memaccount: ok\n", err="")


@case("free memory and what programs have are the device's memory, over tcp and unix")
def _():
    need_software(ACCOUNT)
    with tempfile.TemporaryDirectory() as folder:
        with Daemon("--listen", f"unix://{folder}/socket", env=ACCOUNT) as daemon:
            account(daemon, 1, 1)
            account(daemon, 2, 2)
            account(daemon, 1, 3, remote=f"unix://{folder}/socket")
            account(daemon, 2, 4, remote=f"unix://{folder}/socket")
            daemon.settle()


@case("and the quota's, of a program and of a tenant")
def _():
    need_software(ACCOUNT)
    with Configured("[tenant a]\nmemory = 512M\n", env=ACCOUNT) as daemon:
        account(daemon, 1, 5, env={LIMIT: "0=400M"})
        account(daemon, 2, 6, env=as_tenant("a"))
        daemon.settle()


@case("a wish beyond the device changes nothing")
def _():
    with Daemon(env=software_env(GPUPOOL_SOFT_MEMORY="128M")) as daemon:
        plain = daemon.run("quota").expect().out
        require(not SOFTWARE or plain.startswith("device 128 MiB, total 128 MiB"), plain)
        daemon.settle()
        wishful = limited(daemon, 1 << 22, "quota").expect().out
        # How much of a GPU's memory code and the like leave free is not always the same.
        require(wishful == plain if SOFTWARE else wishful.split(", free")[0] == plain.split(", free")[0],
                f"not the same with a wish: {plain}{wishful}")


@case("invalid values are refused by name, and valid ones are not")
def _():
    with Daemon() as daemon:
        result = limited(daemon, "x", "vectoradd")
        require(result.status != 0 and "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=xM: " in result.err, str(result))
        daemon.check_works()


if __name__ == "__main__":
    sys.exit(main(at_once=2 if SOFTWARE else 1))
