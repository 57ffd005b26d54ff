# SPDX-License-Identifier: Apache-2.0
"""Programs that start while kernels of others run, on a device whose driver waits for running kernels when it loads
code."""
import re
import sys
import time

from harness import SANITIZED, Daemon, software_env, case, main, require

WAITS = software_env(GPUPOOL_SOFT_LOADING_WAITS="1")
SOON = 40 if SANITIZED else 5


def loading_daemon():
    return Daemon("--log-level", "debug", env=WAITS)


def counts(daemon):
    """(loaded to be shared, times shared, loaded for one alone) as of now."""
    found = re.findall(r"; (\d+) loaded to be shared, (\d+) times shared, (\d+) loaded for one alone", daemon.log())
    return tuple(max(int(number) for number in column) for column in zip(*found)) if found else (0, 0, 0)


@case("programs that start at once have the driver load their code once")
def _():
    with loading_daemon() as daemon:
        clients = [daemon.start("vectoradd") for _ in range(6)]
        for client in clients:
            client.finish().expect(out="vectoradd: ok\n", err="")
        require(counts(daemon) == (1, 5, 0), f"{counts(daemon)}")


@case("code with variables is loaded for each program")
def _():
    with loading_daemon() as daemon:
        for _ in range(2):
            daemon.run("symbols").expect(out="symbols: ok\n")
        require(counts(daemon)[2] == 2, f"{counts(daemon)}")


@case("a program that ran before starts, runs and ends while another's kernel runs")
def _():
    with loading_daemon() as daemon:
        daemon.check_works()
        neighbour = daemon.start("sleeper", "-endless")
        neighbour.wait_for_output("running")
        # Its kernel has begun when nothing of it is left to load.
        daemon.wait_for_log(r"2 loaded to be shared")
        time.sleep(0.5)
        before = time.monotonic()
        daemon.start("vectoradd").finish(SOON).expect(out="vectoradd: ok\n", err="")
        took = time.monotonic() - before
        require(neighbour.process.poll() is None, "the neighbour has ended, so nothing was shown")
        require(counts(daemon) == (2, 1, 0), f"{counts(daemon)} after {took:.1f} s")
        neighbour.kill()


@case("one that did not waits for the kernel, and nothing worse")
def _():
    with loading_daemon() as daemon:
        daemon.check_works()
        neighbour = daemon.start("sleeper", "-ms=3000")
        neighbour.wait_for_output("running")
        begin = time.monotonic()
        daemon.wait_for_log(r"2 loaded to be shared")
        time.sleep(0.5)
        daemon.run("atomics").expect()
        took = time.monotonic() - begin
        require(took > 1.5, f"it has waited for nothing: {took:.1f} s")
        neighbour.finish().expect()
        require(counts(daemon)[0] + counts(daemon)[2] == 3, f"{counts(daemon)}")


@case("arrays come and go while another's kernel runs")
def _():
    with loading_daemon() as daemon:
        daemon.check_works()
        neighbour = daemon.start("sleeper", "-endless")
        neighbour.wait_for_output("running")
        daemon.wait_for_log(r"2 loaded to be shared")
        time.sleep(0.5)
        for _ in range(2):
            daemon.start("arrays").finish(SOON).expect(err="")
        daemon.start("vectoradd").finish(SOON).expect(out="vectoradd: ok\n", err="")
        require(neighbour.process.poll() is None, "the neighbour has ended, so nothing was shown")
        neighbour.kill()


if __name__ == "__main__":
    sys.exit(main())
