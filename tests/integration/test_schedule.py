# SPDX-License-Identifier: Apache-2.0
"""Clients that share the time of a device by a policy: the share of each, and that no wait outlives its reason."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from harness import Configured, Daemon, as_tenant, case, main, require

SECONDS = 2
TRIALS = 6
POLICY = "[device *]\npolicy = {}\n"


def tenants(policy, **each):
    return POLICY.format(policy) + "".join(f"[tenant {name}]\n{line}\n" for name, line in each.items())


def measure(daemon, each):
    """The parts of the time that kernels of (tenant, microseconds) took."""
    start = time.time() + 1 + 0.3 * len(each)
    programs = [daemon.start("timeshare", str(us), str(SECONDS), str(start), env=as_tenant(tenant))
                for tenant, us in each]
    counts = [int(re.match(r"(\d+)\ntimeshare: ok\n", p.finish().expect().out)[1]) for p in programs]
    return [count * us / 1e6 / SECONDS for count, (_, us) in zip(counts, each)]


def require_parts(daemon, each, good):
    """The machine may be busy with other things, so there are several trials, and least parts are modest."""
    tried = []
    for _ in range(TRIALS):
        parts = measure(daemon, each)
        if good(parts):
            return
        tried.append(" / ".join(f"{part:.3f}" for part in parts))
    require(False, "parts of the time: " + ", ".join(tried))


def of_sum(parts):
    return [part / sum(parts) for part in parts]


@case("weights divide the time, independently of the kernels' lengths")
def _():
    with Configured(tenants("best-effort", a="weight = 10", b="weight = 30")) as daemon:
        require_parts(daemon, [("a", 2000), ("b", 10000)], lambda parts: abs(of_sum(parts)[0] - 0.25) < 0.08)
        daemon.settle()


@case("a limit holds on an idle device, and is lifted while the program runs")
def _():
    config = tenants("best-effort", a="limit = 30")
    with Configured(config) as daemon:
        require_parts(daemon, [("a", 2000)], lambda parts: 0.02 < parts[0] < 0.35)
        program = daemon.start("timeshare", "100000", "6", "0", env=as_tenant("a"))
        time.sleep(1)
        daemon.reload(tenants("best-effort", a="limit = 100"))
        count = int(program.finish().expect().out.split()[0])
        require(count > 20, f"{count} kernels of 100 ms in 6 s, of which the limit allows 18")
        daemon.settle()


@case("equal and fixed parts are not exceeded")
def _():
    with Configured(tenants("equal", a="", b="")) as daemon:
        require_parts(daemon, [("a", 1000), ("b", 5000)], lambda parts: 0.05 < min(parts) and max(parts) < 0.55)
    with Configured(tenants("fixed", a="time-share = 20", b="time-share = 40")) as daemon:
        require_parts(daemon, [("a", 1000), ("b", 5000)],
                      lambda parts: 0.02 < parts[0] < 0.25 and 0.05 < parts[1] < 0.46)


@case("one alone under a policy does not wait for itself")
def _():
    with Configured(POLICY.format("best-effort")) as daemon, Daemon() as free:
        tried = []
        for _ in range(TRIALS):
            tried.append([measure(pool, [("default", 1000)])[0] for pool in (daemon, free)])
            if max(part for part, _ in tried) > 0.6 * max(part for _, part in tried):
                return
        require(False, f"with a policy, and without: {tried}")


@case("a client that is killed while it is held back is gone at once")
def _():
    with Configured(tenants("best-effort", a="limit = 1")) as daemon:
        program = daemon.start("timeshare", "100000", "60", env=as_tenant("a"))
        time.sleep(1.5)
        program.kill()
        daemon.settle()
        daemon.check_works()


@case("programs work the same when they take turns")
def _():
    with Configured(POLICY.format("best-effort")) as daemon:
        names = ("streams", "events", "matmul", "perthread", "memset", "copies", "threads", "exitpending", "callbacks")
        programs = [daemon.start(name) for name in names]
        for program in programs:
            program.finish().expect()
        daemon.settle()


def gpu_seconds(socket):
    done = subprocess.run([os.environ["GP_CTL"], "--socket", socket, "status", "--format=json"], capture_output=True,
                          text=True, timeout=60, check=True)
    rows = json.loads(done.stdout)
    return float((rows[0] if isinstance(rows, list) else rows)["gpu_seconds"])


@case("the time of kernels is measured, with a policy and without")
def _():
    for config in ("", POLICY.format("best-effort")):
        with tempfile.TemporaryDirectory() as folder:
            socket = os.path.join(folder, "admin.sock")
            with Configured(config, "--admin-socket", socket) as daemon:
                tried = []
                for trial in range(TRIALS):
                    waits = ("0", "-wait") if trial % 2 == 0 else ()
                    before, begin = gpu_seconds(socket), time.monotonic()
                    out = daemon.run("timeshare", "20000", "1", *waits).expect().out
                    daemon.settle()
                    # Those that ended later are measured as well, and they are longer on a busy machine.
                    measured, least = gpu_seconds(socket) - before, int(out.split()[0]) * 0.02
                    tried.append((measured, least))
                    if 0.98 * least < measured < min(1.5 * least, time.monotonic() - begin):
                        break
                else:
                    require(False, f"measured, and what ran at least: {tried}")


if __name__ == "__main__":
    sys.exit(main())
