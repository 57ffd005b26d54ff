# SPDX-License-Identifier: Apache-2.0
"""native_vs_remote.py BUILD SANITIZERS: bench/native_vs_remote.sh on a build folder, where there is a
GPU and the build is none that sanitizers slow down."""
import os
import subprocess
import sys

SKIPPED = 77
BENCH = os.path.join(os.path.dirname(__file__), "..", "..", "bench", "native_vs_remote.sh")
# A process of its own asks: a driver stays in the process that has opened it.
COUNT = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
count = ctypes.c_int(0)
assert driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
print(count.value)
"""


def gpu_count():
    """How many devices the machine's own driver has."""
    env = {name: value for name, value in os.environ.items() if name != "REMOTE_GPU"}
    asked = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, env=env, timeout=60)
    return int(asked.stdout) if asked.returncode == 0 else 0


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


if __name__ == "__main__":
    build, sanitizers = sys.argv[1:]
    if gpu_count() == 0:
        skip("no GPU")
    if sanitizers != "none":
        skip(f"speed is not measured in a build with sanitizers ({sanitizers})")
    sys.exit(subprocess.run([BENCH, build]).returncode)
