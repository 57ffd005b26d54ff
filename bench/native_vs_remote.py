#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the same programs natively and through a daemon on loopback, and print both side by side.

FOLDER holds what a build makes: a build folder, or one flat folder with gpupoold, libcuda.so.1,
nbody, nbody-shared, the programs of tests/apps and tests/integration/probe (and libcudart.so.13
where there is no toolkit).
Needs a GPU and nothing but python3. --secure: as a pool is meant to run, over TLS with a token; if
root runs this, the daemon drops to an unprivileged user. Needs gpupoolctl, too. Logs go to $OUT if
that is set. Exit status 1 if anything is worse than wanted.
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from bench_sides import SecureDaemon, stay_root

FOLDERS = ['', 'server', 'client', 'ctl', 'bench/nbody', 'tests/apps', 'tests/integration', 'lib']

# (bodies, iterations, repetitions, the share of native speed that is wanted)
NBODY = [
    (512000, 10, 3, 0.98),
    (65536, 20, 4, 0.98),
    (4096, 2000, 3, 0.95),
]
CLIENTS = 8
CLIENTS_WANTED = 1.3    # maximum ratio of the slowest of 8 at once to one alone
START_WANTED = 0.5      # native time by remote time of a whole small program
TRIPS_WANTED = 5        # blocking round trips before the first kernel
TRIPS_SECURE = 3        # more of them: the daemon's preamble, its handshake, the lane's
# Compared by their exit status alone: the output depends on free memory, or CUDA leaves it undefined and
# gpupool does not.
STATUS_ONLY = {'memhog', 'badhandle'}
LAST = ['sticky', 'assertion']  # poison the context that all clients share

APPS = [
    'arrays', 'assertion', 'asyncalloc', 'atomics', 'badhandle', 'callbacks', 'contexts', 'greens', 'copies', 'copies2d',
    'devicequery', 'driverapi', 'errors', 'events', 'exitnoclean', 'exitpending', 'fork', 'forkmemory', 'fullgpu',
    'graphs', 'graphdevices', 'captures', 'tensormaps', 'attributes', 'linkptx', 'vmm', 'ipc', 'shareable', 'poolshare', 'sparse', 'hostalias', 'hostfunc', 'hostpools', 'hostpoolshare', 'hostvmm', 'launch', 'launchrate', 'managed', 'managedcalls', 'managedsignals', 'managedvars', 'matmul', 'memhog', 'memset', 'multifile', 'occupancy',
    'manydevices', 'manystreams', 'peer', 'peers', 'references', 'batches', 'perthread', 'pinned', 'printf', 'reset', 'sleeper', 'sticky', 'streams', 'symbols',
    'textures', 'threads', 'vectoradd', 'warp', 'wordsfreed',
]


