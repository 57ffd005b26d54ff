#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""isolation.py FOLDER [--rows clients,first] [--results FILE]: the cost and the protection of each class of isolation, on a GPU.

FOLDER is a build folder, or a flat one with gpupoold, libcuda.so.1, gpupoolctl and the programs of tests/apps. Each row
prints the measured value, and whether it is as wanted; FILE gets all as a list. Exit status 1 if one is not as wanted.
"""
import argparse
import concurrent.futures
import contextlib
import glob
import itertools
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'tenants'))
from pool import Bench, Failed, Pool, tenant

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = {}
# Configuration of the daemon for each class.
CLASSES = {'shared': '[daemon]\nisolation = shared\n', 'tenant': '[daemon]\nisolation = tenant\n',
           'session': '[daemon]\nisolation = session\n'}
TENANTS = ''.join(f'[tenant t{number}]\n' for number in range(20))


def row(function):
    ROWS[function.__name__] = function
    return function


class LocalPool(Pool):
    """A daemon that also listens on a Unix socket: .local. Its log is kept in $OUT if that is set."""
    count = 0

    def __init__(self, bench, config, *args, env=None):
        self.folder = tempfile.mkdtemp(dir=bench.work)
        self.local = f'unix://{self.folder}/daemon.sock'
        self.admin = f'{self.folder}/admin.sock'
        super().__init__(bench, config, ['--listen', self.local, '--admin-socket', self.admin, *args], env)

    def __exit__(self, *what):
        super().__exit__(*what)
        if 'OUT' in os.environ:
            shutil.copy(self.log_path, os.path.join(os.environ['OUT'], f'isolation-{LocalPool.count}.log'))
            LocalPool.count += 1

    def workers(self):
        status, out, err = self.bench.run('gpupoolctl', '--socket', self.admin, '--format=json', 'worker', 'list')
        if status:
            raise Failed(err)
        return json.loads(out)


class Mps:
    """NVIDIA's daemon; .env is that of its clients. A context manager."""

    def __init__(self, work):
        self.folder = tempfile.mkdtemp(dir=work)
        self.env = {'CUDA_MPS_PIPE_DIRECTORY': self.folder, 'CUDA_MPS_LOG_DIRECTORY': self.folder}

    def __enter__(self):
        subprocess.run(['nvidia-cuda-mps-control', '-d'], check=True, env={**os.environ, **self.env})
        return self

    def __exit__(self, *what):
        subprocess.run(['nvidia-cuda-mps-control'], input='quit\n', text=True, check=False, env={**os.environ, **self.env})


def busy_ticks():
    with open('/proc/stat') as file:
        words = [int(word) for word in file.readline().split()[1:]]
    return sum(words) - words[3] - words[4], sum(words)


class Clients:
    """`count` inference clients of one side, ready; they are measured together, as often as one likes. A context manager."""

    def __init__(self, bench, count, remote=None, env_of=lambda number: {}):
        command = [sys.executable, os.path.join(HERE, 'inference.py'), str(bench.seconds)]
        self.busy = 0
        self.processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                           env=bench.environment(remote, {'OMP_NUM_THREADS': '1', **env_of(number)}))
                          for number in range(count)]

    def wait_ready(self):
        for process in self.processes:
            if process.stdout.readline() != 'ready\n':
                raise Failed('a client did not start')

    def measure(self):
        """Requests per second of all; .busy is the part of the processors that was busy."""
        before = busy_ticks()
        for process in self.processes:
            process.stdin.write('\n')
            process.stdin.flush()
        rates, sums = zip(*(process.stdout.readline().split() for process in self.processes))
        after = busy_ticks()
        self.busy = (after[0] - before[0]) / (after[1] - before[1])
        if len(set(sums)) != 1:
            raise Failed(f'results differ: {sums}')
        return sum(map(float, rates))

    def __enter__(self):
        return self

    def __exit__(self, *what):
        for process in self.processes:
            process.stdin.close()
            process.wait(60)


def get_rates(sides, rounds):
    """name -> its rates; all sides exist at the same time and are measured in turns."""
    for side in sides.values():
        side.wait_ready()
    rates = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            rates[name].append(side.measure())
    return rates


def as_rates(values):
    return f'{statistics.median(values):.0f}/s ({min(values):.0f} to {max(values):.0f})'


