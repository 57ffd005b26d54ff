# SPDX-License-Identifier: Apache-2.0
"""The first hour of an operator: which configuration is read, its errors and their remedies, quotas in the log, and
the output of gpupoolctl."""
import fcntl
import json
import os
import pty
import re
import socket
import struct
import subprocess
import sys
import termios
import time

from harness import (HIDDEN, PATIENCE, SOFTWARE, Certificates, Encrypted, Skip, as_tenant, base_environment, case, driver_options, main, read_file, require,
                     run, wait_until)
from pool_folder import DEVICE, Folder, has, sign


# The configuration.

@case("the daemon logs the configuration that it reads from the usual folder; without one it logs that there are no quotas")
def _():
    with Folder() as folder:
        with folder.daemon() as daemon:
            daemon.wait_for_log(rf"info: no configuration: no quotas \({folder.file()} does not exist\)$")
            has(folder.ctl("reload", status=1)[1], f"no configuration file: {folder.file()} does not exist; use --config")
            # It comes later.
            folder.write("[tenant default]\nmemory = 64M\n[tenant alice]\nmemory = 128M\n")
            has(folder.ctl("reload")[1], "")
            require([t["tenant"] for t in folder.ask("tenant", "list")] == ["default", "alice"], "it is not in force")
        with folder.daemon() as daemon:
            daemon.wait_for_log(rf"info: configuration: {folder.file()}: 2 tenants$")
            require(folder.ask("tenant", "list")[1]["memory_limit_bytes"] == 128 << 20, "it is not in force")
            os.rename(folder.file(), folder.file("away"))
            has(folder.ctl("reload", status=1)[1], f"{folder.file()}, the configuration, no longer exists")
            require(folder.ask("tenant", "list")[1]["memory_limit_bytes"] == 128 << 20, "it is lost")
            os.rename(folder.file("away"), folder.file())
        folder.write("", "other.conf")
        with folder.daemon("--config", folder.file("other.conf")) as daemon:
            daemon.wait_for_log(f"info: configuration: {folder.file('other.conf')}: 1 tenant$")


@case("an invalid configuration ends the start with its line, also when no option names the file")
def _():
    with Folder() as folder:
        folder.write("[tenant alice]\nmemroy = 50%\n")
        _out, err = folder.run("GP_DAEMON", "--listen", "127.0.0.1:0", "--admin-socket", "off", *driver_options(), status=1)
        has(err, f"gpupoold: {folder.file()}:2: [tenant alice] memroy = 50%: unknown key; did you mean memory? (devices, memory,")


@case("a setting without its apparent effect causes a warning, at the start, at a reload and in --check-config")
def _():
    text = ("[tenant default]\n[tenant alice]\nmemory = 80G\nsm = 400\ndevices = 0,7\n[tenant bob]\nsm = 20%\nsession-sm = 3\n"
            "[device *]\nsm-granularity = 2\n[device 3]\nvisible = no\n[device GPU-00000000-0000-0000-0000-000000000000]\nvisible = no\n")
    with Folder() as folder:
        name = folder.file()
        words = (f"{name}:1: [tenant default] has no limits while other tenants have: clients without a tenant have no limits",
                 f"{name}:11: [device 3]: the daemon has 1 device, counted from 0",
                 f"{name}:13: [device gpu-00000000-0000-0000-0000-000000000000]: the daemon has no such device",
                 f"{name}:5: [tenant alice] devices: unknown device 7: the daemon has 1, counted from 0",
                 f"{name}:3: [tenant alice] memory = 80 GiB: device 0 has 512 MiB, so the tenant may use all of it",
                 f"{name}:4: [tenant alice] sm = 400: device 0 has 4 multiprocessors, so the tenant may use all of them")
        folder.write("")
        with folder.daemon() as daemon:
            require("warning: " + folder.path not in daemon.log(), daemon.log())
            folder.write(text)
            err = folder.ctl("reload")[1]
            require(err.startswith("gpupoolctl: warning: ") and err.count("\n") == 1, err)
            has(err, *words)
            daemon.wait_for_log("is active")
            has(daemon.log(), *(f"warning: {word}" for word in words))
        with folder.daemon() as daemon:
            has(daemon.log(), *(f"warning: {word}" for word in words))
            # 20% of 4 is less than a piece, and session-sm = 3 is one: neither is all.
            require("[tenant bob]" not in daemon.log(), daemon.log())
            tenants = {tenant["tenant"]: tenant for tenant in folder.ask("tenant", "list")}
            require(tenants["bob"]["sms"] == 2 and tenants["alice"]["sms"] == 4
                    and tenants["alice"]["memory_limit_bytes"] == 512 << 20, f"{tenants}")
        out, err = folder.run("GP_DAEMON", "--check-config", *driver_options(), **DEVICE)
        require(out == f"{name}: valid: 3 tenants, 6 warnings\n", out)
        require(sorted(err.splitlines()) == sorted(line for line in err.splitlines() if line.startswith("gpupoold: warning: ")), err)
        has(err, *words)


