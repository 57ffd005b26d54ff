# SPDX-License-Identifier: Apache-2.0
"""test_managed.py PROGRAM...: managed memory in each way in which faults can be reported, over tcp and over shared
memory; and programs that limit themselves once they use the GPU."""
import re
import sys

import test_apps
from harness import Program, Skip, case, main, require
from pool import Pool, Stranger

LIMITS = "network", "sockets", "threads", "descriptors", "files", "open"
SIGNAL, USER, KERNEL = "signal", "userfaultfd for instructions", "userfaultfd"


def find_mechanism(result):
    """The mechanism for managed memory that the client's log states."""
    if "managed memory: SIGSEGV" in result.err:
        return SIGNAL
    found = re.search("managed memory: userfaultfd, system calls (included|excluded)", result.err)
    require(found, f"the mechanism is missing: {result}")
    return KERNEL if found[1] == "included" else USER


class Ways:
    """How to start a program in each way that this machine has."""

    def __init__(self, pool):
        self.found = {}
        # Another user has not root's privileges, and needs a token.
        for start, more in (Program, {}), (Stranger, {"GPUPOOL_TOKEN_FILE": pool.create("default")[0]}):
            for name in "signal", "userfaultfd":
                env = {"GPUPOOL_MANAGED": name, **more}
                try:
                    result = start("managedcalls", (), pool.local, {"GPUPOOL_LOG": "info", **env}).finish()
                except Skip:
                    continue
                self.found.setdefault(find_mechanism(result), (start, env))

    def run(self, way, name, args, remote):
        if way not in self.found:
            raise Skip(f"this machine has no {way}")
        start, env = self.found[way]
        return start(name, args, remote, env).finish()


def add(pool, ways, name, way, args=()):
    # How a fault arrives hardly depends on how pages travel: most programs use the local socket in one way only.
    local = way == SIGNAL or name in ("managed", "managedorder")
    for remote in (pool.address, pool.local) if local else (pool.address,):
        @case(f"{' '.join([name, *args])} by {way} over {remote.split(':', maxsplit=1)[0]}")
        def _(remote=remote):
            test_apps.judge(name, ways.run(way, name, args, remote), remote == pool.local)
            pool.settle()


def add_limit(pool, way, what):
    for remote in pool.address, pool.local:
        @case(f"a program without {what} by {way or 'any way'} over {remote.split(':', maxsplit=1)[0]} gets what it asks for, or an error")
        def _(remote=remote):
            result = Program("limited", (what,), remote, way and {"GPUPOOL_MANAGED": way}).finish()
            if result.status == 77:
                raise Skip(result.out.strip())
            test_apps.judge("limited", result, remote == pool.local)


@case("a way that there is not is refused")
def _():
    with Pool() as pool:
        result = Program("managed", (), pool.address, {"GPUPOOL_MANAGED": "something"}).finish()
        require(result.status == 1 and "GPUPOOL_MANAGED=something: neither userfaultfd nor signal" in result.err, f"{result}")


if __name__ == "__main__":
    names, sys.argv[1:] = sys.argv[1:], []
    with Pool() as one:
        for_each = Ways(one)
        for one_way in SIGNAL, USER, KERNEL:
            for program in names:
                add(one, for_each, program, one_way)
        for one_way in USER, KERNEL:
            add(one, for_each, "managedlate", one_way)
        add(one, for_each, "managedcalls", KERNEL, ("exact",))
        for limit in LIMITS:
            for one_way in "signal", None:
                add_limit(one, one_way, limit)
        status = main()
    sys.exit(status)
