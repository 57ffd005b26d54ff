# SPDX-License-Identifier: Apache-2.0
"""A daemon on an older driver: functions that the driver lacks are not supported, and the rest works. The older driver
is the software device without later symbols (codegen/api/symbols.h)."""
import os
import re
import subprocess
import sys
import tempfile

from harness import DRIVER, SOFTWARE, Daemon, Skip, case, driver_options, main, read_file, require
from test_apps import judge

SYMBOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../codegen/api/symbols.h")
PROGRAMS = ("vectoradd", "streams", "events", "copies", "launch", "symbols", "graphs")


def after(version):
    """The names that came after this version."""
    return [name for name, since in re.findall(r"^GP_SYMBOL\w*\((\w+), \w+, (\d+)\)", read_file(SYMBOLS), re.M) if int(since) > version]


def without(names, folder):
    """A copy of the software device that does not export these names."""
    if not SOFTWARE:
        raise Skip("needs the software device")
    with open(DRIVER, "rb") as file:
        code = file.read()
    found = [name for name in names if b"\0" + name.encode() + b"\0" in code]
    for name in found:
        code = code.replace(b"\0" + name.encode() + b"\0", b"\0X" + name.encode()[1:] + b"\0")
    require(found, f"it has none of {names}")
    path = os.path.join(folder, "libcuda-soft.so")
    with open(path, "wb") as file:
        file.write(code)
    return path


@case("programs run on a driver of CUDA 12.4")
def _():
    with tempfile.TemporaryDirectory() as folder, Daemon(driver=without(after(12040), folder)) as daemon:
        for name in PROGRAMS:
            judge(name, daemon.run(name))


@case("functions that a driver of CUDA 12.4 lacks are not supported, and the daemon reports it")
def _():
    with tempfile.TemporaryDirectory() as folder, Daemon(driver=without(after(12040), folder)) as daemon:
        result = daemon.run("greens")
        require(result.status == 1 and "CUDA_ERROR_NOT_SUPPORTED (801)" in result.out, str(result))
        require("no green contexts (801): shares of its multiprocessors are not enforced" in daemon.log(), daemon.log())


@case("a driver before CUDA 12.4 is refused with what it lacks")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = without(["cuKernelGetParamInfo"], folder)
        result = subprocess.run([os.environ["GP_DAEMON"], "--listen", "127.0.0.1:0", "--admin-socket", "off", *driver_options(path)],
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        require(result.returncode != 0 and "older than CUDA 12.4 (driver 550), which is needed: it has no cuKernelGetParamInfo" in result.stderr,
                str(result))


if __name__ == "__main__":
    sys.exit(main())