@case("weights, limits and shares of time that the device's policy makes no use of are warned of, also when they are set")
def _():
    with Folder() as folder:
        name = folder.file()
        tenant = "[tenant default]\nsessions = 0\n[tenant alice]\nlimit = 30\nweight = 20\ntime-share = 10\n"
        unused = {"": (("limit", 4, "best-effort"), ("weight", 5, "best-effort"), ("time-share", 6, "fixed")),
                  "policy = best-effort\n": (("time-share", 6, "fixed"),), "policy = equal\n": (("weight", 5, "best-effort"), ("time-share", 6, "fixed")),
                  "policy = fixed\n": (("weight", 5, "best-effort"),)}
        for policy, keys in unused.items():
            folder.write(tenant + "[device 0]\n" + policy)
            out, err = folder.run("GP_DAEMON", "--check-config", *driver_options(), **DEVICE)
            require(out.endswith(f"{len(keys)} warning{'s' if len(keys) > 1 else ''}\n"), out + err)
            has(err, *(f"{name}:{line}: [tenant alice] {key}: ignored by the policy of device 0 (needs policy = {needed})"
                       for key, line, needed in keys))
        folder.write("")
        with folder.daemon():
            unused = "{}: ignored by the policy of device 0 (needs policy = {} in gpupoold.conf)".format
            require(folder.ctl("tenant", "set", "default", "limit=30%", "memory=64M", "time-share=20")[1] == "gpupoolctl: warning: " +
                    unused("limit", "best-effort") + "; " + unused("time-share", "fixed") + "\n", "no warning")
            folder.write("[device 0]\npolicy = best-effort\n")
            folder.ctl("reload")
            require(folder.ctl("tenant", "set", "default", "limit=30%", "weight=10")[1] == "", "warned of")


@case("fewer places than tenants or ready workers cause warnings")
def _():
    tenants = "[tenant default]\nsessions = 0\n[tenant alice]\n[tenant bob]\n[tenant carol]\nisolation = shared\n[tenant dave]\nsessions = 0\n"
    few = "fewer than the 2 tenants that may use device 0 and do not share a worker: some have to wait for others"
    ready = "fewer than ready-workers = 2 on device 0: the reserve stays smaller"
    with Folder() as folder:
        for number, words in ((1, [few, ready]), (2, [])):
            folder.write(f"[daemon]\nworkers-per-device = {number}\nready-workers = 2\n{tenants}")
            out, err = folder.run("GP_DAEMON", "--check-config", *driver_options(), **DEVICE)
            require(out.endswith(f"valid: 5 tenants, {len(words)} warnings\n"), out + err)
            has(err, *(f"gpupoold: warning: workers-per-device = {number}: {word}" for word in words))


@case("a quota that is rounded to zero causes a warning, and all views show the effective quota")
def _():
    with Folder() as folder:
        folder.write("[tenant default]\nsm = 50%\n")
        with folder.daemon(GPUPOOL_SOFT_MULTIPROCESSORS="2") as daemon:
            daemon.wait_for_log(rf"warning: {folder.file()}:2: \[tenant default\] sm = 50%: device 0 has 2 multiprocessors, assigned in "
                                "multiples of 2, so the tenant may use all of them$")
            client = daemon.start("memhog", stdin=True)
            client.wait_for_output("free after")
            shown = folder.ask("session", "show", folder.ask("session", "list")[0]["id"].__str__())
            require(folder.ask("tenant", "list")[0]["sms"] == shown["sms"] == shown["sms_wanted"] == 2, f"{shown}")
            has(folder.ctl("tenant", "set", "default", "sm=1")[1],
                "warning: sm: device 0 has 2 multiprocessors, assigned in multiples of 2, so all of them may be used")
            client.finish().expect()


