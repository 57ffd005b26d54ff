# SPDX-License-Identifier: Apache-2.0
"""Programs that change their environment before the first CUDA call."""
import sys

from harness import SOFTWARE, Daemon, Skip, case, main

@case("a program that clears its environment uses the pool that it was started with")
def _():
    with Daemon() as daemon:
        for name in "cleared", "cleared-shared":
            for how in "all", "one":
                daemon.run(name, how).expect(out="cleared: ok\n", err="")
        daemon.run("clearedlinked").expect(out="clearedlinked: ok\n", err="")


@case("an empty REMOTE_GPU that the program sets names no pool")
def _():
    if not SOFTWARE:
        raise Skip("the machine has a driver of its own, which the program then uses")
    with Daemon() as daemon:
        daemon.run("cleared", "empty").expect(out="cleared: ok\n")


@case("CUDA_VISIBLE_DEVICES is what the program makes it")
def _():
    with Daemon() as daemon:
        daemon.run("cleared", "visible").expect(out="cleared: ok\n")


if __name__ == "__main__":
    sys.exit(main())
