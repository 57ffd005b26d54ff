# SPDX-License-Identifier: Apache-2.0
"""test_runtimes.py FOLDER KIND PROGRAM...: programs that nvcc 13 compiled, linked with the older CUDA
runtime in a folder of scripts/runtimes.sh, print through a daemon what they print next to a GPU."""
import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "integration"))

from harness import Daemon, Skip, case, main, read_file, require

EXPECTED = os.path.join(os.path.dirname(__file__), "..", "apps", "expected")
LIBRARIES = {
    "shared": ["libcudart.so.12"],
    "static": ["libcudart_static.a", "libculibos.a"],
}
# A line in which devices may differ.
VARYING = (r"^priorities 0 to -\d+$", "priorities 0 to -N")
# (versions, pattern, instead): what a runtime says in words of its own.
OWN_WORDS = [
    ("12.0 12.4 12.9", r"^((?:no|1025|64 x 32|65|65536) (?:blocks|threads).*): cudaErrorInvalidValue \(1\)$",
     r"\1: cudaErrorInvalidConfiguration (9)"),
    ("12.0 12.4", r"^(.* of no kernel): cudaErrorInvalidResourceHandle \(400\)$",
     r"\1: cudaErrorInvalidDeviceFunction (98)"),
]

programs_folder = tempfile.mkdtemp(prefix="gpupool-compat-")
atexit.register(shutil.rmtree, programs_folder)


def libraries(folder, kind):
    paths = [os.path.join(folder, name) for name in LIBRARIES[kind]]
    for path in paths:
        if not os.path.exists(path):
            raise Skip(f"no {os.path.basename(path)} of this version: scripts/runtimes.sh fetches it")
    return paths


def link(name, folder, kind):
    binary = os.path.join(programs_folder, name)
    found = subprocess.run(
        [os.environ["GP_CXX"], os.path.join(os.environ["GP_APPS"], name + ".o"), "-o", binary,
         *libraries(folder, kind), f"-Wl,-rpath,{folder}", "-ldl", "-lpthread", "-lrt"],
        capture_output=True, text=True)
    require(found.returncode == 0, found.stderr)
    return binary


def normal(text):
    return re.sub(*VARYING, text, flags=re.M)


def expected(name, version):
    text = read_file(os.path.join(EXPECTED, name + ".out"))
    for versions, pattern, instead in OWN_WORDS:
        if version in versions.split():
            text = re.sub(pattern, instead, text, flags=re.M)
    return normal(text)


def add(daemon, name, folder, kind):
    version = os.path.basename(folder)

    @case(f"{name} with the {kind} runtime {version} prints what it prints next to a GPU")
    def _():
        binary = link(name, folder, kind)
        result = daemon().run(name, path=binary).expect(err="")
        wanted = expected(name, version)
        require(normal(result.out) == wanted, f"expected\n{wanted}but {result}")
        daemon().settle()


class Once:
    """One daemon for all cases, started by the first that gets so far."""

    def __init__(self):
        self.daemon = None

    def __call__(self):
        if not self.daemon:
            self.daemon = Daemon()
        return self.daemon

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.daemon:
            self.daemon.__exit__(*error)


if __name__ == "__main__":
    runtime, runtime_kind, *names = sys.argv[1:]
    sys.argv[1:] = []
    with Once() as one:
        for program in names:
            add(one, program, os.path.abspath(runtime), runtime_kind)
        status = main()
    sys.exit(status)
