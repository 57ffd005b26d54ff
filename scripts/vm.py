# SPDX-License-Identifier: Apache-2.0
"""Programs one after the other in one virtual machine of scripts/vm.sh, each with its own output."""
import os
import shlex
import subprocess
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'vm.sh')
CANNOT = 77
# Where the machine finds this one's loopback.
HOST = '10.0.2.2'
# The machine's own address, where it has an RDMA device.
OWN = '10.9.0.1'


class Cannot(Exception):
    """There can be no virtual machine here; the text has the reason."""


class Broken(Exception):
    """The virtual machine did not come to its end; the text has its last state."""


def read(path):
    with open(path, encoding='utf-8', errors='replace') as file:
        return file.read()


def guest_script(commands, each_seconds):
    lines = ['TIMEFORMAT=%R']
    for number, (env, command) in enumerate(commands):
        settings = [f'{name}={value}' for name, value in env.items()]
        words = shlex.join(['env', *settings, 'timeout', str(each_seconds), *command])
        lines.append(f'{{ time {words} >{number}.out 2>{number}.err </dev/null; }} 2>{number}.time; '
                     f'echo $? >{number}.status')
    return '\n'.join(lines) + '\n'


def run(commands, seconds=300, each_seconds=600, log=None, rdma=False):
    """[(environment, [program, argument, ...])] to [(status, output, error output, seconds)].

    Addresses that the environments name are of the machine's own network, in which this machine's
    loopback is HOST. All together may take SECONDS. log: a file for the kernel's. rdma: the
    machine has an RDMA device at OWN, and no other network.
    """
    settings = {'VM_NET': '' if rdma else 'user', 'VM_RDMA': '1' if rdma else '', 'VM_SECONDS': str(seconds),
                'VM_LOG': log or ''}
    with tempfile.TemporaryDirectory(prefix='gpupool-vm-') as folder:
        with open(os.path.join(folder, 'run'), 'w', encoding='utf-8') as file:
            file.write(guest_script(commands, each_seconds))
        # No process group and no time limit of its own: a signal that ends the caller ends the machine, too.
        ended = subprocess.run([SCRIPT, folder, 'bash', './run'], stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, env={**os.environ, **settings})
        said = (ended.stdout + ended.stderr).strip()
        if ended.returncode == CANNOT:
            raise Cannot(said.splitlines()[-1].partition('here: ')[2])
        results = []
        for number in range(len(commands)):
            paths = [os.path.join(folder, f'{number}.{kind}') for kind in ('status', 'out', 'err', 'time')]
            if not os.path.exists(paths[0]) or not read(paths[0]):
                raise Broken(f'{number} of {len(commands)} programs ended; vm.sh ended with {ended.returncode}: {said}')
            status, out, err, taken = map(read, paths)
            results.append((int(status), out, err, float(taken.split()[-1])))
        if ended.returncode:
            raise Broken(f'vm.sh ended with {ended.returncode}: {said}')
        return results