@row
def clients(bench, report, options):
    """Inference clients: native processes, MPS, each class."""
    for count in options.counts:
        with contextlib.ExitStack() as stack:
            sides = {'native': stack.enter_context(Clients(bench, count))}
            if 'mps' in options.sides:
                mps = stack.enter_context(Mps(bench.work))
                sides['mps'] = stack.enter_context(Clients(bench, count, env_of=lambda number: mps.env))
            for name in options.sides:
                if name in CLASSES:
                    pool = stack.enter_context(LocalPool(bench, CLASSES[name] + TENANTS))
                    sides[name] = stack.enter_context(Clients(bench, count, pool.local, lambda number: tenant(f't{number}')))
            rates = get_rates(sides, options.rounds)
            for name, side in sides.items():
                ratio = statistics.median(a / b for a, b in zip(rates[name], rates['native']))
                report(f'{count} inference clients, {name}', f'{as_rates(rates[name])}, {ratio:.2f} x native, '
                       f'processors {100 * side.busy:.0f} %', name not in ('tenant', 'session') or ratio >= 1)


@row
def one_tenant(bench, report, options):
    """Eight clients of one tenant, in its own worker and in the shared one."""
    with contextlib.ExitStack() as stack:
        sides = {}
        for name in 'shared', 'tenant':
            pool = stack.enter_context(LocalPool(bench, CLASSES[name] + TENANTS))
            sides[name] = stack.enter_context(Clients(bench, 8, pool.local, lambda number: tenant('t0')))
        rates = get_rates(sides, options.rounds + 2)
        ratio = statistics.median(rates['tenant']) / statistics.median(rates['shared'])
        report('8 inference clients of one tenant', f'{as_rates(rates["tenant"])} in its worker, {as_rates(rates["shared"])} '
               f'in the shared one: {ratio:.2f}', ratio >= 0.97)


def first_call(bench, remote, env, kind='none'):
    """Milliseconds until a process's first kernel was done; then it does harm. endless: it is killed meanwhile."""
    process = bench.start('harm', kind, remote=remote, env=env)
    out = ''
    if kind == 'endless':
        while not out.endswith('running\n'):
            line = process.stdout.readline()
            if not line:
                break
            out += line
        process.kill()
    status, rest, err = bench.finish(process, 60)
    found = re.search(r'first: ([\d.]+)', out + rest)
    if not found or (status and kind != 'endless'):
        raise Failed(f'harm {kind}: status {status}: {out}{rest}{err}')
    return float(found[1])


def await_ready(pool, count, seconds=60):
    """Until `count` workers are in reserve."""
    end = time.monotonic() + seconds
    while sum(worker['class'] == 'reserve' and worker['state'] == 'serving' for worker in pool.workers()) < count:
        if time.monotonic() > end:
            raise Failed(f'{count} workers in reserve are not ready: {pool.workers()}')
        time.sleep(0.05)


@row
def first(bench, report, options):
    """The first call of a session."""
    native = 0 if bench.driver else statistics.median(first_call(bench, None, {}) for _ in range(5))
    with LocalPool(bench, '[daemon]\nready-workers = 1\n' + TENANTS) as pool:
        reserve = []
        for number in range(8):
            await_ready(pool, 1)
            # Its preparations after it is ready are no part of a usual first call.
            time.sleep(0.5)
            reserve.append(first_call(bench, pool.local, tenant(f't{number}')))
        running = [first_call(bench, pool.local, tenant('t0')) for _ in range(5)]
    with LocalPool(bench, '[daemon]\nready-workers = 0\n' + TENANTS) as pool:
        first_call(bench, pool.local, tenant('t0'))
        none = [first_call(bench, pool.local, tenant(f't{number}')) for number in range(1, 6)]
    for name, values, most in (('a worker of the reserve', reserve, 30), ('a running worker', running, 10),
                               ('no worker', none, native + 600)):
        report(f'first call of a session, {name}', f'{statistics.median(values):.1f} ms (up to {max(values):.1f}), native '
               f'{native:.0f}', statistics.median(values) <= most)


