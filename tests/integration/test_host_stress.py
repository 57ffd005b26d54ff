# SPDX-License-Identifier: Apache-2.0
"""Memory that program and kernels access concurrently, for many rounds: over shared memory, and over a network with a
delay. GP_STRESS_ROUNDS is the number of messages for each of nine places of data and flag, in each of the four cases,
and GP_STRESS_SECONDS the timeout of one program (docs/testing.md)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "network"))
import test_apps
from harness import SANITIZER, PATIENCE, Program, case, main
from network import Network
from pool import Pool

# The sanitizers make each of them slower.
ROUNDS = os.environ.get("GP_STRESS_ROUNDS", {"thread": "20", "none": "100"}.get(SANITIZER, "25"))
SECONDS = int(os.environ.get("GP_STRESS_SECONDS", 2 * PATIENCE))


def stress(remote, seed, shared=False):
    test_apps.judge("hoststress", Program("hoststress", (ROUNDS, str(seed)), remote).finish(SECONDS), shared)


@case("a thread that sees a flag sees its data, and no word is lost: over shared memory")
def _():
    with Pool() as pool:
        stress(pool.local, 1, shared=True)
        pool.settle()


@case("the same over tcp, where two copies are kept consistent")
def _():
    with Pool() as pool:
        stress(pool.address, 2)
        pool.settle()


for rtt in (0.3, 2):
    @case(f"the same over a network with a round trip of {rtt} ms")
    def _(rtt=rtt):
        with Pool() as pool:
            with Network(os.environ["GP_NETWORK"], pool.address, rtt=rtt) as network:
                stress(network.address, 3)
            pool.settle()


if __name__ == "__main__":
    sys.exit(main())
