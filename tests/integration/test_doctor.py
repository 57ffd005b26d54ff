# SPDX-License-Identifier: Apache-2.0
"""Information for the operator of a pool: usage records, the doctor, and access without root."""
import grp
import json
import os
import shutil
import socket
import subprocess
import sys
import time

from harness import PATIENCE, Skip, as_tenant, base_environment, case, driver_options, main, read_file, require, wait_until
from pool_folder import Folder, has, sign
from wire import Session, field


# Usage records.

@case("usage records of tenants and sessions outlive the daemon, and add up")
def _():
    with Folder(any_device=True) as folder:
        path = folder.file("usage.csv")
        folder.write(f"[daemon]\nusage = {path}\n[tenant a]\n[tenant b]\n")
        for _start in range(2):
            with folder.daemon() as daemon:
                require(folder.ask("status")["usage"] == path, "where they are")
                for tenant in ("a", "a", "b"):
                    daemon.run("memhog", "16", env=as_tenant(tenant)).expect()
                daemon.run("sleeper", "-ms=300", env=as_tenant("b")).expect()
                daemon.wait_for_log("closed: ", count=4)
        out = folder.run("GP_CTL", "usage", "--file", path, "--format=json")[0]
        tenants = {row["tenant"]: row for row in json.loads(out)}
        require({name: row["sessions"] for name, row in tenants.items()} == {"a": 4, "b": 4}, out)
        require(tenants["a"]["gpu_seconds"] < 0.5 < tenants["b"]["gpu_seconds"] and tenants["b"]["launches"] >= 2, out)
        rows = json.loads(folder.run("GP_CTL", "usage", "--file", path, "--by=session", "--since", "1h", "--format=json")[0])
        require(len(rows) == 8 and all(row["state"] == "ended" and row["memory_peak_bytes"] >= 1 << 20 for row in rows), f"{rows}")
        require(len({row["daemon"] for row in rows}) == 2, f"{rows}")
        has(folder.run("GP_CTL", "usage", "--file", path)[0], "TENANT", "CONNECTED")
        require(folder.run("GP_CTL", "usage", "--file", path, "--since", "2100-01-01", "--format=json")[0] == "[]\n", "of the future")
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        require(lines[0].startswith("time,event,daemon,session,tenant,") and len(lines) == 9, f"{lines}")
        has(folder.run("GP_CTL", "usage", "--file", path, "--since", "soon", status=1)[1], "--since soon: neither a time")
        has(folder.run("GP_CTL", "usage", "--file", "/nowhere", status=1)[1], "/nowhere: No such file")
        with open(path, "a", encoding="ascii") as file:
            # A later record of the same session takes the place of the one before it, but not of its end.
            for event, seconds in (("running", 7), ("ended", 9), ("running", 8)):
                file.write(f'{int(time.time())},{event},00ff,5,"c",{int(time.time()) - 60},0,{seconds}.5,1,2,3,4,5,6,0.0,0.0,"h","we""ird, one",7,'
                           '"p","a","c"\n')
            file.write("nonsense\n")
        row = json.loads(folder.run("GP_CTL", "usage", "--file", path, "--by=session", "--format=json")[0])[0]
        require(row["user"] == 'we"ird, one' and row["gpu_seconds"] == 9.5 and row["launches"] == 2 and row["state"] == "ended", f"{row}")
        has(folder.run("GP_CTL", "usage", "--file", path)[1], "warning: ", "1 lines are not usage records")


@case("a session that is open when the daemon stops has its record, and a daemon without records reports that")
def _():
    with Folder() as folder:
        path = folder.file("usage.csv")
        folder.write(f"[daemon]\nusage = {path}\n")
        with folder.daemon() as daemon:
            client = daemon.start("memhog", "16", stdin=True)
            client.wait_for_output("free after")
            daemon.process.terminate()
            require(daemon.process.wait(PATIENCE) == 0, "the daemon ended badly")
            daemon.check_log()
            client.finish()
        rows = json.loads(folder.run("GP_CTL", "usage", "--file", path, "--by=session", "--format=json")[0])
        require(len(rows) == 1 and rows[0]["state"] == "ended" and rows[0]["program"] == "memhog", f"{rows}")
        os.unlink(folder.file())
        with folder.daemon():
            has(folder.ctl("usage", status=1)[1], "the daemon writes no usage records: set usage = FILE in gpupoold.conf")
        # The service's folder, where there is one.
        with folder.daemon(STATE_DIRECTORY=folder.path):
            require(folder.ask("status")["usage"] == path, "not in the folder of the service")