class Checked:
    """Work of one tenant with checked results; a context manager."""

    def __init__(self, bench, remote, env, mib=16):
        self.bench, self.result = bench, None
        self.process = bench.start('checked', str(mib), remote=remote, env=env, stdin=subprocess.PIPE)
        line = self.process.stdout.readline()
        found = re.fullmatch(r'memory: (0x[0-9a-f]+)\n', line)
        if not found:
            raise Failed(f'checked did not start: {line}{bench.finish(self.process)}')
        self.address = int(found[1], 16)
        self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        status, out, err = self.bench.finish(self.process)
        self.result = f'status {status}: {out.strip()} {err.strip()}'
        with contextlib.suppress(ValueError):
            self.result = {**json.loads(out), 'status': status}

    def is_right(self):
        return isinstance(self.result, dict) and self.result['status'] == 0 and self.result['rounds'] > 0


def judge_checked(report, title, all_checked):
    rounds = [checked.result['rounds'] for checked in all_checked if checked.is_right()]
    longest = max((checked.result['longest_ms'] for checked in all_checked if checked.is_right()), default=0)
    wrong = [checked.result for checked in all_checked if not checked.is_right()]
    report(title, f'{len(wrong)} of {len(all_checked)} with an error{" " + str(wrong) if wrong else ""}; {sum(rounds)} rounds, '
           f'the longest {longest:.0f} ms', not wrong)


KINDS = ['illegal', 'assertion', 'trap', 'misaligned', 'stack', 'endless']


@row
def faults(bench, report, options):
    """Faults of one tenant, one a second if the reserve has a worker again, beside three with work in flight."""
    after, late = {kind: [] for kind in KINDS}, []
    with LocalPool(bench, TENANTS) as pool:
        bystanders = []
        with contextlib.ExitStack() as stack:
            for number in 1, 2, 3:
                bystanders.append(stack.enter_context(Checked(bench, pool.local, tenant(f't{number}'))))
            await_ready(pool, 1)
            begin, before = time.monotonic(), None
            for number in range(options.faults):
                kind = KINDS[number % len(KINDS)]
                # A trap takes a second until the driver reports it, and starts delay one another.
                due = time.monotonic()
                await_ready(pool, 1)
                started = time.monotonic()
                late.append(started - due)
                took = first_call(bench, pool.local, tenant('t0'), kind)
                if before:
                    after[before].append(took)
                before = kind
                time.sleep(max(0, started + 1 - time.monotonic()))
            took = time.monotonic() - begin
        judge_checked(report, f'{options.faults} faults in {took:.0f} s, tenants beside them', bystanders)
        every = sorted(itertools.chain(*after.values()))
        delayed = [one for one in late if one > 0.05]
        each = ', '.join(f'{kind} {statistics.median(values):.0f} ({max(values):.0f})' for kind, values in after.items() if values)
        report('the first call of the faulting tenant after each', f'median {statistics.median(every):.0f} ms, of 100 '
               f'{every[int(len(every) * 0.95)]:.0f} ms for 95; after {each}; {len(delayed)} waited for the reserve, up to '
               f'{1000 * max(late):.0f} ms', every[int(len(every) * 0.95)] <= 100)


