#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the integration tests, hostile clients among them, on a machine's own driver: a GPU.

FOLDER holds what a build made: a build folder, or one flat folder (scripts/pack.sh), which has this
program and the tests in it, too. Prints a line for each suite (test_SUITE.py; all if none is named)
with its cases, then why cases failed and were skipped. Suites that need the software device are
skipped with this reason. As root more of them can run. Their output goes to $OUT if that is set. Exit status
1 if a case failed. Needs a GPU and nothing but python3; --driver LIBRARY: another driver, as it is
when the tests run with meson.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TESTS = os.path.join(ROOT, 'tests', 'integration')
FOLDERS = ['', 'server', 'client', 'nvml', 'ctl', 'cli', 'bench/nbody', 'bench/network', 'tests', 'tests/apps', 'tests/integration',
           'scripts']
# The variable by which harness.py gets a file.
FILES = {
    'GP_CERTIFICATES': 'makecertificates', 'GP_CLOSER': 'closer', 'GP_CTL': 'gpupoolctl', 'GP_DAEMON': 'gpupoold',
    'GP_GPUPOOL': 'gpupool', 'GP_LOOPS': 'loops', 'GP_NBODY': 'nbody', 'GP_NETWORK': 'network', 'GP_NVML': 'libnvidia-ml.so.1',
    'GP_PROBE': 'probe', 'GP_SASS': 'sass.fatbin', 'GP_SERVICE': 'gpupoold.service',
    'GP_STEPS': 'steps', 'GP_STRANGER': 'stranger', 'GP_TAKEN_OVER': 'libtaken_over.so',
}
# limits first: they wait most.
HOSTILE = ['limits', 'limits_sessions', 'hostile', 'hostile_arrays', 'hostile_callbacks', 'hostile_calls', 'hostile_sessions',
           'hostile_graphs', 'hostile_shm', 'hostile_tls', 'lane_order', 'liars', 'credentials', 'revocation', 'tls', 'code_memory', 'devices', 'host_memory',
           'lanes', 'manystreams', 'memory_words', 'network', 'peers', 'trips', 'unread', 'waits']
# They look at how much memory the GPU has left, or at times, so nothing else runs beside them.
ALONE = ['faults', 'isolation', 'hostile_worker', 'tenant_workers', 'contexts', 'places', 'quarantine', 'sick', 'quota', 'life', 'tenants', 'ctl', 'metrics', 'callbacks', 'loading', 'partition', 'schedule', 'host_stress', 'interrupted', 'litmus', 'silence']
OTHERS = ['apps_static', 'apps_shared', 'daemons', 'doctor', 'environment', 'ipc', 'launcher', 'managed', 'nvml', 'operator', 'pinned_memory', 'service', 'shm', 'smi',
          'told', 'trace', 'transports']
# They try the measuring, what docs/ shows, other drivers or virtual machines, or need a table of a build or
# the software device's shape of tiles.
ELSEWHERE = ['acceptance', 'apps', 'bench', 'examples', 'old_driver', 'rdma', 'sparse', 'vm', 'wrongcalls']
# Those with an output of their own, but for suites' own, and those whose output is the device's.
APPS = sorted({name.removesuffix('.out') for name in os.listdir(os.path.join(ROOT, 'tests', 'apps', 'expected')) if name.endswith('.out')}
              - {'graphdevices', 'hoststress', 'limited', 'peers', 'wrongcalls'} | {'badhandle', 'devicequery', 'memhog', 'occupancy', 'sleeper', 'smcount'})
# The programs that these suites run over the local socket.
PROGRAMS = {
    'managed': ['managed', 'managedcalls', 'managedhints', 'managedorder', 'managedsignals', 'managedstyles', 'managedvars', 'callbacks',
                'forkmemory', 'hostpools'],
    'pinned_memory': ['zerocopy', 'pinned', 'largeblocks', 'managedstyles', 'mappedstyles', 'hostpools', 'hostpoolshare',
                      'hostvmm', 'hostorder', 'wordsfreed'],
    'shm': ['callbacks', 'copies', 'copies2d', 'driverapi', 'errors', 'events', 'exitpending', 'fork', 'forkmemory', 'hostfunc',
            'ipc', 'lanes', 'managed', 'managedsignals', 'multifile', 'pinned', 'printf', 'shareable', 'streams', 'threads',
            'vectoradd'],
}

Outcome = collections.namedtuple('Outcome', 'passed failed skipped seconds')


def find(folder, name):
    for sub in FOLDERS:
        path = os.path.join(folder, sub, name)
        if os.path.isfile(path):
            return os.path.abspath(path)
    sys.exit(f'suites: no {name} below {folder}')


