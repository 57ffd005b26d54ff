# SPDX-License-Identifier: Apache-2.0
"""Harness of the integration tests: starts daemons and programs, runs test cases, and prints TAP.

The environment names the files under test: GP_DAEMON, GP_DRIVER (the software device; empty: the machine's
own driver, on which bench/suites.py runs these tests), GP_CLIENT (the folder of libcuda.so.1), GP_APPS
(the folder of the programs), GP_SANITIZE (meson's b_sanitize), and GP_LIBRARIES, folders of libraries
that the machine may not have.
A test file defines cases with @case("a sentence that is true if the test passes") and ends with main().
"""
import concurrent.futures
import ctypes
import glob
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

SANITIZER = os.environ.get("GP_SANITIZE", "none")
SANITIZED = SANITIZER != "none"
DRIVER = os.environ.get("GP_DRIVER", "")
SOFTWARE = DRIVER != ""
# Everything is slower under sanitizers, and the machine may be busy. An emulated processor is slower still.
PATIENCE = int(os.environ.get("GP_PATIENCE", 120 if SANITIZED else 60))
# Of the sanitizers and of assert(); a kernel's assert() has other quotes.
REPORTS = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|Assertion `[^`\n]*' failed")
# The thread sanitizer waits at the end of each process for the other threads: a second, unless set.
THREADS_END = "atexit_sleep_ms=100"
# Threads that a driver starts when they are first needed, and keeps.
DRIVER_THREADS = (os.cpu_count() or 1) + 2
# Descriptors, likewise: NVIDIA's driver opens its device once more, with an eventfd, at the first of some calls.
DRIVER_DESCRIPTORS = 2 if os.path.exists("/dev/nvidiactl") else 0
# Variables of the caller's environment that programs and daemons get.
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TERM", "USER", "TMPDIR", "QEMU_LD_PREFIX")


# Folders of the machine that a daemon or a client of this machine uses.
MACHINE_FOLDERS = ("/etc/gpupool", "/run/gpupool", "/var/lib/gpupool", "/var/cache/gpupool")


def hide_machine():
    """Mounts empty folders over those of the machine, for this process and its children. Returns whether it could."""
    if os.geteuid() != 0:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    try:
        # CLONE_NEWNS.
        if libc.unshare(0x20000):
            return False
        # MS_REC | MS_PRIVATE: later mounts stay in this namespace. It fails if the root is not a mount point.
        if libc.mount(None, b"/", None, 0x44000, None):
            libc.setns(before, 0x20000)
            return False
        for folder in MACHINE_FOLDERS:
            if os.path.isdir(folder) and libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, b"mode=755"):
                return False
    finally:
        os.close(before)
    return True


HIDDEN = hide_machine()


class Failed(Exception):
    """A failed check; the text describes it."""


class Skip(Exception):
    """A case that cannot run here; the text is the reason."""


def require(condition, text):
    if not condition:
        raise Failed(text)


