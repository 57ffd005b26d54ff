# SPDX-License-Identifier: Apache-2.0
"""test_rdma.py NBODY PROGRAM...: the rdma transport over Soft-RoCE. In one virtual machine: the
contract of transport.h, programs with a daemon, and processes that die. In two that a wire joins: the
same programs, and a machine that loses its power. On this machine: the behavior without RDMA."""
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile

import test_apps
from harness import PATIENCE, REPORTS, Daemon, Skip, base_environment, case, driver_options, main, read_file, require, run, wait_until
from planned import Planned, installed_environment, vm

# The time limit of a machine. Where it is emulated and other tests run, its programs take minutes.
SECONDS = 2000
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
PORT = 4833
# Root of the virtual machine stays root: the user gpupool may not be able to read this tree.
DRIVER = ("--driver", os.environ["GP_DRIVER"], "--user", "root")
# The daemon goes on when the command that starts it has ended.
START = """
setsid "$@" >/tmp/daemon.out 2>/tmp/daemon.log </dev/null &
echo $! >/tmp/daemon.pid
for i in $(seq 600); do
	grep -q ^listening /tmp/daemon.out && exec cat /tmp/daemon.out
	kill -0 $! || break
	sleep 0.1
done
cat /tmp/daemon.log
exit 1
"""
STOP = """
kill $(cat /tmp/daemon.pid)
for i in $(seq 300); do
	kill -0 $(cat /tmp/daemon.pid) 2>/dev/null || exec cat /tmp/daemon.log
	sleep 0.1
done
cat /tmp/daemon.log
exit 1
"""


def whole_suite_passes(result):
    require(not REPORTS.search(result.err), f"a sanitizer's report: {result}")
    planned = re.match(r"1\.\.(\d+)\n", result.out)
    passed = len(re.findall(r"^ok ", result.out, re.M))
    require(result.status == 0 and planned and passed == int(planned[1]), f"not all of it passed: {result}")


def plan_contract(planned):
    for part in "messages", "life", "deadlines", "bulk":
        planned.add(f"what transport.h promises holds over rdma: {part}",
                    {**SANITIZERS, "CMOCKA_MESSAGE_OUTPUT": "TAP", "GP_CONTRACT_SMALL": "1"},
                    [os.path.join(os.environ["GP_CONTRACT"], "contract_" + part), f"rdma://{vm.OWN}:0"],
                    whole_suite_passes)
    planned.add("a peer that posts no receives is refused endless retries, and holds up no sender", {**SANITIZERS},
                [os.environ["GP_DEAF"], vm.OWN], is_given_up)


def is_given_up(result):
    result.expect(out="endless retries: rejected\na time limit: timed out, soon\nshut down: shut down, soon\n")
# $1: a program that prints when it is running; then it dies without a word.
KILL_CLIENT = """
"$@" >/tmp/victim.out 2>&1 &
for i in $(seq 300); do grep -q running /tmp/victim.out && break; sleep 0.1; done
before=$(grep -c "closed:" /tmp/daemon.log)
kill -9 $!
for i in $(seq 100); do
	[ $(grep -c "closed:" /tmp/daemon.log) -gt $before ] && exec echo noticed
	sleep 0.1
done
cat /tmp/victim.out /tmp/daemon.log
exit 1
"""
KILL_WORKER = """
"$@" >/tmp/victim.out 2>&1 &
for i in $(seq 300); do grep -q running /tmp/victim.out && break; sleep 0.1; done
kill -9 $(cat /proc/$(cat /tmp/daemon.pid)/task/*/children)
begin=$(date +%s)
wait $!
status=$?
echo "after $(($(date +%s) - begin)) s: status $status"
cat /tmp/victim.out
"""
# Of the second worker, which takes its time to start.
STRANGER = """
for i in $(seq 300); do [ $(grep -c "over RDMA, on port" /tmp/daemon.log) -gt 1 ] && break; sleep 0.1; done
port=$(sed -n "s/.*over RDMA, on port //p" /tmp/daemon.log | tail -n 1)
"$1" "rdma://$2:$port" && sleep 1 && grep -c "rdma://$2:[0-9]*: .*refused" /tmp/daemon.log
"""
# In two machines.
SERVE = """
while [ "$(grep -c 'session.*closed:' /tmp/daemon.log)" -lt "$1" ] && [ $((i += 1)) -lt 1200 ]; do sleep 0.1; done
grep 'session.*closed:' /tmp/daemon.log
"""
VISIT = """
for i in $(seq 600); do "$1" >/tmp/first 2>&1 && break; sleep 0.2; done
cat /tmp/first
"$2"
"$3" -endless
"""


def shell(text, *args):
    return ["sh", "-c", text, "sh", *args]


