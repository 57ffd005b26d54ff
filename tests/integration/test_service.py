# SPDX-License-Identifier: Apache-2.0
"""The daemon as a service: the privileges that it drops, its notifications to the service manager, and its unit."""
import contextlib
import ctypes
import grp
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import traceback

from harness import (PATIENCE, Certificates, Configured, Daemon, Encrypted, Program, Skip, base_environment, case, driver_options, main,
                     read_file, require, run, software_env, wait_until)

OTHER = "nobody"
# Of systemd-analyze security, in tenths: below 2.0 it prints "OK"; the remaining exposure is the network and W^X.
EXPOSURE = 20


def read_status(pid):
    return dict(line.split(":\t", 1) for line in read_file(f"/proc/{pid}/status").splitlines() if ":\t" in line)


def need_root():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("only root can become another user")
    uid = pwd.getpwnam(OTHER).pw_uid
    for needed in filter(None, (os.environ["GP_DAEMON"], os.environ["GP_DRIVER"])):
        if subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "test", "-r", needed],
                          check=False).returncode:
            raise Skip(f"another user cannot read {needed}")
    return uid


def check_process(pid, uid):
    status = read_status(pid)
    require(status["Uid"].split() == [str(uid)] * 4, f"users {status['Uid']}")
    require(status["Gid"].split() == [str(pwd.getpwuid(uid).pw_gid)] * 4, f"groups {status['Gid']}")
    require("0" not in status["Groups"].split(), f"it has kept groups of root's: {status['Groups']}")
    for which in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        require(int(status[which], 16) == 0, f"{which} {status[which]}")
    require(status["NoNewPrivs"] == "1", "it can get new privileges")


def check_hidden(pid):
    limits = read_file(f"/proc/{pid}/limits")
    require(re.search(r"^Max core file size +0 +0 ", limits, re.M), f"it may write core files: {limits}")
    # Files in /proc of a process belong to root, and not to its user, if the process may not be dumped.
    if os.geteuid() == 0:
        require(os.stat(f"/proc/{pid}/mem").st_uid == 0, "it may be dumped")


@case("a daemon of root's becomes its user, with the workers, and serves, reloads and shows its state as before")
def _():
    uid = need_root()
    folder = tempfile.mkdtemp(prefix="gpupool-files-")
    try:
        os.chmod(folder, 0o755)
        admin = os.path.join(folder, "admin.sock")
        with Configured("[daemon]\nsessions = 5\n", "--user", OTHER, "--admin-socket", admin) as daemon:
            daemon.wait_for_log(rf"running as user {OTHER}")
            for pid in [daemon.pid, *daemon.workers()]:
                check_process(pid, uid)
                check_hidden(pid)
            daemon.check_works()
            # Waits for the end of the session: if it ended with its worker, no process would report it, and the daemon would
            # never seem idle.
            daemon.wait_for_log(r"session \d+ .*: closed: ")
            # A worker that is started later is no more than the first one.
            first, = daemon.workers()
            os.kill(first, signal.SIGKILL)
            worker, = wait_until("there is another worker", lambda: [pid for pid in daemon.workers() if pid != first], PATIENCE)
            check_process(worker, uid)
            daemon.check_works()
            daemon.take_idle()
            listed = subprocess.run([os.environ["GP_CTL"], "--socket", admin, "status"], capture_output=True, text=True,
                                    env=base_environment(), timeout=PATIENCE, check=False)
            require(listed.returncode == 0, f"root cannot ask it: {listed}")
            # The file belongs to root alone since it was written again; the warning was logged in time.
            daemon.wait_for_log(r"not readable by the daemon's user")
            os.kill(daemon.pid, signal.SIGHUP)
            daemon.wait_for_log(r"reload failed, nothing changed: .*Permission denied")
            os.chmod(daemon.config.name, 0o644)
            daemon.reload("[daemon]\nsessions = 6\n")
            daemon.check_works()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def count_filters(pid):
    """Numbers of system call filters of the process's threads."""
    return {int(re.search(r"^Seccomp_filters:\t(\d+)", read_file(f"/proc/{pid}/task/{task}/status"), re.M)[1])
            for task in os.listdir(f"/proc/{pid}/task")}


