# SPDX-License-Identifier: Apache-2.0
"""Where bench.py runs programs: natively, and through a daemon by a transport and over a network."""
import argparse
import functools
import json
import os
import pwd
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'network'))
from network import Network  # noqa: E402

FOLDERS = ['', 'server', 'client', 'nvml', 'ctl', 'bench', 'bench/nbody', 'bench/network', 'bench/driver', 'tests/apps', 'tests/integration', 'lib']
TRANSPORTS = ['tcp', 'unix']


class Failed(Exception):
    """A program did not do what it is measured for."""


class Programs:
    """The programs of a build, in its folders or flat (scripts/pack.sh); driver: another than the machine's;
    small: for a test of the run and not of the figures."""

    def __init__(self, folder, work, driver=None, small=False):
        self.small = small
        self.folder, self.work, self.driver = os.path.abspath(folder), work, driver
        # A program asks for either name: one that did not find it here would get the machine's own library.
        self.client = self.link_to('client', self.need('libcuda.so.1'), 'libcuda.so', 'libcuda.so.1')
        self.link_to('client', self.need('libnvidia-ml.so.1'), 'libnvidia-ml.so', 'libnvidia-ml.so.1')
        self.native = self.link_to('native', os.path.abspath(driver), 'libcuda.so', 'libcuda.so.1') if driver else None
        runtime = self.find('libcudart.so.13')
        self.runtime = self.link_to('runtime', runtime, 'libcudart.so.13') if runtime else None

    def link_to(self, name, target, *files):
        """A folder with these alone: a native run must not find the client."""
        path = os.path.join(self.work, name)
        os.makedirs(path, exist_ok=True)
        for file in files:
            if not os.path.lexists(os.path.join(path, file)):
                os.symlink(target, os.path.join(path, file))
        return path

    def find(self, name):
        for sub in FOLDERS:
            path = os.path.join(self.folder, sub, name)
            if os.path.isfile(path):
                return path
        return None

    def need(self, name):
        path = self.find(name)
        if not path:
            sys.exit(f'bench: no {name} below {self.folder}')
        return path

    def environment(self, side=None, address=None):
        """For a native run, or one on this side."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(('REMOTE_GPU', 'GPUPOOL_'))}
        libraries = [self.client if side else self.native, self.runtime, env.get('LD_LIBRARY_PATH'),
                     os.path.join(self.folder, 'lib')]
        env['LD_LIBRARY_PATH'] = ':'.join(path for path in libraries if path)
        if side:
            env['REMOTE_GPU'] = address or side.address
        return env


def stay_root():
    """An option for a daemon of root's: the user gpupool may not be able to read the programs."""
    return ['--user=root'] if os.geteuid() == 0 else []