def prints_address(result):
    result.expect(out=f"listening on rdma://{vm.OWN}:{PORT}\n")


def ended_without_error(result):
    require(result.status == 0 and not REPORTS.search(result.out), f"the daemon did not end well: {result}")
    lanes = re.findall(r"lanes are accepted over RDMA", result.out)
    require(lanes, f"nothing of RDMA in the daemon's log: {result}")


def learns_of_it(result):
    found = re.match(r"after (\d+) s: status (\d+)\n", result.out)
    require(result.status == 0 and found and int(found[1]) < 5 and found[2] not in ("0", "124"),
            f"it did not fail soon: {result}")


def are_refused(result):
    # The log has a hundred lines about one address, and one more each two seconds.
    lines = int(result.out.split()[-1])
    require(100 <= lines <= 104, f"{lines} lines of the log: {result}")
    result.expect(out="".join(f"{what}: the connection was refused\n" for what in
                              ("a ticket of zeros", "a ticket of its own", "half a preamble", "no preamble"))
                  + f"refused 100 of 100\n{lines}\n")


def passes(result):
    result.expect(err="")
    require(result.out.endswith("\nPASS\n"), f"device and CPU differ: {result}")


def copies_are_right(result):
    result.expect(out="sizes\nstraight: ok\n", err="")


def direct_bytes(log):
    """Of each session of the program straight, [bytes in, bytes out] without staging."""
    closed = [line for line in re.findall(r".* straight\): closed: .*", log) if "launches" in line]
    found = [re.search(r"without staging (\d+) bytes in, (\d+) bytes out", line) for line in closed]
    return [[int(one[1]), int(one[2])] if one else [0, 0] for one in found]


def used_gpudirect(result):
    ended_without_error(result)
    require("memory of GPU 0 is registered by its addresses: large copies use GPUDirect RDMA" in result.out,
            f"device memory was not registered: {result}")
    # Of what it copies while its stream is idle: the first copy may come before lanes wait for records, and short
    # ends go through staging.
    least_in, least_out = (4 << 20) + (5 << 20) - 40000 + (8 << 20), (13 << 20) - 40000 + (8 << 20) + 333333
    first, killed, last = direct_bytes(result.out)
    for bytes_in, bytes_out in first, last:
        require(bytes_in >= least_in and bytes_out >= least_out, f"too little went straight: {result}")
    require(killed[0] + killed[1] > 0, f"the client that was killed copied through staging: {result}")


def went_through_staging(why):
    def judge(result):
        ended_without_error(result)
        require(re.search(f"memory of GPU 0 is not registered, copies go through staging: {why}\n", result.out),
                f"another reason: {result}")
        require(direct_bytes(result.out) == [[0, 0]], f"copies without staging: {result}")
    return judge


def plan_programs(planned, nbody, names):
    # The daemon has its sanitizers, and so have both ends of the transport above.
    env = {**installed_environment(f"rdma://{vm.OWN}:{PORT}"), "GPUPOOL_LANES": "3"}
    planned.add("the daemon listens for rdma", {**base_environment(), **SANITIZERS},
                shell(START, os.environ["GP_DAEMON"], "--listen", f"rdma://{vm.OWN}:{PORT}", "--insecure",
                      "--print-address", *DRIVER, "--admin-socket", "off"), prints_address)
    planned.add("nbody over rdma agrees with the CPU", env, [nbody, "-compare", "-numbodies=256"], passes)
    for name in names:
        planned.add(f"{name} over rdma prints what it prints next to a GPU", env,
                    [os.path.join(os.environ["GP_APPS"], test_apps.binary_of(name, "static"))],
                    lambda result, name=name: test_apps.judge(name, result))
    planned.add("a client that is killed is noticed at once", env,
                shell(KILL_CLIENT, os.path.join(os.environ["GP_APPS"], "sleeper"), "-endless"),
                lambda result: result.expect(out="noticed\n"))
    straight = os.path.join(os.environ["GP_APPS"], "straight")
    planned.add("a client that dies in the middle of copies without staging is noticed", env,
                shell(KILL_CLIENT, straight, "loop"), lambda result: result.expect(out="noticed\n"))
    planned.add("and its memory can be had by another", env, [straight, "short"], copies_are_right)
    planned.add("a program that closes all descriptors gets an error at once, and its own files stay untouched", env,
                [os.environ["GP_CLOSER"], "/tmp", str(4 << 20), *CLOSED], gets_only_the_error)
    planned.add("a client of a worker that is killed learns of it at once", env,
                shell(KILL_WORKER, os.path.join(os.environ["GP_APPS"], "sleeper"), "-endless"), learns_of_it)
    planned.add("strangers are refused before they cost anything", {**SANITIZERS},
                shell(STRANGER, os.environ["GP_STRANGER"], vm.OWN), are_refused)
    planned.add("the next worker serves over rdma, too", env,
                [os.path.join(os.environ["GP_APPS"], test_apps.binary_of("vectoradd", "static"))],
                lambda result: test_apps.judge("vectoradd", result))
    planned.add("the daemon ends in good order, and large copies went past its staging", {}, shell(STOP), used_gpudirect)


