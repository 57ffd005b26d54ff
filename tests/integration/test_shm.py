# SPDX-License-Identifier: Apache-2.0
"""test_shm.py PROGRAM...: over a local socket, whose lanes go through shared memory, each program prints
what it prints next to a GPU; and which transport is chosen when."""
import re
import sys

import test_apps
from harness import Program, case, main, require
from pool import Pool


def add(pool, name):
    @case(f"{name} over shared memory prints what it prints next to a GPU")
    def _():
        test_apps.judge(name, Program(name, (), pool.local).finish(), shared=True)
        pool.settle()


def find_transport(remote, *args, **env):
    """Of the data lanes; with "short" the program's memory is pinned, and shared memory needs none for that."""
    result = Program("lanes", args, remote, env={"GPUPOOL_LANES": "4", "GPUPOOL_LOG": "info", **env}).finish().expect()
    return re.search(r"(\w+)://\S+: 3 data lanes", result.err)[1]


@case("a local socket means shared memory unless the program or its user does not want it, and tcp is tcp")
def _():
    with Pool() as pool:
        require(find_transport(pool.local) == "shm", "no shared memory")
        require(find_transport(pool.local, GPUPOOL_SHM="1") == "shm", "no shared memory though it was asked for")
        require(find_transport(pool.local, "short", GPUPOOL_SHM="0") == "unix", "GPUPOOL_SHM=0 has no effect")
        require(find_transport(pool.address, "short") == "tcp", "the transport is not tcp")


if __name__ == "__main__":
    names, sys.argv[1:] = sys.argv[1:], []
    with Pool() as one:
        for program in names:
            add(one, program)
        status = main()
    sys.exit(status)
