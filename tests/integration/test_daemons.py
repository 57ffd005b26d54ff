# SPDX-License-Identifier: Apache-2.0
"""One program on the devices of several daemons."""
import os
import re
import sys

from harness import SANITIZED, SANITIZER, SOFTWARE, Daemon, Program, Skip, case, main, read_file, require, run, software_env

EXPECTED = "each has its own variable and memory\ncopies between them\nmanydevices: ok\n"


def daemons(count):
    """A list of daemons that end together."""
    from contextlib import ExitStack

    stack = ExitStack()
    return stack, [stack.enter_context(Daemon()) for _ in range(count)]


@case("the devices of several daemons are devices 0 to n - 1, with one program on all")
def _():
    stack, list_ = daemons(3)
    with stack:
        remote = ",".join(daemon.address for daemon in list_)
        for name in ("manydevices", "manydevices-shared"):
            run(name, "3", remote=remote).expect(out=EXPECTED, err="")
        for name in ("vectoradd", "streams", "symbols", "threads", "occupancy"):
            run(name, remote=remote).expect(err="")
        for daemon in list_:
            daemon.settle()


@case("kernels of one daemon do not reach pinned memory that was had for another one's device, and the program hears so")
def _():
    stack, (a, b) = daemons(2)
    with stack:
        result = run("probe", "elsewhere", "2", remote=f"{a.address},{b.address}", path=os.environ["GP_PROBE"],
                     env={"GPUPOOL_LOG": "error"})
        result.expect(out="allocated 801\nregistered 801\nprobe: ok\n")
        require(result.err.count("it was allocated for a device of another daemon") == 2, f"no line has the reason: {result}")
    if not SOFTWARE:
        return
    with Daemon(env=software_env(GPUPOOL_SOFT_DEVICES="2")) as daemon:
        daemon.run("probe", "elsewhere", "2", path=os.environ["GP_PROBE"]).expect(out="allocated 0\nregistered 0\nprobe: ok\n")


@case("one device of a daemon, and what rCUDA's variables name")
def _():
    stack, (a, b) = daemons(2)
    with stack:
        run("manydevices", "2", remote=f"{a.address}/0,{b.address}/0").expect(out=EXPECTED)
        rcuda = {"RCUDA_DEVICE_COUNT": "2", "RCUDA_DEVICE_0": f"127.0.0.1@{a.port}:0",
                 "RCUDA_DEVICE_1": f"127.0.0.1@{b.port}"}
        run("manydevices", "2", env=rcuda).expect(out=EXPECTED)
        run("manydevices", "1", remote=f"{a.address},{b.address}",
            env={"CUDA_VISIBLE_DEVICES": "1"}).expect(out=EXPECTED)


@case("a worker's memory for the driver is apart from the addresses of programs' memory")
def _():
    if SANITIZER == "thread":
        raise Skip("its addresses are fewer")
    with Daemon() as daemon:
        pid, = daemon.workers()
        maps = [re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups() for line in read_file(f"/proc/{pid}/maps").splitlines()]
        ranges = [(int(first, 16), int(end, 16), access) for first, end, access in maps]
        gaps = [(first, end) for first, end, access in ranges if end - first >= 24 << 40 and access == "---p"]
        require(len(gaps) == 1, f"{gaps} of {maps}")
        below = [end for _, end, access in ranges if gaps[0][0] - (1 << 40) < end <= gaps[0][0] and access == "rw-p"]
        require(below, f"nothing lies there: {maps}")


@case("an address or device that cannot be used is named in the error")
def _():
    stack, (a, b) = daemons(2)
    with stack:
        for remote, words in ((f"{a.address},{a.address}", f"{a.address} is named twice"),
                              (f"{a.address}/0,{a.address}", f"{a.address} is named twice"),
                              (f"{a.address}/0,{a.address}/0", f"{a.address}/0 is named twice"),
                              (f"{a.address},{b.address}/7", "unknown device 7: the daemon has 1, counted from 0"),
                              (f"{a.address},127.0.0.1:1", "127.0.0.1:1")):
            result = run("vectoradd", remote=remote)
            require(result.status == 1 and words in result.err, f"{remote}: expected {words}: {result}")
        a.settle()
        b.settle()
        a.check_works()


@case("a daemon that goes takes its own devices along and no others")
def _():
    stack, (a, b) = daemons(2)
    with stack:
        program = run("faultofone", remote=f"{a.address},{b.address}")
        program.expect(out="device 0: cudaErrorIllegalAddress (700)\ndevice 1: cudaSuccess (0)\nfaultofone: ok\n")
        b.check_works()
        a.wait_for_log("worker")
        a.check_works()


@case("a process forked from one that uses several daemons leaves them alone")
def _():
    stack, list_ = daemons(2)
    with stack:
        remote = ",".join(daemon.address for daemon in list_)
        expected = os.path.join(os.path.dirname(__file__), "..", "apps", "expected", "fork.out")
        with open(expected, encoding="ascii") as file:
            run("fork", remote=remote).expect(out=file.read())


@case("a program whose limit forbids the addresses of a session's device memory gets an error message")
def _():
    if SANITIZED:
        raise Skip("a sanitizer has more addresses than any limit")
    with Daemon() as daemon:
        shell = Program("vectoradd", ("-c", f"ulimit -v 8000000; exec {os.environ['GP_APPS']}/vectoradd"), daemon.address, path="/bin/sh")
        result = shell.finish()
        require(result.status == 1 and result.err.count("\n") == 1 and re.search(
            r": the program may not reserve the \d+ MiB of addresses for device memory \(ulimit -v, RLIMIT_AS\)$",
            result.err.rstrip()), str(result))


if __name__ == "__main__":
    sys.exit(main())
