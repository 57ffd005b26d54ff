# SPDX-License-Identifier: Apache-2.0
"""The portable client (scripts/portable.sh), gpupool(1) too: its dependencies and exports, and runs in roots that have a C
library and nothing else. GP_PORTABLE names its build folder; without it all is skipped. GP_PORTABLE_ARM
names the one for aarch64, whose program qemu-user runs.

The old C library is glibc 2.27 of Ubuntu 18.04; where that cannot be had, 2.31 of Debian 11, and a line reports
it. That the libraries need no later one is read from them, too."""
import atexit
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

from harness import PATIENCE, Certificates, Daemon, Encrypted, Skip, case, main, require  # noqa: E402

GLIBC = (2, 27)
DONE = re.compile(r"^[1-9]\d* devices, 65536 sums\n$")
# The files of a distribution's C library.
SYSTEM = re.compile(r"(libc\.so\.6|libdl\.so\.2|libm\.so\.6|libpthread\.so\.0|librt\.so\.1|ld-linux-(x86-64|aarch64)\.so\.[12])$")
LIBRARIES = ("client/libcuda.so.1", "nvml/libnvidia-ml.so.1")
COMMAND = "cli/gpupool"


def build(variable="GP_PORTABLE"):
    folder = os.environ.get(variable)
    if not folder:
        raise Skip(f"{variable} names no build of scripts/portable.sh")
    return folder


def run_for_output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def check_files(folder, machine):
    for library in (*LIBRARIES, COMMAND):
        path = os.path.join(folder, library)
        require(machine in run_for_output("readelf", "-h", path), f"{path} is not for {machine}")
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run_for_output("readelf", "-d", path))
        require(needed and all(SYSTEM.match(name) for name in needed), f"{library} needs {needed}")
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", run_for_output("readelf", "-V", path))}
        require(versions and max(versions) <= GLIBC, f"{library} needs glibc {max(versions)}")
        if library == COMMAND:
            continue
        symbols = [line.split()[-2:] for line in run_for_output("nm", "-D", "--defined-only", path).splitlines()]
        strange = [name for kind, name in symbols if kind != "A" and not re.match(r"(cu|nvml)[A-Z]", name)]
        require(len(symbols) > 100 and not strange, f"{library} exports {strange} of {len(symbols)}")


