# SPDX-License-Identifier: Apache-2.0
"""test_vm.py NBODY NBODY-SHARED PROGRAM...: each program, in a virtual machine that has no GPU and
nothing but a daemon's address, prints what it prints on a machine with a GPU. All run in one, before
the first case is judged."""
import os
import sys
import time

import test_apps
from harness import Daemon, Failed, Result, Skip, case, client_environment, main, require

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
import vm

SECONDS = 400
# With the shared runtime, too. An emulated machine takes half a second for each.
SHARED = ("copies2d", "errors", "events", "hostfunc", "launch", "matmul", "memset", "multifile", "pinned", "printf",
          "streams", "symbols", "threads", "vectoradd", "warp")
NO_GPU = ["sh", "-c", "! ls -d /dev/nvidia* /proc/driver/nvidia* /sys/module/nvidia* /sys/class/drm/card* 2>/dev/null"]


class Planned:
    """Programs of the one run, and the cases that judge what came of them."""

    def __init__(self):
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
            self.failed = Failed("the virtual machine failed, as said above")
        if failed:
            raise failed

    def run(self):
        begin = time.monotonic()
        try:
            self.results = vm.run(self.commands, SECONDS)
            print(f"# {len(self.commands)} programs, {time.monotonic() - begin:.1f} s")
        except vm.Cannot as cannot:
            self.failed = Skip(str(cannot))
        except vm.Broken as broken:
            self.failed = Failed(str(broken))


def passes(result):
    result.expect(err="")
    require(result.out.endswith("\nPASS\n"), f"device and CPU differ: {result}")


def finds_no_device(result):
    require(result.status not in (0, 124) and "ok" not in result.out, f"it found a device: {result}")


def plan(planned, address, nbodies, names):
    env = client_environment(address)
    folder = os.environ["GP_APPS"]
    planned.add("the virtual machine has no GPU", {}, NO_GPU, Result.expect)
    planned.add("vectoradd without an address finds no device", client_environment(),
                [os.path.join(folder, "vectoradd")], finds_no_device)
    for path in nbodies:
        planned.add(f"{os.path.basename(path)} in a virtual machine agrees with the CPU", env,
                    [os.path.abspath(path), "-compare", "-numbodies=1024"], passes)
    for kind in "static", "shared":
        for name in names:
            if kind == "static" or name in SHARED:
                planned.add(f"{name} ({kind} runtime) in a virtual machine prints what it prints next to a GPU", env,
                            [os.path.join(folder, test_apps.binary_of(name, kind))],
                            lambda result, name=name: test_apps.judge(name, result))


if __name__ == "__main__":
    programs = Planned()
    with Daemon() as daemon:
        plan(programs, f"{vm.HOST}:{daemon.port}", sys.argv[1:3], sys.argv[3:])
        programs.run()
        sys.argv[1:] = []
        status = main()
    sys.exit(status)