def environment(folder, driver):
    """What harness.py needs to know."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(('REMOTE_GPU', 'GPUPOOL_', 'CUDA_MPS'))}
    env.update({name: find(folder, file) for name, file in FILES.items()})
    libraries = [path for path in env.get('LD_LIBRARY_PATH', '').split(':') if path]
    if os.path.isdir(os.path.join(folder, 'lib')):
        libraries.append(os.path.abspath(os.path.join(folder, 'lib')))
    env.update(GP_DRIVER=driver, GP_CLIENT=os.path.dirname(find(folder, 'libcuda.so.1')),
               GP_APPS=os.path.dirname(find(folder, 'vectoradd')), GP_LIBRARIES=':'.join(libraries),
               LD_LIBRARY_PATH=':'.join(libraries), GP_SANITIZE='none', PYTHONDONTWRITEBYTECODE='1', PYTHONUNBUFFERED='1')
    return env


def command(suite, case):
    if suite.startswith('apps_'):
        return [sys.executable, os.path.join(TESTS, 'test_apps.py'), suite.removeprefix('apps_'), *APPS]
    return [sys.executable, os.path.join(TESTS, f'test_{suite}.py'), *PROGRAMS.get(suite, []), *([case] if case else [])]


def read_tap(text):
    """Returns the cases that passed, that failed and why, that were skipped and why."""
    plan = re.search(r'^1\.\.(\d+)$', text, re.M)
    passed, failed, skipped, why = [], [], [], []
    for line in text.splitlines():
        found = re.match(r'(ok|not ok) \d+ - (.*?)(?: # SKIP (.*))?$', line)
        if not found:
            why.append(line)
            continue
        what, name, reason = found.groups()
        if what == 'not ok':
            failed.append((name, why))
        elif reason:
            skipped.append((name, reason))
        else:
            passed.append(name)
        why = []
    missing = int(plan[1]) - len(passed) - len(failed) - len(skipped) if plan else 1
    if missing:
        failed.append((f'{missing} cases of which nothing was heard', why))
    return passed, failed, skipped


def run(suite, case, env, limit, out):
    """A suite that takes too long is asked to end, for it has daemons to stop."""
    begin = time.monotonic()
    if limit <= 0:
        return Outcome([], [('not run: no time was left', [])], [], 0)
    process = subprocess.Popen(command(suite, case), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors='replace')
    try:
        text, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            text, _ = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            text, _ = process.communicate()
        text += f'\nsuites: not done after {limit:.0f} s'
    if out:
        with open(os.path.join(out, f'{suite}.tap'), 'w', encoding='utf-8') as file:
            file.write(text)
    passed, failed, skipped = read_tap(text)
    if process.returncode and not failed:
        failed.append((f'ended with {process.returncode}', text.splitlines()))
    outcome = Outcome(passed, failed, skipped, time.monotonic() - begin)
    print(f'{suite}: {len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped', flush=True)
    return outcome


def print_table(outcomes):
    print(f'\n{"suite":20} {"passed":>7} {"failed":>7} {"skipped":>8} {"seconds":>8}')
    for suite, outcome in outcomes.items():
        print(f'{suite:20} {len(outcome.passed):7} {len(outcome.failed):7} {len(outcome.skipped):8} {outcome.seconds:8.0f}')
    for suite, outcome in outcomes.items():
        for name, reason in outcome.skipped:
            print(f'skipped: {suite}: {name}: {reason}')
    for suite, outcome in outcomes.items():
        for name, why in outcome.failed:
            print(f'FAILED: {suite}: {name}')
            print('\n'.join(f'    {line}' for line in why[:8]))


def main():
    everything = HOSTILE + OTHERS + ALONE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', metavar='FOLDER')
    parser.add_argument('suites', metavar='SUITE', nargs='*', default=everything, help=f'any of {", ".join(everything)}')
    parser.add_argument('--driver', default='', metavar='LIBRARY', help="instead of the machine's own")
    parser.add_argument('--jobs', type=int, default=1, metavar='N', help='suites at a time, of those that do not mind')
    parser.add_argument('--limit', type=int, default=300, metavar='SECONDS', help='for a suite (%(default)s)')
    parser.add_argument('--case', metavar='TEXT', help='those cases alone that have this in their names')
    parser.add_argument('--total', type=int, default=86400, metavar='SECONDS', help='for all')
    parser.add_argument('--daemon', metavar='FILE', help="instead of FOLDER's, for example one with sanitizers")
    arguments = parser.parse_intermixed_args()
    unknown = set(arguments.suites) - set(everything)
    if unknown:
        parser.error(f'no such suite: {", ".join(sorted(unknown))}')
    env = environment(arguments.folder, arguments.driver)
    if arguments.daemon:
        env['GP_DAEMON'] = os.path.abspath(arguments.daemon)
    outcomes = {}
    end = time.monotonic() + arguments.total
    for suites, jobs in (([s for s in arguments.suites if s not in ALONE], arguments.jobs),
                         ([s for s in arguments.suites if s in ALONE], 1)):
        with concurrent.futures.ThreadPoolExecutor(max(1, jobs)) as pool:
            results = pool.map(lambda suite: run(suite, arguments.case, env, min(arguments.limit, end - time.monotonic()),
                                                 os.environ.get('OUT')), suites)
            outcomes.update(zip(suites, results))
    print_table({suite: outcomes[suite] for suite in arguments.suites})
    return 1 if any(outcome.failed for outcome in outcomes.values()) else 0


if __name__ == '__main__':
    sys.exit(main())