@functools.lru_cache
def unpack_packages(suite, architecture, *packages):
    folder = tempfile.mkdtemp(prefix="gpupool-root-")
    done = subprocess.run([os.path.join(HERE, "root.sh"), suite, architecture, folder, *packages], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        shutil.rmtree(folder)
        raise Skip(f"{packages} of {suite} cannot be had: {done.stderr.strip().splitlines()[-1]}")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.lru_cache
def old_files():
    try:
        return unpack_packages("bionic", "amd64", "libc6")
    except Skip as e:
        print(f"# Debian 11's C library in place of Ubuntu 18.04's: {e}")
        return unpack_packages("bullseye", "amd64", "libc6")


class Root:
    """A folder with a Debian's packages, the client of a build, and the program; as root of a process."""

    def __init__(self, portable, suite=None, architecture="amd64", packages=("libc6",)):
        files = unpack_packages(suite, architecture, *packages) if suite else old_files()
        self.folder = tempfile.mkdtemp(prefix="gpupool-root-")
        os.chmod(self.folder, 0o755)
        shutil.copytree(files, self.folder, symlinks=True, dirs_exist_ok=True)
        for file in (*LIBRARIES, COMMAND):
            self.add(os.path.join(portable, file))
        self.add(os.path.join(portable, "tests/portable/portable-app"))

    def add(self, path, name=None):
        place = os.path.join(self.folder, "gpupool", name or os.path.basename(path))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copy(path, place)

    def command(self, *program):
        """As root, or as what a user's namespace has for it."""
        enter = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]
        return [*enter, shutil.which("chroot", path="/usr/sbin:/sbin:" + os.environ["PATH"]), self.folder, *(program or ["/gpupool/portable-app"])]

    def run(self, remote, command=None, **env):
        done = subprocess.run(command or self.command(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=PATIENCE, env={"LD_LIBRARY_PATH": "/gpupool", "REMOTE_GPU": remote, **env})
        return done.stdout, done.stderr, done.returncode

    def works(self, remote, **more):
        out, err, status = self.run(remote, **more)
        require(DONE.match(out) and status == 0 and err == "", f"status {status}, {out!r}, {err!r}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)


@case("the libraries need glibc 2.27 and nothing else, and export CUDA's and NVML's names only")
def _():
    check_files(build(), "X86-64")


@case("so do those for aarch64")
def _():
    check_files(build("GP_PORTABLE_ARM"), "AArch64")


@case("a program runs in a root that has nothing but an old C library, over tcp and a local socket")
def _():
    with Root(build()) as root:
        os.mkdir(os.path.join(root.folder, "run"))
        with Daemon("--listen", f"unix://{root.folder}/run/gpupool.sock") as daemon:
            root.works(daemon.address)
            out, err, status = root.run(daemon.address, command=root.command("/gpupool/gpupool", "--version"))
            require(re.match(r"gpupool \d+\.\d+", out) and status == 0, f"status {status}, {out!r}, {err!r}")
            root.works("unix:///run/gpupool.sock")


@case("TLS without OpenSSL is refused by a line that names the missing library")
def _():
    with Root(build()) as root, Certificates() as certificates, Encrypted(certificates) as daemon:
        root.add(certificates.file("ca"), "ca.pem")
        out, err, status = root.run(daemon.address, GPUPOOL_TLS_CA="/gpupool/ca.pem")
        require(status == 1 and "TLS needs OpenSSL 3" in err and "libssl.so.3" in err and err.count("\n") == 1,
                f"status {status}, {out!r}, {err!r}")


@case("TLS uses the system's OpenSSL, or a copy beside the library")
def _():
    libraries = unpack_packages("bookworm", "amd64", "libc6", "libssl3")
    with Root(build(), "bookworm", packages=("libc6", "libssl3")) as system, Root(build(), "bookworm") as beside, \
            Certificates() as certificates, Encrypted(certificates) as daemon:
        for name in ("libssl.so.3", "libcrypto.so.3"):
            beside.add(os.path.join(libraries, "usr/lib/x86_64-linux-gnu", name), f"openssl/{name}")
        for root in (system, beside):
            root.add(certificates.file("ca"), "ca.pem")
            root.works(daemon.address, GPUPOOL_TLS_CA="/gpupool/ca.pem")


@case("TLS in a root with an old C library uses the copy that was built for it")
def _():
    copy = os.path.join(build(), "openssl")
    if not os.path.exists(os.path.join(copy, "libssl.so.3")):
        raise Skip("packaging/openssl.sh has not built it")
    with Root(build()) as root, Certificates() as certificates, Encrypted(certificates) as daemon:
        for name in ("libssl.so.3", "libcrypto.so.3"):
            root.add(os.path.join(copy, name), f"openssl/{name}")
        root.add(certificates.file("ca"), "ca.pem")
        root.works(daemon.address, GPUPOOL_TLS_CA="/gpupool/ca.pem")


@case("an aarch64 program runs under qemu-user, with a daemon of this machine")
def _():
    portable = build("GP_PORTABLE_ARM")
    qemu = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if not qemu:
        raise Skip("there is no qemu-user")
    with Root(portable, "bullseye", "arm64") as root, Daemon() as daemon:
        command = [qemu, "-L", root.folder, "-E", f"LD_LIBRARY_PATH={root.folder}/gpupool", f"{root.folder}/gpupool/portable-app"]
        root.works(daemon.address, command=command)


if __name__ == "__main__":
    sys.exit(main())
