# SPDX-License-Identifier: Apache-2.0
"""The group clients of bench.py: the launches of many programs at once, and the cost of idle
sessions. All programs are ready before the clock starts: the time to start them is another row."""
import contextlib
import os
import subprocess
import time

from bench_sides import Failed

COUNTS = (1, 8, 64, 256)
# Natively each has a context of the driver's, which costs some hundred MiB.
NATIVE_MAX = 64
# Of all clients together; on the software device every one takes a while.
LAUNCHES, LAUNCHES_SOFTWARE, LAUNCHES_SMALL = 1000000, 20000, 200
LAUNCHES_MIN = 1000
IDLE, IDLE_SOFTWARE = 64, 16
IDLE_SECONDS = 5
READY_SECONDS = 300
IDLE_ROWS = ('idle_host_mib', 'idle_device_mib', 'idle_cpu', 'idle_client_cpu')


class Crowd:
    """COUNT programs, each ready when it has printed its line; they end with the with statement at the latest."""

    def __init__(self, command, env, count):
        self.command = command
        self.processes = [subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                           stderr=subprocess.DEVNULL, text=True) for _ in range(count)]
        self.said = []

    def __enter__(self):
        return self

    def read(self, process):
        line = process.stdout.readline().split()
        if not line:
            raise Failed(f'{len(self.processes)} of {self.command}: one ended with {process.wait()}')
        return [float(word) for word in line[1:]]

    def await_ready(self):
        """Returns the line that each program has printed when it was ready."""
        self.said = [self.read(process) for process in self.processes]
        return self.said

    def go(self):
        """Returns the last line of each program."""
        for process in self.processes:
            process.stdin.write('\n')
            process.stdin.flush()
        return [self.read(process) for process in self.processes]

    def __exit__(self, *_):
        for process in self.processes:
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


def get_launch_count(programs, count):
    if programs.small:
        return max(1, LAUNCHES_SMALL // count)
    return max(LAUNCHES_MIN, (LAUNCHES_SOFTWARE if programs.driver else LAUNCHES) // count)


def launches(programs, side, name, count):
    """Of all, by the clock that all have: from the first one's begin to the last one's end; and what processor
    time the daemon has taken for each."""
    each = get_launch_count(programs, count)
    daemon = get_process_tree(side.daemon_pid) if side else []
    with Crowd([programs.need('launches'), str(each), 'wait'], programs.environment(side), count) as crowd:
        crowd.await_ready()
        before_ms = processor_ms(daemon)
        times = crowd.go()
        daemon_ms = processor_ms(daemon) - before_ms
    seconds = max(end for _, end in times) - min(begin for begin, _ in times)
    found = {name: (count * each / seconds, 'launches/s')}
    if side:
        found[f'{name}_cpu'] = daemon_ms * 1000 / (count * each), 'us'
    return found


def get_process_tree(pid):
    """It and what it has started."""
    found = [pid]
    try:
        for task in os.listdir(f'/proc/{pid}/task'):
            with open(f'/proc/{pid}/task/{task}/children', encoding='ascii') as file:
                for child in map(int, file.read().split()):
                    found += get_process_tree(child)
    except OSError:
        pass
    return found


def private_mib(pids):
    """Memory that is theirs alone. One that has ended meanwhile, such as a device monitor, has none."""
    kib = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f'/proc/{pid}/smaps_rollup', encoding='ascii') as file:
            kib += sum(int(line.split()[1]) for line in file if line.startswith('Private_'))
    return kib / 1024


def processor_ms(pids):
    ticks = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f'/proc/{pid}/stat', encoding='ascii') as file:
            ticks += sum(map(int, file.read().rsplit(')', 1)[1].split()[11:13]))
    return ticks * 1000 / os.sysconf('SC_CLK_TCK')


def idle(programs, side, only):
    """For each session: host memory of the daemon, device memory, processor time of daemon and client."""
    count = IDLE_SOFTWARE if programs.driver else IDLE
    daemon, env = side.daemon_pid, programs.environment(side)
    command = [programs.need('launches'), '1', 'wait']
    # The first one makes what all have.
    with Crowd(command, env, 1) as first:
        (free_before,), = first.await_ready()
        before = private_mib(get_process_tree(daemon))
        with Crowd(command, env, count) as crowd:
            crowd.await_ready()
            time.sleep(1)
            with Crowd(command, env, 1) as last:
                (free_after,), = last.await_ready()
            time.sleep(1)
            host = (private_mib(get_process_tree(daemon)) - before) / count
            pids = [process.pid for process in crowd.processes]
            begun, daemon_ms, client_ms = time.monotonic(), processor_ms(get_process_tree(daemon)), processor_ms(pids)
            time.sleep(IDLE_SECONDS)
            each = (time.monotonic() - begun) * count
            found = {
                'idle_host_mib': (host, 'MiB'),
                'idle_device_mib': ((free_before - free_after) / (count + 1) / (1 << 20), 'MiB'),
                'idle_cpu': ((processor_ms(get_process_tree(daemon)) - daemon_ms) / each, 'ms/s'),
                'idle_client_cpu': ((processor_ms(pids) - client_ms) / each, 'ms/s'),
            }
    return {name: figure for name, figure in found.items() if not only or name in only}
