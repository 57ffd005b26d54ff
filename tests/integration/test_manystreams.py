# SPDX-License-Identifier: Apache-2.0
"""Programs whose launches on several streams a daemon makes by several threads (GPUPOOL_LAUNCHERS)."""
import os
import re
import sys

from harness import PATIENCE, Daemon, case, main, require
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


def add(name):
    @case(f"{name} prints what it prints next to a GPU")
    def _():
        check(name, GPUPOOL_LAUNCHERS="4")


for program in PROGRAMS[1:]:
    add(program)


if __name__ == "__main__":
    sys.exit(main())