@case("every thread of a worker has a filter of system calls, and a lack of memory ends workers before the supervisor")
def _():
    if "Seccomp_filters:" not in read_file("/proc/self/status"):
        raise Skip("the kernel does not report the number of filters")
    inherited = int(read_file("/proc/self/oom_score_adj"))
    for option, more in ((), 1), (("--syscall-filter=off",), 0), (("--syscall-filter", "log"), 1):
        with Daemon(*option) as daemon:
            daemon.run("vectoradd").expect(out="vectoradd: ok\n")
            own, = count_filters(daemon.pid)
            for pid in daemon.workers():
                require(count_filters(pid) == {own + more}, f"{option}: {count_filters(pid)}, supervisor {own}")
                require(int(read_file(f"/proc/{pid}/oom_score_adj")) == max(500, inherited), "the worker's oom_score_adj")
            require(int(read_file(f"/proc/{daemon.pid}/oom_score_adj")) == inherited, "the supervisor's oom_score_adj")


@case("a daemon that stays root logs a warning with the remedy, unless an option requests it")
def _():
    need_root()
    try:
        pwd.getpwnam("gpupool")
        raise Skip("this machine has a user gpupool")
    except KeyError:
        pass
    with Daemon(user=None) as daemon:
        daemon.wait_for_log(r"warning: running as root: no user gpupool: run systemd-sysusers, or use --user=NAME")
        daemon.check_works()
    with Daemon("--user", "root") as daemon:
        daemon.check_works()
        require("running as root" not in daemon.log(), daemon.log())


@case("a key that only root may read is read in time, and the log warns that it cannot be read again")
def _():
    need_root()
    with Certificates() as certificates:
        os.chmod(certificates.folder, 0o755)
        for name in ("server", "ca"):
            os.chmod(certificates.file(name), 0o644)
        os.chmod(certificates.file("server", "key"), 0o600)
        with Encrypted(certificates, "--user", OTHER) as daemon:
            daemon.wait_for_log(r"certificate not readable by the daemon's user, a reload will fail: .*")
            daemon.check_works()
            os.kill(daemon.pid, signal.SIGHUP)
            daemon.wait_for_log(r"reload failed, nothing changed: ")
            daemon.check_works()
            # The mode and the owner that gpupoold(8) documents.
            os.chown(certificates.file("server", "key"), 0, pwd.getpwnam(OTHER).pw_gid)
            os.chmod(certificates.file("server", "key"), 0o640)
            os.kill(daemon.pid, signal.SIGHUP)
            daemon.wait_for_log(r"is active")
            daemon.check_works()


@case("a certificate that has gone is missed by name when the daemon reloads, and stays what it was")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-files-") as folder:
        subprocess.run([os.environ["GP_CTL"], "cert", "init", "127.0.0.1", "-D", folder], check=True, timeout=PATIENCE,
                       stdout=subprocess.DEVNULL, env=base_environment())
        own = {"env": {"CONFIGURATION_DIRECTORY": folder}}
        trust = {"GPUPOOL_TLS_CA": f"{folder}/ca.pem"}
        path = f"{folder}/server.pem"
        where = ("--listen", "tls://127.0.0.1:0", "--admin-socket")
        for daemon, admin in ((Daemon(*where, f"{folder}/one", **own), f"{folder}/one"),
                              (Configured("", *where, f"{folder}/two", **own), f"{folder}/two")):
            with daemon:
                address = re.search(r"^listening on (tls://\S+)$", read_file(daemon.out_path), re.M)[1]
                config = getattr(daemon, "config", None)
                os.kill(daemon.pid, signal.SIGHUP)
                daemon.wait_for_log(f"info: {config.name} is active, and the certificate$" if config else
                                    r"info: the certificate is active; no configuration file$")
                os.rename(path, path + ".aside")
                os.kill(daemon.pid, signal.SIGHUP)
                daemon.wait_for_log(f"error: reload failed, nothing changed: {path}, the certificate, no longer exists$")
                done = subprocess.run([os.environ["GP_CTL"], "--socket", admin, "reload"], capture_output=True, text=True,
                                      env=base_environment(), timeout=PATIENCE, check=False)
                require(done.returncode == 1 and done.stderr == f"gpupoolctl: {path}, the certificate, no longer exists\n",
                        f"{done}")
                run("vectoradd", remote=address, env=trust).expect(out="vectoradd: ok\n")
                os.rename(path + ".aside", path)


def close_standard():
    for fd in range(3):
        os.close(fd)


def in_silence(*command):
    """A process without standard input, output and error."""
    return subprocess.Popen(command, preexec_fn=close_standard, start_new_session=True, env=base_environment())