@case("--check-config names the line and ends with 1, accepts a file as an argument, and reports a missing file")
def _():
    with Folder() as folder:
        require(folder.run("GP_DAEMON", "--check-config")[0] == f"no configuration: no quotas ({folder.file()} does not exist)\n", "")
        folder.write("[tenant a]\nmemory = 64M\n[tenant default]\nsessions = 0\n", "good.conf")
        out, err = folder.run("GP_DAEMON", "--check-config", folder.file("good.conf"), *driver_options())
        require((out, err) == (f"{folder.file('good.conf')}: valid: 2 tenants, 0 warnings\n", ""), out + err)
        require(folder.run("GP_DAEMON", "-c", folder.file("good.conf"), "--check-config", *driver_options())[0] == out, "with --config")
        folder.write("[tenant a]\nmemory = 12Q\n", "bad.conf")
        err = folder.run("GP_DAEMON", "--check-config", folder.file("bad.conf"), status=1)[1]
        require(err == f'gpupoold: {folder.file("bad.conf")}:2: [tenant a] memory = 12Q: "12Q" is not a valid size: use 2M or more (16G), a percentage (40%) or all\n'
                f"gpupoold: {folder.file('bad.conf')}: the daemon does not start with it: 1 error\n", err)
        # All that is wrong, and each error once.
        folder.write("sessions = 1\nlanes = 2\n[daemon]\nsessions = 0\nlane = 4\nsessions = 5\n[tennant a]\nmemory = 12Q\n[tenant a]\nmemory = 12Q\n"
                     "users = a*, b,\n c*\ndevices = 0, 77\nmemory.3 = 64M\nsm 4\n[tenant b\nsm = none\n[tenant b]\n"
                     "limit = 10\ntime-share = 20\ncertificate = x\n[tenant c]\ncertificate = x\n", "bad.conf")
        err = folder.run("GP_DAEMON", "--check-config", folder.file("bad.conf"), status=1)[1].splitlines()
        lines = [int(found[1]) for found in (re.match(rf"gpupoold: {re.escape(folder.file('bad.conf'))}:(\d+): \S", line) for line in err[:-1]) if found]
        require(lines == [1, 4, 5, 6, 7, 10, 11, 12, 13, 15, 14, 16, 18, 22], f"{lines}: {err}")
        require(err[-1] == f"gpupoold: {folder.file('bad.conf')}: the daemon does not start with it: {len(lines)} errors", err[-1])
        done = folder.run("GP_DAEMON", "-c", folder.file("bad.conf"), "--listen", "127.0.0.1:0", "--admin-socket", "off", status=1)[1]
        require(len(done.splitlines()) == 1 and ":1: " in done, done)
        has(folder.run("GP_DAEMON", "--check-config", "/nowhere", status=1)[1], "gpupoold: /nowhere: No such file or directory")
        has(folder.run("GP_DAEMON", "--check-config", folder.file("good.conf"), "--driver", "/nowhere")[1],
            "device settings are not checked")
        has(folder.run("GP_DAEMON", "surplus", status=1)[1], "unexpected argument")


# Tenants and tokens.

@case("--check-config names files with which the daemon does not start, and makes none")
def _():
    with Folder() as folder:
        name, usage = folder.file(), folder.file("usage.csv")
        folder.write("no certificate\n", "bad.pem")
        for text, says in ((f"usage = /nowhere/usage.csv\n", "usage = /nowhere/usage.csv: No such file or directory"),
                           (f"usage = {folder.path}\n", f"usage = {folder.path}: Is a directory"),
                           ("crl = /nowhere/ca.crl\n", "crl = /nowhere/ca.crl: No such file or directory"),
                           (f"certificate = {folder.file('bad.pem')}\nkey = {folder.file('bad.pem')}\n",
                            f"certificate {folder.file('bad.pem')} cannot be used: none found in the file")):
            folder.write(f"[daemon]\n{text}")
            out, err = folder.run("GP_DAEMON", "--check-config", *driver_options(), status=1, **DEVICE)
            require(out == "" and err == f"gpupoold: {says}\ngpupoold: {name}: the daemon does not start with it: 1 error\n", out + err)
            require(folder.run("GP_DAEMON", "--listen", "127.0.0.1:0", "--admin-socket", "off", *driver_options(), status=1, **DEVICE)[1],
                    "the daemon starts with it")
        # All errors, of files, sockets, addresses and the user; the daemon's start reports the first one.
        folder.write("no token\n", "bad.tokens")
        admin = os.path.join(folder.path, "none", "none", "admin.sock")
        cannot = f"cannot create directory {os.path.dirname(admin)}: No such file or directory"
        folder.write(f"[daemon]\nkey = /nowhere/k\nclient-authority = /nowhere/ca\ncrl = /nowhere/ca.crl\nusage = /nowhere/usage.csv\n"
                     f"admin-socket = {admin}\nmetrics = 192.0.2.1:9400\ntokens = {folder.file('bad.tokens')}\n")
        words = ("--user", "nosuchuser", "--listen", "192.0.2.1:4833", "--listen", "0.0.0.0:0", "--listen", f"unix://{admin}", "--listen", "127.0.0.1:0")
        out, err = folder.run("GP_DAEMON", "--check-config", *driver_options(), *words, status=1, **DEVICE)
        says = ("key /nowhere/k: No such file or directory", "authority /nowhere/ca: No such file or directory",
                "a certificate needs its key, a key its certificate", "crl = /nowhere/ca.crl: No such file or directory",
                f"{folder.file('bad.tokens')}:1: ", "cannot listen on tcp://192.0.2.1:4833: Cannot assign requested address",
                "cannot listen on tcp://0.0.0.0:0: it is not a loopback address", f"cannot listen on unix://{admin}: {cannot}",
                f"no admin socket: {cannot}", "no metrics: ", '--user: unknown user "nosuchuser"',
                "usage = /nowhere/usage.csv: No such file or directory", f"{name}: the daemon does not start with it: {12} errors")
        lines = err.splitlines()
        require(out == "" and len(lines) == len(says) and all(line.startswith(f"gpupoold: {said}") for line, said in zip(lines, says)), err)
        require(not os.path.exists(os.path.dirname(admin)), "it made a folder")
        # Sockets and files in use by a running daemon are not an error.
        folder.write("")
        with socket.socket() as held, folder.daemon():
            held.bind(("127.0.0.1", 0))
            held.listen()
            address = f"127.0.0.1:{held.getsockname()[1]}"
            folder.write(f"[daemon]\nmetrics = {address}\n")
            out, err = folder.run("GP_DAEMON", "--check-config", "--listen", address, "--admin-socket", folder.socket, *driver_options(), **DEVICE)
            require((out, err) == (f"{name}: valid: 1 tenant, 0 warnings\n", ""), out + err)
        if os.geteuid() == 0:
            # As the user that the daemon becomes.
            folder.write(f"[daemon]\nusage = {usage}\n")
            err = folder.run("GP_DAEMON", "--check-config", *driver_options(), "--user", "nobody", status=1, **DEVICE)[1]
            has(err, f"gpupoold: usage = {usage}: Permission denied\n")
        # The node may be another machine.
        folder.write("[daemon]\nsoftware-device = off\n")
        out, err = folder.run("GP_DAEMON", "--check-config", "--driver", "/nowhere")
        require(out == f"{name}: valid: 1 tenant, 1 warning\n", out + err)
        has(err, "warning: the daemon does not start on this machine: /nowhere: ")
        if SOFTWARE:
            err = folder.run("GP_DAEMON", "--check-config")[1]
            has(err, "warning: the daemon does not start on this machine: no working NVIDIA driver (", ", and the software device is off")
        folder.write(f"[daemon]\nusage = {usage}\ntokens = {folder.file('none')}\n")
        out, err = folder.run("GP_DAEMON", "--check-config", *driver_options(), **DEVICE)
        require(out == f"{name}: valid: 1 tenant, 1 warning\n" and not os.path.exists(usage), out + err)
        has(err, f"warning: tokens = {folder.file('none')}: No such file or directory")