@case("sessions that have used nothing are counted and not listed, and a full file makes room for another one")
def _():
    with Folder(any_device=True) as folder:
        path = folder.file("usage.csv")
        folder.write(f"[daemon]\nusage = {path}\n[tenant a]\n[tenant b]\n")
        with folder.daemon() as daemon:
            for tenant, count in (("a", 5), ("b", 3)):
                for _session in range(count):
                    with Session(daemon.port, program="=1+1", more=field(14, tenant)) as session:
                        session.create_context()
            daemon.run("memhog", "16", env=as_tenant("b")).expect()
            with Session(daemon.port, program="=1+1", more=field(14, "a")) as session:
                session.create_context()
                require(session.map(0, session.granularity) == 0, "map")
            daemon.wait_for_log("closed: ", count=10)
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        require(len(lines) == 5 and sum(",unused," in line for line in lines) == 2, f"{lines}")
        # No formula, in neither kind of CSV.
        require(sum(",\"'=1+1\"," in line for line in lines) == 1, f"{lines}")
        listed = folder.run("GP_CTL", "usage", "--file", path, "--by=session", "--format=csv")[0]
        require(",'=1+1," in listed and ",=" not in listed, listed)
        rows = json.loads(folder.run("GP_CTL", "usage", "--file", path, "--format=json")[0])
        require({row["tenant"]: row["sessions"] for row in rows} == {"a": 6, "b": 4}, f"{rows}")
        rows = json.loads(folder.run("GP_CTL", "usage", "--file", path, "--by=session", "--format=json")[0])
        require(sorted(row["tenant"] for row in rows) == ["a", "b"], f"{rows}")
        os.rename(path, f"{path}.1")
        with folder.daemon() as daemon:
            with Session(daemon.port, program="=1+1", more=field(14, "b")):
                listed = folder.ctl("session", "list", "--format=csv")[0]
                require(",\"'=1+1\"" in listed and ",=" not in listed, listed)
            daemon.run("memhog", "16", env=as_tenant("b")).expect()
            wait_until("both files are read",
                       lambda: ["a", "b", "b"] == sorted(row["tenant"] for row in folder.ask("usage", "--by=session")), PATIENCE)
        # It takes no room on the disk.
        os.truncate(path, 256 << 20)
        with folder.daemon() as daemon:
            daemon.run("memhog", "16", env=as_tenant("b")).expect()
            daemon.wait_for_log(rf"usage records: {path} is full and was renamed to {path}\.1")
        require(os.path.getsize(f"{path}.1") == 256 << 20, "the file before it is lost")
        require(len(read_file(path).splitlines()) == 2, read_file(path))


@case("a full disk is reported once, and buffered records are written when there is room again")
def _():
    if not os.path.exists("/dev/full"):
        raise Skip("needs /dev/full")
    with Folder() as folder:
        path = folder.file("usage.csv")
        os.symlink("/dev/full", path)
        folder.write(f"[daemon]\nusage = {path}\n")
        with folder.daemon() as daemon:
            for _again in range(2):
                daemon.check_works()
            daemon.wait_for_log(rf"error: usage records: {path}: No space left on device: \d+ records buffered in memory until the file is writable$")
            time.sleep(0.3)
            require(daemon.log().count("No space left") == 1, daemon.log())
            os.unlink(path)
            daemon.wait_for_log(rf"info: usage records: {path}: writable again: 2 buffered records written$", 20)
            rows = json.loads(folder.ctl("usage", "--by=session", "--format=json")[0])
            require([row["program"] for row in rows] == ["vectoradd"] * 2, f"{rows}")
        # The usual file is waited for, too, if it cannot be had at the start.
        folder.write("[tenant a]\n")
        os.unlink(path)
        os.mkdir(path)
        with folder.daemon(STATE_DIRECTORY=folder.path) as daemon:
            daemon.wait_for_log(rf"warning: usage records: {path}: Is a directory: records are buffered in memory until the file is writable$")
            daemon.check_works()
            os.rmdir(path)
            daemon.wait_for_log(rf"info: usage records: {path}: writable again: 1 buffered records written$", 20)
        folder.write("[daemon]\nusage = /nowhere/usage.csv\n")
        err = folder.run("GP_DAEMON", "--listen", "127.0.0.1:0", "--admin-socket", "off", *driver_options(), status=1)[1]
        require(err == "gpupoold: no usage records: /nowhere/usage.csv: No such file or directory\n", err)


# The doctor, and who may look.