@case("a daemon without standard descriptors serves as any other, and gpupoolctl writes only what it is to write")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-files-") as folder:
        path = os.path.join(folder, "gpupool.sock")
        daemon = in_silence(os.environ["GP_DAEMON"], "--listen", f"unix://{path}", "--print-address", "--admin-socket",
                            "off", *driver_options())
        try:
            wait_until("the daemon listens", lambda: os.path.exists(path) or daemon.poll() is not None, PATIENCE)
            run("vectoradd", remote=f"unix://{path}").expect(out="vectoradd: ok\n")
            for fd in range(3):
                require(os.readlink(f"/proc/{daemon.pid}/fd/{fd}") == "/dev/null", f"descriptor {fd} is something else")
            daemon.terminate()
            require(daemon.wait(PATIENCE) == 0, f"it ended with {daemon.returncode}")
        finally:
            daemon.kill()
            daemon.wait()
        made = in_silence(os.environ["GP_CTL"], "token", "create", "alice", "-D", folder, "-o", f"{folder}/token")
        require(made.wait(PATIENCE) == 0, f"gpupoolctl ended with {made.returncode}")
        for name in ("token", "tokens"):
            require("of tenant alice\n" not in read_file(os.path.join(folder, name)), f"{name} has what gpupoolctl prints")


@case("a folder of the daemon's group is all that it needs to see new tokens and certificates")
def _():
    need_root()
    folder = tempfile.mkdtemp(prefix="gpupool-files-")

    def ctl(*args):
        done = subprocess.run([os.environ["GP_CTL"], *args, "-D", folder], capture_output=True, text=True, umask=0o022,
                              env=base_environment(), timeout=PATIENCE, check=False)
        require(done.returncode == 0, f"{args}: {done}")
        return done.stdout

    try:
        group = pwd.getpwnam(OTHER).pw_gid
        os.chown(folder, 0, group)
        os.chmod(folder, 0o2750)
        ctl("cert", "init", "127.0.0.1")
        said = ctl("token", "create", "alice", "-o", f"{folder}/alice.token")
        for name, mode in (("server.key", 0o640), ("tokens", 0o640), ("ca.key", 0o600), ("alice.token", 0o600)):
            status = os.stat(f"{folder}/{name}")
            require(stat.S_IMODE(status.st_mode) == mode, f"{name} has the mode {status.st_mode:o}")
        with Daemon("--listen", "tls://127.0.0.1:0", "--user", OTHER,
                    env={"CONFIGURATION_DIRECTORY": folder}) as daemon:
            address = re.search(r"^listening on (tls://\S+)$", read_file(daemon.out_path), re.M)[1]
            token = {"GPUPOOL_TOKEN_FILE": f"{folder}/alice.token"}
            run("vectoradd", remote=address, env=token).expect(out="vectoradd: ok\n")
            ctl("cert", "init", "127.0.0.1", "--force")
            os.kill(daemon.pid, signal.SIGHUP)
            daemon.wait_for_log("is active")
            run("vectoradd", remote=address, env=token).expect(out="vectoradd: ok\n")
            # A token file that the daemon cannot read does not decide about a token.
            os.chmod(f"{folder}/tokens", 0o600)
            for _again in range(2):
                result = run("vectoradd", remote=address, env=token)
                require(result.status == 1 and "cannot read its token file" in result.err, f"a token that is not known: {result}")
            time.sleep(1.5)
            require(len(re.findall(r"token file not readable: .*tokens: Permission denied", daemon.log())) == 1, daemon.log())
            os.chmod(f"{folder}/tokens", 0o640)
            run("vectoradd", remote=address, env=token).expect(out="vectoradd: ok\n")
            ctl("token", "revoke", re.search(r"token (\w+) of tenant", said)[1])
            result = run("vectoradd", remote=address, env=token)
            require(result.status == 1 and "has been revoked" in result.err, f"the token still holds: {result}")
            require("changes are not noticed" not in daemon.log() and "certificate not readable" not in daemon.log(), "something was unreadable")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@case("a daemon that could not notice a revoked token does not start, and reports the remedy")
