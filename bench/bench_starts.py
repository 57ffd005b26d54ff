# SPDX-License-Identifier: Apache-2.0
"""The group starts of bench.py: programs that begin, in the shared worker and in one of their own that
was in reserve, and the first programs of a daemon beside later ones."""
import time

from bench_sides import Daemon, Failed, run, run_together

READY = 4
READY_SECONDS = 120
ROWS = ('startup_shared', 'startup_process', 'startup_shared_4', 'startup_process_4', 'nbody_8x4096_first', 'nbody_8x4096_later')


def await_reserve(daemon):
    end = time.monotonic() + READY_SECONDS
    while daemon.status()['workers_ready'] < READY:
        if time.monotonic() > end:
            raise Failed(f'the {READY} workers in reserve are not ready within {READY_SECONDS} s')
        time.sleep(0.1)


def starts(programs, daemon):
    """Whole programs of which each computes a little: one, and four at once."""
    command, found = [programs.need('vectoradd')], {}
    run(command, daemon.environment())
    for kind in 'shared', 'process':
        env = {**daemon.environment(), 'GPUPOOL_ISOLATION': kind}
        await_reserve(daemon)
        found[f'startup_{kind}'] = (run(command, env)[0] * 1000, 'ms')
        await_reserve(daemon)
        found[f'startup_{kind}_4'] = (run_together(command, env, READY)[0] * 1000, 'ms')
    return found


def first_and_later(daemon, nbody, time_of):
    """Eight at once, twice, over a daemon that has had no program."""
    return {name: (max(map(time_of, run_together(nbody, daemon.environment(), 8)[1])), 'ms') for name in ROWS[4:]}


def measure(programs, only, nbody, time_of):
    def wanted(names):
        return not only or only.intersection(names)
    found = {}
    if wanted(ROWS[4:]):
        with Daemon(programs, name='fresh') as daemon:
            found.update(first_and_later(daemon, nbody, time_of))
    if wanted(ROWS[:4]):
        with Daemon(programs, name='reserve', config=f'[daemon]\nready-workers = {READY}\n') as daemon:
            found.update(starts(programs, daemon))
    return {name: figure for name, figure in found.items() if not only or name in only}
