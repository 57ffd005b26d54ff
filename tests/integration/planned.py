# SPDX-License-Identifier: Apache-2.0
"""Many programs in one virtual machine, each a case of its own. All of them run before the first result is judged."""
import os
import sys
import time

from harness import Failed, Result, Skip, case, client_environment

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
import vm


def installed_environment(remote=None):
    """The environment in which a program finds the installed client, and the client finds a daemon.  Sanitizers make an
    emulated machine several times as slow, and check the same code on this machine."""
    folder = os.path.join(os.environ.get("GP_PORTABLE", ""), "stage/usr/lib/gpupool")
    env = client_environment(remote)
    if not os.path.exists(os.path.join(folder, "libcuda.so.1")):
        return env
    env["LD_LIBRARY_PATH"] = env["LD_LIBRARY_PATH"].replace(os.environ["GP_CLIENT"], os.path.abspath(folder), 1)
    return {name: value for name, value in env.items() if name in ("LD_LIBRARY_PATH", "REMOTE_GPU")}


class Planned:
    """The programs of one run, and the cases that judge their results.  rdma: as in vm.run()."""

    def __init__(self, seconds, rdma=False):
        self.seconds, self.rdma = seconds, rdma
        self.commands = []
        self.results = []
        self.failed = None

    def add(self, title, env, command, judge):
        number = len(self.commands)
        self.commands.append((env, command))

        @case(title)
        def _():
            self.raise_failed()
            status, out, err, seconds = self.results[number]
            print(f"# {seconds:.1f} s in the machine")
            judge(Result(" ".join(command), out, err, status, seconds))

    def raise_failed(self):
        failed = self.failed
        if isinstance(failed, Failed):
            # Once is enough for the text.
            self.failed = Failed("the virtual machine failed, see above")
        if failed:
            raise failed

    def run(self):
        begin = time.monotonic()
        try:
            self.results = vm.run(self.commands, self.seconds, rdma=self.rdma)
            print(f"# {len(self.commands)} programs, {time.monotonic() - begin:.1f} s")
        except vm.Cannot as cannot:
            self.failed = Skip(str(cannot))
        except vm.Broken as broken:
            self.failed = Failed(str(broken))
