# SPDX-License-Identifier: Apache-2.0
"""The group torch of bench.py: programs of PyTorch that live through all turns, one for each side, so
that a turn costs the steps that it measures and no start of Python, PyTorch and a session."""
import concurrent.futures
import os
import select
import subprocess
import sys

from bench_sides import Failed, read_causes, read_figures, run

# How often a step, or a token, reads a result.
READS = {'torch_conv_step': 1, 'torch_bf16_step': 1, 'generate_token': 2}
STARTUP = 'startup_torch'
# Of one measurement; steps over a slow link may take longer.
SECONDS = 2
READY_SECONDS, ANSWER_SECONDS = 300, 120
# Steps for which waits are counted.
STEPS = 20
# How many steps it really makes for each: torch_steps.py.
MADE = {'generate_token': 3}


def command(name, what):
    return [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'torch_steps.py'), name, str(what)]


class Server:
    """torch_steps.py NAME serve, on one side."""

    def __init__(self, programs, side, name):
        self.name = name
        self.errors = open(os.path.join(programs.work, f'{name}-{side}.err'.replace('/', '_')), 'w+', encoding='utf-8')
        self.process = subprocess.Popen(command(name, 'serve'), env=programs.environment(side), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True, bufsize=1)
        self.ready = False

    def read(self, seconds):
        """The next line; it is a whole one, as the program writes no parts of lines."""
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            self.process.kill()
            raise Failed(f'{self.name}: no answer within {seconds} s')
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise Failed(f'{self.name}: it ended: {self.errors.read()[-400:]}')
        return line

    def measure(self):
        if not self.ready:
            self.ready = self.read(READY_SECONDS) == 'ready\n'
        try:
            self.process.stdin.write(f'{SECONDS}\n')
        except BrokenPipeError:
            pass  # the answer has the reason
        return {self.name: (read_figures(self.read(ANSWER_SECONDS))[self.name], 'ms')}

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()


def serve(programs, sides, name):
    """side -> its server; all start at the same time, and are ready before anything is measured."""
    servers = {side: Server(programs, side, name) for side in [None, *sides]}
    for server in servers.values():
        try:
            server.ready = server.read(READY_SECONDS) == 'ready\n'
        except Failed:
            pass  # reported when it is measured
    return servers


def causes(programs, side, name, steps):
    return read_causes(run(command(name, steps), {**programs.environment(side), 'GPUPOOL_LOG': 'stats'})[2])


def count_waits(programs, sides, name):
    """side -> cause -> round trips of one step: the difference between N and 2 N steps. All run at once, as
    nothing is timed; a side that fails is left out."""
    with concurrent.futures.ThreadPoolExecutor(2 * len(sides)) as pool:
        runs = {side: [pool.submit(causes, programs, side, name, steps) for steps in (STEPS, 2 * STEPS)] for side in sides}
        waits = {}
        for side, (few, many) in runs.items():
            try:
                more = {cause: (count - few.result().get(cause, 0)) / (STEPS * MADE.get(name, 1)) for cause, count in many.result().items()}
            except Failed as error:
                print(f'waits of {name}, {side}: {error}', file=sys.stderr, flush=True)
                continue
            waits[side] = {cause: count for cause, count in more.items() if count}
    return waits
