# SPDX-License-Identifier: Apache-2.0
"""Litmus tests of the memory model, by shape, over each transport. GP_LITMUS_ROUNDS is the number of rounds of each
shape for each kind of memory, and GP_LITMUS_SECONDS the timeout of one program (docs/testing.md)."""
import os
import sys

import test_apps
from harness import SANITIZER, PATIENCE, Certificates, Encrypted, Program, case, main, require
from pool import Pool

# The sanitizers make each of them slower, the thread sanitizer by far. A release runs 10,000 without one.
ROUNDS = os.environ.get("GP_LITMUS_ROUNDS", {"none": "300", "thread": "30"}.get(SANITIZER, "60"))
SECONDS = int(os.environ.get("GP_LITMUS_SECONDS", 4 * PATIENCE))
SHAPES = ("two-writers", "fill", "message-to-kernel", "message-to-host", "wait-value", "event", "store-buffering",
          "host-function", "callback", "free", "stream-order", "copied-flag", "ipc")
# All kinds of memory that are replicated over shared memory, each with its line, once.
WARNINGS = test_apps.WARNING + test_apps.WARNING_POOL + test_apps.WARNING_MAPPED
# Races that the thread sanitizer is right to see: the program fills the source of a copy while the library reads it, and
# later sends it again; the software device fills a word by plain stores while the daemon looks at it.
RACING = () if SANITIZER == "thread" else ("copy-after-poll", "replica-after-poll", "device-word")

OTHER = {"ipc": "", "replica-after-poll": WARNINGS}


def run(shape, remote, env=None, seed=1, warning=""):
    program = Program("litmus", (ROUNDS, str(seed), shape), remote, env=env)
    result = program.finish(SECONDS)
    # A device may have no cuMemMap() of host memory.
    require(result.err in (warning, warning.replace(test_apps.WARNING_MAPPED, "")), f"expected {warning!r} on stderr: {result}")
    test_apps.judge("litmus", result, shared=True)


for name in SHAPES + RACING:
    @case(f"{name}: over tcp")
    def _(name=name):
        with Pool() as pool:
            run(name, pool.address)
            pool.settle()

    @case(f"{name}: over shared memory")
    def _(name=name):
        with Pool() as pool:
            run(name, pool.local, env={"LITMUS_SHARED": "1"}, seed=2, warning=OTHER.get(name, test_apps.WARNING))
            pool.settle()

    @case(f"{name}: over tls")
    def _(name=name):
        with Certificates() as certificates, Encrypted(certificates) as daemon:
            run(name, daemon.address, env=certificates.client(), seed=3)


# A session corrects early copies only once: then its copies are late.
for first in range(4 if RACING else 0):
    @case(f"early copies after a polling kernel are corrected: kind {first} first")
    def _(first=first):
        with Pool() as pool:
            run("copy-after-poll", pool.address, seed=4 + first)
            pool.settle()


if __name__ == "__main__":
    sys.exit(main())
