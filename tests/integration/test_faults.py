# SPDX-License-Identifier: Apache-2.0
"""Kernels that fault and processes that die: all affected programs get an error at once, no program hangs, and new
clients are served within two seconds."""
import os
import re
import signal
import sys
import tempfile
import time

from harness import SANITIZED, SANITIZER, SOFTWARE, Certificates, Daemon, Encrypted, case, main, require, run, wait_until

SOON = 30 if SANITIZED else 2


def expect_error(result, pattern, since):
    """The program's call failed with this error, and soon."""
    late = time.monotonic() - since
    require(result.status == 1 and re.search(r"^line \d+: cuda\w+.*: " + pattern, result.out, re.M),
            f"expected an error {pattern}: {result}")
    require(late < SOON, f"failed only after {late:.1f} s: {result}")


def expect_new_worker(daemon, old, since):
    wait_until("there is a new worker", lambda: daemon.workers() and not set(daemon.workers()) & set(old), 60)
    daemon.check_works()
    took = time.monotonic() - since
    require(took < SOON + 2, f"new clients were served after {took:.1f} s only")


@case("an illegal address ends its client with error 700, and bystanders get an error at once")
def _():
    with Daemon() as daemon:
        old = daemon.workers()
        # A GPU's driver would not load the other one's code beside an endless kernel.
        bystander = daemon.start("sleeper", "-endless") if SOFTWARE else daemon.start("memhog", stdin=True)
        bystander.wait_for_output("running" if SOFTWARE else "free after")
        begin = time.monotonic()
        result = daemon.run("sticky").expect(out=open_expected("sticky"))
        # A GPU's driver does not report the address, nor which of two programs' kernels used it; the daemon
        # reports the sessions with work.
        where = r"(gpupool software device: .*illegal global address 0x10 at PTX line \d+ .*, block \(0,0,0\)\n)?"
        require(re.fullmatch(where + r"gpupool: tcp://\S+: the session ended with error 700: CUDA_ERROR_ILLEGAL_ADDRESS "
                             r"\(700\), after work of .*session \d+ \(\S+ \d+ sticky\), last kernel .*\n", result.err),
                f"the kernel or the address is not reported: {result}")
        told = time.monotonic()
        expect_error(bystander.finish(), r"cudaError\w+ \(\d+\), expected cudaSuccess", told)
        expect_new_worker(daemon, old, told)
        require(told - begin < 3 * SOON, "the faulting client itself took too long")


def open_expected(name):
    path = os.path.join(os.path.dirname(__file__), "..", "apps", "expected", name + ".out")
    with open(path, encoding="ascii") as file:
        return file.read()


@case("the daemon's log names the client whose kernel faulted")
def _():
    with Daemon() as daemon:
        result = daemon.run("sticky").expect()
        require(not SOFTWARE or re.search(r"^gpupool software device: _Z8write_toPi: .*illegal global address 0x10 at PTX line "
                                          r"\d+ .*, block \(0,0,0\)$", result.err, re.M), f"the program does not get the address: {result}")
        daemon.wait_for_log(r"sticky.*700|700.*sticky|sticky.*illegal|ILLEGAL_ADDRESS")
        daemon.check_works()


@case("a failed assertion in a kernel is error 710")
def _():
    with Daemon() as daemon:
        result = daemon.run("assertion").expect(out=open_expected("assertion"))
        require(re.fullmatch(r".*assertion\.cu:\d+: .*Assertion `.*` failed\.\n"
                             r"gpupool: tcp://\S+: the session ended with error 710: .*\n", result.err),
                f"the assertion does not appear on the client's standard error: {result}")
        daemon.wait_for_log(r"gpupoold\[\d+\]: warning: the driver, with work of session \d+ \(\S+ \d+ \S*assertion\).*: "
                            r"\S*assertion\.cu:\d+: .* failed\.$")
        daemon.check_works()


@case("ten faults in a row are survived")
def _():
    with Daemon() as daemon:
        for _ in range(10):
            daemon.run("sticky").expect(out=open_expected("sticky"))
        daemon.check_works()


def expect_lost(result, why, since):
    """The program gets the error of a lost session, and its first line on stderr has the reason."""
    expect_error(result, r"cudaErrorDevicesUnavailable \(46\), expected cudaSuccess", since)
    require(re.match(rf"gpupool: tcp://127\.0\.0\.1:\d+: the session ended with error 46: {why}\n", result.err), str(result))


@case("a killed worker: its clients get an error, and a new worker starts")
def _():
    with Daemon() as daemon:
        old = daemon.workers()
        require(len(old) == 1, f"expected one worker: {old}")
        client = daemon.start("sleeper", "-endless")
        client.wait_for_output("running")
        idle = daemon.start("memhog", stdin=True)
        idle.wait_for_output("free after")
        os.kill(old[0], signal.SIGKILL)
        since = time.monotonic()
        for program in (client, idle):
            expect_lost(program.finish(), r"the worker was killed by signal 9 \(Killed\)", since)
        expect_new_worker(daemon, old, since)
        daemon.wait_for_log(r"worker.*(signal 9|killed)")
        for name in ("sleeper", "memhog"):
            daemon.wait_for_log(rf"session \d+ \(\S+ \d+ {name}\): closed: the worker was killed by signal 9 \(Killed\); ")


@case("a killed supervisor: its clients get an error, and the worker ends")
def _():
    with Daemon() as daemon:
        client = daemon.start("sleeper", "-endless")
        client.wait_for_output("running")
        daemon.process.kill()
        daemon.process.wait()
        since = time.monotonic()
        expect_lost(client.finish(), r".+", since)
        wait_until("no process of the daemon stays", daemon.group_is_gone, 60)
        daemon.check_log()


@case("a client that is stopped for a while goes on afterwards")
def _():
    with Daemon() as daemon:
        # Copies are slow under the thread sanitizer, see test_lanes.py.
        name, args = ("lanes", ("short",)) if SANITIZER == "thread" else ("copies", ())
        client = daemon.start(name, *args)
        for _ in range(3):
            time.sleep(0.2)
            if client.process.poll() is None:
                os.kill(client.process.pid, signal.SIGSTOP)
                time.sleep(0.5)
                daemon.check_works()
                os.kill(client.process.pid, signal.SIGCONT)
        client.finish().expect(out="lanes: ok\n" if args else open_expected("copies"), err="")


def expect_closed(run):
    """Descriptors that a program opens at the numbers of the library's stay untouched."""
    kinds = ["nothing", "files", "eventfds", "sockets"]
    with tempfile.TemporaryDirectory(prefix="gpupool-closer-") as folder:
        for size in 64, 4 << 20:
            run("closer", folder, str(size), *kinds, path=os.environ["GP_CLOSER"]).expect(
                out="".join(f"{kind}: 46 46 46, touched 0, in a child 0\n" for kind in kinds))


@case("a program that closes all descriptors gets error 46 at once, and its own files stay untouched")
def _():
    with Daemon() as daemon:
        expect_closed(daemon.run)
        daemon.check_works()


@case("so it is with a local socket")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-closer-") as folder:
        url = f"unix://{folder}/gpupool.sock"
        with Daemon("--listen", url) as daemon:
            expect_closed(lambda name, *args, **more: run(name, *args, remote=url, **more))
            daemon.check_works()


@case("so it is with TLS")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        expect_closed(daemon.run)
        daemon.check_works()


if __name__ == "__main__":
    sys.exit(main(at_once=3 if SOFTWARE else 1))
