# SPDX-License-Identifier: Apache-2.0
"""gpupoolctl and the admin socket: every command, in all formats, on a daemon with real clients."""
import csv
import io
import json
import os
import pty
import re
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time

from harness import PATIENCE, SANITIZED, SOFTWARE, Configured, Daemon, Result, Skip, as_tenant, base_environment, case, driver_options, main, read_file, require, software_env, wait_until

MIB = 1 << 20
UNIT = 2 * MIB  # of memory, to which shares are rounded
SOON = 30 if SANITIZED else 2


class Pool(Daemon):
    """A daemon with an admin socket in a folder of its own."""

    def __init__(self, *args, config=None, **more):
        self.admin_folder = tempfile.mkdtemp(prefix="gpupool-admin-")
        if config is not None:
            self.config = os.path.join(self.admin_folder, "gpupoold.conf")
            self.write_config(config)
            args = ("--config", self.config, *args)
        self.socket = os.path.join(self.admin_folder, "sub", "admin.sock")
        super().__init__("--admin-socket", self.socket, *args, **more)

    def write_config(self, text):
        with open(self.config, "w", encoding="ascii") as file:
            file.write(text)

    def ctl(self, *args, stdin=None, env=None):
        """The result of gpupoolctl; a string is its standard input."""
        return run_ctl("--socket", self.socket, *args, stdin=stdin, env=env)

    def ctl_out(self, *args, **more):
        return self.ctl(*args, **more).expect(err="").out

    def rows(self, *args):
        """The same table from CSV and from JSON, which must agree, as dictionaries of strings."""
        return read_rows(self.ctl_out(*args, "--format=csv"))

    def json(self, *args):
        return json.loads(self.ctl_out(*args, "--format=json"))

    def clients(self):
        return [row["id"] for row in self.rows("session", "list")]

    def worker_pids(self):
        """Those that "worker list" shows."""
        return [row["pid"] for row in self.rows("worker", "list")]

    def discard(self):
        super().discard()
        shutil.rmtree(self.admin_folder, ignore_errors=True)


def run_ctl(*args, stdin=None, env=None):
    full = base_environment()
    if SANITIZED:
        full["UBSAN_OPTIONS"] = "print_stacktrace=1"
    full.update(env or {})
    begin = time.monotonic()
    done = subprocess.run([os.environ["GP_CTL"], *args], input=stdin or "", capture_output=True, text=True,
                          env=full, timeout=PATIENCE, check=False)
    return Result("gpupoolctl " + " ".join(args), done.stdout, done.stderr, done.returncode, time.monotonic() - begin)


def read_rows(text):
    return list(csv.DictReader(io.StringIO(text), strict=True))


def as_text(value):
    return "" if value is None else str(value)


def check_formats(pool, *command):
    """The table for people has a line for each row; CSV and JSON have the same values."""
    rows, values = pool.rows(*command), pool.json(*command)
    values = values if isinstance(values, list) else [values]
    require(len(rows) == len(values), f"{command}: {rows} and {values}")
    for row, value in zip(rows, values):
        require(list(row) == list(value), f"{command}: columns {list(row)} and {list(value)}")
        for key in row:
            if isinstance(value[key], float):
                require(abs(float(row[key]) - value[key]) < 5, f"{command}: {key}: {row[key]} and {value[key]}")
            else:
                require(row[key] == as_text(value[key]), f"{command}: {key}: {row[key]} and {value[key]}")
    return rows, pool.ctl_out(*command)


def refused(result, text):
    """One line with this text, and status 1."""
    result.expect(status=1)
    require(result.err.startswith("gpupoolctl: ") and result.err.count("\n") == 1 and text in result.err,
            f"expected one line with {text!r}: {result}")


