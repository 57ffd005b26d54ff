# SPDX-License-Identifier: Apache-2.0
"""Clients with a share of the multiprocessors: the number that they see, and where their kernels run."""
import os
import re
import sys
import time

from harness import Configured, Daemon, as_tenant, case, main, read_file, require

ALL = 32
ENV = {"GPUPOOL_SOFT_MULTIPROCESSORS": str(ALL)}


def report(count):
    return f"multiprocessors: {count}\na grid ran on {count}\na cooperative one ran on {count}\nsmcount: ok\n"


def share(percentage):
    return {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(percentage)}


@case("a client without a share has the whole device")
def _():
    with Daemon(env=ENV) as daemon:
        daemon.run("smcount").expect(out=report(ALL))
        daemon.run("smcount", env=share(100)).expect(out=report(ALL))


@case("a share is what the device has for the client, and where its kernels run")
def _():
    with Daemon(env=ENV) as daemon:
        daemon.run("smcount", env=share(50)).expect(out=report(16))
        daemon.run("smcount-shared", env=share(25)).expect(out=report(8))
        # Rounded down to groups of two, one of which is the least.
        daemon.run("smcount", env=share(23)).expect(out=report(6))
        daemon.run("smcount", env=share(1)).expect(out=report(2))
        daemon.run("smcount").expect(out=report(ALL))


@case("clients with shares run side by side, and none exceeds its reported share")
def _():
    with Daemon(env=ENV) as daemon:
        programs = [(daemon.start("smcount", "15", "5", env=share(percentage)), ALL * percentage // 100)
                    for percentage in (25, 50, 25, 50)]
        for program, count in programs:
            program.finish().expect(out=f"multiprocessors: {count}\n" + f"a grid ran on {count}\n" * 15 + "smcount: ok\n")


@case("programs work the same on a share of the device")
def _():
    with Daemon(env=ENV) as daemon:
        for name in ("streams", "events", "matmul", "perthread", "printf", "memset", "copies", "threads"):
            whole = daemon.run(name)
            part = daemon.run(name, env=share(10))
            whole.expect()
            part.expect(out=whole.out)


@case("a device with one multiprocessor cannot be divided, and is used as it is")
def _():
    with Daemon(env={"GPUPOOL_SOFT_MULTIPROCESSORS": "1"}) as daemon:
        daemon.run("smcount", env=share(50)).expect(out=report(1))
        require("no green contexts" in daemon.log(), "the log does not report it")


@case("a tenant's share applies to all its sessions together, and is reported to each")
def _():
    with Configured("[tenant a]\nsm = 50%\n[tenant b]\nsm = 8\n", env=ENV) as daemon:
        programs = [(daemon.start("smcount", "10", "5", env=as_tenant(name)), count)
                    for name, count in (("a", 16), ("a", 16), ("b", 8), ("default", ALL))]
        for program, count in programs:
            program.finish().expect(out=f"multiprocessors: {count}\n" + f"a grid ran on {count}\n" * 10 + "smcount: ok\n")
        # A wish only narrows.
        daemon.run("smcount", env=as_tenant("a", **share(75))).expect(out=report(16))
        daemon.run("smcount", env=as_tenant("a", **share(25))).expect(out=report(8))


@case("a device can be given out in larger pieces")
def _():
    with Configured("[device 0]\nsm-granularity = 8\n", env=ENV) as daemon:
        daemon.run("smcount", env=share(50)).expect(out=report(16))
        daemon.run("smcount", env=share(70)).expect(out=report(16))
        daemon.run("smcount", env=share(5)).expect(out=report(8))
        daemon.reload("[device 0]\nsm-granularity = 2\n")
        daemon.run("smcount", env=share(70)).expect(out=report(22))


def last_count(program, what):
    return int(re.findall(what + r" on (\d+)$", program.out(), re.M)[-1])


def wait_for_count(program, count, what="ran"):
    """Seconds until its grids run on count multiprocessors."""
    begin = time.monotonic()
    while last_count(program, what) != count:
        require(program.process.poll() is None, f"ended with {program.process.returncode}: {program.err()}")
        require(time.monotonic() < begin + 60, f"still on {last_count(program, what)}, not {count}")
        time.sleep(0.005)
    return time.monotonic() - begin


@case("a tenant's share changes while its sessions run")
def _():
    with Configured("[tenant a]\nsm = 8\n", env=ENV) as daemon:
        programs = [daemon.start("smcount", "1000000", "2", env=as_tenant("a")) for _ in range(2)]
        for program in programs:
            program.wait_for_output("ran on 8\n")
        for count in (20, 4, ALL, 16):
            daemon.reload(f"[tenant a]\nsm = {count}\n")
            taken = [wait_for_count(program, count) for program in programs]
            print(f"# {count} after {max(taken) * 1000:.0f} ms")
        for program in programs:
            require("multiprocessors: 8\n" in program.out(), program.out())
            program.kill()


def words_of_greens():
    return read_file(os.path.join(os.path.dirname(__file__), "..", "apps", "expected", "greens.out"))


@case("a program's green contexts are parts of the device, or of its share")
def _():
    with Daemon(env=ENV) as daemon:
        daemon.run("greens").expect(out=words_of_greens())
        daemon.run("greens", env=share(50)).expect(out=words_of_greens())
        daemon.settle()


@case("green contexts have the requested number of multiprocessors, or the whole share if it is smaller")
def _():
    with Configured("[tenant a]\nsm = 16\n", env=ENV) as daemon:
        program = daemon.start("greens", "1000000", env=as_tenant("a"))
        program.wait_for_output("ran on 8\n")
        for count, seen in ((4, 4), (20, 8), (6, 6)):
            daemon.reload(f"[tenant a]\nsm = {count}\n")
            wait_for_count(program, seen)
        program.kill()


@case("the cached cluster limits of a program are dropped when its share changes")
def _():
    with Configured("[tenant a]\nsm = 8\n", env=ENV) as daemon:
        program = daemon.start("smcount", "1000000", "2", "clusters", env=as_tenant("a"))
        program.wait_for_output("room for clusters on 8\n")
        for count in (20, 4, 16):
            daemon.reload(f"[tenant a]\nsm = {count}\n")
            wait_for_count(program, count, "clusters")
        program.kill()


if __name__ == "__main__":
    sys.exit(main())
