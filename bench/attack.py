#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure what one tenant's attack costs another tenant.

FOLDER is a build folder or a packed one (scripts/pack.sh). A daemon serves two tenants that have a
token each. The victim starts a program every 0.5 s, and another program of the victim makes short
copies. The attacker floods the daemon: with connections that it closes at once, with Hellos whose
answers it does not read, with images that differ, and with all of these together.

For each flood the table shows how long the victim's programs take from their start to their end, and
how long its calls take. Unrelated processes that keep the same number of cores busy show what the
load alone costs. Goals: a program takes at most 0.5 s, and the 99th percentile of the calls is at
most 1.5 times that beside the unrelated processes. Exit status 1 if a goal is missed.

On at least 12 processors each process of the attacker and of the victim has one of its own, as it
would on another machine; the daemon and the unrelated processes share the others. On a smaller machine
all processes share all processors, and the result contains the scheduler's part, too.

As root the daemon, the attacker and the victim are three users, if others can read FOLDER. Otherwise
they are one user, which needs no token and may open any number of connections. Needs python3 only;
--driver LIBRARY for the software device.
"""
import argparse
import collections
import ctypes
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import bench_clients
import bench_sides

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))
import wire  # noqa: E402

OPEN_SECONDS, CALL_RATIO = 0.5, 1.5
START_EACH, CALL_PAUSE = 0.5, 0.001
USERS = {'victim': 65534, 'attacker': 65533}
# Processes of each flood, and connections that one process of the Hello flood leaves open.
ATTACKERS, HELD = 2, 32
# Programs of the victim at a time.
VICTIMS = 2
# Another address than the victim's: the ports of one address are few.
SOURCE = '127.0.0.2'
PTX = '.version 7.0\n.target sm_80\n.address_size 64\n'
SMALL_IMAGES, LARGE_LINES = 20, 100000
FLOODS = {'connections': ['connections'], 'hello': ['hello'], 'images': ['images'],
          'all': ['connections', 'hello', 'images']}

# used: seconds of processors, without the attacker's where tenants have processors of their own; took: seconds
# of the clock; done, refused: attempts of the attacker.
Phase = collections.namedtuple('Phase', 'starts failed calls used took done refused')


# The programs of victim and attacker; each is a process of this file.

def must(result, what):
    if result:
        sys.exit(f'attack: {what}: error {result}')


def open_context():
    cuda, device, context = ctypes.CDLL('libcuda.so.1'), ctypes.c_int(), ctypes.c_void_p()
    must(cuda.cuInit(0), 'cuInit')
    must(cuda.cuDeviceGet(ctypes.byref(device), 0), 'cuDeviceGet')
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), 'cuDevicePrimaryCtxRetain')
    must(cuda.cuCtxSetCurrent(context), 'cuCtxSetCurrent')
    return cuda


def make_calls():
    """For each line with a number of seconds, prints the times of the calls in that time."""
    cuda, memory, word = open_context(), ctypes.c_uint64(), ctypes.c_uint32(1)
    must(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4)), 'cuMemAlloc')
    for line in sys.stdin:
        times, end = [], time.monotonic() + float(line)
        while (begin := time.monotonic()) < end:
            must(cuda.cuMemcpyHtoD_v2(memory, ctypes.byref(word), ctypes.c_size_t(4)), 'cuMemcpyHtoD')
            must(cuda.cuMemcpyDtoH_v2(ctypes.byref(word), memory, ctypes.c_size_t(4)), 'cuMemcpyDtoH')
            times.append(time.monotonic() - begin)
            time.sleep(CALL_PAUSE)
        print(json.dumps(times), flush=True)


def connect(url):
    if url.startswith('unix://'):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(10)
        sock.connect(url.removeprefix('unix://'))
        return sock
    sock = socket.socket()
    try:
        sock.settimeout(10)
        sock.setsockopt(socket.SOL_IP, getattr(socket, 'IP_BIND_ADDRESS_NO_PORT', 24), 1)
        sock.bind((SOURCE, 0))
        sock.connect(('127.0.0.1', int(url.rsplit(':', 1)[1])))
    except OSError:
        sock.close()
        raise
    return sock


def flood_connections(url):
    """Every other connection begins like a client."""
    count = 0
    while True:
        with connect(url) as sock:
            if count % 2:
                sock.sendall(wire.preamble(wire.CONTROL_TLS if url.startswith('tls') else wire.CONTROL))
        count += 1
        yield


def flood_hello(url):
    """Of an authenticated client that reads no Welcome."""
    with open(os.environ['GPUPOOL_TOKEN_FILE'], encoding='utf-8') as file:
        token = re.search(r'^gpt_\w+', file.read(), re.M)[0]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    held = collections.deque()
    while True:
        sock = connect(url)
        held.append(sock)
        sock.sendall(wire.preamble(wire.CONTROL_TLS if url.startswith('tls') else wire.CONTROL))
        if url.startswith('tls'):
            greeting = b''
            while len(greeting) < 64:
                part = sock.recv(64 - len(greeting))
                if not part:
                    raise ConnectionError
                greeting += part
            held[-1] = sock = context.wrap_socket(sock)
        sock.sendall(wire.message(wire.hello(program='flood', more=wire.field(9, token))))
        if len(held) > HELD:
            held.popleft().close()
        yield


def flood_images(_):
    """Small images, and a large one now and then, none of which the daemon has seen."""
    cuda, module, salt = open_context(), ctypes.c_void_p(), f'{os.getpid()}_{time.monotonic_ns()}'
    large = ''.join(f'add.u32 %r1, %r1, {i};\n' for i in range(LARGE_LINES))
    count = 0
    while True:
        body = large if count % (SMALL_IMAGES + 1) == SMALL_IMAGES else ''
        text = f'{PTX}.visible .entry flood_{salt}_{count}() {{ .reg .u32 %r<2>; mov.u32 %r1, 0;\n{body}ret; }}\n'
        count += 1
        must(cuda.cuModuleLoadData(ctypes.byref(module), text.encode()), 'cuModuleLoadData')
        must(cuda.cuModuleUnload(module), 'cuModuleUnload')
        yield


def become(user):
    """Another user than root may not be able to start this Python."""
    if user != os.geteuid():
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


def flood(kind, url):
    """Until standard input ends, and once at least; prints how often it succeeded and failed."""
    over, done, failed = threading.Event(), 0, 0
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    attempts = None
    while not over.is_set() or not done:
        attempts = attempts or globals()[f'flood_{kind}'](url)
        try:
            next(attempts)
            done += 1
        except OSError:  # refused, and the generator is over
            attempts = None
            failed += 1
            time.sleep(0.001)
    print(json.dumps([done, failed]), flush=True)
    os._exit(0)


# The measurement.

def find_users(programs):
    """tenant -> user ID"""
    if os.geteuid() == 0 and all(subprocess.run(['test', '-r', programs.need(name)], user=user, group=user, extra_groups=[], check=False).returncode == 0
                                 for name in ('libcuda.so.1', 'vectoradd') for user in USERS.values()):
        return USERS
    return dict.fromkeys(USERS, os.geteuid())


def split_cpus():
    """Binds this process and those that it starts to some processors; tenant -> its own, or none."""
    cpus, count = sorted(os.sched_getaffinity(0)), ATTACKERS * max(len(kinds) for kinds in FLOODS.values())
    if len(cpus) < 2 * count:
        print(f'{len(cpus)} processors: the tenants have none of their own, for which {2 * count} are needed')
        return {}
    own = cpus[-count - VICTIMS:]
    os.sched_setaffinity(0, cpus[:-count - VICTIMS])
    return {'victim': own[:VICTIMS], 'attacker': own[VICTIMS:]}


class Pool:
    """A daemon with a certificate and the tenants' tokens; a context manager."""

    def __init__(self, programs):
        self.programs, self.cpus, work = programs, split_cpus(), programs.work
        self.env = {**programs.environment(), 'CONFIGURATION_DIRECTORY': f'{work}/pool', 'GPUPOOL_CACHE_DIR': f'{work}/cache'}
        os.makedirs(f'{work}/pool')
        self.users = find_users(programs)
        self.ctl('cert', 'init', '127.0.0.1')
        for name, user in self.users.items():
            self.ctl('token', 'create', name, '-o', f'{work}/{name}.token')
            os.chown(f'{work}/{name}.token', user, -1)
        command = [programs.need('gpupoold'), '--print-address', '--admin-socket', 'off', '--listen', 'tls://127.0.0.1:0',
                   '--listen', 'tcp://127.0.0.1:0', '--listen', f'unix://{work}/gpupool.sock']
        command += ['--driver', programs.driver] if programs.driver else []
        command += ['--user', 'root'] if os.geteuid() == 0 else []
        with open(f'{work}/log', 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, stderr=log, text=True)
        self.urls = {}
        while len(self.urls) < 3:
            line = self.process.stdout.readline()
            if not line:
                with open(f'{work}/log', encoding='utf-8') as log:
                    sys.exit(f'attack: the daemon does not start:\n{log.read()}'.rstrip())
            if found := re.search(r'(\w+)://\S+', line):
                self.urls[found[1]] = found[0]

    def ctl(self, *args):
        bench_sides.run([self.programs.need('gpupoolctl'), *args], self.env)

    def environment(self, tenant, url):
        return {**self.programs.environment(self, url), 'GPUPOOL_TOKEN_FILE': f'{self.programs.work}/{tenant}.token',
                'XDG_CONFIG_HOME': '/nonexistent', 'PYTHONDONTWRITEBYTECODE': '1'}

    def start(self, tenant, url, command):
        user = self.users[tenant]
        other = {'user': user, 'group': user, 'extra_groups': []} if user != os.geteuid() else {}
        process = subprocess.Popen(command, env=self.environment(tenant, url), stdout=subprocess.DEVNULL, **other)
        self.bind(process, tenant)
        return process

    def bind(self, process, tenant):
        if self.cpus:
            os.sched_setaffinity(process.pid, self.cpus[tenant])

    def start_part(self, tenant, url, *args):
        process = subprocess.Popen([sys.executable, os.path.abspath(__file__), '--part', str(self.users[tenant]), *args], text=True,
                                   env=self.environment(tenant, url), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.bind(process, tenant)
        return process

    def processor_ms(self):
        return bench_clients.processor_ms(bench_clients.get_process_tree(self.process.pid))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.process.stdout.close()


def start_programs(pool, url, seconds):
    """(the times of the programs, how many failed)"""
    times, failed, end = [], 0, time.monotonic() + seconds
    while (begin := time.monotonic()) < end:
        process = pool.start('victim', url, [pool.programs.need('vectoradd')])
        try:
            failed += process.wait(60) != 0
        except subprocess.TimeoutExpired:
            process.kill()
            failed += process.wait() != 0
        times.append(time.monotonic() - begin)
        time.sleep(max(0, begin + START_EACH - time.monotonic()))
    return times, failed


def measure(pool, url, calls, seconds, attackers=(), busy=()):
    """A Phase beside these processes, which it ends."""
    time.sleep(min(1, seconds / 4))
    used = [process.pid for process in (*(() if pool.cpus else attackers), *busy)]
    begin, before = time.monotonic(), bench_clients.processor_ms(used) + pool.processor_ms()
    calls.stdin.write(f'{seconds}\n')
    calls.stdin.flush()
    starts, failed = start_programs(pool, url, seconds)
    times = json.loads(calls.stdout.readline() or 'null')
    used_ms = bench_clients.processor_ms(used) + pool.processor_ms() - before
    took = time.monotonic() - begin
    for process in busy:
        process.kill()
        process.wait()
    attempts = [json.loads(process.communicate()[0] or '[0, 0]') for process in attackers]
    if not times or not all(done for done, _ in attempts):
        raise bench_sides.Failed('a program of the attacker or of the victim failed')
    return Phase(starts, failed, times, used_ms / 1000, took, sum(done for done, _ in attempts), sum(refused for _, refused in attempts))


def measure_all(pool, url, kinds, seconds, turns):
    """(name -> Phase of all turns, name of a flood -> number of busy processes beside which it is judged)"""
    found, counts = {}, {}

    def add(name, phase):
        found[name] = Phase(*(a + b for a, b in zip(found[name], phase))) if name in found else phase

    calls = pool.start_part('victim', url, 'calls')
    try:
        for _ in range(turns):
            add('nothing', measure(pool, url, calls, seconds / turns))
            for name in kinds:
                attackers = [pool.start_part('attacker', url, kind, url) for kind in FLOODS[name] for _ in range(ATTACKERS)]
                add(name, measure(pool, url, calls, seconds / turns, attackers=attackers))
                cores = found[name].used / found[name].took - found['nothing'].used / found['nothing'].took
                count = counts.setdefault(name, max(1, round(cores)))
                busy = [subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(count)]
                add(f'{name}:busy{count}', measure(pool, url, calls, seconds / turns, busy=busy))
    finally:
        calls.communicate()
    return found, counts


def get_quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def show(found, counts):
    """Prints the table; returns whether all goals are reached."""
    print(f'{"beside":18} {"cores":>5} {"programs":>8} {"failed":>6} {"median ms":>9} {"worst ms":>8} {"calls":>8} {"P50 us":>8} '
          f'{"P99 us":>8} {"attempts":>8} {"refused":>8} {"ratio":>6}  goals')
    reached = True
    for name, phase in found.items():
        worst, p99 = max(phase.starts), get_quantile(phase.calls, 0.99)
        print(f'{name:18} {phase.used / phase.took:5.1f} {len(phase.starts):8} {phase.failed:6} {get_quantile(phase.starts, 0.5) * 1e3:9.0f} '
              f'{worst * 1e3:8.0f} {len(phase.calls):8} {get_quantile(phase.calls, 0.5) * 1e6:8.0f} {p99 * 1e6:8.0f}', end='')
        if name in counts:
            ratio = p99 / get_quantile(found[f'{name}:busy{counts[name]}'].calls, 0.99)
            good = not phase.failed and worst <= OPEN_SECONDS and ratio <= CALL_RATIO
            reached = reached and good
            print(f' {phase.done:8} {phase.refused:8} {ratio:6.2f}  {"reached" if good else "MISSED"}', end='')
        print(flush=True)
    return reached


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', metavar='FOLDER')
    parser.add_argument('--seconds', type=float, default=60, help='for each line of the table (%(default)s)')
    parser.add_argument('--turns', type=int, default=4, help='in which the lines are measured, for the machine may change (%(default)s)')
    parser.add_argument('--over', choices=['tls', 'tcp', 'unix'], default='tls', help='transport (%(default)s)')
    parser.add_argument('--flood', type=bench_sides.listed(FLOODS), default=list(FLOODS), metavar='KIND,...', help=', '.join(FLOODS))
    parser.add_argument('--driver', metavar='LIBRARY', help="instead of the machine's own")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='gpupool-attack-') as work:
        os.chmod(work, 0o755)
        with Pool(bench_sides.Programs(arguments.folder, work, arguments.driver)) as pool:
            found = measure_all(pool, pool.urls[arguments.over], arguments.flood, arguments.seconds, arguments.turns)
    return 0 if show(*found) else 1


if __name__ == '__main__':
    if sys.argv[1:2] == ['--part']:
        become(int(sys.argv[2]))
        sys.exit(make_calls() if sys.argv[3] == 'calls' else flood(*sys.argv[3:]))
    try:
        sys.exit(main())
    except bench_sides.Failed as error:
        sys.exit(f'attack: {error}')