@case("a token of a tenant that the configuration lacks is warned of when it is made, at the start and at a reload, and named when it is refused")
def _():
    with Folder() as folder:
        folder.write("[tenant default]\nmemory = 64M\n[tenant alice]\nmemory = 64M\n")
        path, err = folder.token("alicia")
        doubt = f"{folder.file()} has no [tenant alicia] (did you mean alice?): clients with its tokens get the limits of [tenant default]: a quota"
        require(err == f"gpupoolctl: warning: {doubt}\n", err)
        require(folder.token("alice")[1] == "", "a warning of one that is there")
        with folder.daemon() as daemon:
            has(daemon.log(), f"warning: {doubt}\n")
            require("[tenant alice] " not in daemon.log(), daemon.log())
            has(folder.ctl("reload")[1], doubt)
            folder.write("[tenant default]\nsessions = 0\n[tenant alice]\nmemory = 64M\n")
            has(folder.ctl("reload")[1], "get the limits of [tenant default]: no session")
            result = daemon.run("vectoradd", env={"GPUPOOL_TOKEN_FILE": path})
            require(result.status == 1, str(result))
            has(result.err, 'the configuration has no tenant "alicia", so [tenant default] applies: tenant "alicia" may have no sessions')


@case("session list's limit is the smaller of the client's and its tenant's")
def _():
    with Folder() as folder:
        folder.write("[tenant default]\nmemory = 256M\n")
        with folder.daemon() as daemon:
            client = daemon.start("memhog", "16", stdin=True)
            client.wait_for_output("free after")
            listed = folder.ask("session", "list")[0]
            require(listed["memory_limit_bytes"] == 256 << 20, f"{listed}")
            has(folder.ctl("session", "list")[0], "256 MiB")
            folder.ctl("session", "set", str(listed["id"]), "memory=32M")
            require(folder.ask("session", "list")[0]["memory_limit_bytes"] == 32 << 20, "its own is smaller")
            client.finish().expect()


@case("the log has each changed setting, its old and new value, its device, and the user")
def _():
    with Folder() as folder, folder.daemon() as daemon:
        by = rf"by user {os.geteuid()} \(process \d+\)$"
        folder.ctl("tenant", "set", "default", "memory=128M", "limit=30%", "time-share=20", "sessions=3", "bandwidth=1G", "priority=low")
        for line in (r"memory of device 0: all -> 128 MiB", "limit of device 0: 100% -> 30%", "time-share of device 0: 0% -> 20%",
                     "sessions: unlimited -> 3", "bandwidth: unlimited -> 1 GiB/s", "priority: normal -> low"):
            daemon.wait_for_log(f"info: tenant default: {line}, {by}")
        client = daemon.start("memhog", stdin=True)
        client.wait_for_output("free after")
        folder.ctl("session", "set", str(folder.ask("session", "list")[0]["id"]), "sm=2", "memory=80G", "gpu=0")
        daemon.wait_for_log(rf"info: session \d+: sm of device 0: all -> 2, {by}")
        daemon.wait_for_log(rf"info: session \d+: memory of device 0: all -> 512 MiB, {by}")
        client.finish().expect()


