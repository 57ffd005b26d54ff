# SPDX-License-Identifier: Apache-2.0
"""What bench.py measures.  A group is a function (programs, side, only) that gives functions without
arguments, each of which measures something once and returns {name: (value, unit)}; natively where side
is None.  only is a set of names, or empty for all."""
import functools
import re

import bench_clients
import bench_starts
import bench_torch
from bench_sides import Failed, read_figures, run, run_together

NBODY = {'nbody_65536': (65536, 20), 'nbody_512000': (512000, 10)}
EIGHT, EIGHT_SOFTWARE = (4096, 2000), (256, 2)
COPY = re.compile(r'(htod|dtoh)_(?:pageable|pinned)_(\w+)')


def wants(only, name):
    return not only or name in only


def figures(programs, env, names):
    _, out, _ = run([programs.need('figures'), *names], env)
    return {name: (value, 'GB/s' if COPY.fullmatch(name) else 'us') for name, value in read_figures(out).items()}


def local(programs, side, only):
    names = sorted(name for name in only if re.match(r'launch|sync|event|htod|dtoh|alloc|memory_info', name))
    if names or not only:
        yield functools.partial(figures, programs, programs.environment(side), names)


def nbody_time(text):
    found = re.search(r'total time for \d+ iterations: ([0-9.]+) ms', text)
    if not found:
        raise Failed(f'unexpected output of nbody: {text!r}')
    return float(found[1])


def nbody_command(programs, bodies, iterations):
    return [programs.need('nbody'), '-benchmark', f'-numbodies={bodies}', f'-i={iterations}']


def start(name, command, env):
    return {name: (run(command, env)[0] * 1000, 'ms')}


def nbody(name, command, env):
    return {name: (nbody_time(run(command, env)[1]), 'ms')}


def nbody_together(name, command, env, count):
    return {name: (max(map(nbody_time, run_together(command, env, count)[1])), 'ms')}


def whole_programs(programs, side, only):
    env = programs.environment(side)
    if wants(only, 'startup_vectoradd'):
        yield functools.partial(start, 'startup_vectoradd', [programs.need('vectoradd')], env)
    for name, (bodies, iterations) in NBODY.items():
        if wants(only, name):
            yield functools.partial(nbody, name, nbody_command(programs, bodies, iterations), env)
    if wants(only, 'nbody_8x4096'):
        yield functools.partial(nbody_together, 'nbody_8x4096', nbody_command(programs, *EIGHT), env, 8)


def clients(programs, side, only):
    for count in bench_clients.COUNTS:
        name = f'clients_{count}'
        if wants(only, name) and (side or count <= bench_clients.NATIVE_MAX):
            yield functools.partial(bench_clients.launches, programs, side, name, count)
    if side and (not only or only.intersection(bench_clients.IDLE_ROWS)):
        yield functools.partial(bench_clients.idle, programs, side, only)


def starts(programs, side, only):
    """Not the sides' daemon, and no network: measured once a turn, as what is remote over tcp."""
    if side and side.transport == 'tcp' and not (side.rtt or side.rate):
        bodies, iterations = EIGHT_SOFTWARE if programs.driver else EIGHT
        yield functools.partial(bench_starts.measure, programs, only, nbody_command(programs, bodies, iterations), nbody_time)


def startup_torch(programs, side, only):
    yield functools.partial(start, bench_torch.STARTUP, bench_torch.command(bench_torch.STARTUP, 1), programs.environment(side))


class Group:
    """One that keeps nothing from turn to turn."""

    def __init__(self, functions):
        self.functions = functions

    def begin(self, programs, sides):
        pass

    def end(self):
        pass

    def waits(self, programs, sides):
        """(name, side) -> cause -> round trips of one step."""
        return {}


class TorchGroup(Group):
    """One program of PyTorch, which lives through all turns."""

    def __init__(self, name):
        super().__init__(self.steps)
        self.name, self.servers = name, {}

    def begin(self, programs, sides):
        self.servers = bench_torch.serve(programs, sides, self.name)

    def steps(self, programs, side, only):
        yield self.servers[side].measure

    def end(self):
        for server in self.servers.values():
            server.close()

    def waits(self, programs, sides):
        return {(self.name, side): waits for side, waits in bench_torch.count_waits(programs, sides, self.name).items()}


GROUPS = {'local': local, 'programs': whole_programs, 'clients': clients, 'starts': starts}
NAMES = [*GROUPS, 'torch']


def groups(name, only):
    """Those that the command line names so: each has its turns alone."""
    if name != 'torch':
        return [Group(GROUPS[name])]
    found = [Group(startup_torch)] if wants(only, bench_torch.STARTUP) else []
    return found + [TorchGroup(step) for step in bench_torch.READS if wants(only, step)]


def get_link_limit(name, native, raw, rtt):
    """The best figure that the link allows; None where the link sets no limit."""
    if name in bench_torch.READS:
        return 1.05 * native + 1.1 * rtt * bench_torch.READS[name]
    if name in ('launch_sync', 'dtoh_4b') and 'ping' in raw:
        return native + 1.1 * raw['ping']
    found = COPY.fullmatch(name)
    return raw.get(f"{'up' if found[1] == 'htod' else 'down'}_{found[2]}") if found else None