@case("lists and reports have the same values in all formats, without clients and with busy ones")
def _():
    with Pool() as pool:
        rows, table = check_formats(pool, "session", "list")
        require(rows == [] and table.count("\n") == 1, f"clients of an idle daemon: {table}")
        client = pool.start("memhog", "64", stdin=True)
        client.wait_for_output("free after")
        rows, table = check_formats(pool, "session", "list")
        require(len(rows) == 1 and table.count("\n") == 2, f"one client: {table}")
        row = rows[0]
        require(row["program"] == "memhog" and int(row["pid"]) == client.process.pid and row["state"] == "running"
                and row["host"] == socket.gethostname() and row["tenant"] == "default", f"client: {row}")
        require(64 * MIB <= int(row["memory_bytes"]) <= 72 * MIB and row["memory_limit_bytes"] == "", f"memory: {row}")
        require(re.search(r" 6[4-9]( | \.\d)?.*MiB ", table), f"a size for people: {table}")
        rows, table = check_formats(pool, "session", "show", row["id"])
        shown = rows[0]
        require(shown["address"].startswith("tcp://127.0.0.1:") and int(shown["worker"]) in pool.workers()
                and int(shown["launches"]) >= 1 and shown["priority"] == "normal"
                and int(shown["memory_peak_bytes"]) >= int(row["memory_bytes"]), f"details: {shown}")
        require(re.search(r"^program: +memhog$", table, re.M), table)
        rows, _table = check_formats(pool, "device", "list")
        require(len(rows) == 1 and rows[0]["sessions"] == "1" and rows[0]["memory_bytes"] == row["memory_bytes"]
                and re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", rows[0]["uuid"]), f"{rows}")
        rows, _table = check_formats(pool, "tenant", "list")
        require(len(rows) == 1 and rows[0]["tenant"] == "default" and rows[0]["sessions"] == "1"
                and rows[0]["memory_bytes"] == row["memory_bytes"], f"{rows}")
        rows, table = check_formats(pool, "status")
        require(rows[0]["sessions"] == "1" and rows[0]["sessions_max"] == "256" and rows[0]["state"] == "serving"
                and int(rows[0]["pid"]) == pool.pid, f"{rows}")
        require(re.search(r"^state: +serving$", table, re.M), table)
        client.finish().expect()
        wait_until("the client is listed no more", lambda: pool.clients() == [], 60)
        after = pool.rows("tenant", "list")[0]
        require(after["sessions"] == "0" and after["sessions_total"] == "1" and int(after["launches"]) >= 1
                and after["memory_bytes"] == "0", f"after the client's end: {after}")


@case("the old names of commands and keys still work: client list, clients, certificate_until")
def _():
    with Pool() as pool:
        client = pool.start("memhog", "64", stdin=True)
        client.wait_for_output("free after")
        for words in (("list",), ("show", pool.clients()[0])):
            old, new = (pool.json(command, *words) for command in ("client", "session"))
            require([row.keys() for row in old] == [row.keys() for row in new] if isinstance(old, list) else old["id"] == new["id"], f"{old} {new}")
        require(pool.ctl_out("help", "client") == pool.ctl_out("help", "session") == pool.ctl_out("client", "--help"), "another help")
        pairs = {"sessions": "clients", "sessions_max": "clients_max", "sessions_total": "clients_total"}
        dates = {"certificate_expires": "certificate_until", "crl_expires": "crl_until", "next_token_expires": "next_token_until"}
        for row, names in ((pool.json("status"), pairs | dates), (pool.json("tenant", "list")[0], pairs),
                           (pool.json("device", "list")[0], {"sessions": "clients"}), (pool.json("worker", "list")[0], {"sessions": "clients"})):
            require(all(row[new] == row[old] for new, old in names.items()), f"{row}")
        header = pool.ctl_out("tenant", "list", "-f", "csv").splitlines()[0]
        require(header.startswith("tenant,sessions,sessions_max,") and header.endswith(",clients,clients_max,clients_total"), header)
        client.finish().expect()


@case("the parts of a device are listed, with their sessions")
def _():
    with Pool(config="[device *]\nvirtual-number = 4\n", env={"GPUPOOL_SOFT_MULTIPROCESSORS": "16"}) as pool:
        client = pool.start("memhog", "64", stdin=True)
        client.wait_for_output("free after")
        rows, table = check_formats(pool, "device", "list")
        require([row["device"] for row in rows] == ["0", "1", "2", "3"] and {row["gpu"] for row in rows} == {"0"}
                and [row["part"] for row in rows] == ["1/4", "2/4", "3/4", "4/4"], table)
        require({row["memory_total_bytes"] for row in rows} == {str(1024 * MIB)} and {row["sms"] for row in rows} == {"4"}
                and [row["sessions"] for row in rows] == ["1", "0", "0", "0"], table)
        require(int(rows[0]["memory_bytes"]) >= 64 * MIB and rows[1]["memory_bytes"] == "0", table)
        client.finish().expect()


@case("multiprocessors that are set on a running client are assigned to it")
def _():
    with Pool(env={"GPUPOOL_SOFT_MULTIPROCESSORS": "16"}) as pool:
        client = pool.start("memhog", stdin=True)
        client.wait_for_output("free after")
        who = pool.clients()[0]
        for sms, wanted in ("sm=8", 8), ("sm=25%", 4), ("sm=all", 16):
            pool.ctl_out("session", "set", who, sms)
            wait_until(f"{sms} is assigned", lambda: pool.json("session", "show", who)["sms"] == wanted, 60)
        client.finish().expect()


@case("a quota that is set on a running client holds at its next allocation, and its tenant's too")
def _():
    with Pool(env=software_env(GPUPOOL_SOFT_MULTIPROCESSORS="16")) as pool:
        client = pool.start("memhog", "16", stdin=True)
        client.wait_for_output("free after")
        who = pool.clients()[0]
        pool.ctl_out("session", "set", who, "memory=1.5GiB", "sm=50%", "priority=low")
        shown = pool.json("session", "show", who)
        require(shown["memory_limit_bytes"] == 1536 * MIB and shown["priority"] == "low", f"{shown}")
        require(shown["sms_wanted"] == pool.json("device", "list")[0]["sms"] // 2, f"{shown}")
        pool.ctl_out("session", "set", who, "memory=none", "sm=all", "priority=high", "gpu=0")
        shown = pool.json("session", "show", who)
        require(shown["memory_limit_bytes"] is None and shown["priority"] == "high", f"{shown}")
        client.finish().expect()
        pool.ctl("tenant", "set", "default", "memory=64M", "weight=7", "limit=30%", "share=20", "bandwidth=1GiB/s").expect()
        tenant = pool.json("tenant", "list")[0]
        require(tenant["memory_limit_bytes"] == 64 * MIB and tenant["weight"] == 7 and tenant["limit_percent"] == 30
                and tenant["share_percent"] == 20 and tenant["bandwidth_limit_bytes_per_second"] == 1 << 30, f"{tenant}")
        result = pool.run("memhog", "80")
        require(result.status == 1 and "cudaErrorMemoryAllocation" in result.out, str(result))
        wait_until("the refusal is counted", lambda: pool.json("tenant", "list")[0]["refusals"] >= 1, 60)
        pool.ctl_out("tenant", "set", "default", "memory=25%")
        quarter = pool.json("device", "list")[0]["memory_total_bytes"] // 4 // UNIT * UNIT
        require(pool.json("tenant", "list")[0]["memory_limit_bytes"] == quarter, "a share of the device")
        pool.run("memhog", "80").expect()


@case("a tenant's priority and multiprocessors go to those of its clients that have none of their own")
def _():
    with Pool(env=software_env(GPUPOOL_SOFT_MULTIPROCESSORS="16")) as pool:
        clients = [pool.start("memhog", stdin=True) for _ in range(2)]
        for client in clients:
            client.wait_for_output("free after")
        first, second = pool.clients()
        pool.ctl_out("session", "set", first, "priority=high")
        pool.ctl_out("tenant", "set", "default", "priority=low", "sm=2")
        require(pool.json("session", "show", first)["priority"] == "high", "its own is lost")
        require(pool.json("session", "show", second)["priority"] == "low", "the tenant's does not come")
        require(pool.json("session", "show", second)["sms_wanted"] == 2, "the tenant's does not come")
        for client in clients:
            client.finish().expect()


@case("a busy client that is terminated gets error 810, and its neighbor continues")
def _():
    with Pool() as pool:
        neighbour = pool.start("memhog", "32", stdin=True)
        neighbour.wait_for_output("free after")
        # A GPU does not stop a kernel, and the administrator waits for it.
        victim = pool.start("sleeper", "-endless" if SOFTWARE else "-ms=3000")
        victim.wait_for_output("running")
        busy = [row["id"] for row in pool.rows("session", "list") if row["program"] == "sleeper"]
        begin = time.monotonic()
        pool.ctl_out("session", "terminate", busy[0])
        require(busy[0] not in pool.clients(), "it returned before the client had gone")
        result = victim.finish()
        require(time.monotonic() - begin < 3 * SOON, "that took too long")
        require(result.status == 1 and "(810)" in result.out, str(result))
        require(result.err.count("the session ended with error 810: terminated by the administrator\n") == 1, str(result))
        neighbour.process.stdin.write(b"\n")
        neighbour.finish().expect()
        pool.check_works()
        refused(pool.ctl("session", "terminate", busy[0]), f"unknown session {busy[0]}")


@case("a drained daemon refuses new sessions with a reason, and drain --wait returns after the last one")
def _():
    with Pool() as pool:
        client = pool.start("memhog", stdin=True)
        client.wait_for_output("free after")
        pool.ctl_out("drain")
        require(pool.json("status")["state"] == "draining", "the status is not draining")
        result = pool.run("vectoradd", env={"GPUPOOL_LOG": "error"})
        require(result.status != 0 and "the daemon is draining" in result.err, str(result))
        wait = subprocess.Popen([os.environ["GP_CTL"], "-s", pool.socket, "drain", "--wait"], env=base_environment(),
                                stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        require(wait.poll() is None, "it did not wait for the last client")
        client.finish().expect()
        require(wait.wait(PATIENCE) == 0, "the wait failed")
        out = wait.communicate()[0]
        require(re.fullmatch(r"draining: 1 session left: \d+ \(\S+@\S+ memhog\)\n", out), out)
        pool.ctl_out("drain", "--undo")
        require(pool.json("status")["state"] == "serving", "the status is not serving")
        pool.check_works()


@case("reload puts a changed configuration into force, and names what is wrong with one")
def _():
    others = "[tenant default]\nmemory = 1G\n"
    with Pool(config=others + "[tenant a]\nmemory = 64M\n", env=software_env(GPUPOOL_SOFT_MULTIPROCESSORS="16")) as pool:
        client = pool.start("memhog", "16", stdin=True, env=as_tenant("a"))
        client.wait_for_output("free after")
        require(pool.json("tenant", "list")[1]["memory_limit_bytes"] == 64 * MIB, "not what is configured")
        pool.write_config(others + "[tenant a]\nmemory = 128M\nsm = 2\n")
        pool.ctl_out("reload")
        tenant = pool.json("tenant", "list")[1]
        require(tenant["tenant"] == "a" and tenant["memory_limit_bytes"] == 128 * MIB and tenant["sms"] == 2, f"{tenant}")
        pool.write_config(others + "[tenant a]\nmemory = 12Q\n")
        refused(pool.ctl("reload"), "gpupoold.conf:4: [tenant a] memory = 12Q")
        require(pool.json("tenant", "list")[1]["memory_limit_bytes"] == 128 * MIB, "the earlier limit is not in force")
        client.finish().expect()


@case("a reload reports the part that cannot be used, with status 1, each time")
def _():
    with Pool(config="") as pool:
        bad = os.path.join(pool.admin_folder, "tokens")
        with open(bad, "w", encoding="ascii") as file:
            file.write("nonsense\n")
        pool.write_config(f"[daemon]\ntokens = {bad}\ncrl = /nowhere\n[tenant a]\nmemory = 128M\n")
        for _again in range(2):
            refused(pool.ctl("reload"), f"partly applied: tokens unchanged: {bad}:1: fewer than six fields"
                    "; CRL unchanged: /nowhere: ")
        require(pool.json("tenant", "list")[1]["memory_limit_bytes"] == 128 * MIB, "the rest is not in force")
        pool.wait_for_log("error: tokens unchanged: .*fewer than six fields", count=2)
        pool.wait_for_log("error: CRL unchanged: /nowhere: ", count=2)
        # A file that has been read, and that makes no sense since then.
        os.truncate(bad, 0)
        pool.write_config(f"[daemon]\ntokens = {bad}\n")
        pool.ctl_out("reload")
        with open(bad, "w", encoding="ascii") as file:
            file.write("nonsense\n")
        for _again in range(2):
            refused(pool.ctl("reload"), f"partly applied: token file not readable: {bad}:1: fewer than six fields")
        os.truncate(bad, 0)
        pool.ctl_out("reload")


@case("a reload that names another admin socket reports that it takes effect after a restart")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-admin-") as folder:
        first, second = (os.path.join(folder, name) for name in ("first", "second"))
        text = "[daemon]\nadmin-socket = {}\n{}"
        warning = f"admin-socket: takes effect after a restart (now: {first})\n"
        with Configured(text.format(first, ""), configured_socket=True) as daemon:
            def reload(path, more=""):
                daemon.write(text.format(path, more))
                return run_ctl("--socket", first, "reload")
            reload(first).expect(err="")
            for count in (1, 2):
                reload(second).expect(err=f"gpupoolctl: warning: {warning}")
                daemon.wait_for_log(f"warning: {re.escape(warning[:-1])}$", count=count)
            require(not os.path.exists(second), "there is another one")
            refused(reload(second, "tokens = /dev/null\n"), f"partly applied: tokens unchanged: "
                    f"/dev/null: Invalid argument; {warning[:-1]}")
            reload(first).expect(err="")
        # The command line has precedence over the configuration.
        with Pool(config="") as pool:
            pool.write_config(text.format(second, ""))
            pool.ctl_out("reload")


@case("a command that waits for a drain reports that the drain is undone")
def _():
    with Pool() as pool:
        client = pool.start("memhog", stdin=True)
        client.wait_for_output("free after")
        wait = subprocess.Popen([os.environ["GP_CTL"], "-s", pool.socket, "drain", "--wait"], stdout=subprocess.DEVNULL, env=base_environment(),
                                stderr=subprocess.PIPE, text=True)
        wait_until("it drains", lambda: pool.json("status")["state"] == "draining", 60)
        pool.ctl_out("drain", "--undo")
        _out, err = wait.communicate(timeout=PATIENCE)
        require(wait.returncode == 1 and "admitted again" in err, err)
        client.finish().expect()


@case("words that make no sense are named, in one line, with status 1")
def _():
    with Pool() as pool:
        refused(pool.ctl("session", "show", "7"), "unknown session 7")
        refused(pool.ctl("session", "show", "x"), '"x" is not a session ID')
        refused(pool.ctl("session", "set", "7", "memory=1G"), "unknown session 7")
        refused(pool.ctl("session", "set", "7", "memory=lots"), "memory=lots: that is not a valid size")
        for said in ("memory=101%", "memory=9999999P"):
            refused(pool.ctl("tenant", "set", "default", said), f"{said}: that is not a valid size: use 2M or more (1.5GiB), a percentage (25%) or all")
        for said in ("1", "65535"):
            refused(pool.ctl("tenant", "set", "default", f"bandwidth={said}"),
                    f"bandwidth: {said} is out of range (bytes per second from 64K, as 500M; or unlimited)")
        refused(pool.ctl("tenant", "set", "default", "limit=0"), "limit=0: that is not a whole percentage from 1 to 100")
        refused(pool.ctl("tenant", "set", "default", "sessions=4097"), "sessions=4097: that is neither a number from 0 to 4096 nor unlimited")
        refused(pool.ctl("top", "-d", "0"), "top: -d 0: not a number from 1 to 86400 (-d: of seconds)")
        refused(pool.ctl("session", "set", "7", "speed=1"), "speed=1: that sets none of")
        refused(pool.ctl("session", "set", "7"), "usage: gpupoolctl session set")
        refused(pool.ctl("session", "paint"), "usage: gpupoolctl session list")
        refused(pool.ctl("tenant", "set", "missing", "weight=3"), 'unknown tenant "missing"')
        refused(pool.ctl("tenant", "set", "default", "weight=0"), "weight=0: that is not a weight")
        refused(pool.ctl("tenant", "set", "default", "weight=2", "gpu=5"), "unknown device 5")
        refused(pool.ctl("drain", "--undo", "--wait"), "usage: gpupoolctl drain")
        refused(pool.ctl("status", "now"), "usage: gpupoolctl status")
        refused(pool.ctl("top", "-n", "0"), "not a number from 1")
        refused(pool.ctl("session", "show", "--", "x"), '"x" is not a session ID')
        refused(pool.ctl("tenant", "set", "--", "-a", "weight=3"), 'unknown tenant "-a"')
        refused(pool.ctl("frobnicate"), 'unknown command "frobnicate"')
        refused(pool.ctl("status", "--format=xml"), '"xml" is not one of table, csv, json')
        refused(pool.ctl("status", "--format"), '"" is not one of table, csv, json')
        require(list(json.loads(pool.ctl_out("status", "--format", "json"))) == list(pool.json("status")), "it is another status")
        refused(pool.ctl("reload"), "no configuration file")
        require(pool.json("tenant", "list")[0]["weight"] == 100, "a refused change was made")
        refused(run_ctl("--socket", pool.socket + "x", "status"), "no daemon listens at")
        refused(run_ctl("status", env={"XDG_RUNTIME_DIR": pool.admin_folder}), "no daemon listens at") \
            if os.geteuid() else None
        pool.ctl("--help").expect(err="")
        require("session terminate ID" in pool.ctl("--help").out, "--help lists no commands")


def documents(out):
    """All output must be JSON: one value, or one in each line."""
    try:
        return [json.loads(out)]
    except ValueError:
        return [json.loads(line) for line in out.splitlines()]


@case("with --format=json each command writes nothing but JSON to standard output, and its status is the same")
def _():
    with Pool(config="") as pool, tempfile.TemporaryDirectory() as folder:
        client = pool.start("memhog", stdin=True)
        client.wait_for_output("free after")
        worker, who = pool.worker_pids()[0], pool.clients()[0]
        at, odd = ("-D", folder), os.fsdecode(os.fsencode(folder) + b"/caf\xe9")
        expected = [  # a command, its status, and a name that its first row has
            (("status",), 0, "state"), (("session", "list"), 0, "id"), (("session", "show", who), 0, "launches"), (("session", "show", "7777"), 1, None),
            (("session", "set", who, "priority=low"), 0, None), (("session", "set", who, "memory=x"), 1, None), (("session",), 1, None),
            (("device", "list"), 0, "uuid"), (("tenant", "list"), 0, "tenant"), (("tenant", "set", "default", "weight=7"), 0, None),
            (("tenant", "set", "default", "weight=0"), 1, None), (("reload",), 0, None), (("frobnicate",), 1, None), (("top", "-n", "2"), 0, "program"),
            (("usage",), 1, None), (("help",), 0, "arguments"), (("help", "drain"), 0, "brief"), (("drain", "--help"), 0, "brief"),
            (("cert", "init", "127.0.0.1", *at), 0, "expires"), (("cert", "init", "127.0.0.1", *at), 1, None), (("cert", "client", "alice", *at), 0, "name"),
            (("cert", "client", "alice", "-o", odd, *at), 0, "name"), (("cert", "show", *at), 0, "issuer"), (("cert", "list", *at), 0, "state"),
            (("cert", "revoke", "alice", *at), 0, "serial"), (("cert", "revoked", *at), 0, "serial"), (("cert", "crl", *at), 0, "until"),
            (("token", "create", "alice", *at), 0, "text"), (("token", "create", "alice", "-o", f"{folder}/alice.token", *at), 0, "id"),
            (("token", "list", *at), 0, "tenant"), (("token", "revoke", "x", *at), 1, None), (("doctor", *at), 0, "finding"), (("doctor", "x"), 1, None),
            (("worker", "list"), 0, "pid"), (("worker", "replace", "1"), 1, None), (("worker", "replace", worker, "--terminate"), 0, None),
            (("drain", "--wait"), 0, None),
        ]
        for command, status, key in expected:
            done = pool.ctl(*command, "--format=json").expect(status=status)
            require(done.err.startswith("gpupoolctl: ") if status and not key else True, str(done))
            values = documents(done.out)
            first = values[0] if values else None
            first = first[0] if isinstance(first, list) and first else first
            require(key in first if key else not first, f"{key} is not in {done}")
        done = run_ctl("--socket", pool.socket + "x", "doctor", *at, "--format=json").expect(status=1)
        require("problem" in [row["kind"] for row in json.loads(done.out)] and "no daemon listens" in done.err, str(done))
        require(json.loads(pool.ctl_out("session", "list", "-f", "json")) == [], "a client is left")
        lines = documents(pool.ctl_out("--format=json", stdin="session list\nstatus\n"))
        require(len(lines) == 2 and lines[0] == [] and lines[1]["pid"] == pool.pid, f"{lines}")
        client.finish()


@case("a drain that is waited for lists who is left, for programs one list in each line")
def _():
    with Pool() as pool:
        client = pool.start("memhog", stdin=True)
        client.wait_for_output("free after")
        wait = subprocess.Popen([os.environ["GP_CTL"], "-s", pool.socket, "drain", "--wait", "--format=json"], env=base_environment(),
                                stdout=subprocess.PIPE, text=True)
        left = json.loads(wait.stdout.readline())
        require([row["program"] for row in left] == ["memhog"], f"{left}")
        client.finish().expect()
        require(wait.wait(PATIENCE) == 0 and wait.stdout.read() == "", "the wait failed")
        wait.stdout.close()


@case("top shows rates, round by round where there is no terminal")
def _():
    with Pool() as pool:
        client = pool.start("memhog", stdin=True)
        client.wait_for_output("free after")
        out = pool.ctl_out("top", "-n", "2")
        require(out.count("gpupoold ") == 2 and out.count(" memhog\n") == 2 and "\033" not in out, out)
        rows = pool.rows("top", "-n", "1")
        require(len(rows) == 1 and rows[0]["program"] == "memhog" and float(rows[0]["busy_percent"]) == 0, f"{rows}")
        client.finish().expect()


@case("top fills a terminal anew each time")
def _():
    with Pool() as pool:
        mine, its = pty.openpty()
        done = subprocess.run([os.environ["GP_CTL"], "-s", pool.socket, "top", "-n", "2"], stdin=subprocess.DEVNULL,
                              stdout=its, env=base_environment(), timeout=PATIENCE, check=False)
        os.close(its)
        text = ""
        # A read returns at most one view; the read after the last view fails.
        while text.count("sessions\r\n") < 2 or not text.endswith("\n"):
            try:
                text += os.read(mine, 65536).decode("ascii")
            except OSError:
                break
        os.close(mine)
        require(done.returncode == 0 and text.count("\033[H\033[J") == 2 and text.startswith("\033[H")
                and text.count("sessions\r\n") == 2 and re.search(r"GPU 0: \S.*: busy 0\.0 %", text), repr(text))


@case("commands are read from standard input, one per line, and one that fails does not end the others")
def _():
    with Pool() as pool:
        result = pool.ctl("--format=csv", stdin="worker list\nnonsense\n\nsession list\nstatus now\nworker list\n").expect(status=1)
        workers = ("pid,state,sessions,class,tenant,context_memory_bytes,context_memory_by_gpu,clients\n"
                   f"{pool.workers()[0]},serving,0,reserve,,0,0: 0 B,0\n")
        require(result.out.startswith(workers + "id,tenant,") and result.out.endswith("\n" + workers), str(result))
        require(re.fullmatch('gpupoolctl: unknown command "nonsense": .*\ngpupoolctl: usage: gpupoolctl status\n', result.err), str(result))


@case("a replaced worker serves its clients until they end, and new sessions use another worker")
def _():
    with Pool() as pool:
        client = pool.start("memhog", stdin=True)
        client.wait_for_output("free after")
        rows, table = check_formats(pool, "worker", "list")
        require(len(rows) == 1 and rows[0] == {"pid": str(pool.workers()[0]), "state": "serving", "sessions": "1", "clients": "1",
                                                 "class": "tenant", "tenant": "default", "context_memory_bytes": "0",
                                                 "context_memory_by_gpu": "0: 0 B"}, table)
        old = rows[0]["pid"]
        require(pool.ctl_out("worker", "replace", old) == "", "a success is not silent")
        pool.check_works()
        states = {row["pid"]: row["state"] for row in pool.rows("worker", "list")}
        require(len(states) == 2 and states.pop(old) == "retiring" and list(states.values()) == ["serving"], f"{states}")
        client.finish().expect()
        wait_until("the replaced worker ends", lambda: old not in pool.worker_pids(), 60)
        refused(pool.ctl("worker", "replace", old), f"worker {old}: not found, starting or ending")


@case("worker replace --terminate ends the clients of the worker, also of one that is replaced already")
def _():
    with Pool() as pool:
        for replaced_before in (False, True):
            client = pool.start("memhog", stdin=True)
            client.wait_for_output("free after")
            worker = str(pool.json("session", "show", pool.clients()[0])["worker"])
            if replaced_before:
                pool.ctl_out("worker", "replace", worker)
            pool.ctl_out("worker", "replace", worker, "--terminate")
            require(pool.clients() == [], "the command returned before the session ended")
            pool.wait_for_log(r"closed: terminated by the administrator", count=1 + replaced_before)
            require("(810)" in client.finish().out, "the client does not get error 810")
            wait_until("the worker ends", lambda: worker not in pool.worker_pids(), 60)
        pool.check_works()


@case("worker replace reports a worker that does not exist, and an invalid PID")
def _():
    with Pool() as pool:
        for pid in ("1", "4294967295"):
            refused(pool.ctl("worker", "replace", pid), f"worker {pid}: not found, starting or ending")
        for pid in ("0", "-1", "x", "4294967296", ""):
            refused(pool.ctl("worker", "replace", "--", pid), f'invalid worker "{pid}"')
        for words in ((), ("replace",), ("replace", "1", "2"), ("list", "1"), ("replace", "1", "--terminate", "2")):
            refused(pool.ctl("worker", *words), "usage: gpupoolctl worker list | replace PID [--terminate]")
        refused(pool.ctl("worker", "repalce", "1"), "did you mean worker replace")
        require("--terminate ends them" in pool.ctl_out("worker", "replace", "--help"), "--help does not explain it")
        require(len(pool.worker_pids()) == 1, "a refused command replaced a worker")


@case("a replaced worker does not get new clients again, nor does a worker older than it")
def _():
    with Pool(env=software_env(GPUPOOL_SOFT_NO_CANCEL="1")) as pool:
        bystanders = []
        for number in (1, 2):
            bystanders.append(pool.start("memhog", stdin=True))
            bystanders[-1].wait_for_output("free after")
            client = pool.start("sleeper", "-ms=5000")
            client.wait_for_output("running")
            client.kill()
            pool.wait_for_log("new sessions use another worker", SOON + 3, count=number)
            pool.check_works()
            pool.wait_for_log(r"session \d+ \(.* sleeper\): closed: ", 5 + SOON, count=number)
        # Both would get new clients again; both are replaced, and a third one starts.
        before = pool.workers()
        require(len(before) == 2, f"{before}: not two workers")
        bystanders.append(pool.start("memhog", stdin=True))
        bystanders[-1].wait_for_output("free after")
        for worker in pool.worker_pids():
            pool.ctl_out("worker", "replace", worker)
        pool.check_works()
        require(len(set(pool.workers()) - set(before)) == 1, f"{pool.workers()} after {before}: no other worker was started")
        for bystander in bystanders:
            bystander.finish().expect()
        wait_until("the third one serves alone", lambda: not set(pool.workers()) & set(before), PATIENCE)
        pool.check_works()


@case("settings stay in force when another worker starts")
def _():
    with Pool() as pool:
        pool.ctl_out("tenant", "set", "default", "memory=64M")
        pool.run("vectoradd", env={"GPUPOOL_ISOLATION": "process"}).expect(out="vectoradd: ok\n")
        require(pool.run("quota").expect().out.startswith("device 64 MiB"), "another worker has undone it")


@case("the socket is its owner's alone; a stale one is replaced, and a live one is not")
def _():
    with Pool() as pool:
        mode = os.stat(pool.socket)
        # Where there is a group of those who may look, it is theirs, too.
        expected = 0o660 if "\ngpupool-read:" in read_file("/etc/group") else 0o600
        require(stat.S_ISSOCK(mode.st_mode) and stat.S_IMODE(mode.st_mode) == expected, f"mode {oct(mode.st_mode)}")
        folder = stat.S_IMODE(os.stat(os.path.dirname(pool.socket)).st_mode)
        require(folder == (0o755 if os.geteuid() == 0 else 0o700), f"mode of the folder: {oct(folder)}")
        command = [os.environ["GP_DAEMON"], "--listen", "127.0.0.1:0", *driver_options()]
        second = subprocess.run([*command, "--admin-socket", pool.socket], capture_output=True, text=True,
                                env=base_environment(), timeout=PATIENCE, check=False)
        require(second.returncode == 1 and "another daemon that is running" in second.stderr, second.stderr)
        pool.ctl_out("status")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stale.sock")
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(path)
        stale.close()
        with Daemon("--admin-socket", path):
            run_ctl("-s", path, "status").expect(err="")
        plain = os.path.join(folder, "plain")
        with open(plain, "w", encoding="ascii") as file:
            file.write("mine")
        third = subprocess.run([*command, "--admin-socket", plain], capture_output=True, text=True,
                               env=base_environment(), timeout=PATIENCE, check=False)
        require(third.returncode == 1 and "is not a socket" in third.stderr, third.stderr)


@case("another user is refused by the socket's mode, and by the daemon if the mode permits access")
def _():
    if os.geteuid() != 0:
        raise Skip("only root can try as another user")
    with Pool() as pool:
        os.chmod(pool.admin_folder, 0o755)
        require(answer_to_other_user(pool.socket) == "Permission denied", "the mode permits access")
        os.chmod(pool.socket, 0o666)
        require(answer_to_other_user(pool.socket) == "closed", "the daemon accepts another user")
        pool.wait_for_log(r"admin socket: process \d+ of user 65534: not allowed")
        pool.ctl_out("status")


def answer_to_other_user(path):
    script = ("import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.settimeout(60)\ntry:\n    s.connect(sys.argv[1])\n"
              "    print('answered' if s.recv(1) else 'closed')\nexcept OSError as e:\n    print(e.strerror)\n")
    done = subprocess.run(["python3", "-c", script, path], capture_output=True, text=True, user=65534, group=65534,
                          extra_groups=[], cwd="/", env={"PATH": "/usr/bin:/bin"}, timeout=PATIENCE, check=True)
    return done.stdout.strip()


@case("an invalid request ends its connection with a reason, and others are served")
def _():
    with Pool() as pool:
        for data, reason in ((struct.pack("<I", 1 << 30), "too long"), (struct.pack("<I", 5) + b"\xff" * 5, "invalid request"),
                             (struct.pack("<I", 100) + b"half", "incomplete")):
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(pool.socket)
                sock.sendall(data)
                if reason == "incomplete":
                    sock.shutdown(socket.SHUT_WR)
                sock.settimeout(PATIENCE)
                require(sock.recv(1) == b"", "it was answered")
            pool.wait_for_log(rf"admin socket: process {os.getpid()}: .*{reason}")
        # More than there are places for: those wait, and are served when the others have left.
        silent = [socket.socket(socket.AF_UNIX) for _ in range(20)]
        for sock in silent[:16]:
            sock.connect(pool.socket)
        pool.check_works()
        for sock in silent:
            sock.close()
        pool.ctl_out("status")


if __name__ == "__main__":
    sys.exit(main(at_once=3 if SOFTWARE else 1))
