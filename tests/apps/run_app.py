#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run programs one after the other through one daemon, which must survive and end in order.

run_app.py GPUPOOLD CLIENT_LIBRARY PROGRAM...; a program's status 77 is a skipped test.
"""
import os
import re
import subprocess
import sys

daemon_path, client, *programs = map(os.path.abspath, sys.argv[1:])
number = 0
failed = False


def point(good, what, comment=''):
    global number, failed
    number += 1
    failed = failed or not good
    print(f"{'ok' if good else 'not ok'} {number} - {what}{comment}", flush=True)


def diagnose(text):
    for line in text.splitlines():
        print('# ' + line)


def sanitizer_runtime():
    """A program that was built without a sanitizer must load its runtime before the client."""
    needed = subprocess.run(['ldd', client], capture_output=True, text=True).stdout
    found = re.search(r'=> (\S*lib[at]san\S*)', needed)
    return found.group(1) if found else None


def client_environment(address):
    env = dict(os.environ)
    env['REMOTE_GPU'] = address
    env['LD_LIBRARY_PATH'] = ':'.join(
        [os.path.dirname(client), *filter(None, [env.get('LD_LIBRARY_PATH')])])
    runtime = sanitizer_runtime()
    if runtime:
        env['LD_PRELOAD'] = runtime
        # What NVIDIA's runtime and the program itself leave behind is not ours.
        env['ASAN_OPTIONS'] = env.get('ASAN_OPTIONS', '') + ':detect_leaks=0'
    return env


def run(program, env):
    name = os.path.basename(program)
    try:
        result = subprocess.run([program], env=env, stdin=subprocess.DEVNULL, text=True,
                                capture_output=True, timeout=100)
    except subprocess.TimeoutExpired as error:
        diagnose((error.stdout or b'').decode() + (error.stderr or b'').decode())
        point(False, name + ' ends in time')
        return
    good = result.returncode == 77 or (
        result.returncode == 0 and
        result.stdout.endswith(name.removesuffix('-shared') + ': ok\n'))
    if not good:
        diagnose(f'status {result.returncode}\n{result.stdout}{result.stderr}')
    point(good, name, ' # SKIP not supported' if result.returncode == 77 else '')


def main():
    env = dict(os.environ)
    env.pop('REMOTE_GPU', None)
    daemon = subprocess.Popen([daemon_path, '--listen', '127.0.0.1:0', '--print-address'],
                              env=env, text=True, stdout=subprocess.PIPE)
    listening = re.match(r'listening on (\S+)', daemon.stdout.readline())
    if listening:
        for program in programs:
            run(program, client_environment(listening.group(1)))
        point(daemon.poll() is None, 'the daemon is still there')
        daemon.terminate()
    try:
        status = daemon.wait(30)
    except subprocess.TimeoutExpired:
        daemon.kill()
        status = daemon.wait()
    point(listening and status == 0, 'the daemon starts and ends')
    print(f'1..{number}')
    return failed


if __name__ == '__main__':
    sys.exit(main())