def wait_until(what, condition, seconds, each=0.02):
    """Polls condition() and returns its first true value. Fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        require(time.monotonic() < deadline, f"not within {seconds} s: {what}")
        time.sleep(each)


def base_environment():
    env = {name: os.environ[name] for name in KEPT if name in os.environ}
    # Device code that an earlier run has left would hide what loading does.
    env["GPUPOOL_CACHE_DIR"] = ""
    # The machine and its user may have pools of their own, which are none of these daemons and programs.
    if "GP_HOME_IS_OURS" not in os.environ:
        env["CONFIGURATION_DIRECTORY"] = env["XDG_CONFIG_HOME"] = "/nonexistent"
    if os.environ.get("GP_LIBRARIES"):
        env["LD_LIBRARY_PATH"] = os.environ["GP_LIBRARIES"]
    return env


def driver_options(driver=None, user="root"):
    """Options that select a daemon's driver ("": none) and user. A daemon started by root stays root, because the user
    gpupool of an installed package may not be able to read this tree. user=None: no option for the user."""
    library = DRIVER if driver is None else driver
    return [*(["--driver", library] if library else []), *(["--user", user] if user and os.geteuid() == 0 else [])]


def software_env(**env):
    """The environment of a daemon on the software device, which makes it similar to a GPU."""
    return env if SOFTWARE else {}


def need_software(env):
    """Skips a case whose environment configures the software device, if the tests run on another driver."""
    names = [name for name in env or {} if name.startswith("GPUPOOL_SOFT_")]
    if names and not SOFTWARE:
        raise Skip(f"needs the software device ({', '.join(names)})")


def sanitizer_library():
    """The library that a program without a sanitizer must preload for a client library with one."""
    name = "libtsan.so" if SANITIZER == "thread" else "libasan.so"
    found = subprocess.run(["gcc", "-print-file-name=" + name], capture_output=True, text=True, check=True)
    return os.path.realpath(found.stdout.strip())


def read_file(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class Result:
    """Output and exit status of a program; the status is negative for a signal."""

    def __init__(self, command, out, err, status, seconds):
        self.command, self.out, self.err, self.status, self.seconds = command, out, err, status, seconds

    def __str__(self):
        return f"{self.command} ended with {self.status} after {self.seconds:.1f} s\nstdout:\n{self.out}stderr:\n{self.err}"

    def expect(self, status=0, out=None, err=None):
        """Fails unless the status is `status` and the output is `out` and `err`, where given."""
        require(self.status == status, f"expected status {status}: {self}")
        require(out is None or self.out == out, f"expected output {out!r}: {self}")
        require(err is None or self.err == err, f"expected on stderr {err!r}: {self}")
        require(not REPORTS.search(self.err), f"a sanitizer's report: {self}")
        return self


def client_environment(remote=None):
    """Environment with which a program finds the client library, and the client the daemon."""
    env = {"LD_LIBRARY_PATH": ":".join(filter(None, (os.environ["GP_CLIENT"], os.environ.get("GP_LIBRARIES"))))}
    if remote is not None:
        env["REMOTE_GPU"] = remote
    if SANITIZED:
        env["LD_PRELOAD"] = sanitizer_library()
        env["ASAN_OPTIONS"] = "detect_leaks=0"
        env["UBSAN_OPTIONS"] = "print_stacktrace=1"
        env["TSAN_OPTIONS"] = THREADS_END
    if SANITIZER == "thread":
        # It does not see that a fault by userfaultfd orders what two threads do.
        env["GPUPOOL_MANAGED"] = "signal"
    return env


class Program:
    """A running program. Its output is written to files, so that it never blocks on a reader."""

    def __init__(self, name, args=(), remote=None, env=None, path=None, stdin=False):
        self.command = " ".join([name, *args])
        self.folder = tempfile.mkdtemp(prefix="gpupool-program-")
        self.out_path = os.path.join(self.folder, "out")
        self.err_path = os.path.join(self.folder, "err")
        full = {**base_environment(), **client_environment(remote), **(env or {})}
        self.begin = time.monotonic()
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen(
                [path or os.path.join(os.environ["GP_APPS"], name), *args],
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL, stdout=out, stderr=err, env=full,
                start_new_session=True)

    def out(self):
        return read_file(self.out_path)

    def err(self):
        return read_file(self.err_path)

    def wait_for_output(self, text, seconds=PATIENCE):
        wait_until(f"{self.command} prints {text!r}; it printed {self.out()!r} {self.err()!r}",
                   lambda: text in self.out() or self.process.poll() is not None, seconds)
        require(text in self.out(), f"{self.command} ended with {self.process.returncode} before it printed {text!r}:\n"
                f"{self.out()}{self.err()}")

    def kill(self):
        """Sends SIGKILL to the program, not to its children."""
        self.process.kill()
        self.process.wait()
        return self.finish()

    def finish(self, seconds=PATIENCE):
        """Waits for the program and returns its Result."""
        if self.process.stdin:
            self.process.stdin.close()
        hung = not wait_for_end(self.process, seconds)
        if hung:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        result = Result(self.command, self.out(), self.err(), self.process.returncode, time.monotonic() - self.begin)
        shutil.rmtree(self.folder, ignore_errors=True)
        require(not hung, f"hung: {result}")
        return result


def run(name, *args, remote=None, seconds=PATIENCE, **more):
    return Program(name, args, remote, **more).finish(seconds)


def children_of(pid):
    """Of all its threads; some may end while they are read."""
    children = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            children += map(int, read_file(path).split())
        except OSError:
            pass
    return children


def read_arguments(pid):
    """Command line of a process; until it executes a program, that of its parent. Empty: it has ended."""
    try:
        return read_file(f"/proc/{pid}/cmdline").split("\0")
    except OSError:
        return []


def family_seconds(pid):
    """Processor time of a process and its descendants, including those that have not been waited for."""
    try:
        fields = read_file(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return 0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + sum(map(family_seconds, children_of(pid)))


def wait_for_end(process, seconds):
    """Whether the process has ended. A slow machine is not a hang: while this test's processes use a tenth of a
    processor or more they get three times as long again."""
    for _ in range(4):
        before = family_seconds(os.getpid())
        try:
            process.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            if family_seconds(os.getpid()) - before < seconds / 10:
                return False
    return False


def count_entries(path):
    try:
        return len(os.listdir(path))
    except OSError:
        return -1


def count_descriptors(pid):
    """Number of descriptors, without those of NVIDIA's driver, which opens devices at any time, and without the files of tenants,
    of which the supervisor keeps one for each that has had a session."""
    count = 0
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                count += not os.readlink(f"/proc/{pid}/fd/{fd}").startswith(("/dev/nvidia", "/memfd:gpupool-tenant "))
            except OSError:
                count += 1
    except OSError:
        return -1
    return count


def count_tenant_files(pid):
    """Number of tenants that a supervisor knows and that have had a client."""
    count = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            count += os.readlink(f"/proc/{pid}/fd/{fd}").startswith("/memfd:gpupool-tenant ")
        except OSError:
            pass
    return count


class Daemon:
    """Context manager: gpupoold on a free port, with the driver under test.

    At the end of the context the daemon is stopped, and its exit status and log are checked. If the case has failed, the
    daemon is killed and its log is printed.  configured_socket: the configuration names the admin socket.  prefix: a
    command that executes the daemon.
    """

    def __init__(self, *args, env=None, driver=None, user="root", configured_socket=False, prefix=()):
        need_software(env)
        self.folder = tempfile.mkdtemp(prefix="gpupool-daemon-")
        self.out_path = os.path.join(self.folder, "out")
        self.log_path = os.path.join(self.folder, "log")
        full = base_environment()
        if SANITIZED:
            full["ASAN_OPTIONS"] = "detect_leaks=1:intercept_memmem=0"
            full["UBSAN_OPTIONS"] = "print_stacktrace=1"
            full["TSAN_OPTIONS"] = THREADS_END
        full.update(env or {})
        command = [*prefix, os.environ["GP_DAEMON"], "--listen", "127.0.0.1:0", "--print-address",
                   *driver_options(driver, user), *args]
        # The usual admin socket is one for all daemons of this user.
        if "--admin-socket" not in args and not configured_socket:
            command += ["--admin-socket", "off"]
        with open(self.out_path, "wb") as out, open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=full,
                                            start_new_session=True)
        self.pid = self.process.pid
        try:
            self.address = wait_until("the daemon prints its address", self.find_address, PATIENCE)
            self.port = int(self.address.rsplit(":", 1)[1])
            self.idle, self.described = self.usage(), self.describe()
        except BaseException:
            self.discard()
            raise

    def find_address(self):
        require(self.process.poll() is None, f"the daemon ended with {self.process.returncode}:\n{self.log()}")
        found = re.search(r"^listening on (tcp://127\.0\.0\.1:\d+)$", read_file(self.out_path), re.M)
        return found and found[1]

    def log(self):
        """Complete lines of the log. A line that crosses a page of the file may be visible in part."""
        text = read_file(self.log_path)
        return text[:text.rfind("\n") + 1]

    def workers(self):
        """Without those that have been forked and do not execute their program yet, and without the device monitor."""
        return [pid for pid in children_of(self.pid)
                if "--worker-fd" in (words := read_arguments(pid)) and "--monitor" not in words]

    def monitors(self):
        """The processes that watch the devices: one, and for a second the one that it replaces."""
        return [pid for pid in children_of(self.pid) if "--monitor" in read_arguments(pid)]

    def usage(self):
        """Numbers of descriptors and threads of the supervisor and its workers."""
        return [(count_descriptors(pid), count_entries(f"/proc/{pid}/task"))
                for pid in [self.pid, *self.workers()]]

    def take_idle(self):
        """Waits until the sessions so far have ended; their descriptors and threads define idle from here on."""
        def has_settled():
            opened, closed = (len(re.findall(rf"session \d+ .*: {what}", self.log())) for what in ("open from", "closed:"))
            seen, self.idle, self.described = self.idle, self.usage(), self.describe()
            return opened == closed and seen == self.idle

        # A session's resources are freed at about the time that its end is logged.
        wait_until("the daemon is idle", has_settled, 10, each=0.3)

    def describe(self):
        """One line for each descriptor and thread."""
        lines = []
        for pid in [self.pid, *self.workers()]:
            for kind, describe in (("task", lambda path: "thread " + read_file(f"{path}/comm").strip()), ("fd", os.readlink)):
                for number in sorted(os.listdir(f"/proc/{pid}/{kind}"), key=int):
                    try:
                        lines.append(f"{pid} {number} {describe(f'/proc/{pid}/{kind}/{number}')}")
                    except OSError:
                        pass
        return lines

    def describe_threads(self):
        """One line for each process: state and kernel function of its threads."""
        lines = []
        for pid in [self.pid, *children_of(self.pid)]:
            threads = []
            for task in sorted(os.listdir(f"/proc/{pid}/task") if os.path.exists(f"/proc/{pid}/task") else [], key=int):
                try:
                    state = read_file(f"/proc/{pid}/task/{task}/stat").rsplit(")", 1)[1].split()[0]
                    threads.append(f"{state} {read_file(f'/proc/{pid}/task/{task}/wchan')}")
                except OSError:
                    pass
            lines.append(f"process {pid}: {', '.join(threads)}")
        return "\n".join(lines)

    def is_idle(self):
        """A tenant's worker stays for a minute after its last session, and where there are tenants one more is in reserve.
        Fewer descriptors are as well: at its start a worker lists what it kept, which holds a folder open."""
        tenants = count_tenant_files(self.pid)
        (fds, threads), *workers = self.usage()
        (fds_before, threads_before), *workers_before = self.idle
        more = len(workers) - len(workers_before)
        configured = re.search(r": configuration: .*: \d+ tenants$| is active$", self.log(), re.M)
        apart = tenants > 1 or configured
        # A reload may also end the reserve.
        least_more, most_more = (1 - len(workers_before), tenants + 1) if apart else (0, 0)
        most = [max(numbers, default=0) for numbers in zip((7, 5), *workers_before)]
        return (least_more <= more <= most_more and fds <= fds_before + more and threads <= threads_before + DRIVER_THREADS
                and all(0 < fds <= most[0] + DRIVER_DESCRIPTORS and threads <= most[1] + DRIVER_THREADS
                        for fds, threads in workers))

    def settle(self, seconds=PATIENCE):
        """Waits until the daemon uses no more descriptors and threads than before its first client."""
        try:
            wait_until("the daemon is as idle as before its clients", self.is_idle, seconds)
        except Failed as failed:
            new = [line for line in self.describe() if line not in self.described]
            raise Failed("\n".join([f"{failed}\n(descriptors, threads) of supervisor and workers: {self.usage()}, "
                                    f"before: {self.idle}; new:", *new])) from None

    def open_sessions(self):
        """Open sessions of live workers, by the log. The session of a killed client lasts until its work has ended."""
        log, found = self.log(), set()
        for pid in self.workers():
            opened, closed = (set(re.findall(rf"gpupoold\[{pid}\]: \w+: session (\d+) .*: {what}", log))
                              for what in ("open from", "closed:"))
            found |= opened - closed
        return found

    def wait_for_ends(self):
        """Waits until all sessions or their workers have ended. settle() is less strict if a driver keeps threads."""
        wait_until("all sessions have ended", lambda: not self.open_sessions(), PATIENCE)

    def wait_for_log(self, pattern, seconds=PATIENCE, count=1):
        wait_until(f"the daemon's log has {pattern!r}",
                   lambda: len(re.findall(pattern, self.log(), re.M)) >= count, seconds)

    def run(self, name, *args, **more):
        return run(name, *args, remote=self.address, **more)

    def start(self, name, *args, **more):
        return Program(name, args, self.address, **more)

    def check_works(self):
        self.run("vectoradd").expect(out="vectoradd: ok\n")

    def stop(self, status=0):
        """Sends SIGTERM; fails unless the daemon exits with `status` and leaves no process."""
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failed("the daemon does not end on SIGTERM") from None
        require(self.process.returncode == status, f"the daemon ended with {self.process.returncode}")
        wait_until("no process of the daemon stays", self.group_is_gone, 60)
        self.check_log()
        self.check_sessions()

    def check_log(self):
        found = REPORTS.search(self.log())
        require(not found, f"the daemon's log has {found and found[0]!r}")

    def check_sessions(self):
        """Checks that the log has the end of each session exactly once."""
        # Unless it has a number in place of lines.
        if "further lines" not in self.log():
            opened, closed = (sorted(re.findall(rf"session (\d+) \([^()]*\): {what}", self.log()))
                              for what in ("open from", r"closed: [^;\n]*; "))
            require(opened == closed, f"the log has sessions {opened} open and {closed} closed")

    def group_is_gone(self):
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def discard(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind is None and self.process.returncode is None:
                self.settle()
                self.stop()
        except Exception as late:
            raise Failed(f"the daemon's log:\n{self.log()}{late}") from None
        else:
            if kind is not None and issubclass(kind, Exception) and not issubclass(kind, Skip):
                raise Failed(f"the daemon's log:\n{self.log()}{self.describe_threads()}\n"
                             f"{error if kind is Failed else traceback.format_exc()}") from None
        finally:
            self.discard()


class Configured(Daemon):
    """A daemon with `text` as its configuration. Unless the text names ready-workers, in a comment at least, there is no
    reserve: a worker that starts at some time would change the number of processes."""

    def __init__(self, text, *args, **more):
        need_software(more.get("env"))
        self.config = tempfile.NamedTemporaryFile("w", suffix=".conf", delete=False)
        self.write(text)
        super().__init__("--config", self.config.name, *args, **more)

    def write(self, text):
        if "ready-workers" not in text:
            section = "[daemon]\n"
            text = text if section in text else f"{text}\n{section}"
            text = text.replace(section, f"{section}ready-workers = 0\n", 1)
        with open(self.config.name, "w", encoding="ascii") as file:
            file.write(text)

    def reload(self, text, words="is active"):
        before = len(re.findall(words, self.log()))
        self.write(text)
        os.kill(self.pid, signal.SIGHUP)
        self.wait_for_log(words, count=before + 1)

    def discard(self):
        super().discard()
        os.unlink(self.config.name)


class Certificates:
    """Context manager: new certificates of a pool and of a foreign authority (tests/certificates.h)."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="gpupool-certificates-")
        subprocess.run([os.environ["GP_CERTIFICATES"], self.folder], check=True, env=base_environment())
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def file(self, name, kind="pem"):
        return os.path.join(self.folder, f"{name}.{kind}")

    def daemon(self, name="server", authority="ca"):
        """A daemon's options: its certificate, and the authority that it trusts."""
        return ["--certificate", self.file(name), "--key", self.file(name, "key"),
                "--client-authority", self.file(authority)]

    def client(self, name=None, authority="ca", **more):
        """A program's environment: its certificate, and the authority that it trusts."""
        env = {"GPUPOOL_TLS_CA": self.file(authority)}
        if name:
            env.update(GPUPOOL_TLS_CERT=self.file(name), GPUPOOL_TLS_KEY=self.file(name, "key"))
        return {**env, **more}


