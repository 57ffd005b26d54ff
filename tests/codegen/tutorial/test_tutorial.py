# SPDX-License-Identifier: Apache-2.0
"""test_tutorial.py ROOT TOOLKIT: executes the tutorial of CONTRIBUTING.md in a copy of the sources.

Every indented block is a command, except the last one, which is the output of the command before it.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = shutil.ignore_patterns('build*', '.*', 'packages', '__pycache__')


def read_blocks(page):
    section = page.split('\n## A CUDA call in ten minutes\n', 1)[1].split('\n## ', 1)[0]
    blocks = re.findall(r'^    .*\n(?:(?:    .*|)\n)*', section, re.M)
    return [re.sub(r'^    ', '', block, flags=re.M).strip('\n') + '\n' for block in blocks]


def run(folder, command, env):
    print('$', command.splitlines()[0], flush=True)
    done = subprocess.run(['bash', '-euc', command], cwd=folder, env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        sys.exit(f'exit status {done.returncode}:\n{command}\n{done.stdout[-4000:]}')
    return done.stdout


def main():
    root, toolkit = sys.argv[1:]
    *commands, expected = read_blocks(open(os.path.join(root, 'CONTRIBUTING.md'), encoding='utf-8').read())
    env = {**os.environ, 'CUDA_HOME': toolkit, 'CONFIGURATION_DIRECTORY': '/nonexistent'}
    with tempfile.TemporaryDirectory(prefix='gpupool-tutorial-') as folder:
        copy = os.path.join(folder, 'gpupool')
        # With a compiler cache, which meson uses where it is installed, the next copy finds what this one compiled.
        env.update(CCACHE_BASEDIR=copy, CCACHE_NOHASHDIR='1')
        shutil.copytree(root, copy, ignore=SKIPPED, symlinks=True)
        # The reader's build folder: check.sh has made it.
        run(copy, f'meson setup build-check -Dtoolkit={toolkit} -Doptimization=0 -Ddebug=false -Dwerror=false', env)
        for command in commands:
            output = run(copy, command, env)
        run(copy, 'python3 tests/codegen/check_abi_lock.py build-check/codegen/abi.txt protocol/abi.lock', env)
    if output.splitlines()[-1:] != expected.splitlines():
        sys.exit(f'expected by the page:\n{expected}printed by the program:\n{output}')


if __name__ == '__main__':
    main()
