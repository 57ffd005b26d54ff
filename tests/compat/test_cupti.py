# SPDX-License-Identifier: Apache-2.0
"""test_cupti.py RUNTIMES: a program that uses NVIDIA's CUPTI gets a message with the alternative, and runs on."""
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from harness import Daemon, Skip, case, main, require

runtimes = os.path.abspath(sys.argv[1])

PROGRAM = """
import ctypes
import sys

cupti, cuda = ctypes.CDLL(sys.argv[1]), ctypes.CDLL("libcuda.so.1")
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
callback, subscriber = CALLBACK(lambda *unused: None), ctypes.c_void_p()
print("subscribed", cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None) == 0)
# 10: concurrent kernels
print("enabled", cupti.cuptiActivityEnable(10) == 0)
context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
print("cuda", cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context),
      cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), cuda.cuCtxSynchronize())
"""
EXPECTED = "subscribed False\nenabled False\ncuda 0 0 0 0 0\n"


def run(version, **env):
    library = glob.glob(os.path.join(runtimes, f"cupti-{version}", "libcupti.so*"))
    if not library:
        raise Skip("no CUPTI: scripts/runtimes.sh fetches it")
    with Daemon() as daemon:
        return daemon.run("python", "-c", PROGRAM, library[0], path=sys.executable, env=env).expect(out=EXPECTED).err


for number in ("12.9", "13.0"):
    @case(f"CUPTI {number} subscribes to nothing, one message names GPUPOOL_TRACE, and the program runs on")
    def _(version=number):
        said = run(version)
        require(said.count("GPUPOOL_TRACE=") == 1 and said.count("\n") == 1, said)

    @case(f"CUPTI {number} and GPUPOOL_LOG=quiet hides this message")
    def _(version=number):
        require(run(version, GPUPOOL_LOG="quiet") == "", "unexpected output")


if __name__ == "__main__":
    sys.argv[1:] = []
    sys.exit(main())