class Encrypted(Daemon):
    """A daemon with a second address, for TLS, which its programs use."""

    def __init__(self, certificates, *args, shows="server", **more):
        self.certificates = certificates
        super().__init__("--listen", "tls://127.0.0.1:0", *certificates.daemon(shows), *args, **more)
        self.clear_address, self.clear_port = self.address, self.port
        self.address = re.search(r"^listening on (tls://127\.0\.0\.1:\d+)$", read_file(self.out_path), re.M)[1]
        self.port = int(self.address.rsplit(":", 1)[1])

    def run(self, name, *args, env=None, **more):
        return super().run(name, *args, env=self.certificates.client() if env is None else env, **more)

    def start(self, name, *args, env=None, **more):
        return super().start(name, *args, env=self.certificates.client() if env is None else env, **more)


def as_tenant(name, **more):
    return {"GPUPOOL_TENANT": name, **more}


cases = []


def case(name):
    def add(function):
        cases.append((name, function))
        return function
    return add


def processor_seconds():
    """Processor time of this process and of the children that it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def judge(name, function):
    """Runs a case. Returns its TAP line without the number, its diagnostics, and (seconds, processor seconds)."""
    begin, used = time.monotonic(), processor_seconds()
    line, text = f"ok - {name}", ""
    try:
        function()
    except Skip as skip:
        line = f"ok - {name} # SKIP {skip}"
    except Failed as failed:
        line, text = f"not ok - {name}", str(failed)
    except Exception:
        line, text = f"not ok - {name}", traceback.format_exc()
    return line, text, (time.monotonic() - begin, processor_seconds() - used)


def judge_one(number):
    """Runs a case in a process that was forked after all cases were defined."""
    return judge(*cases[number])


def outcomes(chosen, at_once):
    """Results of judge() for all cases, in their order."""
    if at_once == 1 or len(chosen) < 2:
        yield from (judge(*cases[number]) for number in chosen)
        return
    with concurrent.futures.ProcessPoolExecutor(at_once, multiprocessing.get_context("fork")) as pool:
        yield from pool.map(judge_one, chosen)


def main(daemon=None, at_once=1):
    """Runs all cases, or those whose name contains the first argument, and prints TAP. Returns the exit status.

    daemon: a daemon that all cases use; its log is printed after the first failure.  at_once: number of cases that run at
    a time, each in a process; for files whose cases mostly wait and share nothing."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [number for number, (name, _) in enumerate(cases) if wanted in name]
    print(f"1..{len(chosen)}", flush=True)
    bad = 0
    for number, (line, text, seconds) in enumerate(outcomes(chosen, at_once), 1):
        failed = line.startswith("not")
        if failed and daemon:
            text = f"the daemon's log:\n{daemon.log()}{text}"
            daemon = None
        bad += failed
        for diagnostic in text.splitlines():
            print(f"# {diagnostic}")
        print(line.replace("ok - ", f"ok {number} - ", 1))
        print("# {:.1f} s, of processors {:.1f} s".format(*seconds), flush=True)
    return 1 if bad else 0