class Bench:
    def __init__(self, folder, work, secure):
        self.folder = folder
        self.work = work
        self.secure = secure
        self.rows = []
        self.address = None
        self.daemon = None
        self.out = os.environ.get('OUT')
        self.log_path = os.path.join(self.out or work, 'native_vs_remote.log')
        self.log = open(self.log_path, 'w')
        self.make_library_folders()

    def find(self, name):
        for sub in FOLDERS:
            path = os.path.join(self.folder, sub, name)
            if os.path.isfile(path):
                return os.path.abspath(path)
        return None

    def need(self, name):
        path = self.find(name)
        if not path:
            sys.exit(f'native_vs_remote: no {name} below {self.folder}')
        return path

    def make_library_folders(self):
        """The client and the runtime each in a folder of its own: a native run must not find
        the client."""
        self.client_folder = os.path.join(self.work, 'client')
        self.runtime_folder = os.path.join(self.work, 'runtime')
        os.mkdir(self.client_folder)
        os.mkdir(self.runtime_folder)
        os.symlink(self.need('libcuda.so.1'), os.path.join(self.client_folder, 'libcuda.so.1'))
        runtime = self.find('libcudart.so.13')
        if runtime:
            os.symlink(runtime, os.path.join(self.runtime_folder, 'libcudart.so.13'))

    def environment(self, remote, **more):
        env = dict(os.environ)
        env.pop('REMOTE_GPU', None)
        path = [self.runtime_folder, env.get('LD_LIBRARY_PATH', '')]
        if remote:
            env['REMOTE_GPU'] = self.address
            if self.secure:
                env['GPUPOOL_TOKEN_FILE'] = os.path.join(self.work, 'token')
            path.insert(0, self.client_folder)
        path.append(os.path.join(self.folder, 'lib'))
        env['LD_LIBRARY_PATH'] = ':'.join(p for p in path if p)
        env.update(more)
        return env

    def start(self, command, remote, env=None, **kwargs):
        self.log.write(f"$ {'remote' if remote else 'native'}: {' '.join(command)}\n")
        self.log.flush()
        return subprocess.Popen(command, env=self.environment(remote, **(env or {})), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)

    def finish_all(self, process, timeout=120):
        """(exit status or None for a time-out, standard output, standard error)"""
        try:
            out, err = process.communicate(timeout=timeout)
            status = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            status = None
        self.log.write(f'{out}{err}-> {status}\n')
        self.log.flush()
        return status, out, err

    def finish(self, process, timeout=120):
        """(exit status or None for a time-out, standard output)"""
        return self.finish_all(process, timeout)[:2]

    def run(self, command, remote, timeout=120):
        return self.finish(self.start(command, remote, stdin=subprocess.DEVNULL), timeout)

    def start_daemon(self):
        log_path = os.path.join(self.out or self.work, 'gpupoold.log')
        if self.secure:
            secure = SecureDaemon(self.need, self.environment(False), self.work, log_path, user='nobody')
            self.daemon, self.address = secure.process, secure.address
            return
        self.daemon = subprocess.Popen(
            [self.need('gpupoold'), '--listen=127.0.0.1:0', '--print-address', '--admin-socket=off', *stay_root()],
            env=self.environment(False), stdout=subprocess.PIPE, stderr=open(log_path, 'w'), text=True)
        line = self.daemon.stdout.readline()
        match = re.match(r'listening on (\S+)', line)
        if not match:
            with open(log_path, encoding='utf-8') as log:
                sys.exit(f'native_vs_remote: the daemon does not start:\n{log.read()}'.rstrip())
        self.address = match.group(1)

    def stop_daemon(self):
        if not self.daemon:
            return
        self.daemon.terminate()
        try:
            self.daemon.wait(10)
        except subprocess.TimeoutExpired:
            self.row('daemon stops when asked to', '', 'no', None, None, False)
            self.daemon.kill()
            self.daemon.wait()

    def row(self, what, native, remote, ratio, wanted, passed):
        self.rows.append((what, native, remote, ratio, wanted, passed))
        print(f'{what}: native {native}, remote {remote}: {"pass" if passed else "FAIL"}',
              flush=True)

    def speed_row(self, what, native, remote, wanted):
        """Times in milliseconds, None for a failed run."""
        ratio = native / remote if native and remote else None
        text = ['failed' if t is None else f'{t:.1f} ms' for t in (native, remote)]
        self.row(what, *text, ratio, wanted, ratio is not None and ratio >= wanted)


def total_time(result):
    status, out = result
    match = re.search(r'total time for \d+ iterations: ([0-9.]+) ms', out)
    return float(match.group(1)) if status == 0 and match else None


def best(times):
    return None if None in times or not times else min(times)


def nbody(bench, bodies, iterations, variant='nbody'):
    return [bench.need(variant), '-benchmark', f'-numbodies={bodies}', f'-i={iterations}']


def bench_nbody(bench):
    for bodies, iterations, repetitions, wanted in NBODY:
        for variant in ('nbody', 'nbody-shared'):
            command = nbody(bench, bodies, iterations, variant)
            times = {False: [], True: []}
            for _ in range(repetitions):
                for remote in (False, True):
                    times[remote].append(total_time(bench.run(command, remote)))
            bench.speed_row(f'{variant} {bodies} bodies, {iterations} iterations',
                            best(times[False]), best(times[True]), wanted)
    for option in ([], ['-fp64']):
        command = [bench.need('nbody'), '-compare', '-numbodies=4096', *option]
        verdict = ['PASS' if bench.run(command, remote)[0] == 0 else 'FAIL'
                   for remote in (False, True)]
        bench.row(' '.join(['nbody -compare 4096', *option]), *verdict, None, None,
                  verdict[1] == 'PASS')


