# SPDX-License-Identifier: Apache-2.0
"""Daemons with a configuration, and programs through them, for the rows of tenants.py."""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

FOLDERS = ['', 'server', 'client', 'ctl', 'bench/nbody', 'bench/tenants', 'tests/apps', 'lib']


class Bench:
    """The programs of a build, in its folders or in one flat one."""

    def __init__(self, folder, work, driver=None, seconds=5.0):
        self.folder, self.work, self.driver, self.seconds = os.path.abspath(folder), work, driver, seconds
        self.client = os.path.dirname(self.find('libcuda.so.1'))

    def find_optional(self, name):
        for sub in FOLDERS:
            path = os.path.join(self.folder, sub, name)
            if os.path.exists(path):
                return path
        return None

    def find(self, name):
        return self.find_optional(name) or sys.exit(f'{name} is not in {self.folder}')

    def environment(self, remote=None, env=None):
        full = {k: v for k, v in os.environ.items() if not k.startswith(('CUDA_MPS', 'REMOTE_GPU', 'GPUPOOL'))}
        paths = [p for p in full.get('LD_LIBRARY_PATH', '').split(':') if p]
        if remote:
            paths.insert(0, self.client)
            full['REMOTE_GPU'] = remote
        full['LD_LIBRARY_PATH'] = ':'.join(paths + [os.path.join(self.folder, 'lib')])
        full.update(env or {})
        return full

    def start(self, name, *args, **more):
        return self.start_path(self.find(name), *args, **more)

    def start_path(self, path, *args, remote=None, env=None, stdin=subprocess.DEVNULL, wrapper=()):
        return subprocess.Popen([*wrapper, path, *args], stdin=stdin, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=self.environment(remote, env))

    @staticmethod
    def finish(process, seconds=120):
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err += f'\nkilled after {seconds} s'
        return process.returncode, out, err

    def run(self, name, *args, **more):
        return self.finish(self.start(name, *args, **more))

    def loads(self, *each, seconds=None):
        """Several loads that measure the same stretch of time. each: (remote, env, arguments)."""
        seconds = seconds or self.seconds
        begin = time.time() + 2.0 + 0.02 * len(each)
        processes = [self.start('load', f'-seconds={seconds}', f'-start={begin}', *args, remote=remote, env=env)
                     for remote, env, args in each]
        results = []
        for process in processes:
            status, out, err = self.finish(process, seconds + 120)
            try:
                results.append(json.loads(out))
            except ValueError:
                results.append({'error': f'status {status}: {out} {err}'.strip()})
        for result in results:
            if 'error' in result:
                raise Failed(result['error'])
        return results

    def load(self, remote, *args, env=None, seconds=None):
        return self.loads((remote, env, args), seconds=seconds)[0]

    def nbody(self, bodies, iterations, remotes):
        """GFLOP/s of each of several at once."""
        processes = [self.start('nbody', '-benchmark', f'-numbodies={bodies}', f'-i={iterations}', remote=remote, env=env)
                     for remote, env in remotes]
        rates, times = [], []
        for process in processes:
            status, out, err = self.finish(process, 300)
            rate = re.search(r'([\d.]+) (?:single|double)-precision GFLOP/s', out)
            took = re.search(r'total time for \d+ iterations: ([\d.]+) ms', out)
            if status or not rate:
                raise Failed(f'nbody ended with {status}: {out} {err}')
            rates.append(float(rate[1]))
            times.append(float(took[1]))
        return rates, times

    def pool(self, config='', *args, env=None):
        return Pool(self, config, args, env)


class Failed(Exception):
    """A program did not do what a row needs of it."""


class Pool:
    """gpupoold with this configuration; a context manager."""

    def __init__(self, bench, config, args, env):
        self.bench = bench
        with tempfile.NamedTemporaryFile('w', suffix='.conf', dir=bench.work, delete=False) as file:
            file.write(config)
            self.config = file.name
        self.log_path = self.config + '.log'
        command = [bench.find('gpupoold'), '--listen', '127.0.0.1:0', '--print-address', '--config', self.config, *args]
        command += ['--user', 'root'] if os.geteuid() == 0 else []
        if bench.driver:
            command += ['--driver', bench.driver]
        with open(self.log_path, 'w') as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True,
                                            env=bench.environment(env=env))
        self.address = self.process.stdout.readline().split()[-1:] or ['']
        self.address = self.address[0]
        if not self.address:
            raise Failed(f'the daemon did not start: {self.log()}')

    def reload(self, config):
        with open(self.config, 'w') as file:
            file.write(config)
        os.kill(self.process.pid, signal.SIGHUP)

    def cpu_seconds(self):
        """Processor time of the daemon and its workers."""
        with open(f'/proc/{self.process.pid}/task/{self.process.pid}/children') as file:
            pids = [self.process.pid, *file.read().split()]
        ticks = 0
        for pid in pids:
            # A device monitor may have ended meanwhile.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f'/proc/{pid}/stat') as file:
                ticks += sum(int(word) for word in file.read().rsplit(')', 1)[1].split()[11:13])
        return ticks / os.sysconf('SC_CLK_TCK')

    def log(self):
        with open(self.log_path) as file:
            return file.read()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def link_rate(seconds=1.0):
    """GB/s of one TCP connection over loopback between two processes: the best of some sizes."""
    best = 0
    for size in (128 << 10, 512 << 10, 1 << 20, 4 << 20):
        with socket.create_server(('127.0.0.1', 0)) as server:
            child = os.fork()
            if child == 0:
                with socket.create_connection(server.getsockname()) as link:
                    data, end = bytes(size), time.monotonic() + seconds
                    while time.monotonic() < end:
                        link.sendall(data)
                os._exit(0)
            link, _ = server.accept()
            with link:
                room, got, begin = bytearray(size), 0, time.monotonic()
                while part := link.recv_into(room):
                    got += part
                best = max(best, got * 1e-9 / (time.monotonic() - begin))
            os.waitpid(child, 0)
    return best


def tenant(name, **more):
    return {'GPUPOOL_TENANT': name, **more}