CLOSED = ("nothing", "files", "eventfds", "sockets")


def gets_only_the_error(result):
    result.expect(out="".join(f"{kind}: 46 46 46, touched 0, in a child 0\n" for kind in CLOSED))


class Machine:
    """One of two virtual machines that are joined by a wire of their own; a context manager."""

    def __init__(self, number, folder, env, script):
        self.out_path = os.path.join(folder, f"out{number}")
        self.folder = tempfile.mkdtemp(dir=folder)
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in env.items())
        with open(os.path.join(self.folder, "run"), "w", encoding="utf-8") as file:
            file.write(f"{'export ' + settings if settings else ''}\n{script}")
        wire = f"stream,server={'on' if number == 1 else 'off'},addr.type=unix,addr.path={folder}/wire"
        with open(self.out_path, "wb") as out:
            self.process = subprocess.Popen(
                [vm.SCRIPT, self.folder, "bash", "./run"], stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, "VM_ID": str(number), "VM_NET": wire, "VM_RDMA": "1", "VM_SECONDS": str(SECONDS)})

    def out(self):
        return read_file(self.out_path).replace("\r", "")

    def wait_for_output(self, text):
        wait_until(f"{text!r} in {self.out()!r}", lambda: text in self.out() or self.process.poll() is not None,
                   SECONDS + PATIENCE)
        if self.process.poll() == vm.CANNOT:
            raise Skip(self.out().splitlines()[-1])
        require(text in self.out(), f"{text!r} is not in {self.out()}")

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        # It ends the machine, as if its power were cut.
        self.process.terminate()
        self.process.wait()


@case("two machines: programs run over a wire, and a client's machine without power is noticed")
def _():
    apps = os.environ["GP_APPS"]
    programs = [os.path.join(apps, test_apps.binary_of(name, "static"))
                for name in ("vectoradd", "pinned", "sleeper")]
    start = shlex.join(shell(START, os.environ["GP_DAEMON"], "--listen", f"rdma://{vm.OWN}:{PORT}", "--insecure",
                             "--print-address", *DRIVER, "--admin-socket", "off"))
    serve = f"{start}\n{shlex.join(shell(SERVE, '3'))}\n{shlex.join(shell(STOP))}\necho stopped: $?\n"
    with tempfile.TemporaryDirectory(prefix="gpupool-wire-") as folder:
        with Machine(1, folder, {**base_environment(), **SANITIZERS}, serve) as server:
            wait_until("the wire is there", lambda: os.path.exists(f"{folder}/wire") or server.process.poll() is not None,
                       PATIENCE)
            with Machine(2, folder, installed_environment(f"rdma://{vm.OWN}:{PORT}"),
                         shlex.join(shell(VISIT, *programs))) as client:
                client.wait_for_output("running")
                said = client.out()
            require(re.fullmatch(r"vectoradd: ok\n(.*\n)*pinned: ok\nrunning\n", said),
                    f"another output: {said}")
            server.wait_for_output("stopped: 0")
            require(not REPORTS.search(server.out()), f"a sanitizer's report: {server.out()}")


@case("without RDMA, client and daemon report it in a sentence")
def _():
    if os.path.exists("/dev/infiniband/rdma_cm"):
        raise Skip("this machine has RDMA")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ended = subprocess.run([os.environ["GP_DAEMON"], "--listen", f"rdma://127.0.0.1:{port}", *driver_options(), "--admin-socket", "off"], capture_output=True,
                           text=True, timeout=60, env={**base_environment(), **SANITIZERS}, check=False)
    require(ended.returncode == 1 and re.search(rf"^gpupoold: cannot listen on rdma://127\.0\.0\.1:{port}: [^\n]*RDMA[^\n]*\n\Z",
                                                ended.stderr, re.M), f"{ended.returncode}: {ended.stderr}")
    with Daemon() as daemon:
        result = run("vectoradd", remote=f"rdma://127.0.0.1:{daemon.port}")
        require(result.status not in (0, 124) and result.err.startswith(
            f"gpupool: rdma://127.0.0.1:{daemon.port}: the daemon does not serve RDMA"), f"other words: {result}")
        result = run("vectoradd", remote=f"rdma+tcp://127.0.0.1:{daemon.port}", env={"GPUPOOL_LOG": "info"})
        result.expect(out="vectoradd: ok\n")
        require("no RDMA, the lanes go over tcp" in result.err, f"the reason is missing: {result}")