def _():
    need_root()
    with tempfile.TemporaryDirectory(prefix="gpupool-files-") as folder:
        os.chmod(folder, 0o755)
        subprocess.run([os.environ["GP_CTL"], "token", "create", "alice", "-D", folder], env=base_environment(),
                       stdout=subprocess.DEVNULL, timeout=PATIENCE, check=True)
        done = subprocess.run([os.environ["GP_DAEMON"], "--listen", "127.0.0.1:0", "--admin-socket", "off", "--user", OTHER,
                               "--tokens", f"{folder}/tokens", *driver_options(user=None)], capture_output=True,
                              text=True, env=base_environment(), timeout=PATIENCE, check=False)
        require(done.returncode == 1 and f"gpupoold: {folder}/tokens: Permission denied: the daemon's user, {OTHER}, needs read access"
                in done.stderr and f"chgrp {grp.getgrgid(pwd.getpwnam(OTHER).pw_gid).gr_name} and chmod" in done.stderr,
                f"{done}")


# The files that programs look up in /etc, for a folder in its place.
LOOKED_UP = ("group", "hosts", "ld.so.cache", "nsswitch.conf", "passwd")


def on_a_fresh_machine(function):
    """Runs it in a process for which /etc has what a package brings, the user gpupool, and nothing of ours."""
    libc = ctypes.CDLL(None, use_errno=True)
    with tempfile.TemporaryDirectory(prefix="gpupool-etc-") as etc:
        os.chmod(etc, 0o755)
        for name in LOOKED_UP:
            if os.path.exists(f"/etc/{name}"):
                shutil.copyfile(f"/etc/{name}", f"{etc}/{name}")
        for name, line in (("passwd", "gpupool:x:61234:61234::/nonexistent:/bin/false\n"), ("group", "gpupool:x:61234:\n")):
            text = "".join(l for l in read_file(f"/etc/{name}").splitlines(True) if not l.startswith("gpupool:"))
            with open(f"{etc}/{name}", "w", encoding="utf-8") as file:
                file.write(text + line)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                # CLONE_NEWNS; MS_REC | MS_PRIVATE; MS_BIND.
                if libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x44000, None) \
                        or libc.mount(etc.encode(), b"/etc", None, 0x1000, None):
                    status = 77
                else:
                    function()
                    status = 0
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status == 77:
        raise Skip("there can be no /etc of its own here")
    require(status == 0, "it went wrong there: see standard error")


def follow_the_readme():
    def ctl(*args):
        done = subprocess.run([os.environ["GP_CTL"], *args], capture_output=True, text=True, umask=0o022,
                              env={**base_environment(), "CONFIGURATION_DIRECTORY": ""}, timeout=PATIENCE, check=False)
        require(done.returncode == 0, f"{args}: {done}")
        return done.stdout

    with tempfile.TemporaryDirectory(prefix="gpupool-files-") as folder:
        ctl("cert", "init", "127.0.0.1")
        said = ctl("token", "create", "alice", "-o", f"{folder}/alice.token")
        status = os.stat("/etc/gpupool")
        require(stat.S_IMODE(status.st_mode) == 0o2750 and status.st_gid == 61234, f"{status}")
        with Daemon("--listen", "tls://127.0.0.1:0", env={"CONFIGURATION_DIRECTORY": ""}, user=None) as daemon:
            address = re.search(r"^listening on (tls://\S+)$", read_file(daemon.out_path), re.M)[1]
            require("running as user gpupool" in daemon.log() and "warning" not in daemon.log(), daemon.log())
            token = {"GPUPOOL_TOKEN_FILE": f"{folder}/alice.token"}
            program = Program("sleeper", ["-ms=60000"], address, env=token)
            program.wait_for_output("running")
            ctl("token", "revoke", re.search(r"token (\w+) of tenant", said)[1])
            result = program.finish()
            require(result.status == 1 and "(810)" in result.out, f"expected error 810: {result}")
            result = run("vectoradd", remote=address, env=token)
            require(result.status == 1 and "has been revoked" in result.err, f"the token still holds: {result}")


@case("README's first lines work for root where the package's user is, and so does taking a token back")
def _():
    need_root()
    on_a_fresh_machine(follow_the_readme)


@case("a user that is none, or that one cannot become, is refused")
def _():
    for name, text in (("no-such-user-here", "unknown user"), *([] if os.geteuid() == 0 else [("root", "permission denied")])):
        done = subprocess.run([os.environ["GP_DAEMON"], "--listen", "127.0.0.1:0", "--admin-socket", "off", "--user", name],
                              capture_output=True, text=True, env=base_environment(), timeout=PATIENCE, check=False)
        require(done.returncode == 1 and text in done.stderr, f"{name}: {done}")


@case("no process of the daemon can be dumped, for any user that starts it")
def _():
    with Daemon() as daemon:
        for pid in [daemon.pid, *daemon.workers()]:
            check_hidden(pid)


