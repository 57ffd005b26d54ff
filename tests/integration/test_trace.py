# SPDX-License-Identifier: Apache-2.0
"""The timeline that GPUPOOL_TRACE writes: its contents, and that it is written however the program ends."""
import collections
import fcntl
import json
import os
import re
import shutil
import sys
import tempfile

from harness import Daemon, Program, case, main, read_file, require, run, wait_until
from stats import ASKED, read_stats

# Times are rounded to a nanosecond.
ROUNDING = 0.0015


class Folder:
    """A folder for traces; a context manager."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="gpupool-trace-")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name="trace.json"):
        return os.path.join(self.path, name)

    def names(self):
        return sorted(os.listdir(self.path))


class Trace:
    """The events of a file, by kind."""

    def __init__(self, path, whole=True):
        text = read_file(path)
        if not whole:
            # The line that was being written may be cut.
            lines = text.splitlines()
            text = "\n".join(lines if lines[-1].rstrip(",").endswith("}") else lines[:-1]).rstrip(",") + "]"
        self.events = json.loads(text)
        self.spans = collections.defaultdict(list)
        self.counts = collections.defaultdict(list)
        self.names = {}
        for event in self.events:
            if event["ph"] == "X":
                self.spans[event["cat"]].append(event)
            elif event["ph"] == "C":
                self.counts[event["name"]].append(event)
            else:
                self.names[event["name"], event["pid"], event["tid"]] = event["args"]["name"]

    def named(self, kind):
        return collections.Counter(event["name"] for event in self.spans[kind])

    def last(self, name):
        return max((event["ts"], event["args"]["bytes"]) for event in self.counts[name])[1]

    def check_gpu(self):
        """Each GPU interval is within the program's life, up to the error of the clocks, and after the previous
        one of its stream."""
        error = collections.defaultdict(float)
        for event in self.counts["clock error"]:
            error[event["pid"]] = max(error[event["pid"]], event["args"]["ns"] / 1000)
        end = max(event["ts"] + event.get("dur", 0) for event in self.spans["call"] + self.spans["wait"] + self.counts["sent"])
        ends = collections.defaultdict(float)
        for event in self.spans["gpu"]:
            stream = event["pid"], event["tid"]
            require(("process_name", event["pid"], 0) in self.names and ("thread_name", *stream) in self.names, f"of no named stream: {event}")
            require(event["ts"] + ROUNDING >= ends[stream], f"begins before {ends[stream]}: {event}")
            ends[stream] = event["ts"] + event["dur"]
            require(ends[stream] <= end + error[event["pid"]] + ROUNDING, f"after the program's end {end}: {event}")


def check_waits(trace, stats):
    waits = {name.removeprefix("wait: "): count for name, count in trace.named("wait").items()}
    require(waits == stats.causes, f"waits {waits}, but the statistics have {stats.causes}")


def check_bytes(trace, result):
    sent, received = re.search(r"sent ([\d.]+) MiB, received ([\d.]+) MiB", result.err).groups()
    for name, told in ("sent", sent), ("received", received):
        require(f"{trace.last(name) / 2**20:.1f}" == told, f"{name}: {trace.last(name)} bytes, but the statistics have {told} MiB")


@case("calls, waits, bytes, kernels and copies of a program are in its trace")
def _():
    with Daemon() as daemon, Folder() as folder:
        result = daemon.run("copies", env={**ASKED, "GPUPOOL_TRACE": folder.file()})
        trace = Trace(folder.file())
        check_waits(trace, read_stats(result))
        check_bytes(trace, result)
        trace.check_gpu()
        gpu = trace.named("gpu")
        require(gpu["copy to the device"] and gpu["copy from the device"] and gpu["copy on the device"], f"no copies: {gpu}")
        require(trace.named("call")["cuInit"] == 1, f"not one cuInit: {trace.named('call')}")
        me = next(event for event in trace.spans["call"] if event["name"] == "cuInit")
        require(trace.names["process_name", me["pid"], 0] == f"copies {me['pid']}", f"names: {trace.names}")
        require(trace.names["thread_name", me["pid"], me["tid"]] == "copies", f"names: {trace.names}")
        # A wait lies in the call that waits.
        for wait in trace.spans["wait"]:
            require(wait["tid"] != me["tid"] or any(
                call["tid"] == wait["tid"] and call["ts"] <= wait["ts"] + ROUNDING and
                wait["ts"] + wait["dur"] <= call["ts"] + call["dur"] + ROUNDING for call in trace.spans["call"]), f"in no call: {wait}")


@case("kernels have their names, and every launch is there")
def _():
    with Daemon() as daemon, Folder() as folder:
        result = daemon.run("streams", env={**ASKED, "GPUPOOL_TRACE": folder.file()})
        stats, trace = read_stats(result), Trace(folder.file())
        trace.check_gpu()
        kernels = {name: count for name, count in trace.named("gpu").items() if name.startswith("_Z")}
        require(any("copy_plus" in name for name in kernels), f"kernels {kernels}")
        require(sum(kernels.values()) == stats.calls["gpLaunch"] and not trace.counts["not measured"],
                f"{kernels} of {stats.calls['gpLaunch']} launches; in all {trace.named('gpu')}")
        streams = {event["tid"] for event in trace.spans["gpu"]}
        require(len(streams) > 3, f"streams {streams}")


@case("every daemon of a pool has a process of its own")
def _():
    with Daemon() as a, Daemon() as b, Folder() as folder:
        run("manydevices", "2", remote=f"{a.address},{b.address}", env={"GPUPOOL_TRACE": folder.file()}).expect()
        trace = Trace(folder.file())
        trace.check_gpu()
        hosts = {trace.names["process_name", event["pid"], 0] for event in trace.spans["gpu"]}
        require(hosts == {a.address, b.address}, f"GPU work of {hosts}, not of {a.address} and {b.address}")
        measured = {trace.names["process_name", event["pid"], 0] for event in trace.counts["clock error"]}
        require(measured == hosts, f"clocks of {measured}")


@case("a file that cannot be written costs one line and not the program")
def _():
    with Daemon() as daemon, Folder() as folder:
        path = folder.file("none/trace.json")
        result = daemon.run("vectoradd", env={"GPUPOOL_TRACE": path})
        result.expect(out="vectoradd: ok\n", err=f"gpupool: GPUPOOL_TRACE={path}: No such file or directory; no trace is written\n")
        result = daemon.run("vectoradd", env={"GPUPOOL_TRACE": "/dev/full"})
        result.expect(out="vectoradd: ok\n", err="gpupool: GPUPOOL_TRACE: No space left on device; the trace ends here\n")
        daemon.run("vectoradd", env={"GPUPOOL_TRACE": ""}).expect(out="vectoradd: ok\n", err="")
        path = folder.file("pipe")
        os.mkfifo(path)
        result = daemon.run("vectoradd", env={"GPUPOOL_TRACE": path})
        result.expect(out="vectoradd: ok\n", err=f"gpupool: GPUPOOL_TRACE={path}: no process reads this pipe; no trace is written\n")
        end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 1 << 20)
        daemon.run("vectoradd", env={"GPUPOOL_TRACE": path}).expect(out="vectoradd: ok\n", err="")
        with open(end, "rb") as pipe, open(folder.file(), "wb") as copy:
            copy.write(pipe.read())
        require(Trace(folder.file()).named("call")["cuInit"] == 1, "no trace came out of the pipe")


@case("the trace of a program that is killed lacks its last bracket and nothing else")
def _():
    with Daemon() as daemon, Folder() as folder:
        program = daemon.start("sleeper", "-rest=60000", env={"GPUPOOL_TRACE": folder.file()})
        program.wait_for_output("running")
        wait_until("the completed calls are in the file", lambda: all(part in read_file(folder.file()) for part in ("cuLaunchKernel", '"fill"')), 60)
        program.kill()
        trace = Trace(folder.file(), whole=False)
        require(trace.named("call")["cuLaunchKernel"] == 1, f"calls: {trace.named('call')}")
        require(trace.named("gpu")["fill"] == 1, f"GPU work: {trace.named('gpu')}")


# The parent asks for the version, for which it has a session; that does not keep a child from cuInit.
FORKING = """
import ctypes, os
cuda = ctypes.CDLL("libcuda.so.1")
version = ctypes.c_int()
assert cuda.cuDriverGetVersion(ctypes.byref(version)) == 0
child = os.fork()
assert cuda.cuInit(0) == 0
if child:
    print(child, os.waitpid(child, 0)[1], flush=True)
