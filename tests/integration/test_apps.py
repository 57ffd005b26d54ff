# SPDX-License-Identifier: Apache-2.0
"""test_apps.py static|shared PROGRAM...: each program, through a daemon, prints what it prints on a
machine with a GPU (tests/apps/expected). With the static runtime over tcp, with the shared one over
TLS, with a token."""
import contextlib
import os
import re
import subprocess
import sys

from harness import SANITIZER, PATIENCE, Certificates, Daemon, Encrypted, case, main, read_file, require

EXPECTED = os.path.join(os.path.dirname(__file__), "..", "apps", "expected")
# Programs with calls that are not remoted yet, and the message and status that they report this with.
NOT_REMOTED = {}
# Their output depends on the device.
SHAPES = {
    "devicequery": r"device 0: \S.*\n(  [^\n]+: [^\n]+\n)+devicequery: ok\n",
    "occupancy": r"(\d+ threads: \d+ blocks\n){6}64 threads, 40000 bytes of shared memory: \d+ blocks\n"
                 r"best: \d+ blocks of \d+ threads\noccupancy: ok\n",
    "badhandle": r"([^\n]+: cuda\w+ \(\d+\)\n){6}badhandle: ok\n",
    "sleeper": r"running\nsleeper: ok\n",
    "memhog": r"free before: \d+ MiB\nfree after: \d+ MiB\nfree at the end: \d+ MiB\nmemhog: ok\n",
    "smcount": r"multiprocessors: (\d+)\na grid ran on \1\na cooperative one ran on \1\nsmcount: ok\n",
    "driverapi": None,
}
# Lines in which devices may differ.
VARYING = [(r"^priorities 0 to -\d+$", "priorities 0 to -N")]
ENDED = r"gpupool: \S+: the session ended with error \d+: .*\n"
STDERR = {"assertion": r"\S*assertion\.cu:\d+: void insist\(int\): block: \[0,0,0\], thread: \[3,0,0\] "
                       r"Assertion `.*` failed\.\n" + ENDED,
          "hostpoolshare": r"gpupool: pool of host memory: the process that created it cannot import it; "
                           r"use the pool itself\n",
          "sticky": r"(gpupool software device: .*\n)?" + ENDED,
          "unsupported": r"(gpupool: \S+: the software device cannot run kernel \w*video\w*, and launches of it fail: "
                         r"line \d+: instruction 'vadd' is not supported\n"
                         r"gpupool: \S+: the software device cannot run kernel \w*caller\w*, and launches of it fail: "
                         r"(it calls \w+: )?line \d+: instruction 'vadd' is not supported\n)?"}
# Over shared memory, where flags that are polled in pinned memory have no order with data in replicated memory.
def warning(subject, where):
    return (f"gpupool: {subject}: a kernel or thread that polls a flag in pinned memory may see it before its data in {where}; "
            "keep both in one kind of memory\n")


WARNING = warning("registered host memory", "registered memory")
WARNING_POOL = warning("exportable pool of host memory", "the pool")
WARNING_MAPPED = warning("cuMemMap() of host memory", "memory that cuMemMap() mapped")
# These ask for values, or run kernels one after another: the same messages in the same threads as those of vectoradd.
ONE_THREAD = ("arrays", "atomics", "attributes", "badhandle", "bigglobal", "devicequery", "errors", "exitnoclean", "launch",
              "linkptx", "matmul", "memset", "occupancy", "policies", "references", "smcount", "symbols", "tensormaps",
              "textures", "unsupported", "warp")
# These lose the worker its CUDA.
FATAL = ("assertion", "sticky")


def normal(text):
    for pattern, instead in VARYING:
        text = re.sub(pattern, instead, text, flags=re.M)
    return text


def binary_of(name, kind):
    """Those on the driver API alone have no runtime that could be shared."""
    shared = name + "-shared"
    return shared if kind == "shared" and os.path.exists(os.path.join(os.environ["GP_APPS"], shared)) else name


def judge(name, result, shared=False):
    """Fails unless the program's result is what it is on a machine with a GPU; shared: or a WARNING is on stderr."""
    if name in NOT_REMOTED:
        result.expect(status=77, out=f"skipped: {NOT_REMOTED[name]}: not supported\n")
        return
    result.expect()
    if SHAPES.get(name):
        require(re.fullmatch(SHAPES[name], result.out), f"output of another shape: {result}")
    else:
        wanted = read_file(os.path.join(EXPECTED, name + ".out"))
        require(normal(result.out) == normal(wanted), f"expected\n{wanted}but {result}")
    err = result.err
    for line in (WARNING, WARNING_POOL, WARNING_MAPPED) if shared else ():
        err = err.replace(line, "", 1)
    require(re.fullmatch(STDERR.get(name, ""), err), f"other words on stderr: {result}")


@contextlib.contextmanager
def pool(kind):
    """A daemon, and the environment of those who may come."""
    if kind == "static":
        with Daemon() as daemon:
            yield daemon, {}
        return
    with Certificates() as certificates:
        token = certificates.file("of-a-user", "token")
        subprocess.run([os.environ["GP_CTL"], "token", "create", "default", "-D", certificates.folder, "-o", token],
                       check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
        with Encrypted(certificates, "--tokens", os.path.join(certificates.folder, "tokens")) as daemon:
            yield daemon, certificates.client(GPUPOOL_TOKEN_FILE=token)


def check(daemon, env, name, kind):
    judge(name, daemon.run(binary_of(name, kind), env=env, seconds=PATIENCE))


def add(shared, name, kind):
    over = "tcp" if kind == "static" else "tls"

    @case(f"{name} ({kind} runtime, over {over}) prints what it prints next to a GPU")
    def _():
        if name in FATAL:
            with pool(kind) as (daemon, env):
                check(daemon, env, name, kind)
                daemon.wait_for_log("worker", 10)
        else:
            daemon, env = shared
            check(daemon, env, name, kind)
            daemon.settle()


if __name__ == "__main__":
    runtime, names = sys.argv[1], sys.argv[2:]
    # A wait looks at words that kernels and fills write meanwhile: on the software device that is a race on purpose.
    # What copyorder's streams order the sanitizer does not see, and it takes minutes.
    if SANITIZER == "thread":
        names = [name for name in names if name not in ("memops", "copyorder", *ONE_THREAD)]
    sys.argv[1:] = []
    with pool(runtime) as one:
        for program in names:
            add(one, program, runtime)
        status = main()
    sys.exit(status)
