# SPDX-License-Identifier: Apache-2.0
"""Small programs of CUDA's libraries, by ctypes: library_cases.py NAME runs one.

Each compares what the library computes with what Python does, and ends with an error where they differ.
The output of a case is the same in every run. Cases with `captured` replay a graph of a library's
work in a stream; those with `two_gpus` need two.
"""
import sys

import blas_cases  # noqa: F401
import compiler_cases  # noqa: F401
import dnn_cases  # noqa: F401
import solver_cases  # noqa: F401
import transform_cases  # noqa: F401
from cuda_libraries import CASES, Failed


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in CASES:
        sys.exit(__doc__.strip() + '\nNAME: ' + ', '.join(CASES))
    try:
        CASES[sys.argv[1]]()
    except Failed as error:
        sys.exit(f'{sys.argv[1]}: {error}')


if __name__ == '__main__':
    main()
