# SPDX-License-Identifier: Apache-2.0
"""test_libraries.py CUDA: NVIDIA's libraries of a toolkit, or of pip's, with our client and the software device.

Each program of bench/libraries compares what a library computes with what Python does. Here run those whose
kernels come as PTX; the others need a GPU: bench/frameworks.py.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "..", "..", "bench", "libraries")
sys.path[:0] = [os.path.join(HERE, "..", "integration"), PROGRAMS]

os.environ["CUDA_HOME"] = sys.argv[1]
sys.argv[1:] = []

from cuda_libraries import find
from harness import PATIENCE, Daemon, Skip, case, main, require

# The libraries of each, the lines that it prints.
CASES = {
    "cudnn_captured": (["cudnn", "cublas", "nvrtc"], 3),
    "cudnn_layers": (["cudnn", "cublas", "nvrtc"], 2),
    "cufft_captured": (["cufft"], 3),
    "cufft_plans": (["cufft"], 4),
    "curand_captured": (["curand"], 3),
    "cusparse_captured": (["cusparse", "nvJitLink"], 3),
    "cusparse_matrix_squared": (["cusparse", "nvJitLink"], 1),
    "cusparse_products": (["cusparse", "nvJitLink"], 1),
    "nvjitlink_ptx": (["nvrtc", "nvJitLink"], 1),
    "nvrtc_ptx": (["nvrtc"], 2),
}
# Of those that stop at a kernel without PTX: how far they come.
STOPS = {
    "cublas_vectors": (["cublas"], "cublasSdot_v2: 15"),
    "cublasxt_registers": (["cublas"], "cublasXtDgemm: 15"),
    "cufft_prime_length": (["cufft"], "cufftPlan1d: 5"),
    "cusolver_dense": (["cusolver", "cublas", "cusparse"], "cusolverDnDpotrf: 7"),
    "cusolvermg_one_gpu": (["cusolverMg", "cusolver", "cublas", "cusparse"], "cusolverMgGetrf: 7"),
}


def toolkit_version():
    with open(os.path.join(os.environ["CUDA_HOME"], "include/cuda.h"), encoding="utf-8") as file:
        return int(re.search(r"^#define CUDA_VERSION (\d+)", file.read(), re.M)[1])


def run(name, needs):
    if toolkit_version() // 10 != 1300:
        raise Skip("which kernels come as PTX is known of CUDA 13.0")
    lacking = [need for need in ["cudart", *needs] if not find(need)]
    if lacking:
        raise Skip(f"no lib{lacking[0]}.so: a whole toolkit has it, or pip's nvidia packages")
    with Daemon() as daemon:
        return daemon.run("python", os.path.join(PROGRAMS, "library_cases.py"), name, path=sys.executable, seconds=3 * PATIENCE,
                          env={"CUDA_HOME": os.environ["CUDA_HOME"], "PYTHONDONTWRITEBYTECODE": "1"})


for case_name, (libraries, lines) in CASES.items():
    @case(f"{case_name} computes what it should")
    def _(name=case_name, needs=libraries, count=lines):
        result = run(name, needs).expect(err="")
        require(len(result.out.splitlines()) == count, str(result))

for case_name, (libraries, end) in STOPS.items():
    @case(f"{case_name} makes its handles and comes to {end}")
    def _(name=case_name, needs=libraries, wanted=end):
        result = run(name, needs)
        require(result.status == 1 and f"{name}: {wanted}" in result.err, str(result))


if __name__ == "__main__":
    sys.exit(main())