"""


@case("a forked child leaves its parent's file alone")
def _():
    with Daemon() as daemon, Folder() as folder:
        result = Program("python", ("-W", "ignore", "-c", FORKING), daemon.address, path=sys.executable,
                         env={"GPUPOOL_TRACE": folder.file()}).finish().expect(err="")
        child, status = map(int, result.out.split())
        require(status == 0, f"the child ended with {status}")
        require(folder.names() == ["trace.json", f"trace.json.{child}"], f"files {folder.names()}")
        theirs, ours = Trace(folder.file(f"trace.json.{child}")), Trace(folder.file())
        require({event["pid"] for event in theirs.spans["call"]} == {child}, f"calls in the child's: {theirs.spans['call']}")
        require(theirs.named("call")["cuInit"] == ours.named("call")["cuInit"] == 1, "not one cuInit each")
        require(not theirs.named("call")["cuDriverGetVersion"], "the child's file has calls of the parent")
        require(child not in {event["pid"] for event in ours.events}, "the parent's file has something of the child")
        # The child of a process that has called cuInit has no CUDA, and writes nothing.
        daemon.run("fork", env={"GPUPOOL_TRACE": folder.file("forking.json")}).expect()
        trace = Trace(folder.file("forking.json"))
        trace.check_gpu()
        require(len({event["pid"] for event in trace.spans["call"]}) == 1, "calls of several processes")


@case("two programs at a time have two files")
def _():
    with Daemon() as daemon, Folder() as folder:
        first = daemon.start("sleeper", "-rest=60000", env={"GPUPOOL_TRACE": folder.file()})
        first.wait_for_output("running")
        second = daemon.start("vectoradd", env={"GPUPOOL_TRACE": folder.file()})
        pid = second.process.pid
        second.finish().expect(out="vectoradd: ok\n", err="")
        first.kill()
        require(folder.names() == ["trace.json", f"trace.json.{pid}"], f"files {folder.names()}")
        require(Trace(folder.file(f"trace.json.{pid}")).spans["gpu"], "no GPU work")
        third = Program("vectoradd", (), daemon.address, env={"GPUPOOL_TRACE": folder.file("of-%p.json")})
        pid = third.process.pid
        third.finish().expect(out="vectoradd: ok\n", err="")
        require(Trace(folder.file(f"of-{pid}.json")).spans["gpu"], "no GPU work")


if __name__ == "__main__":
    sys.exit(main())
