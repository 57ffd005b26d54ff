# SPDX-License-Identifier: Apache-2.0
"""Programs whose kernels end sessions of others get workers of their own for a while, and the text of a failed assertion
reaches the program whose kernel has failed it, and no other one."""
import os
import re
import subprocess
import sys
import urllib.request

from harness import PATIENCE, SOFTWARE, as_tenant, base_environment, case, main, require, wait_until
from workers import Workers, stay

TENANTS = "[tenant alice]\n[tenant bob]\n"
SHARED = "[daemon]\nisolation = shared\n" + TENANTS
NOTICE = r"gpupool: this program runs in a worker of its own until \d\d:\d\d:\d\d UTC: "
FAULT = r"its kernel faulted with error 700"
ASSERTED = r"Assertion `!\"all is well\"` failed\.\n"


def running(daemon, tenant, *words):
    program = daemon.start(*words, env=as_tenant(tenant))
    program.wait_for_output("running")
    return program


def fault(daemon, tenant, notice=""):
    """The program of the tenant's that faults, in a worker with others unless there is a notice."""
    result = daemon.run("sticky", env=as_tenant(tenant)).expect()
    require(re.match(notice + "(?!gpupool: this program)", result.err), f"expected the notice {notice}: {result}")
    wait_until("the worker has ended", lambda: all(row["state"] != "lost" for row in daemon.rows()), PATIENCE)


def quarantined(daemon):
    """[(tenant, program)] in quarantine."""
    return sorted((row["tenant"], row["program"]) for row in daemon.ctl("quarantine", "list"))