def needs_tls(result):
    require(result.status not in (0, 124) and re.search(r"refused: this address requires TLS", result.err),
            f"the message does not name TLS: {result}")


# Notifies the daemon of the new certificate.
RELOAD = """
"$1" cert init "$2" >&2 && kill -HUP $(cat /tmp/daemon.pid) || exit
for i in $(seq 300); do
	grep -q 'stays without TLS' /tmp/daemon.log && exec cat /tmp/daemon.log
	sleep 0.1
done
cat /tmp/daemon.log
exit 1
"""


def stays_clear(result):
    result.expect(out=None)
    require(f"warning: rdma://{vm.OWN}:{PORT} stays without TLS until a restart" in result.out,
            f"it does not warn: {result}")


# Without CAP_IPC_LOCK, so that the limit in KiB of locked memory applies to root, too.
LOCKED = """
kib=$1
shift
ulimit -l "$kib" && exec setpriv --inh-caps=-ipc_lock --bounding-set=-ipc_lock "$@"
"""


def plan_locked(planned):
    """A daemon that may register little memory goes on without."""
    planned.add("a daemon that may lock little memory starts", {**base_environment(), **SANITIZERS},
                shell(START, "sh", "-c", LOCKED, "sh", "9216", os.environ["GP_DAEMON"], "--listen",
                      f"rdma://{vm.OWN}:{PORT}", "--insecure", "--print-address", *DRIVER,
                      "--admin-socket", "off"), prints_address)
    planned.add("large copies are right with it", {**installed_environment(f"rdma://{vm.OWN}:{PORT}"), "GPUPOOL_LANES": "3"},
                [os.path.join(os.environ["GP_APPS"], "straight"), "short"], copies_are_right)
    planned.add("a certificate that is created while the daemon runs is not for its address, and the log reports it",
                {**base_environment(), **SANITIZERS}, shell(RELOAD, os.environ["GP_CTL"], vm.OWN), stays_clear)
    planned.add("they went through staging, and the log has the reason", {}, shell(STOP),
                went_through_staging("dma-buf: not supported; ibv_reg_mr: Cannot allocate memory"))


def plan_secure(planned, names):
    """A daemon that every client can reach, and that accepts clients with a token."""
    program = [os.path.join(os.environ["GP_APPS"], test_apps.binary_of("vectoradd", "static"))]
    env = installed_environment(f"rdma://{vm.OWN}:{PORT}")
    planned.add("the pool that has its certificates already gets a token", {**base_environment(), **SANITIZERS},
                shell('"$1" token create alice -o /tmp/alice.token >&2', os.environ["GP_CTL"]), lambda result: result.expect())
    planned.add("its daemon listens for rdma without --insecure", {**base_environment(), **SANITIZERS},
                shell(START, os.environ["GP_DAEMON"], "--listen", f"rdma://{vm.OWN}:{PORT}", "--print-address",
                      *DRIVER, "--admin-socket", "off", "--peer-memory=off"), prints_address)
    planned.add("a program with a token runs over rdma, with TLS on its control connection",
                {**env, "GPUPOOL_TOKEN_FILE": "/tmp/alice.token"}, program,
                lambda result: test_apps.judge("vectoradd", result))
    planned.add("a program without one is refused", env, program, needs_tls)
    for name in names:
        planned.add(f"{name} over rdma with a token prints what it prints next to a GPU",
                    {**env, "GPUPOOL_TOKEN_FILE": "/tmp/alice.token"},
                    [os.path.join(os.environ["GP_APPS"], test_apps.binary_of(name, "static"))],
                    lambda result, name=name: test_apps.judge(name, result))
    planned.add("large copies are right where device memory is not to be registered",
                {**env, "GPUPOOL_TOKEN_FILE": "/tmp/alice.token", "GPUPOOL_LANES": "3"},
                [os.path.join(os.environ["GP_APPS"], "straight"), "short"], copies_are_right)
    planned.add("this daemon ends in good order, too, and they went through staging", {}, shell(STOP),
                went_through_staging("--peer-memory=off"))


if __name__ == "__main__":
    programs = Planned(SECONDS, rdma=True)
    plan_contract(programs)
    # The first half without credentials, the others with a token.
    half = len(sys.argv[2:]) // 2
    plan_programs(programs, os.path.abspath(sys.argv[1]), sys.argv[2:2 + half])
    plan_locked(programs)
    plan_secure(programs, sys.argv[2 + half:])
    sys.argv[1:] = []
    programs.run()
    sys.exit(main())