def several(bench, command, count, remote):
    """The time that the slowest takes."""
    processes = [bench.start(command, remote, stdin=subprocess.DEVNULL) for _ in range(count)]
    times = [total_time(bench.finish(process)) for process in processes]
    return None if None in times else max(times)


def bench_clients(bench):
    command = nbody(bench, 4096, 2000)
    alone = best([total_time(bench.run(command, True)) for _ in range(3)])
    natively = several(bench, command, CLIENTS, False)
    together = several(bench, command, CLIENTS, True)
    times = together / alone if alone and together else None
    bench.row(f'{CLIENTS} remote at once by one alone, 4096 bodies', '',
              'failed' if times is None else f'{alone:.1f}, {together:.1f} ms, {times:.2f} times',
              None, f'{CLIENTS_WANTED} times', times is not None and times <= CLIENTS_WANTED)
    bench.speed_row(f'{CLIENTS} at once, 4096 bodies', natively, together, 1.0)
    command = nbody(bench, 512000, 10)
    bench.speed_row('2 at once, 512000 bodies', several(bench, command, 2, False),
                    several(bench, command, 2, True), 0.98)


def bench_start(bench):
    def whole(remote):
        times = []
        for _ in range(4):
            start = time.monotonic()
            status, _ = bench.run([bench.need('vectoradd')], remote)
            times.append((time.monotonic() - start) * 1000 if status == 0 else None)
        return best(times)

    bench.speed_row('whole vectoradd', whole(False), whole(True), START_WANTED)

    def issue(remote):
        process = bench.start([bench.need('launchrate'), '100000', '-time'], remote)
        try:
            _, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None
        bench.log.write(err)
        match = re.search(r'([0-9.]+) us with the wait', err)
        return float(match.group(1)) * 100 if process.returncode == 0 and match else None

    # In turns: the driver's time for a launch changes by a tenth from one process to the next.
    tries = [(issue(False), issue(True)) for _ in range(3)]
    bench.speed_row('100000 empty launches', *map(best, zip(*tries)), 0.9)


def trips(bench, command):
    """(blocking round trips in all, those before the first kernel), or two times None"""
    process = bench.start(command, True, env={'GPUPOOL_LOG': 'stats'}, stdin=subprocess.DEVNULL)
    status, _, err = bench.finish_all(process)
    match = re.search(r'(\d+) blocking round trips, (\d+) before the first kernel', err)
    return (int(match.group(1)), int(match.group(2))) if status == 0 and match else (None, None)


def bench_trips(bench):
    before = trips(bench, [bench.need('vectoradd')])[1]
    wanted = TRIPS_WANTED + (TRIPS_SECURE if bench.secure else 0)
    bench.row('round trips before the first kernel', '', before, None, f'at most {wanted}',
              before is not None and before <= wanted)

    def none_more(what, few, many):
        few, many = trips(bench, few)[0], trips(bench, many)[0]
        more = None if None in (few, many) else many - few
        bench.row(f'round trips for {what}', '', 'failed' if more is None else more, None, 0,
                  more == 0)

    launchrate = bench.need('launchrate')
    none_more('10000 launches more', [launchrate, '10'], [launchrate, '10010'])
    probe = bench.find('probe')
    if probe:
        none_more('500 small allocations more', [probe, 'allocations', '1', '256'],
                  [probe, 'allocations', '501', '256'])
    else:
        print('small allocations: not measured, no probe')


def first_difference(native, remote):
    """The first line that is not alike in two (exit status, output)."""
    for pair in zip((native[1] + '\n-').split('\n'), (remote[1] + '\n-').split('\n')):
        if pair[0] != pair[1]:
            return [line[:60] for line in pair]
    return '', ''


def bench_apps(bench):
    alike = total = 0
    skipped = []
    for name in [a for a in APPS if a not in LAST] + LAST:
        for variant in (name, name + '-shared'):
            path = bench.find(variant)
            if not path:
                continue
            native = bench.run([path], False, 60)
            remote = bench.run([path], True, 60)
            total += 1
            same = native[0] == remote[0] if name in STATUS_ONLY else native == remote
            if same and native[0] in (0, 77):
                alike += 1
            elif native[0] < 0 and name in STATUS_ONLY:
                total -= 1
                print(f'{variant}: crashes natively ({native[0]}), remote {remote[0]}: not compared')
            elif native[0] == 0 and remote[0] == 77:
                skipped.append(variant)
                print(f'{variant}: {remote[1].strip()}')
            else:
                native_line, remote_line = first_difference(native, remote)
                bench.row(variant, f'{native[0]} {native_line}', f'{remote[0]} {remote_line}',
                          None, None, False)
    bench.row('programs with the same output and status', total, alike, None, None,
              total > 0 and alike + len(skipped) == total)
    if skipped:
        bench.row('skipped, need what is not remoted: ' + ' '.join(skipped), '', len(skipped),
                  None, None, True)


