# SPDX-License-Identifier: Apache-2.0
"""The number of waits of typical programs for the daemon, by call, so that a change that adds one is noticed."""
import os
import sys

from harness import Certificates, Daemon, Encrypted, case, main, require, software_env
from stats import ASKED, read_stats

STEPS = os.environ["GP_STEPS"]

# The calls that a step waits for, with their number; steps.c describes the steps.
READS = {
    "train": {"gpCopyOut": 1},
    "mapped": {"gpCopyOut": 1},
    "token": {"gpCopyOut": 1},
    "objects": {},
    "order": {},
    "again": {"gpContextSynchronize": 1},
    "read": {"gpCopyOut": 1},
    "poll": {},
    "times": {"cuStreamSynchronize": 1, "cuEventElapsedTime_v2": 1},
    "buffers": {"gpCopyOut": 1},
    "limits": {},
    "frees": {},
}

# Waits of 20 steps that depend on the machine's pace.
CHANCE = 4

# The maximum waits of a whole program, the daemon's first one; the second one has its code cached.
# The first lane is connected while the daemon answers Hello, and anew where that takes long.
BEGIN = {"connection": 2, "welcome": 1}
PROGRAMS = {
    "vectoradd": {**BEGIN, "gpImageLoad": 1, "gpCopyOut": 1},
    "launchrate": {**BEGIN, "gpImageLoad": 1, "gpContextSynchronize": 2},
    "matmul": {**BEGIN, "gpImageLoad": 1, "gpCopyOut": 1},
    "memset": {**BEGIN, "gpCopyOut": 5, "cuStreamSynchronize": 2, "gpContextSynchronize": 1},
    "copies2d": {**BEGIN, "gpCopyOut": 6, "cuStreamSynchronize": 1, "gpContextSynchronize": 1},
    "symbols": {**BEGIN, "gpImageLoad": 1, "gpImageGlobal": 1, "gpCopyOut": 4},
    "pinned": {**BEGIN, "gpImageLoad": 1, "gpImageGlobal": 1, "cuStreamSynchronize": 3, "gpCopyOut": 3},
}


def causes(daemon, name, *args, env=None, **more):
    return read_stats(daemon.run(name, *args, env={**ASKED, **(env or {})}, **more)).causes


def excess(causes, allowed):
    """The causes that exceed the allowed number."""
    return {name: count for name, count in causes.items() if count > allowed.get(name, 0)}


for kind in READS:
    @case(f"a step of the program '{kind}' waits for nothing but what it reads")
    def _(kind=kind):
        with Daemon() as daemon:
            few, many = (causes(daemon, "steps", kind, str(count), path=STEPS) for count in (10, 30))
        # A reply that arrives before the program needs it counts for no wait. So what a program does once may wait in
        # one run and not in the other; a wait of every step, or of every other one, is more than CHANCE.
        more = {name: count - max(few.get(name, 0), 10 * READS[kind].get(name, 0)) for name, count in many.items()}
        too_much = excess(more, {name: 20 * READS[kind].get(name, 0) + CHANCE for name in many})
        require(not too_much, f"20 steps more wait too often for {too_much}: {few}, {many}")


# The maximum waits of 20 of these in all: for requests that the daemon must grant, check or answer once.
MADE = {
    "sizes": {"gpMemoryGrant": 1},
    "physical": {"gpMemoryGrant": 1, "gpAddressReserve": 1},
    "arrays": {"gpMemoryGrant": 1},
    # The numbers are the driver's.
    "textures": {"gpMemoryGrant": 1, "gpTextureCreate": 1, "gpSurfaceCreate": 1},
    "constants": {"cuDeviceGetTexture1DLinearMaxWidth": 2, "gpResource": 1, "gpResourceSplit": 1},
}

for kind in MADE:
    @case(f"20 steps of the program '{kind}' wait for no more than one does")
    def _(kind=kind):
        with Daemon(env=software_env(GPUPOOL_SOFT_MULTIPROCESSORS="16")) as daemon:
            few, many = (causes(daemon, "steps", kind, str(count), path=STEPS) for count in (0, 20))
        # On a busy machine the first lane may have to be connected again.
        too_much = excess(many, {**few, "connection": 2, "gpContextSynchronize": 2, **MADE[kind]})
        require(not too_much, f"{too_much}: {few}, {many}")


@case("whole programs wait for no more than is known, and in their second start not for code")
def _():
    for name, first in PROGRAMS.items():
        second = {cause: count for cause, count in first.items() if cause != "gpImageLoad"}
        with Daemon() as daemon:
            for start, allowed in ("first", first), ("second", second):
                found = causes(daemon, name)
                require(not excess(found, allowed),
                        f"{name} waits in its {start} start for {found}, of which {excess(found, allowed)} is too much")


@case("the first lane is connected while the daemon answers Hello")
def _():
    with Daemon() as daemon:
        found = []
        # On a machine that is busy the answer may take longer than the connection is kept.
        while not found or (found[-1] != 1 and len(found) < 20):
            found.append(causes(daemon, "vectoradd")["connection"])
        require(found[-1] == 1, f"connections that were waited for, in each of {len(found)} runs: {found}")


@case("a second start over TLS waits for two handshakes besides")
def _():
    allowed = {**PROGRAMS["vectoradd"], "TLS handshake": 2}
    del allowed["gpImageLoad"]
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        for _ in range(2):
            found = causes(daemon, "vectoradd", env=certificates.client(None))
        require(not excess(found, allowed), f"waits for {found}, of which {excess(found, allowed)} is too much")


if __name__ == "__main__":
    sys.exit(main())
