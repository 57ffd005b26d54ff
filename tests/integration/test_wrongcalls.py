# SPDX-License-Identifier: Apache-2.0
"""test_wrongcalls.py PART PARTS: every function of the driver API, called wrongly in every way that wrongcalls.cc knows,
returns an error, and what is called next works."""
import os
import re
import sys

from harness import Daemon, case, main, read_file, require

PART, PARTS = int(sys.argv[1]), int(sys.argv[2])
sys.argv[1:] = []
TABLE = os.path.join(os.environ["GP_APPS"], "wrongcalls_table.h")
NAMES = re.findall(r'"(cu\w+)"', read_file(TABLE))[PART::PARTS]
# They need no cuInit().
ANY_TIME = re.compile(r"cu(DriverGetVersion|GetError|GetProcAddress|Logs|Init|ThreadExchangeStreamCaptureMode|TensorMapEncode)")
# The context, or a capture, is in the way of what is called next, and that says so.
IN_THE_WAY = {"CUDA_ERROR_CONTEXT_IS_DESTROYED", "CUDA_ERROR_INVALID_CONTEXT", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"}


@case(f"wrong calls of {len(NAMES)} functions return, and the next call is as ever")
def _():
    with Daemon() as daemon:
        result = daemon.run("wrongcalls", *NAMES, seconds=1800)
        result.expect()
        words = dict(line.rsplit(": ", 1) for line in result.out.splitlines())
        for line, said in words.items():
            name = line.split(",")[0]
            require(said.startswith("CUDA_"), f"{line}: {said}")
            if line.endswith(", before cuInit") and not ANY_TIME.match(name):
                require(said == "CUDA_ERROR_NOT_INITIALIZED", f"{line}: {said}")
            if line.endswith(", then cuCtxSynchronize"):
                require(said == "CUDA_SUCCESS" or said in IN_THE_WAY, f"{line}: {said}")
        for name in NAMES:
            require(f"{name}, then cuCtxSynchronize" in words, f"{name} was not tried to the end")


if __name__ == "__main__":
    sys.exit(main())