@contextlib.contextmanager
def service_manager():
    """Its socket, which takes few messages, and where that is."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        path = os.path.join(folder, "notify")
        manager.bind(path)
        manager.settimeout(PATIENCE)
        yield manager, path


@case("the service manager is notified of the start, of watchdog signals, of a reload and of the end")
def _():
    with service_manager() as (manager, path):
        def wait_for(*states):
            for wanted in states:
                said = ""
                while not said.startswith(wanted):
                    require(said in ("", "WATCHDOG=1"), f"{said!r}, not {wanted!r}")
                    said = manager.recv(1000).decode()
            return said

        with Configured("", env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "900000"}) as daemon:
            wait_for("READY=1", "WATCHDOG=1", "WATCHDOG=1")
            daemon.reload("")
            require("\nMONOTONIC_USEC=" in wait_for("RELOADING=1"), "no time")
            wait_for("READY=1", "WATCHDOG=1")
            daemon.settle()
            daemon.stop()
            wait_for("STOPPING=1")


@case("a service manager that does not read for a time does not block the daemon, and gets the rest later")
def _():
    with service_manager() as (manager, path):
        # More signs of life than the socket takes, before the daemon is ready.
        slow = software_env(GPUPOOL_SOFT_START_MS="1000")
        with Configured("", env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "30000", **slow}) as daemon:
            daemon.wait_for_log(r"warning: cannot notify the service manager of READY=1: \$NOTIFY_SOCKET is full")
            daemon.run("vectoradd").expect(out="vectoradd: ok\n", err="")
            # It is waited for once, not at each word.
            begin = time.monotonic()
            daemon.reload("")
            require(time.monotonic() - begin < 1.5, "it is waited for again")
            require(manager.recv(1000) == b"WATCHDOG=1", "no sign of life")
            said = ""
            os.kill(daemon.pid, signal.SIGHUP)
            while not said.startswith("RELOADING=1"):
                said = manager.recv(1000).decode()
            while said != "READY=1":
                said = manager.recv(1000).decode()


@contextlib.contextmanager
def broken_driver():
    """An environment in which the daemon finds a libcuda.so.1 that is not NVIDIA's driver, and the software device."""
    if not os.environ["GP_DRIVER"]:
        raise Skip("needs the software device")
    with tempfile.TemporaryDirectory(prefix="gpupool-driver-") as folder:
        shutil.copyfile(os.environ["GP_STRANGER"], f"{folder}/libcuda.so.1")
        path = ":".join(filter(None, (folder, os.environ.get("GP_LIBRARIES"))))
        yield {"LD_LIBRARY_PATH": path, "GPUPOOL_SOFT_DRIVER": os.environ["GP_DRIVER"]}


def refuse_to_start(env, *options):
    command = [os.environ["GP_DAEMON"], "--listen", "127.0.0.1:0", "--admin-socket", "off", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE,
                          env={**base_environment(), "CONFIGURATION_DIRECTORY": "/nonexistent", **env})
    require(done.returncode == 1 and re.search(r"^gpupoold: no working NVIDIA driver \(libcuda\.so\.1: .+\), and the software device is off: "
                                               r"repair the driver \(nvidia-smi\), or set software-device = on$", done.stderr, re.M), f"{done}")


@case("without a working NVIDIA driver the daemon serves the software device with a warning, or reports the error and ends")
def _():
    off, on = ({"GPUPOOL_SOFTWARE_DEVICE": word} for word in ("off", "on"))
    warned = r"warning: no working NVIDIA driver \(libcuda\.so\.1: .+\): kernels run on the CPU, by the software device \S+; --software-device=off forbids it$"
    with broken_driver() as env, tempfile.TemporaryDirectory(prefix="gpupool-files-") as folder:
        for word in ("on", "off"):
            with open(f"{folder}/{word}", "w", encoding="ascii") as file:
                file.write(f"[daemon]\nsoftware-device = {word}\n")
        # The command line, then the configuration, then the environment.
        for given, options in (({}, ["--software-device=off"]), ({}, ["--config", f"{folder}/off"]), (off, []), (on, ["--config", f"{folder}/off"]),
                               (on, ["--config", f"{folder}/on", "--software-device=off"])):
            refuse_to_start({**env, **given}, *options)
        for given, options in (({}, []), (off, ["--config", f"{folder}/on"]), (off, ["--config", f"{folder}/off", "--software-device=on"])):
            with Daemon(*options, driver="", env={**env, **given}) as daemon:
                daemon.wait_for_log(warned)
                daemon.check_works()
        # A driver that is named is what the operator wants.
        with Daemon("--software-device=off", env=off) as daemon:
            require("no working NVIDIA driver" not in daemon.log(), daemon.log())
            daemon.check_works()
        done = subprocess.run([os.environ["GP_DAEMON"]], capture_output=True, text=True, check=False, timeout=PATIENCE,
                              env={**base_environment(), "GPUPOOL_SOFTWARE_DEVICE": "maybe"})
        require(done.returncode == 1 and done.stderr == "gpupoold: GPUPOOL_SOFTWARE_DEVICE=maybe: neither on nor off\n", f"{done}")