@case("the words of tenant set are those of the configuration, older ones still do, and sessions can be set")
def _():
    with Folder() as folder, folder.daemon() as daemon:
        folder.ctl("tenant", "set", "default", "time-share=20", "memory=all", "bandwidth=unlimited", "sessions=0")
        require(folder.ask("tenant", "list")[0]["share_percent"] == 20, "time-share")
        result = daemon.run("vectoradd")
        has(result.err, 'tenant "default" may have no sessions')
        folder.ctl("tenant", "set", "default", "share=30", "memory=none", "bandwidth=none", "sessions=unlimited")
        require(folder.ask("tenant", "list")[0]["share_percent"] == 30, "share")
        daemon.check_works()
        has(folder.ctl("tenant", "set", "default", "memroy=1G", status=1)[1], "memroy=1G: that sets none of", "did you mean memory=?")
        has(folder.ctl("tenant", "set", "default", "sm=400")[1], "warning: sm = 400: device 0 has 4 multiprocessors, so all of them may be used")
        has(folder.ctl("tenant", "set", "default", "memory=80G")[1], "warning: memory = 80 GiB: device 0 has 512 MiB, so all of that may be used")


@case("an allocation past a quota is one line in the log that names the quota")
def _():
    with Folder() as folder:
        folder.write("[tenant default]\nmemory = 64M\n[tenant small]\nsession-memory = 32M\n")
        with folder.daemon() as daemon:
            for _again in range(2):
                result = daemon.run("memhog", "80")
                require(result.status == 1 and "cudaErrorMemoryAllocation" in result.out, str(result))
            line = r"info: session \d+, tenant {}: out of memory: .* more of device 0: the quota {} is {} MiB, and .* of it are in use$"
            daemon.wait_for_log(line.format("default", "memory", 64), count=2)
            require(len(re.findall("out of memory", daemon.log())) == 2, f"not one for each session: {daemon.log()}")
            require(daemon.run("memhog", "80", env=as_tenant("small")).status == 1, "beyond session-memory")
            daemon.wait_for_log(line.format("small", "session-memory", 32))


# Work that runs.

@case("a running kernel counts while it runs, and no session is busy for more than 100 % of the time")
def _():
    with Folder(any_device=True) as folder, folder.daemon() as daemon:
        clients = [daemon.start("sleeper", "-ms=3000") for _ in range(2)]
        for client in clients:
            client.wait_for_output("running")
        rows = [row.split(",") for row in folder.ctl("top", "-n", "2", "--format=csv")[0].splitlines()]
        place = rows[0].index("busy_percent")
        busy = [float(row[place]) for row in rows if row[place] != "busy_percent"]
        require(max(busy) > 30, f"no session is busy: {busy}")
        require(max(busy) <= 100, f"more than all the time: {busy}")
        for client in clients:
            client.finish().expect()
        for row in folder.ask("tenant", "list"):
            require(row["gpu_seconds"] > 2.5, f"GPU time is not counted: {row}")
        daemon.wait_for_log(r"closed: ", count=2)
    with Folder(any_device=True) as folder, folder.daemon() as daemon:
        begin = time.monotonic()
        daemon.run("sleeper", "-ms=1500").expect()
        seconds = folder.ask("tenant", "list")[0]["gpu_seconds"]
        require(1.4 < seconds <= time.monotonic() - begin, f"{seconds} s of a kernel of 1.5 s")


@case("top ends with q, and shows in a narrow terminal what fits")
def _():
    with Folder(any_device=True) as folder, folder.daemon() as daemon:
        client = daemon.start("memhog", stdin=True)
        client.wait_for_output("free after")
        mine, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        before = termios.tcgetattr(its)
        top = subprocess.Popen([os.environ["GP_CTL"], "-s", folder.socket, "top"], stdin=its, stdout=its, env=base_environment())
        text = ""
        while text.count("\033[H") < 2:
            text += os.read(mine, 65536).decode("ascii")
        os.write(mine, b"q")
        require(top.wait(PATIENCE) == 0, "q does not end it")
        require(termios.tcgetattr(its)[3] == before[3], "the terminal is not as it was")
        os.close(its)
        os.close(mine)
        lines = text.replace("\033[H\033[J", "").split("\r\n")
        require(all(len(line) <= 60 for line in lines) and any("memhog" in line and "MiB" in line for line in lines), f"{lines}")
        client.finish().expect()


# Output of gpupoolctl.

@case("help describes each command, as -h and --help after a command do, and an unknown command gets a suggestion")
def _():
    with Folder() as folder:
        out = folder.ctl("help")[0]
        has(out, "tenant set TENANT", "doctor", "token create TENANT", "drain [--wait | --undo]")
        out += folder.ctl("--help")[0] + "".join(folder.ctl("help", *re.findall(r"[a-z]+", words))[0]
                                                 for words in re.findall(r"^  ([a-z]+(?: [a-z]+)?)\b", out, re.M))
        require(all(len(line) < 80 for line in out.splitlines()), out)
        require(folder.ctl("-h")[0] == folder.ctl("--help")[0], "-h is not --help")
        has(folder.ctl("help", "tenant", "set")[0], "gpupoolctl tenant set TENANT", "time-share=30%", "--save")
        require(folder.ctl("top", "--help")[0] == folder.ctl("top", "-h")[0] == folder.ctl("help", "top")[0], "after the command")
        has(folder.ctl("help", "session")[0], "session list", "session terminate")
        require(folder.ctl("statsu", status=1)[1] == 'gpupoolctl: unknown command "statsu"; did you mean status? gpupoolctl help lists the commands\n', "")
        has(folder.ctl("session", "lsit", status=1)[1], 'unknown command "session lsit"; did you mean session list? usage: gpupoolctl session list')
        has(folder.ctl("help", "tenent", status=1)[1], "did you mean tenant")
        has(folder.ctl("frobnicate", status=1)[1], 'unknown command "frobnicate": gpupoolctl help lists the commands')


