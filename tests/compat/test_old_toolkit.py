# SPDX-License-Identifier: Apache-2.0
"""test_old_toolkit.py TOOLKIT PROGRAM...: programs that an older nvcc compiled, with its own static runtime, print through
a daemon what they print next to a GPU.  scripts/old_toolkit.sh fetches the toolkits."""
import os
import subprocess
import sys

import test_runtimes as runtimes

from harness import Skip, case, main, require

# The architecture of its newest GPUs, embedded as PTX.
ARCHITECTURE = "-gencode=arch=compute_80,code=compute_80"
# Programs on the driver API alone have no runtime.
DRIVER = {"driverapi": [".cc", "-cudart=none", "-lcuda", "-I" + os.environ["GP_APPS"]]}


def build(name, folder):
    """The path of the program; its source is that of tests/apps."""
    suffix, *options = DRIVER.get(name, [".cu", "-cudart=static"])
    source = os.path.join(runtimes.EXPECTED, "..", name + suffix)
    binary = os.path.join(runtimes.programs_folder, name)
    done = subprocess.run([os.path.join(folder, "bin", "nvcc"), "-allow-unsupported-compiler", "-O2", "-std=c++17", ARCHITECTURE, source,
                           "-o", binary, *options], capture_output=True, text=True, check=False)
    require(done.returncode == 0, done.stderr)
    return binary


def add(daemon, name, folder):
    version = os.path.basename(folder)

    @case(f"{name} from nvcc {version} prints what it prints next to a GPU")
    def _():
        if not os.path.exists(os.path.join(folder, "bin", "nvcc")):
            raise Skip(f"no CUDA {version}: scripts/old_toolkit.sh {version} fetches it")
        result = daemon().run(name, path=build(name, folder)).expect(err="")
        wanted = runtimes.expected(name, runtimes.parse_version(folder))
        require(runtimes.normal(result.out) == wanted, f"expected\n{wanted}but {result}")
        daemon().settle()


if __name__ == "__main__":
    toolkit, *names = sys.argv[1:]
    sys.argv[1:] = []
    with runtimes.Once() as one:
        for program in names:
            add(one, program, os.path.abspath(toolkit))
        status = main()
    sys.exit(status)