class Daemon:
    """One for all transports, for as long as the with lasts; config: the text of a configuration; env: more environment."""

    def __init__(self, programs, name='gpupool', config=None, env=None):
        self.programs = programs
        self.local = f'unix://{programs.work}/{name}.sock'
        self.admin = f'{programs.work}/{name}.admin'
        options = [*stay_root(), *(['--driver', programs.driver] if programs.driver else [])]
        if config:
            path = os.path.join(programs.work, f'{name}.conf')
            with open(path, 'w', encoding='utf-8') as file:
                file.write(config)
            options += ['--config', path]
        log_path = os.path.join(programs.work, f'{name}d.log')
        with open(log_path, 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen(
                [programs.need('gpupoold'), '--listen', '127.0.0.1:0', '--listen', self.local, '--print-address',
                 '--admin-socket', self.admin, *options],
                env={**programs.environment(), 'GPUPOOL_CACHE_DIR': programs.work, **(env or {})}, stdout=subprocess.PIPE, stderr=log, text=True)
        found = re.search(r'(127\.0\.0\.1:\d+)', self.process.stdout.readline())
        if not found:
            with open(log_path, encoding='utf-8') as log:
                sys.exit(f'bench: the daemon does not start:\n{log.read()}'.rstrip())
        self.tcp = found[1]

    def status(self):
        """The daemon's status as gpupoolctl prints it."""
        return json.loads(run([self.programs.need('gpupoolctl'), '-s', self.admin, 'status', '--format=json'],
                              self.programs.environment())[1])

    def environment(self):
        """Of a program that uses it over tcp, with no network in between."""
        return self.programs.environment(self, self.tcp)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class SecureDaemon:
    """A daemon that listens with TLS alone, and a token for it, which has its authority, too; need: returns the path of a program;
    env: of a native program; user: the daemon's, where root runs this."""

    def __init__(self, need, env, work, log_path, user='root', options=()):
        pool, self.token = os.path.join(work, 'pool'), os.path.join(work, 'token')
        for command in (['cert', 'init', '127.0.0.1'], ['token', 'create', 'default', '-o', self.token]):
            subprocess.run([need('gpupoolctl'), *command, '-D', pool], env=env, check=True, capture_output=True)
        if os.geteuid() == 0:
            options = [f'--user={user}', *options]
            owner = pwd.getpwnam(user)
            os.chmod(work, 0o711)
            for path in [pool, *(entry.path for entry in os.scandir(pool))]:
                os.chown(path, owner.pw_uid, owner.pw_gid)
        with open(log_path, 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen(
                [need('gpupoold'), '--listen=tls://127.0.0.1:0', '--print-address', f'--tokens={pool}/tokens', f'--certificate={pool}/server.pem',
                 f'--key={pool}/server.key', '--admin-socket', f'{pool}/admin', *options],
                env={**env, 'GPUPOOL_CACHE_DIR': pool}, stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline()
        if not line.startswith('listening on '):
            sys.exit(f'bench: unexpected output of the daemon: {line!r}; see {log_path}')
        self.address = line.split()[-1]


class Side:
    """A way to the daemon, with its raw limit: figures of bench/network/raw.c over the same link."""

    def __init__(self, programs, daemon, transport, rtt, rate):
        self.programs, self.transport, self.rtt, self.rate = programs, transport, rtt, rate
        self.network = self.raw_network = None
        self.address = daemon.tcp if transport == 'tcp' else daemon.local
        self.daemon_pid = daemon.process.pid
        self.raw = subprocess.Popen([programs.need('raw'), 'serve'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.raw_address = self.raw.stdout.readline().split()[-1]
        if rtt or rate:
            program = programs.need('network')
            self.network = Network(program, self.address, rtt, rate)
            self.raw_network = Network(program, self.raw_address, rtt, rate)
            self.address, self.raw_address = self.network.address, self.raw_network.address
        self.measured_rtt = self.network.rtt if self.network else 0.0

    @functools.cache
    def limits(self, connections=4):
        """Measured once: name -> value, of the link alone; empty for a local socket."""
        if self.transport != 'tcp':
            return {}
        return read_figures(run([self.programs.need('raw'), self.raw_address, str(connections), *(['once'] if self.programs.small else [])], os.environ)[1])

    def close(self):
        for network in self.network, self.raw_network:
            if network:
                network.__exit__()
        self.raw.stdin.close()
        self.raw.wait()
        self.raw.stdout.close()

    def __str__(self):
        network = f', {self.rtt:g} ms' if self.rtt else ''
        return f'{self.transport}{network}' + (f', {self.rate:g} Gbit/s' if self.rate else '')


def run(command, env, limit=600):
    """(seconds, standard output, standard error) of a program that succeeds."""
    begin = time.monotonic()
    try:
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f'{command}: not done after {limit} s') from None
    if done.returncode:
        raise Failed(f'{command}: status {done.returncode}: {done.stdout[-400:]}{done.stderr[-400:]}')
    return time.monotonic() - begin, done.stdout, done.stderr


def run_together(command, env, count, limit=600):
    """Runs COUNT processes at once; returns (seconds until the last has ended, their outputs)."""
    begin = time.monotonic()
    processes = [subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True) for _ in range(count)]
    outputs = []
    for process in processes:
        try:
            outputs.append(process.communicate(timeout=max(1, limit - (time.monotonic() - begin)))[0])
        except subprocess.TimeoutExpired:
            for other in processes:
                other.kill()
                other.communicate()
            raise Failed(f'{count} of {command}: not done after {limit} s') from None
    if any(process.returncode for process in processes):
        raise Failed(f'{count} of {command}: one failed')
    return time.monotonic() - begin, outputs


def read_figures(text):
    """name -> value of lines with a name, a number and a unit."""
    return {name: float(value) for name, value in re.findall(r'^(\w+) (\d[\d.e+-]*) \S+$', text, re.M)}


def read_causes(text):
    """Parses the output of GPUPOOL_LOG=stats: cause -> how many round trips."""
    return {name: int(count) for count, name in re.findall(r'^gpupool: stats: +(\d+) waits +[\d.]+ ms (.+)$', text, re.M)}


def listed(allowed):
    """The type of an argument that is a list of these, separated by commas."""
    def parse(text):
        if unknown := set(text.split(',')) - set(allowed):
            raise argparse.ArgumentTypeError(f'{", ".join(sorted(unknown))}: there is {", ".join(allowed)}')
        return text.split(',')
    return parse


def median(values):
    return statistics.median(values) if values else None
