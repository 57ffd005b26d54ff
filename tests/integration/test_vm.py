# SPDX-License-Identifier: Apache-2.0
"""test_vm.py NBODY PROGRAM...: each program, in a virtual machine that has no GPU and
nothing but a daemon's address, prints what it prints on a machine with a GPU. All run in one, before
the first case is judged."""
import os
import sys

import test_apps
from harness import Daemon, Result, main, require
from planned import Planned, installed_environment, vm

SECONDS = 2000
# With the shared runtime, too. An emulated machine takes seconds for each.
SHARED = ("vectoradd",)
NO_GPU = ["sh", "-c", "! ls -d /dev/nvidia* /proc/driver/nvidia* /sys/module/nvidia* /sys/class/drm/card* 2>/dev/null"]


def passes(result):
    result.expect(err="")
    require(result.out.endswith("\nPASS\n"), f"device and CPU differ: {result}")


def finds_no_device(result):
    require(result.status not in (0, 124) and "ok" not in result.out, f"it found a device: {result}")


def ends_ok(result):
    require(result.status == 0, str(result))


def plan(planned, address, nbodies, names):
    env = installed_environment(address)
    folder = os.environ["GP_APPS"]
    planned.add("the virtual machine has no GPU", {}, NO_GPU, Result.expect)
    planned.add("vectoradd without an address finds no device", installed_environment(),
                [os.path.join(folder, "vectoradd")], finds_no_device)
    groups = {name: os.environ[name] for name in os.environ if name.startswith("GP_")}
    planned.add("control groups of workers, in a virtual machine that has version 2 of them", {**groups, "GP_PATIENCE": "600"},
                [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest_groups.py")], ends_ok)
    for path in nbodies:
        planned.add(f"{os.path.basename(path)} in a virtual machine agrees with the CPU", env,
                    [os.path.abspath(path), "-compare", "-numbodies=256"], passes)
    for kind in "static", "shared":
        for name in names:
            if kind == "static" or name in SHARED:
                planned.add(f"{name} ({kind} runtime) in a virtual machine prints what it prints next to a GPU", env,
                            [os.path.join(folder, test_apps.binary_of(name, kind))],
                            lambda result, name=name: test_apps.judge(name, result))


if __name__ == "__main__":
    # For a worker that takes more than its group may have.
    os.environ.setdefault("VM_MEMORY", "2G")
    programs = Planned(SECONDS)
    with Daemon() as daemon:
        plan(programs, f"{vm.HOST}:{daemon.port}", sys.argv[1:2], sys.argv[2:])
        programs.run()
        sys.argv[1:] = []
        status = main()
    sys.exit(status)