@case("the doctor finds nothing wrong with a pool that is well, and names what is wrong with one that is not")
def _():
    with Folder() as folder:
        folder.ctl("cert", "init", "127.0.0.1")
        folder.write("[tenant default]\nsessions = 0\n[tenant alice]\nmemory = 64M\n")
        folder.token("alice")
        os.chmod(folder.path, 0o2750)
        with folder.daemon("--listen", "tls://127.0.0.1:0") as daemon:
            out, err = folder.ctl("doctor")
            has(out, f"ok       configuration: {folder.file()}: 2 tenants", "tokens: ", ": 1 valid, 0 revoked or expired", "ok       daemon: version ",
                f"ok       address: {daemon.address} is reachable from this machine only: use --listen tls://0.0.0.0:", "note     driver: the daemon serves its software device",
                "note     control groups: ", "ok       clock: 20", "\n0 problems, ")
            require(err == "" and "\nproblem" not in out, out + err)
            # Everything at once.
            folder.token("alicia", "--expires", "2d")
            folder.write("[tenant default]\nmemory = 300M\n[tenant alice]\nmemory = 300M\n[tenant bob]\nmemory = 64M\n")
            folder.ctl("reload")
            os.chmod(folder.file("tokens"), 0o666)
            os.chmod(folder.file("server.key"), 0o644)
            sign(folder, "-3", "-1")
            folder.ctl("drain")
            out = folder.ctl("doctor", status=1)[0]
            has(out, f"problem  {folder.file('tokens')}: writable by all users",
                f"problem  {folder.file('server.key')}: readable by all users",
                f"problem  {folder.file()} has no [tenant alicia] (did you mean alice?)",
                "note     tenant bob has no token, no certificate and no users: gpupoolctl token create bob",
                "of tenant alicia expires in 4", f"problem  {folder.file('server.pem')}: it has expired (20",
                "note     memory: device 0: the quotas of all tenants are 664 MiB, more than its 512 MiB: they cannot all be used at once",
                "note     daemon: draining")
            # If the token file is not readable, it is unknown which tenants have no token.
            folder.write("nonsense\n", "tokens")
            out = folder.ctl("doctor", status=1)[0]
            require("problem  tokens: " in out and "has no token" not in out, out)
            folder.write("[tenant alice\n")
            has(folder.ctl("doctor", status=1)[0], f"problem  configuration: {folder.file()}:1: [tenant alice: missing ]")
        out, err = folder.ctl("doctor", status=1)
        has(out, "problem  daemon: no reply")
        has(err, "no daemon listens at")
    with Folder() as folder:
        out = folder.ctl("doctor", status=1)[0]
        has(out, f"note     configuration: {folder.file()} does not exist: no quotas", "note     tokens: ", "note     certificate: ")


@case("members of a group may look at the daemon, and change nothing")
def _():
    if os.geteuid() != 0:
        raise Skip("only root can try as another user")
    try:
        group = grp.getgrnam("gpupool-read").gr_gid
    except KeyError:
        group = None
    with Folder() as folder, folder.daemon() as daemon:
        about = os.stat(folder.socket)
        require(about.st_mode & 0o777 == (0o600 if group is None else 0o660), f"{about}")
        require(group in (None, about.st_gid), f"{about}")
        if group is None:
            # As the service manager does it.
            group = 64999
            os.chown(folder.socket, -1, group)
            os.chmod(folder.socket, 0o660)

        # The other user may not be able to enter this tree.
        own = shutil.copy(os.environ["GP_CTL"], folder.file("gpupoolctl"))

        def other(*words, member=True):
            return subprocess.run([own, "--socket", folder.socket, *words], capture_output=True, text=True, user=65534,
                                  group=65534, extra_groups=[group] if member else [], cwd="/", env=base_environment(),
                                  stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)
        for words in (("status",), ("session", "list"), ("tenant", "list"), ("top", "-n", "1")):
            require(other(*words).returncode == 0, f"{words}: {other(*words)}")
        for words in (("tenant", "set", "default", "weight=2"), ("drain",), ("reload",), ("session", "terminate", "1")):
            done = other(*words)
            require(done.returncode == 1 and "members of the group gpupool-read have read-only access" in done.stderr, f"{done}")
        require("Permission denied" in other("status", member=False).stderr, "a user outside the group has read access")
        # They may not keep the administrator out.
        go_on = os.pipe()
        holder = os.fork()
        if holder == 0:
            try:
                os.close(go_on[1])
                os.setgroups([group])
                os.setgid(65534)
                os.setuid(65534)
                held = [socket.socket(socket.AF_UNIX) for _ in range(16)]
                for conn in held:
                    conn.connect(folder.socket)
                os.read(go_on[0], 1)
            finally:
                os._exit(0)
        try:
            os.close(go_on[0])
            daemon.wait_for_log(r"admin socket: process \d+ of user 65534: too many connections of read-only users|"
                                r"admin socket: process \d+: closed to admit another connection")
            folder.ask("status")
        finally:
            os.close(go_on[1])
            os.waitpid(holder, 0)
        require(folder.ask("status")["state"] == "serving", "it was changed")
        daemon.check_works()


if __name__ == "__main__":
    sys.exit(main())