@case("the software device in a folder that the daemon's user may not enter is named with the user")
def _():
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    with broken_driver() as env, tempfile.TemporaryDirectory(prefix="gpupool-driver-") as folder:
        shutil.copy(os.environ["GP_DAEMON"], f"{folder}/gpupoold")
        shutil.copy(os.environ["GP_DRIVER"], f"{folder}/libcuda-soft.so")
        done = subprocess.run([f"{folder}/gpupoold", "--listen", "127.0.0.1:0", "--admin-socket", "off", "--user", OTHER], capture_output=True,
                              text=True, check=False, timeout=PATIENCE, env={**base_environment(), **env, "GPUPOOL_SOFT_DRIVER": ""})
        require(done.returncode == 1 and f"gpupoold: {folder}/: Permission denied: the daemon's user, {OTHER}, must read the software "
                "device there: --user names another (and before that, libcuda.so.1: " in done.stderr, f"{done}")


@case("the unit names gpupoold.conf, which the package puts there, and does not serve the software device by itself")
def _():
    unit = read_file(os.environ["GP_SERVICE"])
    require(re.search(r"^ExecStart=\S+/gpupoold --config /etc/gpupool/gpupoold\.conf ", unit, re.M), unit)
    require(re.search(r"^Environment=GPUPOOL_SOFTWARE_DEVICE=off$", unit, re.M), unit)
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    if not os.path.exists(os.path.join(root, "scripts", "gpupoold.tmpfiles.in")):
        raise Skip("the sources are not here")
    require("\nC /etc/gpupool/gpupoold.conf 0640 root gpupool - @DATADIR@/gpupool/gpupoold.conf\n"
            in read_file(os.path.join(root, "scripts", "gpupoold.tmpfiles.in")), "nothing copies it")
    # As it is installed it changes nothing.
    lines = [line for line in read_file(os.path.join(root, "server", "gpupoold.conf")).splitlines() if line and line[0] not in "#["]
    require(not lines, f"{lines}")


class Unit:
    """The unit as it is installed, with the daemon that was built."""

    def __enter__(self):
        if not shutil.which("systemd-analyze"):
            raise Skip("there is no systemd-analyze")
        self.folder = tempfile.mkdtemp(prefix="gpupool-unit-")
        self.path = os.path.join(self.folder, "gpupoold.service")
        text = read_file(os.environ["GP_SERVICE"])
        require(len(re.findall(r"^ExecStart=\S*/gpupoold ", text, re.M)) == 1, "no line that starts the daemon")
        with open(self.path, "w", encoding="ascii") as file:
            file.write(re.sub(r"^ExecStart=\S+", "ExecStart=" + os.environ["GP_DAEMON"], text, flags=re.M))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def analyze(self, *args):
        done = subprocess.run(["systemd-analyze", *args, self.path], capture_output=True, text=True,
                              env={**base_environment(), "SYSTEMD_LOG_LEVEL": "info"}, timeout=PATIENCE, check=False)
        return done.returncode, done.stdout + done.stderr


@case("the unit is one that systemd understands")
def _():
    with Unit() as unit:
        status, said = unit.analyze("verify", "--man=no", "--recursive-errors=no")
        said = "\n".join(line for line in said.splitlines() if "gpupoold" in line)
        require(status == 0 and not said, f"status {status}: {said}")


@case("the unit's sandbox is tight")
def _():
    with Unit() as unit:
        status, said = unit.analyze("security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager")
        if "unrecognized option" in said or "Unknown command" in said:
            raise Skip("this systemd-analyze looks at running units only")
        found = re.search(r"exposure level for gpupoold\.service: ([0-9.]+)", said)
        require(found, said)
        require(status == 0 and float(found[1]) <= EXPOSURE / 10, f"exposure {found[1]}:\n{said}")


if __name__ == "__main__":
    raise SystemExit(main())