@row
def addresses(bench, report, options):
    """A kernel of another tenant reads and writes the addresses that a tenant uses."""
    mib, pattern = 64, 0x5ec2e75ec2e75ec
    with LocalPool(bench, TENANTS) as pool, concurrent.futures.ThreadPoolExecutor(4) as executor:
        with Checked(bench, pool.local, tenant('t0'), mib) as victim:
            names = [f't{number}' for number in range(1, 5)]

            def access(what):
                name = names.pop()
                try:
                    return bench.run('harm', *what, remote=pool.local, env=tenant(name))
                finally:
                    names.append(name)
            results = list(executor.map(access, [(way, hex(victim.address + at)) for at in range(0, mib << 20, 2 << 20)
                                                 for way in ('read', 'write')]))
        words = [int(word, 16) for _, out, _ in results for word in re.findall(r'read: \S+ (0x[0-9a-f]+)', out)]
        seen = [hex(word) for word in words if pattern <= word < pattern + (mib << 17)]
        broken = [out + err for _, out, err in results if 'first: ' not in out]
        faulted = sum('IllegalAddress' in out or 'LaunchFailure' in out for _, out, _ in results)
        judge_checked(report, 'the tenant whose addresses another reads and writes', [victim])
        report('words that the other tenant read', f'{len(seen)} words of the pattern; {faulted} of {len(results)} accesses were faults'
               + (f'; not started: {broken[:1]}' if broken else ''), not seen and not broken and len(words) == mib // 2)


def writable_shared(pid):
    """(begin, end, name) of the memory that the process shares with others and may write, without devices."""
    with open(f'/proc/{pid}/maps') as file:
        for line in file:
            found = re.match(r'(\w+)-(\w+) .w.s \S+ \S+ \S+ +(/memfd:|/dev/shm|/dev/zero|/SYSV)(.*)', line)
            if found:
                yield int(found[1], 16), int(found[2], 16), found[3] + found[4]


def overwrite_shared(pid, byte_of):
    """All writable shared memory of a process; returns what it was, with its size."""
    written = []
    with open(f'/proc/{pid}/mem', 'r+b', buffering=0) as memory:
        for begin, end, name in writable_shared(pid):
            # A ring that the client has cut off has no pages.
            with contextlib.suppress(OSError):
                for at in range(begin, end, 1 << 20):
                    size = min(1 << 20, end - at)
                    memory.seek(at)
                    memory.write(byte_of(size))
                written.append(f'{name.removeprefix("/memfd:").removesuffix(" (deleted)")} {(end - begin) >> 10} KiB')
    return written


ACCOUNT = ('sessions', 'sessions_max', 'clients', 'refusals', 'memory_limit_bytes', 'pinned_bytes', 'pinned_limit_bytes', 'weight')


@row
def shared_memory(bench, report, options):
    """A worker overwrites all shared memory that it may write."""
    def accounts():
        status, out, err = bench.run('gpupoolctl', '--socket', pool.admin, '--format=json', 'tenant', 'list')
        if status:
            raise Failed(err)
        # Their work allocates memory all the time.
        return {line['tenant']: {**{key: line[key] for key in ACCOUNT}, 'memory': line['memory_bytes'] >> 26}
                for line in json.loads(out) if line['tenant'] in ('t1', 't2')}
    generator = random.Random(1)
    for title, byte_of in (('with ones', lambda size: b'\xff' * size), ('with noise', generator.randbytes)):
        with LocalPool(bench, TENANTS) as pool:
            with Checked(bench, pool.local, tenant('t1')) as one, Checked(bench, pool.local, tenant('t2')) as two:
                hold = bench.start('memhog', '64', remote=pool.local, env=tenant('t0'), stdin=subprocess.PIPE)
                hold.stdout.readline()
                before = accounts()
                pid = next(worker['pid'] for worker in pool.workers() if worker['tenant'] == 't0')
                written = overwrite_shared(pid, byte_of)
                time.sleep(2)
                during = accounts()
                bench.finish(hold, 60)
                later = bench.run('vectoradd', remote=pool.local, env=tenant('t3'))
                own = bench.run('vectoradd', remote=pool.local, env=tenant('t0'))
            judge_checked(report, f'tenants beside a worker that overwrites {title}', [one, two])
            report('their accounts', f'{len(written)} pieces written ({"; ".join(written)[:150]})'
                   + ('' if before == during else f': {before} became {during}'), bool(written) and before == during)
            report('new sessions', f'of another tenant {later[0]}, of the same {own[0]} {own[2].strip()[:100]}',
                   later[0] == 0 and pool.process.poll() is None)


@row
def host_memory(bench, report, options):
    """One tenant takes host memory without end, under a limit of the control group (version 1, as root)."""
    if not os.access('/sys/fs/cgroup/memory/cgroup.procs', os.W_OK):
        raise Failed('this user cannot create control groups of version 1')
    group = f'/sys/fs/cgroup/memory/gpupool-bench-{os.getpid()}'
    os.mkdir(group)
    try:
        with open(group + '/memory.limit_in_bytes', 'w') as file:
            file.write(str(options.host_limit << 20))
        config = '[daemon]\npinned-memory = 1T\nhost-memory = 1T\n' + ''.join(
            f'[tenant t{number}]\npinned-memory = 1T\n' for number in range(4))
        with LocalPool(bench, config) as pool:
            for pid in [pool.process.pid, *(worker['pid'] for worker in pool.workers())]:
                with open(group + '/cgroup.procs', 'w') as file:
                    file.write(str(pid))
            with Checked(bench, pool.address, tenant('t1')) as one, Checked(bench, pool.local, tenant('t2')) as two:
                pids = {worker['pid'] for worker in pool.workers() if worker['tenant']}
                # Over tcp, kernels that use pinned memory have a copy of it in the worker. Eight sessions, because a
                # launch takes the longer the more of such memory its session has.
                takers = [bench.start('harm', 'pinned', str(options.host_limit // 256), remote=pool.address, env=tenant('t0'))
                          for _ in range(8)]
                ends = [bench.finish(taker) for taker in takers]
                kept = pids <= {worker['pid'] for worker in pool.workers()}
                again = bench.run('vectoradd', remote=pool.local, env=tenant('t0'))
            judge_checked(report, f'tenants beside one that takes more than {options.host_limit} MiB of host memory', [one, two])
            ended = sum('cudaSuccess' not in out for _, out, _ in ends)
            report('its own worker', f'{ended} of its {len(ends)} sessions ended: {(ends[0][1] + ends[0][2]).strip()[-120:]}; other '
                   f'workers {"the same" if kept else "REPLACED"}; its next session {"works" if not again[0] else again}',
                   kept and again[0] == 0 and ended > 0)
    finally:
        os.rmdir(group)


def gpu_memory(bench):
    """MiB in use on the first GPU, as the driver reports it; None on the software device."""
    if bench.driver:
        return None
    out = subprocess.run(['nvidia-smi', '--query-gpu=memory.used', '--format=csv,noheader,nounits'], capture_output=True,
                         text=True, check=True).stdout
    return int(out.split()[0])


def get_use(pid):
    with open(f'/proc/{pid}/status') as file:
        status = dict(line.split(':', 1) for line in file)
    return {'descriptors': len(glob.glob(f'/proc/{pid}/fd/*')), 'threads': int(status['Threads']),
            'resident MiB': int(status['VmRSS'].split()[0]) >> 10}


@row
def come_and_go(bench, report, options):
    """Twenty tenants come and go ten times each."""
    uses, longest = [], 0
    with LocalPool(bench, '[daemon]\nworker-idle-timeout = 1\n' + TENANTS) as pool, \
            concurrent.futures.ThreadPoolExecutor(20) as executor:
        for _ in range(options.turns):
            begin = time.monotonic()
            results = list(executor.map(lambda number: bench.run('vectoradd', remote=pool.local, env=tenant(f't{number}')), range(20)))
            longest = max(longest, time.monotonic() - begin)
            for status, out, err in results:
                if status:
                    raise Failed(f'vectoradd: {status}: {out}{err}')
            end = time.monotonic() + 60
            while len(pool.workers()) > 2 and time.monotonic() < end:
                time.sleep(0.2)
            time.sleep(1)
            status = json.loads(bench.run('gpupoolctl', '--socket', pool.admin, '--format=json', 'status')[1])
            uses.append({**get_use(pool.process.pid), 'workers': len(pool.workers()), 'sessions': status['sessions'],
                         'GPU MiB': gpu_memory(bench)})
    # The first time creates what is kept.
    before, after = uses[min(1, len(uses) - 1)], uses[-1]
    grown = [key for key in before if before[key] is not None and after[key] > before[key] + (2 if 'MiB' in key else 0)]
    report(f'20 tenants come and go {options.turns} times', f'after the second time {before}, after the last {after}; '
           f'20 programs at once took up to {longest:.1f} s', not grown)


@row
def loop(bench, report, options):
    """One tenant opens and ends sessions in a loop, and others have their first call."""
    ended = threading.Event()

    def repeat():
        count = 0
        while not ended.is_set():
            bench.run('harm', 'illegal' if count % 2 else 'none', remote=pool.local, env=tenant('t0', GPUPOOL_ISOLATION='session'))
            count += 1
        return count
    with LocalPool(bench, TENANTS) as pool, concurrent.futures.ThreadPoolExecutor(4) as executor:
        await_ready(pool, 1)
        loops = [executor.submit(repeat) for _ in range(4)]
        try:
            time.sleep(2)
            took = []
            for number in range(1, 11):
                took.append(first_call(bench, pool.local, tenant(f't{number}')))
                time.sleep(0.5)
        finally:
            ended.set()
        count = sum(future.result() for future in loops)
    report('the first calls of others while one tenant opens sessions in a loop', f'median {statistics.median(took):.0f} ms, '
           f'up to {max(took):.0f}; {count} sessions of the loop', max(took) <= 500)


# Programs that judge themselves, without those that look at the device's free memory or fill the GPU for long.
PROGRAMS = """
apigaps arrays assertion assertlate asyncalloc atomics attributes badhandle batches bigglobal callbacks captures conditions contexts
copies copies2d copyorder coredumps coregaps deviceheap devicequery driverapi errors events exitnoclean exitpending faultofone fork
forkmemory graphdevices graphlaunch graphmemory graphnodes graphs greens hostalias hostfunc hostorder hostpools hostvmm implicitwaits
ipc lanes launch linkptx managed managedcalls managedhints managedlate managedorder managedsignals managedstyles managedvars
manydevices manystreams mappedstyles matmul memops memset multifile occupancy peer peers perthread pinned policies poolshare printf
printlate references reset shareable sparse sticky straight streams symbols tensormaps textures threads unsupported vectoradd vmm warp
wordsfreed zerocopy
""".split()
FAULTS = [('harm', kind) for kind in KINDS if kind != 'endless']


@row
def programs(bench, report, options):
    """All programs as eight tenants at once, those with faults among them several times."""
    commands = [(name,) for name in PROGRAMS if bench.find_optional(name)]

    def run_all(order, workers, remote):
        results, left, lock = {}, list(order), threading.Lock()

        def run_next(number):
            while True:
                with lock:
                    if not left:
                        return
                    at, command = len(left), left.pop()
                result = bench.run(*command, remote=remote, env=tenant(f't{number}') if remote else None)
                results[at] = (command, *result)
        with concurrent.futures.ThreadPoolExecutor(workers) as executor:
            list(executor.map(run_next, range(workers)))
        return list(results.values())
    if bench.driver:
        alone = dict.fromkeys(commands + FAULTS, 0)
    else:
        alone = {command: status for command, status, _, _ in run_all(commands + FAULTS, 4, None)}
    usable = [command for command, status in alone.items() if status == 0]
    order = usable * 2 + FAULTS * 6
    random.Random(options.seed).shuffle(order)
    with LocalPool(bench, TENANTS) as pool:
        failed = [(command, out, err) for command, status, out, err in run_all(order, 8, pool.local) if status]
        again = {command[0]: bench.run(*command, remote=pool.local, env=tenant('t9'))[0] for command, _, _ in failed}
    neighbors = sorted({command[0] for command, _, _ in failed if again[command[0]] == 0})
    for command, out, err in failed:
        print(f'       {" ".join(command)}: {(out + err).strip()[-300:]}', flush=True)
    report(f'{len(order)} runs of {len(usable)} programs as 8 tenants', f'{len(failed)} failed, of which pass alone: '
           f'{" ".join(neighbors) or "none"}; not usable natively: '
           f'{" ".join(command[0] for command, status in alone.items() if status) or "none"}', not neighbors)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('--rows', default='', help='comma-separated, all without it: ' + ', '.join(ROWS))
    parser.add_argument('--results', help='write the list there')
    parser.add_argument('--driver', help="gpupoold's --driver")
    parser.add_argument('--seconds', type=float, default=5, help='of each measurement (5)')
    parser.add_argument('--counts', default='4,8', help='numbers of clients (4,8)')
    parser.add_argument('--rounds', type=int, default=5, help='measurements of each side, in turns (5)')
    parser.add_argument('--faults', type=int, default=100, help='of the row faults (100)')
    parser.add_argument('--turns', type=int, default=10, help='of the row come_and_go (10)')
    parser.add_argument('--host-limit', type=int, default=4096, help='MiB, of the row host_memory (4096)')
    parser.add_argument('--seed', type=int, default=1, help='of the order of the row programs (1)')
    parser.add_argument('--sides', default='mps,shared,tenant,session', help='of the row clients, besides native')
    options = parser.parse_args()
    options.counts = [int(count) for count in options.counts.split(',')]
    options.sides = options.sides.split(',')
    lines = []

    def report(title, measured, good):
        lines.append({'row': title, 'measured': measured, 'pass': good})
        print(f'{"ok    " if good else "NOT OK"} {title}: {measured}', flush=True)
    with tempfile.TemporaryDirectory(prefix='gpupool-isolation-') as work:
        bench = Bench(options.folder, work, options.driver, options.seconds)
        for name in options.rows.split(',') if options.rows else ROWS:
            try:
                ROWS[name](bench, report, options)
            except Failed as failed:
                report(name, f'not measured: {failed}'.replace('\n', '; ')[:300], False)
    if options.results:
        with open(options.results, 'w') as file:
            json.dump(lines, file, indent=1)
            file.write('\n')
    return 1 if not lines or any(not line['pass'] for line in lines) else 0


if __name__ == '__main__':
    sys.exit(main())
