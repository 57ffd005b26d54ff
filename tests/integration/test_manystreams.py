# SPDX-License-Identifier: Apache-2.0
"""Programs whose launches on several streams are issued by several threads of the daemon (GPUPOOL_LAUNCHERS)."""
import os
import re
import sys
import time

from harness import PATIENCE, Configured, Daemon, case, main, require
from test_apps import judge

# Of each, work of many kinds comes between launches.
PROGRAMS = ["manystreams", "streams", "events", "threads", "callbacks", "printf", "graphs", "memset"]


def handed_over(daemon):
    """How many launches threads of their own made, of all sessions that have ended."""
    return sum(map(int, re.findall(r"closed: .*; (\d+) launches by threads of their own", daemon.log())))


def check(name, **env):
    with Daemon(env=env) as daemon:
        judge(name, daemon.run(name, seconds=PATIENCE))
        daemon.wait_for_log(r"session \d+ .*: closed:")
        # Its threads have ended with it.
        daemon.settle()
        return handed_over(daemon)


@case("launches of several streams are made by several threads, and nothing else is seen of that")
def _():
    made = check("manystreams", GPUPOOL_LAUNCHERS="4")
    if os.cpu_count() > 1:
        require(made > 1000, f"{made} launches were handed over")


@case("a daemon that shall have no such threads has none")
def _():
    require(check("manystreams", GPUPOOL_LAUNCHERS="0") == 0, "launches were handed over")


@case("a program with one stream has none")
def _():
    with Daemon(env={"GPUPOOL_LAUNCHERS": "4"}) as daemon:
        daemon.run("launchrate", "5000", seconds=PATIENCE).expect(out="launchrate: ok\n")
        daemon.wait_for_log(r"session \d+ .*: closed:")
        require(handed_over(daemon) == 0, "launches were handed over")


@case("sessions that take turns have them, too")
def _():
    with Configured("[device *]\npolicy = best-effort\n", env={"GPUPOOL_LAUNCHERS": "4"}) as daemon:
        judge("manystreams", daemon.run("manystreams", seconds=PATIENCE))
        daemon.wait_for_log(r"session \d+ .*: closed:")
        require(os.cpu_count() == 1 or handed_over(daemon) > 1000, "no launches were handed over")
        programs = [daemon.start("manystreams") for _ in range(2)]
        for program in programs:
            judge("manystreams", program.finish())
        daemon.settle()


@case("threads of a program that is killed in the middle end with its session")
def _():
    with Daemon(env={"GPUPOOL_LAUNCHERS": "4"}) as daemon:
        for number, seconds in enumerate((0.05, 0.2, 0.4), 1):
            program = daemon.start("manystreams")
            daemon.wait_for_log(r"session \d+ .*: open from", count=number)
            time.sleep(seconds)
            program.kill()
            daemon.wait_for_ends()
        daemon.settle()


def add(name):
    @case(f"{name} prints what it prints next to a GPU")
    def _():
        check(name, GPUPOOL_LAUNCHERS="4")


for program in PROGRAMS[1:]:
    add(program)


if __name__ == "__main__":
    sys.exit(main())
