# SPDX-License-Identifier: Apache-2.0
"""What bench.py measures.  A group is a function (programs, side, only) that gives functions without
arguments, each of which measures something once and returns {name: (value, unit)}; natively where side
is None.  only is a set of names, or empty for all."""
import functools
import os
import re
import sys

from bench_sides import Failed, read_causes, read_figures, run, run_together

HERE = os.path.dirname(os.path.abspath(__file__))
NBODY = {'nbody_65536': (65536, 20), 'nbody_512000': (512000, 10)}
EIGHT = (4096, 2000)
CLIENTS = (1, 8, 64)
CLIENT_LAUNCHES = 20000
# How often a step, or a token, reads a result.
READS = {'torch_conv_step': 1, 'torch_bf16_step': 1, 'generate_token': 2}
TORCH_STEPS = 20
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
        raise Failed(f'nbody says {text!r}')
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


def launches(name, command, env, count):
    return {name: (count * CLIENT_LAUNCHES / run_together(command, env, count)[0], 'launches/s')}


def clients(programs, side, only):
    for count in CLIENTS:
        name = f'clients_{count}'
        if wants(only, name):
            yield functools.partial(launches, name, [programs.need('launches'), str(CLIENT_LAUNCHES)], programs.environment(side), count)


def torch_command(name, steps=TORCH_STEPS):
    return [sys.executable, os.path.join(HERE, 'torch_steps.py'), name, str(steps)]


def torch_step(name, env):
    return {name: (read_figures(run(torch_command(name), env)[1])[name], 'ms')}


def torch(programs, side, only):
    env = programs.environment(side)
    if wants(only, 'startup_torch'):
        yield functools.partial(start, 'startup_torch', torch_command('startup_torch'), env)
    for name in READS:
        if wants(only, name):
            yield functools.partial(torch_step, name, env)


def waits_of(programs, side, name):
    """cause -> round trips of one step of a program of PyTorch: what twice as many steps have more."""
    env = {**programs.environment(side), 'GPUPOOL_LOG': 'stats'}
    few, many = (read_causes(run(torch_command(name, steps), env)[2]) for steps in (TORCH_STEPS, 2 * TORCH_STEPS))
    more = {cause: (count - few.get(cause, 0)) / TORCH_STEPS for cause, count in many.items()}
    return {cause: count for cause, count in more.items() if count}


GROUPS = {'local': local, 'programs': whole_programs, 'clients': clients, 'torch': torch}


def limit_of(name, native, raw, rtt):
    """What the link allows: the best that there could be; None where it says nothing."""
    if name in READS:
        return 1.05 * native + 1.1 * rtt * READS[name]
    if name in ('launch_sync', 'dtoh_4b') and 'ping' in raw:
        return native + 1.1 * raw['ping']
    found = COPY.fullmatch(name)
    return raw.get(f"{'up' if found[1] == 'htod' else 'down'}_{found[2]}") if found else None
