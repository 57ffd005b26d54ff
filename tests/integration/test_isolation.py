# SPDX-License-Identifier: Apache-2.0
"""Sessions of class process: in a worker of their own, out of reach of others' faults."""
import os
import signal
import sys
import time

from harness import SANITIZED, Daemon, case, main, require, wait_until

PROCESS = {"GPUPOOL_ISOLATION": "process"}
SOON = 10 if SANITIZED else 2


def one_worker(daemon):
    wait_until("only the shared worker is left", lambda: len(daemon.workers()) == 1, 30)


@case("a session of its own process has the same results, and its process ends with it")
def _():
    with Daemon() as daemon:
        shared = daemon.workers()
        program = daemon.start("sleeper", "-ms=500", env=PROCESS)
        program.wait_for_output("running")
        require(len(daemon.workers()) == 2, "there is no process of its own")
        program.finish().expect(out="running\nsleeper: ok\n", err="")
        daemon.run("vectoradd", env=PROCESS).expect(out="vectoradd: ok\n", err="")
        daemon.run("printf", env=PROCESS).expect(err="")
        one_worker(daemon)
        require(daemon.workers() == shared, "the shared worker was replaced")


@case("a fault among the shared ones does not reach a session of its own process")
def _():
    with Daemon() as daemon:
        program = daemon.start("sleeper", "-ms=4000", env=PROCESS)
        program.wait_for_output("running")
        daemon.run("sticky").expect()
        program.finish().expect(out="running\nsleeper: ok\n", err="")
        one_worker(daemon)
        daemon.check_works()


@case("the fault of a session of its own process reaches nobody, and the shared worker stays")
def _():
    with Daemon() as daemon:
        shared = daemon.workers()
        others = [daemon.start("sleeper", "-ms=4000"), daemon.start("sleeper", "-ms=4000", env=PROCESS)]
        for other in others:
            other.wait_for_output("running")
        result = daemon.run("sticky", env=PROCESS).expect(err="")
        require("synchronise: cudaErrorIllegalAddress (700)" in result.out, str(result))
        for other in others:
            other.finish().expect(out="running\nsleeper: ok\n", err="")
        one_worker(daemon)
        require(daemon.workers() == shared, "the shared worker was replaced")


@case("a client of class process that is killed in an endless kernel leaves nothing behind")
def _():
    with Daemon() as daemon:
        shared = daemon.workers()
        program = daemon.start("sleeper", "-endless", env=PROCESS)
        program.wait_for_output("running")
        begin = time.monotonic()
        program.kill()
        daemon.check_works()
        require(time.monotonic() - begin < SOON, "another client had to wait")
        one_worker(daemon)
        require(daemon.workers() == shared, "the shared worker was replaced")


@case("a process that is killed is told to its client only")
def _():
    with Daemon() as daemon:
        shared = daemon.workers()
        program = daemon.start("sleeper", "-endless", env=PROCESS)
        program.wait_for_output("running")
        own = [pid for pid in daemon.workers() if pid not in shared]
        os.kill(own[0], signal.SIGKILL)
        result = program.finish()
        require(result.status == 1 and "expected cudaSuccess" in result.out, str(result))
        require(daemon.workers() == shared, "the shared worker was replaced")
        daemon.wait_for_log(rf"worker {own[0]} was killed by signal 9")
        daemon.check_works()


@case("many at once, each alone")
def _():
    with Daemon() as daemon:
        programs = [daemon.start("vectoradd", env=PROCESS) for _ in range(4)]
        for program in programs:
            program.finish().expect(out="vectoradd: ok\n", err="")
        one_worker(daemon)


@case("a class that there is not is refused by name")
def _():
    with Daemon() as daemon:
        result = daemon.run("vectoradd", env={"GPUPOOL_ISOLATION": "strict"})
        require(result.status != 0 and "GPUPOOL_ISOLATION=strict: neither shared nor process" in result.err, str(result))


if __name__ == "__main__":
    sys.exit(main())
