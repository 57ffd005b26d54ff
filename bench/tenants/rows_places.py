# SPDX-License-Identifier: Apache-2.0
"""Programs where there is nothing of the pool but its address."""
import os
import sys
import time

from pool import Failed
from rows import row

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, '..'), os.path.join(HERE, '..', '..', 'scripts')]
import native_vs_remote
import vm


@row('14', 'a container needs nothing but the address')
def container(bench, report):
    wrapper = ['unshare', '--user', '--map-root-user', '--mount', '--ipc', '--pid', '--fork', 'sh', '-c',
               'mount -t tmpfs none /dev && exec "$0" "$@"']
    with bench.pool() as pool:
        status, out, err = bench.finish(bench.start('vectoradd', remote=pool.address, wrapper=wrapper))
        if 'unshare' in err:
            report.add('14', 'works without /dev, /dev/shm and a common ipc namespace', f'not shown: {err.strip()}', False)
            return
        report.add('14', 'works without /dev, /dev/shm and a common ipc namespace', (out + err).strip(), status == 0)


@row('21', 'a virtual machine needs nothing but the address')
def virtual_machine(bench, report):
    wanted = 'in a VM without a GPU programs have the same output and status'
    names = [name for name in native_vs_remote.APPS if name not in native_vs_remote.LAST] + native_vs_remote.LAST
    programs = [(name, '-compare', '-numbodies=1024') for name in ('nbody', 'nbody-shared')]
    programs += [(variant,) for name in names for variant in (name, name + '-shared')]
    programs = [program for program in programs if bench.find_optional(program[0])]
    with bench.pool() as pool:
        remote = bench.environment(pool.address.replace('127.0.0.1', vm.HOST))
        env = {name: remote[name] for name in ('LD_LIBRARY_PATH', 'REMOTE_GPU')}
        begin = time.time()
        try:
            there = vm.run([(env, [bench.find(name), *args]) for name, *args in programs], 500,
                           log=os.path.join(bench.work, 'vm.log'))
        except vm.Cannot as cannot:
            report.add('21', wanted, f'not shown: {cannot}', False)
            return
        except vm.Broken as broken:
            raise Failed(str(broken)) from None
        took = time.time() - begin
        different, skipped, crash = [], [], []
        log = open(os.path.join(bench.work, 'different.log'), 'w')
        for (name, *args), (status, out, err, _) in zip(programs, there):
            # The software device is not a device of this machine: programs reach it through the daemon here, too.
            here = bench.run(name, *args, remote=pool.address if bench.driver else None)
            if status == 77:
                skipped.append(name)
            elif here[0] < 0 <= status:
                crash.append(name)
            elif status != here[0] or (out != here[1] and name.removesuffix('-shared') not in native_vs_remote.STATUS_ONLY):
                different.append(name)
                print(name, (status, out, err), here, sep='\n', file=log)
        alike = len(programs) - len(different) - len(skipped) - len(crash)
        report.add('21', wanted, f'{alike} of {len(programs)} in {took:.0f} s'
                   + (f"; not remoted: {' '.join(skipped)}" if skipped else '')
                   + (f"; natively only they crash: {' '.join(crash)}" if crash else '')
                   + (f"; different: {' '.join(different)}" if different else ''), alike > 0 and not different)