@case("status has addresses, configuration, user and what expires")
def _():
    with Folder() as folder:
        folder.ctl("cert", "init", "127.0.0.1")
        folder.ctl("token", "create", "default", "--expires", "2d", "-o", folder.file("token"))
        folder.write("[tenant default]\nmemory = 64M\n")
        with folder.daemon("--listen", "tls://127.0.0.1:0", "--metrics", "0") as daemon:
            status = folder.ask("status")
            require(daemon.address in status["addresses"] and "tls://127.0.0.1:" in status["addresses"], f"{status}")
            require(status["configuration"] == folder.file() and status["metrics"].startswith("http://127.0.0.1:"), f"{status}")
            require(status["user"] and status["workers_lost"] == 0, f"{status}")
            require(abs(status["certificate_expires"] - time.time() - 2 * 365 * 86400) < 86400, f"{status}")
            require(abs(status["next_token_expires"] - time.time() - 2 * 86400) < 3600, f"{status}")
            text = folder.ctl("status")[0]
            has(text, "configuration:", "certificate expires:", folder.file())
        os.unlink(folder.file())
        with folder.daemon() as daemon:
            require(folder.ask("status")["configuration"] == "none (no quotas)", "")


@case("a drain reports the remaining clients, and a tenant's clients are ended together")
def _():
    with Folder(any_device=True) as folder:
        folder.write("[tenant a]\n[tenant b]\n")
        with folder.daemon() as daemon:
            clients = [daemon.start("memhog", stdin=True, env=as_tenant(name)) for name in ("a", "a", "b")]
            for client in clients:
                client.wait_for_output("free after")
            has(folder.ctl("session", "terminate", "--tenant", "c", status=1)[1], 'unknown tenant "c"')
            drain = subprocess.Popen([os.environ["GP_CTL"], "-s", folder.socket, "drain", "--wait"], env=base_environment(),
                                     stdout=subprocess.PIPE, text=True)
            require(re.match(r"draining: 3 sessions left: \d+ \(\S+@\S+ memhog\), ", drain.stdout.readline()), "no progress")
            folder.ctl("session", "terminate", "--tenant", "a")
            require([row["tenant"] for row in folder.ask("session", "list")] == ["b"], "not those of tenant a alone")
            for client in clients[:2]:
                result = client.finish()
                require(result.err.count("terminated by the administrator") == 1, str(result))
            while not re.match(r"draining: 1 session left: ", drain.stdout.readline()):
                require(drain.poll() is None, "it did not wait for the last one")
            clients[2].finish().expect()
            require(drain.wait(PATIENCE) == 0, "it did not end well")
            drain.stdout.close()


@case("tenant set --save changes the one line of the configuration, and no comment")
def _():
    text = ("# The pool.\n\n[tenant default]\n  memory = 64M   ; of all\n# sm = 50%\n\n"
            "[ tenant  alice ] # a group\nweight: 200\nusers = bob,\n  carol\n# after\n\n[device *]\npolicy = best-effort\n")
    with Folder() as folder:
        folder.write(text)
        os.chmod(folder.file(), 0o640)
        with folder.daemon():
            folder.ctl("tenant", "set", "default", "memory=128M", "--save")
            text = text.replace("memory = 64M   ; of all", "memory = 128M   ; of all")
            require(read_file(folder.file()) == text, read_file(folder.file()))
            require(os.stat(folder.file()).st_mode & 0o777 == 0o640, "its mode is another one")
            folder.ctl("tenant", "set", "alice", "weight=300", "gpu=0", "memory=25%", "--save")
            text = text.replace("  carol\n", "  carol\nweight.0 = 300\nmemory.0 = 25%\n")
            require(read_file(folder.file()) == text, read_file(folder.file()))
            has(folder.ctl("tenant", "set", "default", "time-share=20", "limit=10", "--save", status=1)[1], "nothing is changed", "time-share")
            require(read_file(folder.file()) == text, "an invalid setting is written")
            require(folder.ask("tenant", "list")[0]["limit_percent"] == 100, "a setting that is not saved is in force")
            has(folder.ctl("reload")[1], "")
            require(folder.ask("tenant", "list")[1]["weight"] == 300, "it is not in force after a reload")
            # One that lies elsewhere is changed there.
            os.rename(folder.file(), folder.file("elsewhere.conf"))
            os.symlink("elsewhere.conf", folder.file())
            folder.ctl("tenant", "set", "default", "memory=192M", "--save")
            require(os.path.islink(folder.file()) and "memory = 192M" in read_file(folder.file("elsewhere.conf")), "the link is replaced")
        os.unlink(folder.file())
        with folder.daemon():
            has(folder.ctl("tenant", "set", "default", "memory=128M", "--save", status=1)[1],
                "--save: the daemon has no configuration: create one (it may be empty), run gpupoolctl reload, and repeat")


