# SPDX-License-Identifier: Apache-2.0
"""GPUs that fail: by events of the driver, which the software device reads from a file, and by contexts that fail."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request

from harness import (PATIENCE, Daemon, Program, as_tenant, base_environment, case, driver_options, main, read_file, require, run,
                     wait_until)
from pool import Pool, ctl

TENANTS = "[daemon]\nisolation = tenant\nworker-idle-timeout = 0\n[tenant a]\ndevices = 0\n[tenant b]\ndevices = 1\n"
SHARED = "[daemon]\nisolation = shared\n"
BUS = "the GPU has fallen off the bus"
HARMLESS = (13, 31, 43, 45, 94, 200)
DEVICE_UNAVAILABLE = 46


class Sick(Pool):
    """A daemon with two software devices, and the file of their events. before: its first lines."""

    def __init__(self, *args, before="", count=2, config=SHARED, **more):
        self.events = tempfile.NamedTemporaryFile("w", suffix=".events")
        self.inject(before)
        super().__init__("--metrics", "0", *args, config=config, tokens=False,
                         env={"GPUPOOL_SOFT_DEVICES": str(count), "GPUPOOL_SOFT_EVENTS": self.events.name}, **more)
        if not before:
            self.wait_for_monitor(range(count))

    def inject(self, lines):
        self.events.write(lines)
        self.events.flush()

    def wait_for_monitor(self, devices):
        """Waits until the latest monitor watches these devices: events that are injected before may not be seen."""
        words = ", ".join(map(str, devices))

        def watches():
            latest = re.findall(r"device monitor (\d+): watches devices (.*)$", self.log(), re.M)[-1:]
            return latest and latest[0][1] == words and int(latest[0][0]) in self.monitors()
        wait_until(f"a monitor watches {words}", watches, PATIENCE)

    def json(self, *args):
        return json.loads(ctl("-s", self.socket, *args, "--format=json"))

    def states(self):
        return [row["state"] for row in self.json("device", "list")]

    def enable(self, device, **more):
        return ctl("-s", self.socket, "device", "enable", str(device), **more)

    def sick_status(self):
        status = self.json("status")
        return (status[0] if isinstance(status, list) else status)["sick_devices"]

    def sick_metrics(self):
        address = re.search(r"^metrics at (\S+)$", read_file(self.out_path), re.M)[1]
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            found = re.findall(r'^gpupool_device_sick\{gpu="(\d+)"[^}]*\} (\S+)$', answer.read().decode(), re.M)
        return [float(value) for _, value in sorted(found)]

    def stay(self, device=None, tenant=None):
        """A program with a session, until its input ends. device None: it selects none."""
        remote = self.address if device is None else f"{self.address}/{device}"
        program = Program("memhog", ("16",), remote, stdin=True, env=as_tenant(tenant) if tenant else None)
        program.wait_for_output("free after")
        return program

    def expect_refused(self, words, device=None, tenant=None):
        remote = self.address if device is None else f"{self.address}/{device}"
        result = run("vectoradd", remote=remote, env=as_tenant(tenant) if tenant else None)
        require(result.status == 1 and "refused: " in result.err and words in result.err and result.err.count("\n") == 1,
                f"expected one line with {words!r}: {result}")

    def check_device(self, device, tenant=None):
        run("vectoradd", remote=f"{self.address}/{device}", env=as_tenant(tenant) if tenant else None).expect(
            out="vectoradd: ok\n", err="")

    def discard(self):
        super().discard()
        self.events.close()


def ended(program, reason):
    result = program.finish()
    require(result.status != 0 and reason in result.err, f"expected an end with {reason!r}: {result}")


EVENTS = (("xid 79", f"Xid 79: {BUS}", ""), ("xid 48", "Xid 48: double-bit ECC error", ""),
          ("ecc", "double-bit ECC error", ""), ("lost", BUS, "1 found\n"))


@case("each event that needs a repair ends the sessions of the device, and no other, until it is enabled")
def _():
    with Sick(config=TENANTS) as daemon:
        bystander = daemon.stay(0, "a")
        for event, reason, repair in EVENTS:
            victim = daemon.stay(1, "b")
            require(daemon.states() == ["ok", "ok"] and daemon.sick_metrics() == [0, 0] and not daemon.sick_status(), event)
            daemon.inject(f"1 {event}\n")
            daemon.wait_for_log(rf"error: device 1 is sick: {reason}; ")
            ended(victim, f"device 1 is sick: {reason}")
            require(daemon.states() == ["ok", "sick"] and daemon.sick_metrics() == [0, 1], event)
            require(daemon.sick_status() == f"1 ({reason})", f"{daemon.sick_status()}")
            require(daemon.json("device", "list")[1]["reason"] == reason, event)
            daemon.expect_refused(f"device 1 is sick: {reason}; use another device", 1, "b")
            daemon.expect_refused(f"all devices are sick; device 1: {reason}", None, "b")
            daemon.wait_for_monitor([0])
            daemon.inject(repair)
            daemon.enable(1)
            daemon.wait_for_monitor([0, 1])
            daemon.check_device(1, "b")
        bystander.finish().expect()


@case("a session that selects no device sees those that are not sick, under the same numbers")
def _():
    with Sick() as daemon:
        daemon.inject("0 xid 95\n")
        daemon.wait_for_log("error: device 0 is sick")
        program = daemon.stay()
        rows = daemon.json("session", "list")
        require([row["gpu"] for row in rows] == [1], f"{rows}")
        program.finish().expect()
        daemon.check_device(1)
        daemon.expect_refused("device 0 is sick: Xid 95: uncontained memory error", 0)
        daemon.enable(0)


@case("sessions of other devices end, too, if their worker has a context on the device")
def _():
    with Sick() as daemon:
        programs = [daemon.stay(0), daemon.stay(1)]
        daemon.inject("1 xid 79\n")
        for program in programs:
            daemon.wait_for_log("error: device 1 is sick")
            ended(program, f"device 1 is sick: Xid 79: {BUS}")
        daemon.check_device(0)
        # Programs of device 0 go on when device 1 is enabled, and their worker is replaced.
        program = daemon.stay(0)
        worker, = daemon.workers()
        daemon.enable(1)
        daemon.check_device(1)
        require(worker in daemon.workers(), "the worker of a session was replaced at once")
        program.finish().expect()
        wait_until("the worker without the device is replaced", lambda: worker not in daemon.workers(), PATIENCE)


@case("a worker without a context on the sick device goes on, and is replaced after its last session")
def _():
    with Sick() as daemon:
        program = daemon.stay(0)
        worker, = daemon.workers()
        daemon.inject("1 xid 79\n")
        daemon.wait_for_log("error: device 1 is sick")
        daemon.check_device(0)
        states = {row["pid"]: row["state"] for row in daemon.json("worker", "list")}
        require(states[worker] == "retiring", f"the worker gets new sessions: {states}")
        program.finish().expect()
        wait_until("the worker has ended", lambda: worker not in daemon.workers(), PATIENCE)
        require("lost" not in daemon.log(), daemon.log())
        daemon.check_device(0)


@case("Xids that need no repair of the device change nothing, and are logged once")
def _():
    with Sick() as daemon:
        program = daemon.stay(1)
        for xid in HARMLESS:
            daemon.inject(f"1 xid {xid}\n" * 3)
            daemon.wait_for_log(rf"device 1: Xid {xid}, which needs no repair")
        # Events are handled in order.
        daemon.inject("0 xid 13\n")
        daemon.wait_for_log("device 0: Xid 13, which needs no repair")
        require(len(re.findall("which needs no repair", daemon.log())) == len(HARMLESS) + 1, daemon.log())
        require(daemon.states() == ["ok", "ok"], f"{daemon.states()}")
        program.finish().expect()


@case("with all devices sick clients are refused with the reason, also after a reload, until one is enabled")
def _():
    with Sick(config=TENANTS) as daemon:
        daemon.inject("0 xid 79\n")
        daemon.wait_for_log("error: device 0 is sick")
        daemon.wait_for_monitor([1])
        daemon.inject("1 ecc\n")
        daemon.wait_for_log("error: device 1 is sick")
        daemon.expect_refused(f"all devices are sick; device 0: Xid 79: {BUS}")
        os.kill(daemon.pid, signal.SIGHUP)
        daemon.wait_for_log("is active")
        require(daemon.states() == ["sick", "sick"], "the reload has enabled them")
        daemon.expect_refused("device 1 is sick: double-bit ECC error", 1)
        found = subprocess.run([os.environ["GP_CTL"], "-s", daemon.socket, "doctor", "-D", daemon.files], capture_output=True,
                               text=True, env=base_environment(), timeout=PATIENCE, check=False)
        require("device 1 is sick: double-bit ECC error: repair it, then run gpupoolctl device enable 1" in found.stdout, f"{found}")
        wait_until("no worker is left", lambda: not daemon.workers() and not daemon.monitors(), PATIENCE)
        daemon.enable(0)
        daemon.check_device(0, "a")
        daemon.expect_refused("device 1 is sick: double-bit ECC error", 1)
        daemon.enable(1)
        daemon.check_device(1, "b")


@case("a configuration that allows a tenant another device replaces its worker")
def _():
    with Sick(config=TENANTS.replace("timeout = 0", "timeout = 60")) as daemon:
        program = daemon.stay(0, "a")
        daemon.write_config(TENANTS.replace("devices = 0", "devices = 0, 1"))
        os.kill(daemon.pid, signal.SIGHUP)
        daemon.wait_for_log("is active")
        daemon.check_device(1, "a")
        program.finish().expect()


@case("a device that cannot be enabled is named")
def _():
    with Sick() as daemon:
        for device, words in ((1, "device 1 is not sick: nothing to enable"), (7, "unknown device 7: the daemon has 2, counted from 0"),
                              ("x", 'invalid device "x": use a number of the column GPU')):
            text = daemon.enable(device, status=1)
            require(words in text, text)


@case("a device on which contexts fail three times in a row is sick, and its tenant's client gets the reason")
def _():
    with Sick(config=TENANTS.replace("[daemon]", "[daemon]\nready-workers = 0")) as daemon:
        bystander = daemon.stay(0, "a")
        daemon.inject("1 broken\n")
        daemon.expect_refused("device 1 is sick: no context can be created: CUDA error 999", 1, "b")
        require(len(re.findall(r"device 1: no context can be created, failure \d of 3", daemon.log())) == 3, daemon.log())
        daemon.inject("1 works\n")
        daemon.enable(1)
        daemon.check_device(1, "b")
        bystander.finish().expect()


@case("a daemon starts without a device on which no context can be created")
def _():
    with Sick(before="0 broken\n") as daemon:
        require(daemon.states() == ["sick", "ok"], f"{daemon.states()}")
        daemon.check_device(1)
        daemon.expect_refused("device 0 is sick: no context can be created", 0)
        daemon.inject("0 works\n")
        daemon.enable(0)
        daemon.check_device(0)


@case("a daemon without a device that works ends, and prints why")
def _():
    with tempfile.NamedTemporaryFile("w", suffix=".events") as events:
        events.write("0 broken\n")
        events.flush()
        done = subprocess.run([os.environ["GP_DAEMON"], "--listen", "127.0.0.1:0", "--admin-socket", "off", *driver_options()],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False,
                              env={**base_environment(), "GPUPOOL_SOFT_EVENTS": events.name})
    require(done.returncode == 1 and "no usable device: no context can be created on any" in done.stderr, f"{done}")


@case("a monitor that does not answer is replaced, and the next event is seen")
def _():
    with Sick() as daemon:
        pid, = daemon.monitors()
        os.kill(pid, signal.SIGSTOP)
        daemon.wait_for_log(f"device monitor {pid} does not answer")
        wait_until("it is gone", lambda: pid not in daemon.monitors(), PATIENCE)
        daemon.wait_for_monitor([0, 1])
        daemon.inject("1 ecc\n")
        daemon.wait_for_log("error: device 1 is sick")
        daemon.enable(1)


@case("events that come while the monitor is replaced are seen")
def _():
    with Sick(count=4) as daemon:
        for device in range(4):
            # The event before has made a device sick, so a new monitor starts.
            daemon.inject(f"{device} ecc\n")
            daemon.wait_for_log(f"error: device {device} is sick")
        wait_until("no monitor is left", lambda: not daemon.monitors(), PATIENCE)
        for device in range(4):
            daemon.enable(device)


@case("a driver without events has no monitor, which is logged once")
def _():
    with Daemon() as daemon:
        daemon.wait_for_log("no device monitor: no device reports events")
        daemon.check_works()
        wait_until("no monitor is left", lambda: not daemon.monitors(), PATIENCE)
        require(daemon.log().count("no device monitor") == 1, daemon.log())


if __name__ == "__main__":
    sys.exit(main())
