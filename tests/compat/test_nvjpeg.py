# SPDX-License-Identifier: Apache-2.0
"""test_nvjpeg.py PROGRAM LIBRARY: a library of NVIDIA's that is linked with a static CUDA 12 runtime,
in a program that knows nothing of CUDA."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "integration"))

from harness import Daemon, Skip, case, main

program, library = [os.path.abspath(path) for path in sys.argv[1:]]


@case("nvJPEG opens the device and makes and destroys its decoder")
def _():
    if not os.path.exists(library):
        raise Skip("no nvJPEG: scripts/runtimes.sh fetches it")
    with Daemon() as daemon:
        daemon.run("nvjpeg", library, path=program).expect(out="nvjpeg: ok\n", err="")


if __name__ == "__main__":
    sys.argv[1:] = []
    sys.exit(main())