@case("a user other than root gets a warning on creating files that the machine's daemon would not find")
def _():
    if not HIDDEN:
        raise Skip("there can be no /etc of its own here")
    usual = {name: value for name, value in base_environment().items() if name != "CONFIGURATION_DIRECTORY"}
    with Folder() as folder:
        os.chmod(folder.path, 0o777)
        own = os.path.join(folder.path, "own")
        words = "exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\""
        for args in (("token", "create", "alice"), ("cert", "init", "gpunode")):
            for there in (True, False):
                ready = "mount -t tmpfs tmpfs /etc && " + ("mkdir /etc/gpupool && " if there else "")
                done = subprocess.run(["unshare", "--mount", "--propagation", "unchanged", "sh", "-c", ready + words, "sh", os.path.abspath(os.environ["GP_CTL"]), *args,
                                       *(("--force",) if args[0] == "cert" else ())], capture_output=True, text=True, check=False,
                                      env={**usual, "XDG_CONFIG_HOME": own}, timeout=PATIENCE)
                require(done.returncode == 0, f"{done}")
                require(done.stderr == (f"gpupoolctl: warning: {own}/gpupool is for a daemon of your own; that of this machine has /etc/gpupool: "
                                        "sudo gpupoolctl ...\n" if there else ""), f"{done}")


@case("a misspelt tenant, an unknown device, and an unknown command are reported as such")
def _():
    with Folder() as folder:
        folder.write("[tenant alice]\nmemory = 64M\n")
        with folder.daemon():
            for words in (("tenant", "set", "alcie", "memory=32M"), ("session", "terminate", "--tenant", "alcie")):
                has(folder.ctl(*words, status=1)[1], 'gpupoolctl: unknown tenant "alcie"; did you mean alice?\n')
            has(folder.ctl("tenant", "set", "alice", "gpu=7", "memory=32M", status=1)[1], "unknown device 7: the daemon has 1, counted from 0")
            has(folder.ctl("help", "nonsense", status=1)[1], 'gpupoolctl: unknown command "nonsense": gpupoolctl help lists the commands\n')
            require(json.loads(folder.ctl("tenant", "list", "-f", "json")[0])[1]["tenant"] == "alice", "-f after the command")
        has(folder.ctl("status", status=1)[1], "no daemon listens at ", '; see "systemctl status gpupoold"\n')


@case("a table fits the width of a terminal, with the most important columns, and is complete elsewhere")
def _():
    with Folder() as folder:
        with folder.daemon() as daemon:
            client = daemon.start("memhog", "16", stdin=True)
            client.wait_for_output("free after")
            for words, keeps in (("tenant list", "MEMORY"), ("device list", "NAME"), ("session list", "PROGRAM")):
                mine, its = pty.openpty()
                fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
                subprocess.run([os.environ["GP_CTL"], "-s", folder.socket, *words.split()], stdin=subprocess.DEVNULL, stdout=its,
                               env=base_environment(), timeout=PATIENCE, check=True)
                lines = os.read(mine, 65536).decode("ascii").splitlines()
                os.close(its)
                os.close(mine)
                require(len(lines) >= 2 and keeps in lines[0] and all(len(line) <= 80 for line in lines), f"{lines}")
                require(max(map(len, folder.ctl(*words.split())[0].splitlines())) > 80, "nothing was left out")
            client.finish()


@case("completion in bash knows gpupoolctl's commands and their options, as help has them")
def _():
    script = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "ctl", "completion", "gpupoolctl.bash")
    if not os.path.exists(script):
        raise Skip("the completion is not beside these tests")

    def completed(*words):
        done = subprocess.run(["bash", "-c", '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gpupoolctl; printf "%s\\n" "${COMPREPLY[@]}"',
                               script, os.environ["GP_CTL"], *words], capture_output=True, text=True, check=False, env=base_environment())
        require(done.returncode == 0 and done.stderr == "", f"{done}")
        return sorted(done.stdout.split())

    require(completed("") == ["cert", "device", "doctor", "drain", "help", "quarantine", "reload", "session", "status", "tenant", "token",
                              "top", "usage", "worker"],
            f"{completed('')}")
    require(completed("te") == completed("help", "te") == ["tenant"] and completed("session", "s") == ["set", "show"], "not the words")
    require(completed("drain", "--") == ["--format=", "--undo", "--wait"] and "--save" in completed("tenant", "set", "a", "--s"), "not the options")


# The machine.

@case("a port in use is reported with the process that uses it, and a port alone is on this machine")
def _():
    with Folder() as folder, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        options = ("--admin-socket", "off", *driver_options())
        err = folder.run("GP_DAEMON", "--listen", str(port), *options, status=1)[1]
        require(re.fullmatch(rf"gpupoold: cannot listen on tcp://127\.0\.0\.1:{port}: Address already in use "
                             rf"\(in use by process {os.getpid()}, \S+\)\n", err), err)
        err = folder.run("GP_DAEMON", "--listen", "tls://0", *options, status=1)[1]
        require(err == "gpupoold: cannot listen on tls://127.0.0.1:0: the daemon has no certificate: create one with gpupoolctl cert init "
                "HOST, or use --certificate and --key\n", err)


