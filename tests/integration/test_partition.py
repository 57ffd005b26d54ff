# SPDX-License-Identifier: Apache-2.0
"""Clients that get a share of the multiprocessors: what they are told, and where their kernels run."""
import sys

from harness import Daemon, case, main, require

ALL = 32
ENV = {"GPUPOOL_SOFT_MULTIPROCESSORS": str(ALL)}


def told(count):
    return f"multiprocessors: {count}\na grid ran on {count}\na cooperative one ran on {count}\nsmcount: ok\n"


def share(percentage):
    return {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(percentage)}


@case("a client without a share has the whole device")
def _():
    with Daemon(env=ENV) as daemon:
        daemon.run("smcount").expect(out=told(ALL))
        daemon.run("smcount", env=share(100)).expect(out=told(ALL))


@case("a share is what the device has for the client, and where its kernels run")
def _():
    with Daemon(env=ENV) as daemon:
        daemon.run("smcount", env=share(50)).expect(out=told(16))
        daemon.run("smcount-shared", env=share(25)).expect(out=told(8))
        # Rounded down to groups of two, one of which is the least.
        daemon.run("smcount", env=share(23)).expect(out=told(6))
        daemon.run("smcount", env=share(1)).expect(out=told(2))
        daemon.run("smcount").expect(out=told(ALL))


@case("clients with shares run side by side, and none has more than it was told")
def _():
    with Daemon(env=ENV) as daemon:
        programs = [(daemon.start("smcount", "40", "5", env=share(percentage)), ALL * percentage // 100)
                    for percentage in (25, 50, 25, 50)]
        for program, count in programs:
            program.finish().expect(out=f"multiprocessors: {count}\n" + f"a grid ran on {count}\n" * 40 + "smcount: ok\n")


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
        daemon.run("smcount", env=share(50)).expect(out=told(1))
        require("no green contexts" in daemon.log(), "the log does not say so")


if __name__ == "__main__":
    sys.exit(main())
