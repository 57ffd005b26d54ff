# SPDX-License-Identifier: Apache-2.0
"""A network with a round trip and a rate of one's choice before a daemon: network.c under way.

    with Network(program, "127.0.0.1:7000", rtt=10, rate=10) as network:
        run(REMOTE_GPU=network.address)
        print(network.rtt, network.counts().trips)
"""
import collections
import subprocess

Counts = collections.namedtuple('Counts', 'trips connections up down')


class Network:
    """rtt in milliseconds, rate in Gbit/s (0: no limit), window in bytes; self.rtt is what was measured."""

    def __init__(self, program, to, rtt=0.0, rate=0.0, window=None):
        command = [program, '--to', to.removeprefix('tcp://'), '--rtt', str(rtt), '--rate', str(rate)]
        if window:
            command += ['--window', str(window)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.read('listening')
        self.rtt = float(self.read('rtt'))

    def read(self, word):
        """Returns the text after this word in the next line."""
        line = self.process.stdout.readline()
        if not line.startswith(word + ' '):
            self.process.kill()
            raise RuntimeError(f'the network ended, or unexpected output: {line!r}')
        return line[len(word) + 1:].strip()

    def counts(self):
        """Since it began: round trips and connections of all programs, bytes to the daemon and from it."""
        self.process.stdin.write('\n')
        self.process.stdin.flush()
        words = ('trips ' + self.read('trips')).split()
        return Counts(*map(int, words[1::2]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
