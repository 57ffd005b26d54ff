#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make.py FOLDER [BUILD]: pictures of "gpupool devices", "gpupool check" and "gpupoolctl top" as SVG in
FOLDER, from what they print beside a daemon at work with two tenants.

BUILD is a build of this tree, best without sanitizers; a test gives its environment instead. The
daemon serves the machine's GPUs, or the software device. Of the text nothing is changed but the
daemon's address, which becomes tls://gpunode, and folders, which become those of an installation.
"""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from xml.sax.saxutils import escape

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
PATHS = {'GP_DAEMON': 'server/gpupoold', 'GP_CTL': 'ctl/gpupoolctl', 'GP_GPUPOOL': 'cli/gpupool', 'GP_CLIENT': 'client',
         'GP_DRIVER': 'softgpu/driver/libcuda-soft.so', 'GP_APPS': 'tests/apps'}
if len(sys.argv) > 2:
    os.environ.setdefault('GP_SANITIZE', 'none')
    os.environ.update({name: os.path.join(os.path.abspath(sys.argv[2]), path) for name, path in PATHS.items()})
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))
from harness import PATIENCE, Daemon, Program, base_environment, client_environment, require, wait_until  # noqa: E402

CONFIG = '''[tenant alice]
memory = 50%
sm = 50%
sessions = 4
[tenant bob]
memory = 1G
'''
COLOURS = {'ok': '#8ae234', 'note': '#fce94f', 'wrong': '#ef2929', 'NAME': '#729fcf'}
CELL, LINE = 8.43, 19
# A viewer that joins blanks would spoil the columns.
NO_BREAK = '\u00a0'


def colour_of(line):
    """Of the line's first word, for what has verdicts"""
    return next((COLOURS[word] for word in COLOURS if re.match(rf'\s*{word}\b', line)), '#eeeeec')


def svg(title, text):
    lines = [f'$ {title}'] + text.rstrip('\n').split('\n')
    width, height = max(map(len, lines)) * CELL + 32, len(lines) * LINE + 28
    rows = ''.join(f'<text x="16" y="{(n + 1) * LINE + 8}" fill="{"#ffffff" if n == 0 else colour_of(line)}">{escape(line).replace(" ", NO_BREAK)}</text>\n'
                   for n, line in enumerate(lines))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-family="monospace" font-size="14" '
            f'role="img" aria-label="{escape(title)}">\n'
            f'<rect width="100%" height="100%" rx="8" fill="#1e2227"/>\n{rows}</svg>\n')


class Scene:
    """A daemon with two tenants, and the folders of an operator and of a user; a context manager."""

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        self.folder = tempfile.mkdtemp(prefix='gpupool-pictures-')
        self.stack.callback(shutil.rmtree, self.folder, True)
        os.chmod(self.folder, 0o755)
        self.socket = os.path.join(self.folder, 'admin.sock')
        with open(os.path.join(self.folder, 'gpupoold.conf'), 'w', encoding='ascii') as file:
            file.write(CONFIG)
        self.ctl('cert', 'init', '127.0.0.1')
        for tenant in ('alice', 'bob'):
            self.ctl('token', 'create', tenant, '--expires', '90d', '-o', os.path.join(self.folder, tenant))
        daemon = self.stack.enter_context(Daemon('--listen', 'tls://127.0.0.1:0', '--admin-socket', self.socket,
                                                 env={'CONFIGURATION_DIRECTORY': self.folder}))
        self.address = re.search(r'^listening on (tls://\S+)$', wait_until(
            'the daemon listens', lambda: (text := self.printed(daemon)).count('listening') > 1 and text, PATIENCE), re.M)[1]
        for tenant in ('alice', 'bob'):
            with open(os.path.join(self.folder, tenant), encoding='ascii') as file:
                self.say(tenant, 'login', 'lab', self.address, text=file.read())
        return self

    def __exit__(self, *_):
        self.stack.close()

    @staticmethod
    def printed(daemon):
        with open(daemon.out_path, encoding='utf-8') as file:
            return file.read()

    def ctl(self, *args):
        return subprocess.run([os.environ['GP_CTL'], '-s', self.socket, *args], check=True, capture_output=True, text=True,
                              timeout=PATIENCE, env={**base_environment(), 'CONFIGURATION_DIRECTORY': self.folder}).stdout

    def env(self, user):
        env = client_environment()
        env.pop('LD_LIBRARY_PATH')
        return {**env, 'XDG_CONFIG_HOME': os.path.join(self.folder, f'of-{user}')}

    def say(self, user, *args, text=None):
        return subprocess.run([os.environ['GP_GPUPOOL'], *args], input=text, capture_output=True, text=True, check=True,
                              timeout=PATIENCE, env={**base_environment(), **self.env(user)}).stdout

    def start(self, user, *args, says):
        program = Program('gpupool', ('run', *args), env=self.env(user), path=os.environ['GP_GPUPOOL'], stdin=True)
        self.stack.callback(program.kill)
        program.wait_for_output(says)

    def public(self, text):
        """As it would be on a machine with packages"""
        text = re.sub(r'\x1b\[[0-9;?]*[A-Za-z]', '', text).replace(self.address, 'tls://gpunode')
        for folder, instead in ((os.environ['GP_CLIENT'], '/usr/lib/gpupool'), (os.environ['GP_APPS'], '.'),
                                (f'{self.folder}/of-alice', '~/.config'), (self.folder, '/etc/gpupool')):
            text = text.replace(folder, instead)
        port = self.address.rsplit(':', 1)[1]
        return text.replace('127.0.0.1', 'gpunode').replace(f'port {port}', 'port 4833')


def take_all(scene):
    app = os.path.join(os.environ['GP_APPS'], 'memhog')
    scene.start('alice', '--memory', '1G', app, '300', says='free after')
    scene.start('bob', os.path.join(os.environ['GP_APPS'], 'sleeper'), '-endless', says='running')
    time.sleep(2)
    yield 'devices', 'gpupool devices', scene.say('alice', 'devices')
    yield 'check', 'gpupool check ./train', scene.say('alice', 'check', app).replace('memhog', 'train')
    screens = re.split(r'\x1b\[H|\n(?=gpupoold )', scene.ctl('top', '-n', '3', '-d', '1'))
    yield 'top', 'gpupoolctl top', screens[-1]


def main():
    with Scene() as scene:
        for name, title, text in take_all(scene):
            text = scene.public(text)
            require(text.strip() and ROOT not in text, f'{title} prints {text!r}')
            with open(os.path.join(sys.argv[1], f'{name}.svg'), 'w', encoding='utf-8') as file:
                file.write(svg(title, text))
            print(f'# {title}\n{text}')


if __name__ == '__main__':
    main()
