# SPDX-License-Identifier: Apache-2.0
"""test_runtimes.py FOLDER KIND PROGRAM...: programs that nvcc 13 compiled, linked with another CUDA
runtime in a folder of scripts/runtimes.sh, print through a daemon what they print next to a GPU."""
import atexit
import glob
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
    "shared": ["libcudart.so.*"],
    "static": ["libcudart_static.a", "libculibos.a"],
}
# Libraries that a version's static runtime does not need.
BUILT_IN = {"13": ["libculibos.a"]}
# A line in which devices may differ.
VARYING = (r"^priorities 0 to -\d+$", "priorities 0 to -N")
# (before which version, pattern, instead): messages that differ between runtimes.
OWN_WORDS = [
    ((13, 0), r"^((?:no|1025|64 x 32|65|65536) (?:blocks|threads).*): cudaErrorInvalidValue \(1\)$",
     r"\1: cudaErrorInvalidConfiguration (9)"),
    ((12, 8), r"^(.* of no kernel): cudaErrorInvalidResourceHandle \(400\)$",
     r"\1: cudaErrorInvalidDeviceFunction (98)"),
]
# Programs that call what came with a version.
SINCE = {"perthread": (12,)}
# Code from nvcc 13 needs this beside a runtime that is older than 12.
LAUNCH = os.path.join(os.path.dirname(__file__), "launch_11.cc")

programs_folder = tempfile.mkdtemp(prefix="gpupool-compat-")
atexit.register(shutil.rmtree, programs_folder)


def libraries(folder, kind):
    paths = []
    for name in LIBRARIES[kind]:
        found = glob.glob(os.path.join(folder, name))
        if not found and name not in BUILT_IN.get(os.path.basename(folder).split(".")[0], []):
            raise Skip(f"no {name} of this version: scripts/runtimes.sh fetches it")
        paths += found
    return paths


def parse_version(folder):
    return tuple(map(int, os.path.basename(folder).split(".")))


def link(name, folder, kind):
    more = [LAUNCH, "-I" + os.environ["GP_CUDA_HEADERS"]] if parse_version(folder) < (12,) else []
    binary = os.path.join(programs_folder, name)
    found = subprocess.run(
        [os.environ["GP_CXX"], os.path.join(os.environ["GP_APPS"], name + ".o"), *more, "-o", binary,
         *libraries(folder, kind), f"-Wl,-rpath,{folder}", "-ldl", "-lpthread", "-lrt"],
        capture_output=True, text=True)
    require(found.returncode == 0, found.stderr)
    return binary


def normal(text):
    return re.sub(*VARYING, text, flags=re.M)


def expected(name, version):
    text = read_file(os.path.join(EXPECTED, name + ".out"))
    for before, pattern, instead in OWN_WORDS:
        if version < before:
            text = re.sub(pattern, instead, text, flags=re.M)
    return normal(text)


def add(daemon, name, folder, kind):
    version = os.path.basename(folder)

    @case(f"{name} with the {kind} runtime {version} prints what it prints next to a GPU")
    def _():
        binary = link(name, folder, kind)
        result = daemon().run(name, path=binary).expect(err="")
        wanted = expected(name, parse_version(folder))
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
            if parse_version(os.path.abspath(runtime)) >= SINCE.get(program, ()):
                add(one, program, os.path.abspath(runtime), runtime_kind)
        status = main()
    sys.exit(status)