def free_mib(bench):
    status, out = bench.run([bench.need('memhog'), '1'], True, 60)
    match = re.search(r'free before: (\d+) MiB', out)
    return int(match.group(1)) if status == 0 and match else None


def kill_after_line(bench, command, pattern):
    process = bench.start(command, True, stdin=subprocess.PIPE)
    for line in process.stdout:
        if re.match(pattern, line):
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    process.stderr.close()
    process.stdin.close()


def seconds_until(condition, limit):
    start = time.monotonic()
    while time.monotonic() - start < limit:
        if condition():
            return time.monotonic() - start
        time.sleep(0.1)
    return None


def settled_free_mib(bench):
    """A worker that is new loads what was used before while it has no session."""
    free = free_mib(bench)
    for _ in range(20):
        time.sleep(1)
        last, free = free, free_mib(bench)
        if free == last:
            break
    return free


def bench_kill(bench):
    before = settled_free_mib(bench)
    for _ in range(3):
        kill_after_line(bench, [bench.need('memhog'), '4096'], 'free after')
    taken = seconds_until(lambda: (free_mib(bench) or 0) >= (before or 0) - 16, 10)
    passed = before is not None and taken is not None and taken < 3
    bench.row('memory of 3 killed clients is back', '',
              'never' if taken is None else f'{taken:.1f} s', None, '3 s', passed)

    for options, limit in (['-ms=2000'], 4), (['-endless'], 10):
        kill_after_line(bench, [bench.need('sleeper'), *options], 'running')
        command = [bench.need('vectoradd')]
        taken = seconds_until(lambda: bench.run(command, True, 20)[0] == 0, 20)
        bench.row(f'next client after a killed sleeper {options[0]}', '',
                  'never' if taken is None else f'{taken:.1f} s', None, f'{limit} s',
                  taken is not None and taken < limit)


def print_table(bench):
    titles = ('what', 'native', 'remote', 'ratio', 'wanted', 'pass')
    lines = [titles]
    for what, native, remote, ratio, wanted, passed in bench.rows:
        lines.append((what, str(native), str(remote), '' if ratio is None else f'{ratio:.3f}',
                      '' if wanted is None else str(wanted), 'yes' if passed else 'NO'))
    widths = [max(len(line[i]) for line in lines) for i in range(len(titles))]
    text = '\n'.join(' | '.join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
                     for line in lines)
    print('\n' + text)
    if bench.out:
        with open(os.path.join(bench.out, 'table.txt'), 'w') as table:
            table.write(text + '\n')
        with open(os.path.join(bench.out, 'table.json'), 'w') as table:
            json.dump([dict(zip(titles, row)) for row in bench.rows], table, indent=1)


STEPS = {
    'nbody': bench_nbody,
    'clients': bench_clients,
    'start': bench_start,
    'trips': bench_trips,
    'apps': bench_apps,
    'kill': bench_kill,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', metavar='FOLDER')
    parser.add_argument('steps', metavar='STEP', nargs='*', default=list(STEPS),
                        help=f"any of {', '.join(STEPS)} (default: all)")
    parser.add_argument('--secure', action='store_true', help='TLS and a token; the daemon is not root')
    arguments = parser.parse_args()
    unknown = set(arguments.steps) - set(STEPS)
    if unknown:
        parser.error(f"no such step: {', '.join(sorted(unknown))}")

    work = tempfile.mkdtemp(prefix='native_vs_remote.')
    try:
        bench = Bench(arguments.folder, work, arguments.secure)
        bench.start_daemon()
        try:
            for step in arguments.steps:
                STEPS[step](bench)
        finally:
            bench.stop_daemon()
            print_table(bench)
    finally:
        shutil.rmtree(work)
    return 0 if bench.rows and all(row[-1] for row in bench.rows) else 1


if __name__ == '__main__':
    sys.exit(main())