@case("lines on a terminal have time and process, those of the journal its number of the level; sizes are such as people read")
def _():
    with Folder() as folder:
        with folder.daemon() as daemon:
            daemon.run("memhog", "16").expect()
            daemon.wait_for_log(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} gpupoold\[\d+\]: info: listening on ")
            daemon.wait_for_log(r"closed: .*; \d+ launches, \d+ copies, [\d.]+ (bytes|KiB) in, [\d.]+ (bytes|KiB) out, at most \d+ MiB of memory")
        log = folder.file("log")
        with open(log, "wb") as file:
            about = os.fstat(file.fileno())
            env = {**base_environment(), **folder.env, "JOURNAL_STREAM": f"{about.st_dev}:{about.st_ino}"}
            process = subprocess.Popen([os.environ["GP_DAEMON"], "--listen", "127.0.0.1:0", "--admin-socket", "off", *driver_options()],
                                       stderr=file, env=env)
        wait_until("it serves", lambda: "listening on" in read_file(log), PATIENCE)
        process.terminate()
        require(process.wait(PATIENCE) == 0, "it ended badly")
        require(all(re.match(r"<4>warning: |<6>info: ", line) for line in read_file(log).splitlines()), read_file(log))


@case("tokens that the daemon's user cannot read end its start with what helps")
def _():
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    with Folder() as folder:
        folder.token("alice")
        err = folder.run("GP_DAEMON", "--listen", "127.0.0.1:0", "--admin-socket", "off", *driver_options(), "--user", "nobody", status=1)[1]
        has(err, f"{folder.file('tokens')}: Permission denied: the daemon's user, nobody, needs read access: chgrp ")
        # The service is that user from the beginning.
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", os.environ["GP_DAEMON"], "--listen",
                               "127.0.0.1:0", "--admin-socket", "off", *driver_options(user=None)], capture_output=True, text=True,
                              check=False, env={**base_environment(), **folder.env}, timeout=PATIENCE)
        has(done.stderr, f"{folder.file('tokens')}: Permission denied: the daemon's user, ", "chmod g+r the file")
    text = read_file(os.path.join(os.path.dirname(__file__), "../../scripts/gpupoold.tmpfiles.in"))
    has(text, "z /etc/gpupool/tokens 0640 root gpupool")


@case("tokens that expire within a week are one warning at the start")
def _():
    with Folder() as folder:
        folder.token("alice")
        folder.token("bob", "--expires", "1y")
        with folder.daemon() as daemon:
            require("within 7 days" not in daemon.log(), daemon.log())
        folder.token("carol", "--expires", "6d")
        folder.token("dave", "--expires", "2d")
        name = [line.split(",")[0] for line in folder.ctl("token", "list", "--format=csv")[0].splitlines() if ",dave," in line][0]
        with folder.daemon() as daemon:
            says = rf"warning: 2 tokens expire within 7 days, {name} of tenant dave in 4[78] hours: gpupoolctl token list$"
            require(re.search(says, daemon.log(), re.M) and daemon.log().count("within 7 days") == 1, daemon.log())


@case("a certificate of another host is refused with both names")
def _():
    with Certificates() as certificates, Encrypted(certificates, shows="elsewhere") as daemon:
        result = daemon.run("vectoradd")
        has(result.err, "the daemon's certificate is for another name or address: for elsewhere.example, 127.9.9.9, not for 127.0.0.1")


@case("a certificate that is not yet valid or expires soon causes a warning with its dates; clients report their own")
def _():
    with Folder() as folder:
        folder.ctl("cert", "init", "127.0.0.1", "--expires", "10d")
        with folder.daemon("--listen", "tls://127.0.0.1:0") as daemon:
            daemon.wait_for_log(r"warning: the daemon's certificate expires on 20\d\d-\d\d-\d\d \d\d:\d\d UTC, in (9|10) days; gpupoolctl cert init")
        for name, begin, end, says in (("future", "+1", "+3", "is not valid yet"), ("past", "-3", "-1", "has expired")):
            sign(folder, begin, end)
            with folder.daemon("--listen", "tls://127.0.0.1:0") as daemon:
                daemon.wait_for_log(rf"warning: the daemon's certificate {says} \((from )?20\S+ \S+ UTC; here it is 20\S+ \S+ UTC\)")
                remote = re.search(r"^listening on (tls://\S+)$", read_file(daemon.out_path), re.M)[1]
                result = run("vectoradd", remote=remote, env={"GPUPOOL_TLS_CA": folder.file("ca.pem")})
                require(re.search(rf"the daemon's certificate {says}: it (is|was) (from|valid until) 20\S+ \S+ UTC \(here it is 20\S+ \S+ UTC: "
                                  r"check the clocks\)", result.err), f"{name}: {result}")


if __name__ == "__main__":
    sys.exit(main())