def scrape(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
        return {name: float(value) for name, value in re.findall(r"^(\w+) (\S+)$", answer.read().decode(), re.M)}


@case("a program that faults in the shared worker gets workers of its own, and an administrator ends that")
def _():
    with Workers(SHARED) as daemon:
        fault(daemon, "alice")
        daemon.wait_for_log(r"warning: tenant alice: program sticky of \S+ on \S+: in quarantine until \S+ UTC: " + FAULT +
                            "; its new sessions get workers of their own .gpupoolctl quarantine end 1 ends this.")
        row, = daemon.ctl("quarantine", "list")
        require((row["id"], row["tenant"], row["program"], row["reason"]) == (1, "alice", "sticky", FAULT), str(row))
        status = daemon.ctl("status")
        require((status[0] if isinstance(status, list) else status)["quarantined_programs"] == 1, str(status))
        bystander = running(daemon, "bob", "sleeper", "-endless")
        # Its next faults end no other session.
        for _ in range(2):
            fault(daemon, "alice", NOTICE + FAULT + "\n")
        require(bystander.process.poll() is None, "a session of another worker has ended")
        require(quarantined(daemon) == [("alice", "sticky")], str(quarantined(daemon)))
        # Other programs of the tenant, and the program in another tenant, are not concerned.
        others = [stay(daemon, "alice"), stay(daemon, "bob")]
        require(("shared", "", 3) in daemon.list(), str(daemon.list()))
        for program in others:
            program.finish().expect(err="")
        bystander.kill()
        daemon.ctl("quarantine", "end", "1")
        daemon.wait_for_log("info: tenant alice: program sticky of .*: quarantine ended by the administrator")
        require(not quarantined(daemon), "it is still listed")
        again = subprocess.run([os.environ["GP_CTL"], "-s", daemon.socket, "quarantine", "end", "1"], capture_output=True,
                               text=True, check=False, env=base_environment())
        require(again.returncode == 1 and "unknown quarantine 1: gpupoolctl quarantine list" in again.stderr, str(again))
        fault(daemon, "alice")
        daemon.run("sticky", env=as_tenant("bob")).expect()
        require(quarantined(daemon) == [("alice", "sticky"), ("bob", "sticky")], str(quarantined(daemon)))


@case("of several programs whose work was running none is isolated for the first fault, and each for the second")
def _():
    with Workers(SHARED, "--metrics", "0") as daemon:
        port = int(re.search(r"metrics at http://127\.0\.0\.1:(\d+)", daemon.log())[1])
        for i in range(2):
            require(not quarantined(daemon), "a suspect is isolated")
            bystander = running(daemon, "bob", "sleeper", "-endless")
            fault(daemon, "alice")
            require(bystander.finish().status == 1, "the sleeper did not fail")
        daemon.wait_for_log(r"info: tenant bob: program sleeper of .*: suspect until .*: a kernel faulted with error 700 while "
                            "its work was running")
        require(quarantined(daemon) == [("alice", "sticky"), ("bob", "sleeper")], str(quarantined(daemon)))
        values = scrape(port)
        require(values["gpupool_quarantined_programs"] == 2 and values["gpupool_quarantines_total"] == 2, "the metrics differ")
        result = daemon.run("sleeper", env=as_tenant("bob")).expect(out="running\nsleeper: ok\n")
        require(re.fullmatch(NOTICE + "a kernel faulted with error 700 while its work was running\n", result.err), str(result))


@case("a program that would escape a quota is refused instead, with the reason and the time")
def _():
    for text in ("[daemon]\nisolation = tenant\n[tenant alice]\nsm = 50%\n",
                 "[daemon]\nisolation = shared-only\n[tenant alice]\nsm = 50%\n"):
        with Workers(text) as daemon:
            fault(daemon, "alice")
            result = daemon.run("sticky", env=as_tenant("alice"))
            require(result.status != 0 and
                    re.search(r"this program is in quarantine until \d\d:\d\d:\d\d UTC: " + FAULT + "; it gets no worker of its "
                              r"own, because it would escape the quota of tenant alice \(key sm\): start it later, or ask the "
                              r"administrator \(gpupoolctl quarantine end 1\)", result.err), str(result))
            daemon.run("vectoradd", env=as_tenant("alice")).expect(out="vectoradd: ok\n", err="")
            daemon.ctl("quarantine", "end", "1")
            fault(daemon, "alice")


@case("without a quota shared-only isolates such a program, too")
def _():
    with Workers("[daemon]\nisolation = shared-only\n" + TENANTS) as daemon:
        fault(daemon, "alice")
        fault(daemon, "alice", NOTICE + FAULT + "\n")


@case("in a tenant's worker a fault counts if there are other programs")
def _():
    with Workers("[daemon]\nisolation = tenant\n" + TENANTS) as daemon:
        for _ in range(2):
            fault(daemon, "alice")
        # The processes of one program need the worker that they share.
        patient = running(daemon, "alice", "assertlate", "600000")
        running(daemon, "alice", "assertlate", "500").finish().expect()
        patient.finish()
        require(not quarantined(daemon), "a program that was alone is isolated")
        bystander = stay(daemon, "alice")
        fault(daemon, "alice")
        bystander.kill()
        require(quarantined(daemon) == [("alice", "sticky")], str(quarantined(daemon)))
        fault(daemon, "alice", NOTICE + FAULT + "\n")
        fault(daemon, "bob")


@case("a fault in a session's own worker isolates no program")
def _():
    with Workers(SHARED) as daemon:
        daemon.run("sticky", env=as_tenant("alice", GPUPOOL_ISOLATION="session")).expect()
        require(not quarantined(daemon), "it is isolated")
        fault(daemon, "alice")


@case("quarantine = 0 isolates no program, and a reload with it ends what there is")
def _():
    with Workers(SHARED) as daemon:
        fault(daemon, "alice")
        daemon.reload(SHARED.replace("[daemon]\n", "[daemon]\nquarantine = 0\n"))
        require(not quarantined(daemon), "it is still listed")
        for _ in range(2):
            fault(daemon, "alice")
        daemon.reload(SHARED)
        fault(daemon, "alice")
        fault(daemon, "alice", NOTICE + FAULT + "\n")


@case("a quarantine ends after the configured time")
def _():
    with Workers(SHARED.replace("[daemon]\n", "[daemon]\nquarantine = 1\n")) as daemon:
        fault(daemon, "alice")
        wait_until("it has ended", lambda: not quarantined(daemon), PATIENCE)
        fault(daemon, "alice")


@case("the text of a failed assertion reaches its program beside running work of others, and no other program")
def _():
    with Workers(SHARED) as daemon:
        others = [running(daemon, tenant, "sleeper", "-endless") for tenant in ("alice", "bob")]
        failing = running(daemon, "bob", "assertlate", "500")
        result = failing.finish().expect()
        require(re.match(r"\S*assertlate\.cu:\d+: .*block: \[0,0,0\], thread: \[0,0,0\] " + ASSERTED, result.err), str(result))
        require("(710), after work of session" in result.err and "sleeper" not in result.err, str(result))
        for program in others:
            result = program.finish()
            require(result.status == 1 and "all is well" not in result.err, f"a bystander gets the text: {result}")
        # The assertion is in the code of one program only, which therefore is the only suspect.
        require(quarantined(daemon) == [("bob", "assertlate")], str(quarantined(daemon)))
        daemon.wait_for_log(r"has lost its GPU contexts: CUDA_ERROR_ASSERT \(710\), after work of session \d+ \(\S+ \d+ assertlate\)"
                            r", last kernel \S+$")


@case("of two programs with assertions the one that has failed gets the text")
def _():
    with Workers(SHARED) as daemon:
        # Its own assertion would fail much later.
        patient = running(daemon, "alice", "assertlate", "600000")
        result = daemon.run("assertion", env=as_tenant("bob")).expect()
        require(re.match(r"\S*assertion\.cu:\d+: .*Assertion `\(int\)threadIdx\.x < limit` failed\.\ngpupool: ", result.err), str(result))
        result = patient.finish()
        require("Assertion" not in result.err, f"it gets another program's text: {result}")
        require(quarantined(daemon) == [("bob", "assertion")], str(quarantined(daemon)))


@case("if two sessions run the code of the assertion both get the text, and a line with their number")
def _():
    with Workers(SHARED) as daemon:
        patient = running(daemon, "alice", "assertlate", "600000")
        failing = running(daemon, "bob", "assertlate", "500")
        for program in (failing, patient):
            result = program.finish()
            require(re.match(r"gpupool: 2 programs were running the code of this assertion; it has failed in one of them\n"
                             r"\S*assertlate\.cu:\d+: .*" + ASSERTED, result.err), str(result))
        require(not quarantined(daemon), "a suspect is isolated")


@case("the text of an assertion whose client has gone is logged, and reaches no other program")
def _():
    with Workers(SHARED, env={"GPUPOOL_SOFT_NO_CANCEL": "1"}) as daemon:
        other = running(daemon, "alice", "sleeper", "-endless")
        gone = running(daemon, "bob", "assertlate", "500")
        gone.kill()
        result = other.finish()
        require(result.status == 1 and "all is well" not in result.err, str(result))
        daemon.wait_for_log(r"the driver, with work of .*all is well")
        require(quarantined(daemon) == [("bob", "assertlate")], str(quarantined(daemon)))


if __name__ == "__main__":
    sys.exit(main(at_once=4 if SOFTWARE else 1))
