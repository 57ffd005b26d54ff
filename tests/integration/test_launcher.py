# SPDX-License-Identifier: Apache-2.0
"""gpupool, the user's command: run, devices, check, env, login, and pools.conf."""
import json
import os
import pty
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import termios
import threading
import time

from harness import (PATIENCE, SOFTWARE, Certificates, Daemon, Encrypted, Program, Result, Skip, base_environment, case, client_environment,
                     count_descriptors, main, read_file, require, run, software_env, wait_until)
from pool import Pool, ctl, token_of

GPUPOOL = os.environ["GP_GPUPOOL"]
CLIENT = os.path.join(os.environ["GP_CLIENT"], "libcuda.so.1")
MIB = 1 << 20


class User:
    """A folder with a user's files; a context manager."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="gpupool-user-")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def file(self, name):
        return os.path.join(self.folder, "gpupool", name)

    def write(self, text, name="pools.conf", mode=0o644):
        os.makedirs(os.path.dirname(self.file(name)), exist_ok=True)
        with open(self.file(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.file(name), mode)
        return self.file(name)

    def env(self, **more):
        """An environment without the library's path: gpupool must find the library."""
        env = client_environment()
        del env["LD_LIBRARY_PATH"]
        if os.environ.get("GP_LIBRARIES"):
            env["LD_LIBRARY_PATH"] = os.environ["GP_LIBRARIES"]
        return {"XDG_CONFIG_HOME": self.folder, **env, **more}

    def start(self, *args, stdin=False, **env):
        return Program("gpupool", args, env=self.env(**env), path=GPUPOOL, stdin=stdin)

    def gpupool(self, *args, text=None, status=0, **env):
        """The output and the errors of gpupool; text: its standard input."""
        begin = time.monotonic()
        done = subprocess.run([GPUPOOL, *args], input=text, stdin=None if text is not None else subprocess.DEVNULL,
                              capture_output=True, text=True, env={**base_environment(), **self.env(**env)},
                              timeout=PATIENCE, check=False)
        return Result("gpupool " + " ".join(args), done.stdout, done.stderr, done.returncode,
                      time.monotonic() - begin).expect(status=status)

    def fails(self, says, *args, status=125, **more):
        """One line on standard error, and nothing else."""
        result = self.gpupool(*args, status=status, **more)
        require(result.err == f"gpupool: {says}\n" and result.out == "", f"expected {says!r}: {result}")


def app(name):
    return os.path.join(os.environ["GP_APPS"], name)


def parse_lines(result):
    """The lines of check, as {subject: [(verdict, text)]}."""
    found = {}
    for line in result.out.splitlines():
        match = re.fullmatch(r"(ok|note|wrong|-) +(\w+(?: \w+)?)  +(.*)", line)
        require(match, f"no line of check: {line!r}: {result}")
        found.setdefault(match[2], []).append((match[1], match[3]))
    return found


def expect_line(result, verdict, subject, pattern):
    lines = parse_lines(result).get(subject, [])
    require(any(found == verdict and re.search(pattern, text) for found, text in lines),
            f"expected {verdict} {subject} {pattern!r}, not {lines}: {result}")


def closed_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@case("a program runs on the first pool of pools.conf, on one that is named, on an address, on REMOTE_GPU's")
def _():
    with User() as user, Daemon() as daemon:
        user.write(f"# mine\n[pool lab]\nurl = {daemon.address}\n\n[pool off]\nurl = tcp://127.0.0.1:{closed_port()} ; unused\n")
        for args, env in (((), {}), (("-p", "lab"), {}), (("--pool=lab",), {"REMOTE_GPU": "tcp://nowhere.invalid"}),
                          (("-p", daemon.address), {}), ((), {"GPUPOOL_POOL": "lab"})):
            user.gpupool("run", *args, app("vectoradd"), **env).expect(out="vectoradd: ok\n", err="")
        # The environment has precedence over the file.
        user.gpupool("run", app("vectoradd"), REMOTE_GPU=daemon.address).expect(out="vectoradd: ok\n", err="")
        result = user.gpupool("run", "-p", "off", app("vectoradd"), status=1)
        require("Connection refused" in result.err, str(result))


@case("arguments, status and signals are the program's own")
def _():
    with User() as user:
        user.write("[pool lab]\nurl = tcp://127.0.0.1\n")
        script = "import os, sys; print(sys.argv[1:], flush=True); os._exit(7) if len(sys.argv) > 1 else input()"
        user.gpupool("run", sys.executable, "-c", script, "-p", "--", "a b", status=7).expect(
            status=7, out="['-p', '--', 'a b']\n", err="")
        user.gpupool("run", "--", sys.executable, "-c", script, "--gpus", "x", status=7).expect(
            status=7, out="['--gpus', 'x']\n", err="")
        program = user.start("run", sys.executable, "-c", script, stdin=True)
        program.wait_for_output("[]")
        # It is the very process that was started.
        require("python" in os.readlink(f"/proc/{program.process.pid}/exe"), "it is another process")
        program.process.send_signal(signal.SIGTERM)
        require(program.finish().status == -signal.SIGTERM, "not ended by the signal")


@case("a program that cannot be run ends with 127 or 126, an error of gpupool with 125, each with a line")
def _():
    with User() as user:
        user.write("[pool lab]\nurl = tcp://127.0.0.1\n")
        text = user.write("no program", "text", 0o644)
        user.fails("nosuchprogram: No such file or directory", "run", "nosuchprogram", status=127)
        # One of this folder, which PATH does not have.
        here = os.path.dirname(user.write("#!/bin/sh\nexit 3\n", "here", 0o755))
        done = subprocess.run([os.path.abspath(GPUPOOL), "run", "here"], cwd=here, env={**base_environment(), **user.env()},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False)
        require(done.returncode == 127 and
                done.stderr == "gpupool: here: No such file or directory; did you mean ./here, in this folder?\n", f"{done}")
        user.fails("/nowhere/at/all: No such file or directory", "run", "/nowhere/at/all", status=127)
        user.fails(f"{text}: Permission denied", "run", text, status=126)
        # Files that exist and cannot be started.
        script = user.write("#!/nowhere/python3\n", "script", 0o755)
        user.fails(f"{script} is a script of /nowhere/python3: No such file or directory", "run", script, status=127)
        expect_line(user.gpupool("check", script, status=1), "wrong", "program", f"{script} is a script of /nowhere/python3: No such file")
        with open(app("vectoradd"), "rb") as file:
            whole = file.read()
        for name, old, new, status, says in (
                ("noloader", b"/lib64/ld-linux", b"/lib64/no-linux", 127, "exists, but its loader does not (readelf -l {})"),
                # Its type is that of no program, and a shell would read it as its script.
                ("noprogram", whole[:17], whole[:16] + b"\x09", 126, ": Exec format error")):
            with open(user.file(name), "wb") as file:
                file.write(whole.replace(old, new, 1))
            os.chmod(user.file(name), 0o755)
            says = user.file(name) + ("" if says[0] == ":" else " ") + says.format(user.file(name))
            user.fails(says, "run", user.file(name), status=status, LD_PRELOAD="")
        user.fails(f"{user.folder}: Is a directory", "run", user.folder, status=126)
        user.fails("no program: gpupool run [OPTIONS] PROGRAM ARGUMENT...", "run")
        theirs = "; put the program's options after it: gpupool run [OPTIONS] -- PROGRAM ARGUMENT..."
        user.fails('unknown option --epochs of "gpupool run"' + theirs, "run", "--epochs=3", "train.py")
        user.fails('unknown option --mermory of "gpupool run"; did you mean --memory?', "run", "--mermory", "1G", "x")
        user.fails('unknown option -e of "gpupool run"' + theirs, "run", "-e", "x")
        user.fails("--memory: its value is missing", "run", "--memory")
        user.fails('--memory: "lots" is not a valid size: use 10G, 1.5G or 512M', "run", "--memory", "lots", "x")
        user.fails('--sm: "0" is not a valid percentage: use 50%', "run", "--sm", "0", "x")
        user.fails('--gpus: "0" is not a number of devices from 1 to 64', "run", "--gpus", "0", "x")
        user.fails('--wait: "soon" is not a valid time: use 90s, 10m or 2h, at most a week', "run", "--wait", "soon", "x")


@case("wrong words are named, with the right one where that can be guessed")
def _():
    with User() as user:
        user.fails('no command: "gpupool help" lists the commands')
        user.fails('unknown command "devcies"; did you mean devices? "gpupool help" lists the commands, and "gpupool run devcies" runs a '
                   "program", "devcies")
        user.fails('unknown command "train.py"; "gpupool help" lists the commands, and "gpupool run train.py" runs a program', "train.py")
        user.fails('unknown command "rum"; did you mean run?', "help", "rum")
        require("gpupool check" in user.gpupool("help").out and "--memory SIZE" in user.gpupool("help", "run").out, "no help")
        for args in (("--help",), ("-h",), ("-p", "lab", "--help"), ("--memory=1G", "-h")):
            require(user.gpupool("run", *args).out == user.gpupool("help", "run").out, f"{args}: another text")
        require(all(len(line) < 80 for name in ("run", "devices", "check", "env", "login", "logout", "pools", "help")
                    for line in user.gpupool("help", name).out.splitlines()), "a line of help is too long for a terminal")
        user.fails('unknown option "--pool": "gpupool help" lists the commands', "--pool", "lab")
        require(re.fullmatch(r"gpupool \d+\.\d+\.\d+\n", user.gpupool("--version").out), "no version")
        user.fails('no pool: add one with "gpupool login NAME tls://HOST < TOKEN_FILE", or set REMOTE_GPU', "run", "x")
        user.fails('unknown pool "lab": no pools.conf names any; add it with "gpupool login lab tls://HOST"', "run", "-p", "lab", "x")
        user.write("[pool lab]\nurl = tls://gpunode\n[pool cluster]\nurl = tls://head\n")
        user.fails('unknown pool "lba"; did you mean lab?', "run", "-p", "lba", "x")
        user.fails('unknown pool "xyz" (lab, cluster); an address begins with its scheme: tls://xyz', "devices", "-p", "xyz")


@case("a pools.conf that makes no sense is refused with its line and what would be right, and no token is shown")
def _():
    secret = "gpt_" + "a" * 10 + "_" + "b" * 52
    with User() as user:
        for text, line, says in (
                ("url = tls://gpunode\n", 1, '"url = ..." is before the first "[pool NAME]"'),
                ("[pool lab]\n\n[pool x]\nurl = tls://x\n", 1, '[pool lab] has no url: add "url = tls://HOST"'),
                ("[lab]\n", 1, '[lab]: unknown section; use "[pool NAME]"'),
                ("[pool lab\n", 1, '"[pool lab": a section is a line "[pool NAME]"'),
                ("[pool a/b]\n", 1, '"a/b" is not a valid pool name: use letters, digits, ".", "_", "-"'),
                ("[pool lab]\nurl = tls://a\nurl = tls://b\n", 3, "[pool lab] url: already set"),
                ("[pool lab]\nurl = tls://a\n[pool lab]\n", 3, "[pool lab]: duplicate of line 1"),
                ("[pool lab]\nurl = gopher://a\n", 2, '[pool lab] url: "gopher://a": unknown scheme "gopher" (known: tls, tcp, '
                                                      "unix, rdma, rdma+tcp)"),
                ("[pool lab]\nurl = tls://a,tls://b:70000\n", 2, '[pool lab] url: "tls://b:70000": the port 70000 is above 65535'),
                ("[pool lab]\nurl = tls://a\nmermory = 1G\n", 3, "[pool lab] mermory: unknown key; did you mean memory?"),
                ("[pool lab]\nurl = tls://a\nfoo = 1\n", 3, "[pool lab] foo: unknown key (url, token, authority, "
                                                            "certificate, key, crl, tenant, gpus, memory, sm, wait)"),
                ("[pool lab]\nurl = tls://a\nmemory = lots\n", 3, '[pool lab] memory: "lots" is not a valid size: use 10G, 1.5G '
                                                                  "or 512M"),
                ("[pool lab]\nurl = tls://a\ntoken =\n", 3, "[pool lab] token: its value is missing"),
                ("[pool lab]\nurl tls://a\n", 2, '"url tls://a" is neither KEY = VALUE nor [pool NAME]'),
                (f"[pool lab]\nurl = tls://a\ntoken = {secret}\n", 3, 'a token does not belong here: "gpupool login POOL" stores it '
                                                                      'in a file of its own, which "token =" may name'),
                (f"[pool lab]\nurl = tls://a\n{secret}\n", 3, 'a token does not belong here: "gpupool login POOL" stores it '
                                                              'in a file of its own, which "token =" may name')):
            path = user.write(text)
            for command in (("run", "true"), ("devices",), ("env",), ("login", "lab")):
                user.fails(f"{path}:{line}: {says}", *command, text="" if command[0] == "login" else None)
        path = user.write("[pool lab]\nurl = tls://a\ntoken = missing.token\n")
        user.fails(f'{path}:1: [pool lab] token: {user.file("missing.token")}: No such file or directory: "gpupool login" stores it '
                   "again", "run", "true")
        os.unlink(path)
        os.mkdir(path)
        user.fails(f"{path}: is a folder, not a file", "run", "true")
        os.rmdir(path)
        os.mkfifo(path)
        user.fails(f"{path}: is a pipe, not a file", "run", "true")


@case("login stores a token for its user alone, and a pool's address; run finds both, and prints no secret")
def _():
    with User() as user, Pool(config="[tenant alice]\nmemory = 64M\n") as pool:
        path, name = pool.create("alice")
        result = user.gpupool("login", "lab", pool.local, text=read_file(path))
        accepts = f"gpupool: {pool.local} accepts the token: tenant alice\n"
        require(result.out == "" and result.err == f"{accepts}gpupool: token {name} of pool lab is in {user.file('lab.token')}\n"
                f"gpupool: pool lab is in {user.file('pools.conf')}\n", str(result))
        require(stat.S_IMODE(os.stat(user.file("lab.token")).st_mode) == 0o600, "others can read it")
        require(read_file(user.file("lab.token")) == read_file(path) and
                read_file(user.file("pools.conf")) == f"[pool lab]\nurl = {pool.local}\n", read_file(user.file("pools.conf")))
        program = user.start("run", app("memhog"), "1", stdin=True)
        program.wait_for_output("free after")
        require("free before: 64 MiB" in program.out() and pool.credentials() == f"token {name}", program.out())
        program.finish().expect(err="")
        # Another one takes its place; another address does not.
        other, name = pool.create("alice")
        user.gpupool("login", "lab", text=read_file(other)).expect(
            err=f"{accepts}gpupool: token {name} of pool lab is in {user.file('lab.token')}\n")
        user.fails(f"pool lab already exists with another address: {pool.local} ({user.file('pools.conf')}:1); "
                   'change it there, take another name, or "gpupool logout lab" first', "login", "lab",
                   "tls://elsewhere", text="")
        user.gpupool("login", "far", "tls://far", "--no-check", text=read_file(other))
        require(read_file(user.file("pools.conf")).endswith("\n\n[pool far]\nurl = tls://far\n"), read_file(user.file("pools.conf")))


@case("login refuses an invalid token, and a token that everybody could see")
def _():
    secret = "gpt_" + "a" * 10 + "_" + "b" * 52
    with User() as user:
        user.write("[pool lab]\nurl = tls://gpunode\n")
        user.fails("no token on standard input: gpupool login POOL < TOKEN_FILE", "login", "lab", text="# nothing\n")
        user.fails("the first line of standard input is not a token (gpt_..., created by gpupoolctl token create)", "login", "lab",
                   text="hunter2\n")
        user.fails("standard input is larger than 1 MiB, so it is not a token file", "login", "lab", text="x" * (MIB + 1))
        seen = "a token on the command line is visible to all users: use gpupool login POOL < TOKEN_FILE"
        user.fails(seen, "login", secret)
        user.fails(seen, "login", "lab", secret)
        user.fails("usage: gpupool login [--no-check] POOL [ADDRESS] < TOKEN_FILE", "login")
        user.fails('unknown pool "lba"; did you mean lab?; with an address, login adds one', "login", "lba", text=secret)
        require(not os.path.exists(user.file("lab.token")), "something was stored")


@case("login leaves no half of a pool where the disk is full, and the terminal as it was when it is interrupted")
def _():
    secret = "gpt_" + "a" * 10 + "_" + "b" * 52
    with User() as user:
        conf = user.write("[pool lab]\nurl = tls://gpunode\n")
        before = read_file(conf)
        url = ",".join(f"tls://{letter * 200}.example" for letter in "abcdef")
        done = subprocess.run(["sh", "-c", f'ulimit -f 1; trap "" XFSZ; exec {GPUPOOL} login --no-check far {url}'], input=secret, capture_output=True,
                              text=True, check=False, env={**base_environment(), **user.env(LD_PRELOAD="")}, timeout=PATIENCE)
        require(done.returncode == 125 and f"gpupool: {conf}: File too large; nothing is stored\n" in done.stderr, f"{done}")
        require(read_file(conf) == before, read_file(conf))
        require(os.listdir(os.path.dirname(conf)) == ["pools.conf"], f"a token stays: {os.listdir(os.path.dirname(conf))}")
        # A file that cannot be written, for root neither.
        os.rename(conf, conf + ".mine")
        os.symlink("none/pools.conf", conf)
        user.fails(f"{conf}: No such file or directory; nothing is stored", "login", "--no-check", "far", "tls://far", text=secret)
        require(sorted(os.listdir(os.path.dirname(conf))) == ["pools.conf", "pools.conf.mine"], f"a token stays: {os.listdir(os.path.dirname(conf))}")
        os.rename(conf + ".mine", conf)
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(GPUPOOL, ["gpupool", "login", "lab"], {**base_environment(), **user.env()})
        said = b""
        while b"ends it): " not in said:
            said += os.read(terminal, 1000)
        wait_until("nothing is shown", lambda: not termios.tcgetattr(terminal)[3] & termios.ECHO, PATIENCE)
        os.write(terminal, b"gpt_\x03")
        wait_until("the terminal shows the input again", lambda: termios.tcgetattr(terminal)[3] & termios.ECHO, PATIENCE)
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        require(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, f"it ended with {status}")


@case("login stores no token that the pool refuses or that cannot be checked, unless an option requests it")
def _():
    with User() as user, Pool() as pool:
        path, name = pool.create("alice")
        user.gpupool("login", "lab", pool.local, text=read_file(path))
        before = {file: read_file(user.file(file)) for file in os.listdir(os.path.dirname(user.file("")))}
        wrong = "gpt_" + "a" * 10 + "_" + "b" * 52
        nothing = "nothing is stored (--no-check stores the token without a connection)"
        for args, says in ((("lab",), f"{pool.local}: refused: unknown token; {nothing}"),
                           (("bad", pool.local), f"{pool.local}: refused: unknown token; {nothing}"),
                           (("off", f"tls://127.0.0.1:{closed_port()}"), None)):
            result = user.gpupool("login", *args, text=wrong + "\n", status=125)
            require(result.err == f"gpupool: {says}\n" if says else
                    re.fullmatch(r"gpupool: .*: Connection refused; " + re.escape(nothing) + "\n", result.err), str(result))
            require({file: read_file(user.file(file)) for file in os.listdir(os.path.dirname(user.file("")))} == before, "something is stored")
        result = user.gpupool("login", "--no-check", "bad", pool.local, text=wrong + "\n")
        require("accepts" not in result.err and read_file(user.file("bad.token")) == wrong + "\n", str(result))


@case("a pool's token and authority are found by its address, with gpupool run and without it")
def _():
    with User() as user, tempfile.TemporaryDirectory(prefix="gpupool-files-") as folder:
        ctl("cert", "init", "localhost", "-D", folder)
        for tenant in ("alice", "bob"):
            ctl("token", "create", tenant, "-o", f"{folder}/{tenant}.token", "-D", folder)
        with Daemon("--listen", "tls://127.0.0.1:0", "--certificate", f"{folder}/server.pem", "--key", f"{folder}/server.key",
                    "--tokens", f"{folder}/tokens") as daemon:
            port = re.search(r"^listening on tls://127\.0\.0\.1:(\d+)$", read_file(daemon.out_path), re.M)[1]
            address = f"tls://localhost:{port}"
            user.write(f"[pool other]\nurl = tls://elsewhere\ntoken = {folder}/bob.token\n# far\n\n")
            user.gpupool("login", "lab", address, text=read_file(f"{folder}/alice.token"))
            direct = {"XDG_CONFIG_HOME": user.folder}
            bare = f"localhost:{port}"
            for found in (address, f"tls://LOCALHOST:{port}/0", bare):
                run("vectoradd", remote=found, env=direct).expect(out="vectoradd: ok\n", err="")
            for found in (address, bare):
                user.gpupool("run", "-p", found, app("vectoradd")).expect(out="vectoradd: ok\n", err="")
            expect_line(user.gpupool("check", "-p", bare), "ok", "credentials", "tenant alice, authenticated by token")
            # The token is never sent in clear, for any address of the pool.
            result = run("vectoradd", remote=f"tcp://{bare}", env=direct)
            require(result.status == 1 and "this address requires TLS: use tls:// instead of tcp://" in result.err, str(result))
            user.fails(f'unknown pool "elsewhere:1" (other, lab); an address begins with its scheme: tls://elsewhere:1', "env", "-p", "elsewhere:1")
            expect_line(user.gpupool("check", "-p", address), "ok", "token", r"^\w{10} of \S+/gpupool/lab\.token$")
            expect_line(user.gpupool("check", "-p", address), "ok", "credentials", "tenant alice, authenticated by token")
            require("tenant" in user.gpupool("devices", "-p", address, "--json").out, "no devices")
            # HOME takes the place of XDG_CONFIG_HOME, and the environment's token comes first.
            os.makedirs(f"{folder}/.config")
            os.symlink(os.path.dirname(user.file("")), f"{folder}/.config/gpupool")
            run("vectoradd", remote=address, env={"HOME": folder, "XDG_CONFIG_HOME": ""}).expect(out="vectoradd: ok\n", err="")
            expect_line(user.gpupool("check", "-p", address, GPUPOOL_TOKEN_FILE=f"{folder}/bob.token"), "ok", "credentials", "tenant bob, authenticated by token")
            # Another address is another pool.
            result = run("vectoradd", remote=f"tls://127.0.0.1:{port}", env=direct)
            require(result.status == 1 and "is signed by an unknown authority" in result.err, str(result))
            # A pool without a scheme.
            user.write(f"[pool lab]\nurl = {bare}\n")
            for found in (address, bare):
                run("vectoradd", remote=found, env=direct).expect(out="vectoradd: ok\n", err="")
            # Certificates of the section; a token that cannot be used is named with its pool.
            user.write(f"[pool lab]\nurl = tls://elsewhere,{address}\nauthority = {folder}/ca.pem\ntoken = ./mine.token\n")
            user.write(read_file(f"{folder}/alice.token").split("-----BEGIN")[0], "mine.token", 0o600)
            run("vectoradd", remote=address, env=direct).expect(out="vectoradd: ok\n", err="")
            user.write("hunter2\n", "mine.token", 0o600)
            result = run("vectoradd", remote=address, env=direct)
            require(result.status == 1 and "mine.token, the token of pool lab: its first line is not a token" in result.err, str(result))


@case("logout removes the token, and the address that login has added; pools lists what is there")
def _():
    with User() as user, Pool() as pool:
        path, name = pool.create("alice")
        result = user.gpupool("pools")
        require(result.out == "" and result.err == 'gpupool: no pools: add one with "gpupool login NAME tls://HOST < TOKEN_FILE"\n', str(result))
        own = "# mine\n\n[pool b]\nurl = tls://b\nmemory = 1G\n"
        conf = user.write(own)
        user.gpupool("login", "lab", pool.local, text=read_file(path))
        user.gpupool("login", "--no-check", "b", text=read_file(path))
        user.gpupool("login", "--no-check", "c", "tls://c", text=read_file(path))
        os.unlink(user.file("c.token"))
        rows = [line.split() for line in user.gpupool("pools").out.splitlines()]
        require(rows == [["POOL", "ADDRESS", "CREDENTIALS", "FILE"], ["b", "tls://b", "token", name, f"{conf}:3"],
                         ["lab", pool.local, "token", name, f"{conf}:7"], ["c", "tls://c", "no", "token", f"{conf}:10"]], f"{rows}")
        token = user.file("lab.token")
        user.gpupool("logout", "lab").expect(err=f"gpupool: removed {token}\ngpupool: pool lab is no longer in {conf}\n", out="")
        require(not os.path.exists(token) and read_file(conf) == own + "\n[pool c]\nurl = tls://c\n", read_file(conf))
        # The same name with another address.
        user.gpupool("login", "lab", pool.local, text=read_file(path))
        user.gpupool("logout", "tls://c").expect(err=f"gpupool: pool c is no longer in {conf}\n")
        require(read_file(conf) == own + f"\n[pool lab]\nurl = {pool.local}\n", read_file(conf))
        user.gpupool("logout", "b").expect(err=f"gpupool: removed {user.file('b.token')}\n"
                                           f"gpupool: pool b is kept in {conf}:3, which has settings that login did not write\n")
        require(read_file(conf) == own + f"\n[pool lab]\nurl = {pool.local}\n", read_file(conf))
        user.fails('unknown pool "lba"; did you mean lab?', "logout", "lba")
        user.fails("usage: gpupool logout POOL", "logout")
        user.gpupool("run", "-p", "lab", app("vectoradd")).expect(out="vectoradd: ok\n")


@case("logout and login leave what the user has written, and where a symbolic link leads")
def _():
    secret = "gpt_" + "a" * 10 + "_" + "b" * 52 + "\n"
    with User() as user:
        conf = user.write("# all of them\n[pool lab]\nurl = tls://a,tls://b\n# the next one\n[pool x]\nurl=tls://x\n"
                          "[pool y]\nurl = tls://b\n\ncrl = a\n")
        user.fails("tls://a is one of the addresses of pool lab (tls://a,tls://b), which has one token for all: "
                   '"gpupool logout lab" removes it', "logout", "tls://a")
        user.fails(f'b is an address of pool lab ({conf}:2) and of pool y ({conf}:7): "gpupool logout lab" or "gpupool logout y"', "logout", "b")
        user.fails('no pool has the address tls://tls://a: "gpupool pools" lists them', "logout", "tls://tls://a")
        user.fails('"tls://tls://a": there are two schemes', "login", "z", "tls://tls://a", text=secret)
        stays = "which has settings that login did not write"
        for name, line in (("x", 5), ("y", 7)):
            user.gpupool("logout", name).expect(err=f"gpupool: pool {name} is kept in {conf}:{line}, {stays}\n")
        user.gpupool("logout", "tls://a,tls://b").expect(err=f"gpupool: pool lab is no longer in {conf}\n")
        require(read_file(conf) == "# all of them\n# the next one\n[pool x]\nurl=tls://x\n[pool y]\nurl = tls://b\n\ncrl = a\n", read_file(conf))
        # Both files are links.
        real = user.write("[pool lab]\nurl = tls://a\n", "mine/conf")
        token = user.write("", "mine/token", 0o600)
        os.unlink(conf)
        os.symlink("mine/conf", conf)
        os.symlink("mine/token", user.file("lab.token"))
        user.gpupool("login", "--no-check", "lab", text=secret)
        user.gpupool("login", "--no-check", "z", "tls://z", text=secret)
        require(os.path.islink(user.file("lab.token")) and read_file(token) == secret and "[pool z]" in read_file(real), read_file(real))
        user.gpupool("logout", "lab").expect(err=f"gpupool: removed {user.file('lab.token')}\n"
                                             "gpupool: warning: the token is still in mine/token, the target of a symbolic link\n"
                                             f"gpupool: pool lab is no longer in {conf}\n")
        require(os.path.islink(conf) and read_file(real) == "[pool z]\nurl = tls://z\n" and read_file(token) == secret, read_file(real))


@case("a program reports an invalid pools.conf once, and two pools with its address")
def _():
    with User() as user, Pool() as pool:
        path, name = pool.create("alice")
        direct = {"XDG_CONFIG_HOME": user.folder}
        conf = user.write(f"[pool x]\nurl = tls://x\nmermory = 1G\nsecond\n[pool old]\nurl = {pool.local}\n[pool lab]\nurl = {pool.local}\n")
        user.write(read_file(path), "lab.token", 0o600)
        result = run("vectoradd", remote=pool.local, env=direct)
        result.expect(out="vectoradd: ok\n", err=f"gpupool: {conf}:3: [pool x] mermory: unknown key; did you mean memory?; skipped\n")
        user.write(f"[pool old]\nurl = {pool.local}\n[pool lab]\nurl = {pool.local}\n")
        user.write(read_file(path), "old.token", 0o600)
        result = run("vectoradd", remote=pool.local, env=direct)
        both = f"pool old ({conf}:1) and pool lab ({conf}:3) both have this address, each with credentials of its own"
        require(result.status == 1 and both in result.err, str(result))
        expect_line(user.gpupool("check", "-p", pool.local, status=1), "wrong", "token", re.escape(both))
        user.gpupool("run", "-p", "lab", app("vectoradd")).expect(out="vectoradd: ok\n", err="")


@case("a pool removes another pool's credentials from the environment, and reports a removed token")
def _():
    with User() as user:
        user.write("[pool lab]\nurl = tls://gpunode\n")
        others = {"GPUPOOL_TOKEN_FILE": "/others.token", "GPUPOOL_TLS_CERT": "/c", "GPUPOOL_TLS_KEY": "/k", "GPUPOOL_TENANT": "bob"}
        result = user.gpupool("env", **others)
        require([line for line in result.out.splitlines() if line.startswith("unset")] ==
                ["unset GPUPOOL_TOKEN_FILE", "unset GPUPOOL_TLS_CERT", "unset GPUPOOL_TLS_KEY", "unset GPUPOOL_TENANT"], str(result))
        require(result.err == 'gpupool: warning: GPUPOOL_TOKEN_FILE=/others.token ignored: not known to be a token of pool lab; "gpupool login '
                'lab < FILE" stores it for the pool\n', str(result))
        # An address of the command line brings none, so the environment's are meant.
        require("unset" not in user.gpupool("env", "-p", "tls://gpunode", **others).out, "they were taken away")


@case("env prints values that a shell reads correctly, with any characters in them")
def _():
    with User() as user, Daemon() as daemon:
        user.write(f"[pool lab]\nurl = {daemon.address}\n")
        out = user.gpupool("env", "--memory", "1.5G", "--sm", "50%", "--gpus", "2", "--wait", "10m").out
        for line in ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT='*=1536M'", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE='50.00'",
                     "CUDA_VISIBLE_DEVICES='0,1'", "GPUPOOL_WAIT='10m'", f"REMOTE_GPU='{daemon.address}'"):
            require(f"export {line}\n" in out, f"no {line}: {out}")
        require("CUDA_VISIBLE_DEVICES='2,0'" in user.gpupool("env", "--gpus", "2", CUDA_VISIBLE_DEVICES="2,0,1").out, "not the first two")
        odd = ":".join(filter(None, [base_environment().get("LD_LIBRARY_PATH"), f"{user.folder}/it's; $(touch {user.folder}/bad)"]))
        shell = subprocess.run(["sh", "-c", f'eval "$({GPUPOOL} env)" && printf %s "$LD_LIBRARY_PATH" && {app("vectoradd")}'],
                               capture_output=True, text=True, check=False,
                               env={**base_environment(), **user.env(LD_LIBRARY_PATH=odd)})
        require(shell.returncode == 0 and shell.stdout.endswith(f":{odd}vectoradd: ok\n"), f"{shell}")
        require(not os.path.exists(f"{user.folder}/bad"), "the shell has run what was a path")
        user.fails('"train.py": env takes no program; gpupool run train.py runs it', "env", "train.py")


@case("--memory and --sm limit the program; one line reports a request for more GPUs than there are")
def _():
    with User() as user, Daemon() as daemon:
        user.write(f"[pool lab]\nurl = {daemon.address}\nmemory = 128M\n")
        for args, size in (((), 128), (("--memory", "64M"), 64)):
            program = user.start("run", *args, app("memhog"), "1", stdin=True)
            program.wait_for_output("free after")
            require(f"free before: {size} MiB" in program.out(), program.out())
            program.finish().expect(err="")
        program = user.start("run", "--sm", "50%", app("memhog"), "1", stdin=True)
        program.wait_for_output("free after")
        seen = json.loads(user.gpupool("devices", "--json").out)
        require(len(seen["sessions"]) == 1, f"{seen}")
        program.finish().expect(err="")
        result = user.gpupool("run", "--gpus", "2", app("vectoradd"))
        require(result.out == "vectoradd: ok\n" and result.err == "gpupool: CUDA_VISIBLE_DEVICES=0,1 (gpupool run --gpus sets it): the program sees 1 device "
                "of the pool's 1, counted from 0; the list ends at the first invalid entry\n", str(result))


@case("of a pool that is half there devices and check show what answers, and name what does not")
def _():
    with User() as user, Daemon() as daemon:
        gone = f"tcp://127.0.0.1:{closed_port()}"
        says = f"cannot connect to {gone}: Connection refused"
        whole = user.gpupool("devices", "-L", "-p", daemon.address).out
        for url in (f"{daemon.address},{gone}", f"{gone},{daemon.address}/0"):
            user.write(f"[pool both]\nurl = {url}\n")
            partly = (f'gpupool: {says} (run "gpupool check")\n'
                      "gpupool: incomplete: a program needs all daemons of the pool\n")
            user.gpupool("devices", "-L", status=1).expect(status=1, out=whole, err=partly)
            table = user.gpupool("devices", status=1).expect(status=1, err=partly).out
            require(f"{daemon.address}: tenant default, 0 sessions" in table and re.search(r"^ +0  \S", table, re.M), table)
            seen = json.loads(user.gpupool("devices", "--json", status=1).expect(status=1, err=partly).out)
            require({row["url"]: row["error"] for row in seen["daemons"]} == {daemon.address: None, gone: says} and
                    [row["url"] for row in seen["devices"]] == [daemon.address], f"{seen}")
            require(says in user.gpupool("run", app("vectoradd"), status=1).err, "run does not name it")
            result = user.gpupool("check", status=1)
            expect_line(result, "ok", "address", f"[12] of 2: {gone}$")
            expect_line(result, "wrong", "route", "Connection refused")
            expect_line(result, "ok", "credentials", "")
            expect_line(result, "wrong", "pool", "1 of 2 daemons can be used, but a program needs all of them")
            expect_line(result, "ok", "session", "a program sees 1 device$")
        seen = json.loads(user.gpupool("devices", "--json", "--pool", gone, status=125).expect(
            status=125, err=f'gpupool: {says} (run "gpupool check")\n').out)
        require(seen == {"daemons": [{"url": gone, "error": says}], "devices": [], "sessions": []}, f"{seen}")
        user.write(f"[pool both]\nurl = {daemon.address}/0,{daemon.address}/7\n")
        user.gpupool("devices", "-L", status=1).expect(
            status=1, out=whole, err=f"gpupool: {daemon.address} has no device 7, or none for tenant default\n" + partly.splitlines(True)[1])
        user.fails(f"{daemon.address} is named twice", "devices", "-p", f"{daemon.address}/0,{daemon.address}")
        other = f"tcp://127.0.0.1:{closed_port()}"
        user.gpupool("devices", "-p", f"{gone},{other}", status=125).expect(status=125, out="", err="".join(
            f'gpupool: cannot connect to {each}: Connection refused (run "gpupool check")\n' for each in (gone, other)))


@case("a program waits for a full pool with the reason and the time, at most for the given time")
def _():
    with User() as user, Daemon("--max-sessions", "1") as daemon:
        user.write(f"[pool lab]\nurl = {daemon.address}\n")
        first = daemon.start("memhog", "1", stdin=True)
        first.wait_for_output("free after")
        late = user.gpupool("run", "--wait", "8s", app("vectoradd"), status=1)
        require(re.fullmatch(r"gpupool: \S+: refused: no free session slot \(--max-sessions\); position 1 in the queue; waiting for a session slot for \d s, until "
                             r"\d\d:\d\d:\d\d at most \(GPUPOOL_WAIT\)\n"
                             r"gpupool: \S+: refused: no free session slot \(--max-sessions\); position 1 in the queue \(waited for 8 s: GPUPOOL_WAIT\)\n",
                             late.err) and late.seconds >= 8, str(late))
        second = user.start("run", "--wait", f"{PATIENCE}s", app("vectoradd"))
        wait_until("it waits", lambda: "waiting for a session slot" in second.err(), PATIENCE)
        first.finish().expect()
        result = second.finish().expect(out="vectoradd: ok\n")
        require(re.search(r"^gpupool: session slot available after \d+ s$", result.err, re.M), str(result))
        # A client that does not wait is refused at once.
        require("waiting" not in daemon.run("vectoradd").expect(err="").err, "it waited")


def hold_and_wait(user, daemon):
    """A program with the only session slot, and two that wait for it, whose requests the daemon keeps."""
    user.write(f"[pool lab]\nurl = {daemon.address}\n")
    holder = daemon.start("memhog", "1", stdin=True)
    holder.wait_for_output("free after")
    waiting = []
    for number in (1, 2):
        before = count_descriptors(daemon.pid)
        waiting.append(user.start("run", "--wait", f"{PATIENCE}s", app("memhog"), "1", stdin=True))
        wait_until(f"number {number} waits", lambda n=number: f"; position {n} in the queue; waiting" in waiting[n - 1].err(), PATIENCE)
        wait_until("its next request is kept", lambda n=before: count_descriptors(daemon.pid) > n, PATIENCE)
    return holder, waiting


@case("a free slot is reserved for the first client of the queue, and each client gets its position")
def _():
    with User() as user, Daemon("--max-sessions", "1") as daemon:
        holder, waiting = hold_and_wait(user, daemon)
        holder.finish().expect()
        # A later client does not get it, and neither does the second in the queue.
        late = daemon.run("vectoradd").expect(status=1)
        require("are reserved for queued clients\n" in late.err or "no free session slot" in late.err, str(late))
        waiting[0].wait_for_output("free after", PATIENCE)
        require("free after" not in waiting[1].out(), "the second came first")
        wait_until("the second is the first", lambda: "; position 1 in the queue; waiting" in waiting[1].err(), PATIENCE)
        waiting[0].finish().expect()
        waiting[1].wait_for_output("free after", PATIENCE)
        waiting[1].finish().expect()


@case("the daemon keeps the queue: no client waits for the slot of a killed one")
def _():
    with User() as user, Daemon("--max-sessions", "1") as daemon:
        holder, waiting = hold_and_wait(user, daemon)
        time.sleep(0.5)
        waiting[0].process.kill()
        waiting[0].finish()
        begin = time.monotonic()
        holder.finish().expect()
        waiting[1].wait_for_output("free after", PATIENCE)
        # Of one that has gone without a word the daemon would keep the place for twenty seconds.
        require(time.monotonic() - begin < 15, "the place was kept for the one that was killed")
        waiting[1].finish().expect()


@case("a client waits for a session slot through a drain and a restart, and 30 seconds for a daemon that has not started")
def _():
    with User() as user:
        local = f"unix://{user.folder}/run/gpupool.sock"
        with Pool("--listen", local) as pool:
            address = pool.address
            ctl("--socket", pool.socket, "drain")
            waiting = user.start("run", "-p", local, "--wait", f"{PATIENCE}s", app("vectoradd"))
            wait_until("it waits", lambda: "(gpupoolctl drain); waiting for a session slot" in waiting.err(), PATIENCE)
        wait_until("it waits on", lambda: re.search("cannot connect to .*; waiting for a session slot", waiting.err()), PATIENCE)
        late = user.start("run", "-p", address, "--wait", f"{PATIENCE}s", app("vectoradd"))
        wait_until("the other waits, too", lambda: "Connection refused; waiting for a session slot" in late.err(), PATIENCE)
        with Daemon("--listen", local, "--listen", address):
            for program in waiting, late:
                result = program.finish().expect(out="vectoradd: ok\n")
                require(re.search(r"^gpupool: session slot available after \d+ s$", result.err, re.M), str(result))
        # A mistake is not waited for.
        user.gpupool("run", "-p", "tcp://nowhere.invalid", "--wait", "1h", app("vectoradd"), status=1)


@case("two programs that wait for the same two daemons, named in two orders, get them one after the other")
def _():
    with User() as user, Daemon("--max-sessions", "1") as one, Daemon("--max-sessions", "1") as other:
        holders = [daemon.start("memhog", "1", stdin=True) for daemon in (one, other)]
        for holder in holders:
            holder.wait_for_output("free after")
        waiting = [user.start("run", "-p", ",".join(daemon.address for daemon in order), "--wait", f"{PATIENCE}s", app("vectoradd"))
                   for order in ((one, other), (other, one))]
        for program in waiting:
            wait_until("it waits", lambda p=program: "waiting for a session slot" in p.err(), PATIENCE)
        for holder in holders:
            holder.finish().expect()
        for program in waiting:
            program.finish().expect(out="vectoradd: ok\n")


@case("a client that waits for a session slot of its tenant does not block other tenants")
def _():
    with User() as user, Pool("--max-sessions", "3", config="[tenant alice]\nsessions = 1\n[tenant bob]\n") as pool:
        alice, _ = pool.create("alice")
        user.gpupool("login", "lab", pool.local, text=read_file(alice))
        first = user.start("run", app("memhog"), "1", stdin=True)
        first.wait_for_output("free after")
        second = user.start("run", "--wait", f"{PATIENCE}s", app("vectoradd"))
        wait_until("it waits", lambda: "refused: tenant alice has reached its limit of 1 sessions; position 1 in the queue; waiting for a session slot "
                   in second.err(), PATIENCE)
        # Between its requests, too, the administrator sees that it waits.
        for _ in range(20):
            row = json.loads(ctl("--socket", pool.socket, "tenant", "list", "--format=json"))[1]
            require((row["tenant"], row["sessions"], row["sessions_max"], row["clients_waiting"]) == ("alice", 1, 1, 1), f"{row}")
            require(json.loads(ctl("--socket", pool.socket, "status", "--format=json"))["clients_waiting"] == 1, "no client waits")
            time.sleep(0.1)
        for _ in range(2):
            pool.run("vectoradd", env={"GPUPOOL_TENANT": "bob"}).expect(out="vectoradd: ok\n", err="")
        first.finish().expect()
        second.finish().expect(out="vectoradd: ok\n")


@case("however many of a tenant wait for memory or for their own places, other tenants have the places that are free")
def _():
    for limit, more in (("", ("--memory", "512M")), ("sessions = 1\n", ())):
        with User() as user, Pool("--max-sessions", "4", config=f"[tenant alice]\n{limit}[tenant bob]\n",
                                  env=software_env(GPUPOOL_SOFT_MEMORY="512M")) as pool:
            alice, _ = pool.create("alice")
            user.gpupool("login", "lab", pool.local, text=read_file(alice))
            holder = user.start("run", app("memhog"), "1", stdin=True)
            holder.wait_for_output("free after")
            waiting = [user.start("run", "--wait", "1h", *more, app("vectoradd")) for _ in range(12)]
            for program in waiting:
                wait_until("it waits", lambda p=program: "waiting for a session slot" in p.err(), PATIENCE)
            for _ in range(6):
                pool.run("vectoradd", env={"GPUPOOL_TENANT": "bob"}).expect(out="vectoradd: ok\n", err="")
                time.sleep(0.3)
            for program in waiting:
                program.process.kill()
                program.finish()
            holder.finish().expect()


@case("with --wait, --memory waits until that part of the quota is free, and reserves it for one client at a time")
def _():
    with User() as user, Pool(config="[tenant alice]\nmemory = 128M\n[tenant bob]\n") as pool:
        alice, _ = pool.create("alice")
        user.gpupool("login", "lab", pool.local, text=read_file(alice))
        # The client does not wait for memory that the tenant can never have.
        user.gpupool("run", "--wait", "2s", "--memory", "1G", app("vectoradd"))
        first = user.start("run", "--wait", "2s", "--memory", "96M", app("memhog"), "1", stdin=True)
        first.wait_for_output("free after")
        late = user.gpupool("run", "--wait", "3s", "--memory", "64M", app("vectoradd"), status=1)
        require(re.fullmatch(r"(gpupool: \S+: refused: device 0 has 32 MiB of memory free, 64 MiB requested; position 1 in the "
                             r"queue; waiting for a session slot for \d s, until \d\d:\d\d:\d\d at most \(GPUPOOL_WAIT\)\n)"
                             r"gpupool: \S+: refused: .*; position 1 in the queue \(waited for 3 s: GPUPOOL_WAIT\)\n", late.err), str(late))
        # Without --wait a limit is a limit; less fits beside it.
        user.gpupool("run", "--memory", "64M", app("vectoradd"))
        second = user.start("run", "--wait", f"{PATIENCE}s", "--memory", "64M", app("vectoradd"))
        wait_until("it waits", lambda: "waiting for a session slot" in second.err(), PATIENCE)
        first.finish().expect()
        second.finish().expect(out="vectoradd: ok\n")
        seen = json.loads(user.gpupool("devices", "--json").out)["daemons"][0]
        require((seen["sessions"], seen["full"]) == (0, ""), f"{seen}")


@case("an unreadable token is named with its pool's line, an invalid one with the valid form, and no secret is shown")
def _():
    with User() as user, Daemon() as daemon:
        conf = user.write("")
        gone = user.file("gone.token")
        user.write(f"[pool lab]\nurl = {daemon.address}\ntoken = {gone}\n")
        for args in (("run", app("vectoradd")), ("env",), ("devices",), ("check",)):
            user.fails(f'{conf}:1: [pool lab] token: {gone}: No such file or directory: "gpupool login" stores it again', *args)
        secret = user.write("hunter2 is my password\n", "no.token", 0o600)
        for token, says in ((secret, "its first line is not a token (gpt_..., created by gpupoolctl token create)"),
                            (user.write("", "empty.token", 0o600), "the file is empty: it contains no token"),
                            (user.folder, "Is a directory")):
            user.write(f"[pool lab]\nurl = {daemon.address}\ntoken = {token}\n")
            result = user.gpupool("run", app("vectoradd"), status=1)
            require(result.err == f"gpupool: GPUPOOL_TOKEN_FILE={token}: {says}\n" and "hunter2" not in result.err + result.out, str(result))


@case("for a pool with one missing half the message names that half, and the other half keeps nothing")
def _():
    with User() as user, Daemon() as daemon:
        gone = f"tcp://127.0.0.1:{closed_port()}"
        for url in (f"{daemon.address},{gone}", f"{gone},{daemon.address}"):
            user.write(f"[pool both]\nurl = {url}\n")
            result = user.gpupool("run", app("vectoradd"), status=1)
            require(result.err == f"gpupool: cannot connect to {gone}: Connection refused\n", str(result))
        wait_until("no session is left", lambda: daemon.log().count("open from") == daemon.log().count("closed:"), PATIENCE)
        daemon.settle()


@case("devices shows GPUs, load, quota and the user's own sessions, without taking a place")
def _():
    with User() as user, Pool("--max-sessions", "2", config="[tenant alice]\nmemory = 64M\nsessions = 1\n[tenant bob]\n") as pool:
        alice, name = pool.create("alice")
        user.gpupool("login", "lab", pool.local, text=read_file(alice))
        other = pool.start("memhog", "1", stdin=True, env={"GPUPOOL_TENANT": "bob"})
        other.wait_for_output("free after")
        seen = json.loads(user.gpupool("devices", "--json").out)
        daemon, device = seen["daemons"][0], seen["devices"][0]
        require((daemon["tenant"], daemon["credentials"], daemon["sessions"], daemon["sessions_max"], daemon["full"]) ==
                ("alice", f"token {name}", 0, 1, ""), f"{seen}")
        require((daemon["sessions_all"], daemon["sessions_all_max"], seen["sessions"]) == (1, 2, []), f"{seen}")
        require((device["gpu"], device["sessions"], device["quota"], device["quota_used"]) == (0, 1, 64 * MIB, 0) and
                device["memory_used"] >= MIB and device["memory"] > 64 * MIB, f"{seen}")
        mine = user.start("run", app("memhog"), "1", stdin=True)
        mine.wait_for_output("free after")
        # Full, for the tenant and for the daemon: a query without a session still gets its reply.
        seen = json.loads(user.gpupool("devices", "--json").out)
        require(seen["daemons"][0]["full"] == "no free session slot (--max-sessions)", f"{seen}")
        own, = seen["sessions"]
        require((own["program"], own["pid"]) == ("memhog", mine.process.pid) and own["memory"] >= MIB, f"{seen}")
        table = user.gpupool("devices").out
        require(re.search(r"^unix://\S+: tenant alice, 1 session of at most 1; 2 of 2 of the daemon's session slots in use$", table, re.M) and
                re.search(r"^unix://\S+: new sessions are refused: no free session slot", table, re.M) and
                re.search(rf"^ +\d+  memhog +{mine.process.pid} ", table, re.M), table)
        require("bob" not in table, f"others are named: {table}")
        require(re.fullmatch(r"GPU 0: \S.* \(UUID: GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\)\n", user.gpupool("devices", "-L").out),
                "no list as nvidia-smi's")
        other.finish().expect()
        mine.finish().expect()
        result = user.gpupool("devices", "-p", f"tcp://127.0.0.1:{closed_port()}", status=125)
        require(result.err.endswith('Connection refused (run "gpupool check")\n'), str(result))


@case("a GPU that works is busy, and never above 100 %")
def _():
    with User() as user, Daemon() as daemon:
        user.write(f"[pool lab]\nurl = {daemon.address}\n")
        # On a busy machine the query may take longer than the kernel.
        for ms in 2000, 8000, 32000:
            sleeper = daemon.start("sleeper", f"-ms={ms}")
            sleeper.wait_for_output("running")
            seen = json.loads(user.gpupool("devices", "--json").out)["devices"][0]
            sleeper.finish().expect()
            if seen["sessions"] == 1:
                break
        require(0 <= seen["busy_percent"] <= 100 and seen["sessions"] == 1, f"{seen}")


@case("check goes from the configuration to the bandwidth, over TLS with a token, and all is well")
def _():
    with User() as user, tempfile.TemporaryDirectory(prefix="gpupool-files-") as folder:
        ctl("cert", "init", "localhost", "-D", folder)
        token = os.path.join(folder, "alice.token")
        ctl("token", "create", "alice", "-o", token, "-D", folder)
        with Daemon("--listen", "tls://127.0.0.1:0", "--certificate", f"{folder}/server.pem", "--key", f"{folder}/server.key",
                    "--tokens", f"{folder}/tokens") as daemon:
            port = re.search(r"^listening on tls://127\.0\.0\.1:(\d+)$", read_file(daemon.out_path), re.M)[1]
            user.gpupool("login", "lab", f"tls://localhost:{port}", text=read_file(token))
            result = user.gpupool("check", app("vectoradd"))
            require(not re.search("^wrong", result.out, re.M) and result.err == "", str(result))
            for subject, pattern in (("pool", r"pool lab of \S+pools\.conf:1: tls://localhost"), ("token", r"\w{10} of \S+lab\.token$"),
                                     ("name", r"localhost is .*127\.0\.0\.1"), ("route", r"port \d+ answers after \d+\.\d+ ms"),
                                     ("daemon", r"protocol \d+\.\d+, with TLS"), ("certificate", r"is for localhost, until \d{4}-\d\d-\d\d"),
                                     ("credentials", r"tenant alice, authenticated by token \w{10}"), ("versions", r"gpupool \S+ here, \S+ there"),
                                     ("clocks", r"agree \(\d s apart\)"), ("quota", r"GPU 0, .*: 0 B of your \S+ [GM]iB"),
                                     ("slots", "your tenant has 0 sessions, the daemon 0 of 256"), ("library", rf"{re.escape(CLIENT)}$"),
                                     ("session", r"opens in \d+\.\d ms; a program sees 1 device"),
                                     ("latency", r"a call that waits takes \d+\.\d+ ms"),
                                     ("bandwidth", r"\d+ MB/s to the GPU, \d+ MB/s back"),
                                     ("program", rf"vectoradd finds gpupool's {re.escape(CLIENT)}, by LD_LIBRARY_PATH")):
                # A busy machine's latency is worth a note.
                verdict = parse_lines(result).get(subject, [("", "")])[0][0] if subject == "latency" else "ok"
                expect_line(result, verdict, subject, pattern)
            expect_line(result, "note", "without run", "started by itself the program finds no|is not gpupool's")
            secret = token_of(token).split("_")[2]
            require(secret not in result.out, "the secret is shown")


@case("check names what is wrong, and what helps: name, route, who answers, TLS, token, places")
def _():
    with User() as user, Certificates() as certificates, Encrypted(certificates, "--max-sessions", "1") as daemon:
        def check(url, **env):
            return user.gpupool("check", "-p", url, status=1, **env)

        ca = {"GPUPOOL_TLS_CA": certificates.file("ca")}
        expect_line(check("tls://nowhere.invalid"), "wrong", "name", r"nowhere\.invalid: .*; check the name in the address")
        expect_line(check(f"tls://127.0.0.1:{closed_port()}", **ca), "wrong", "route",
                    r"port \d+: Connection refused; no daemon listens there: check the port")
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen()
            expect_line(check(f"tls://127.0.0.1:{deaf.getsockname()[1]}", **ca), "wrong", "daemon",
                        "no answer within 5 s: the daemon hangs or is very busy, or another program listens there; check its log")
            # A server with another reply, and one that sends nothing.
            with socket.create_server(("127.0.0.1", 0)) as other:
                threading.Thread(target=lambda: other.accept()[0].close(), daemon=True).start()
                expect_line(check(f"tls://127.0.0.1:{other.getsockname()[1]}", **ca), "wrong", "daemon", "is not gpupoold")
        expect_line(check(daemon.address.replace("tls", "tcp")), "wrong", "credentials", "this address requires TLS")
        expect_line(check(daemon.clear_address.replace("tcp", "tls"), **ca), "wrong", "daemon", "no TLS at this address")
        result = check(daemon.address)
        expect_line(result, "wrong", "credentials", "an unknown authority: .*GPUPOOL_TOKEN_FILE.*GPUPOOL_TLS_CA")
        expect_line(result, "-", "session", "not tried")
        bad = user.write("gpt_" + "a" * 10 + "_" + "b" * 52 + "\n", "bad.token", 0o600)
        expect_line(check(daemon.address, GPUPOOL_TOKEN_FILE=bad, **ca), "wrong", "credentials",
                    "unknown token; it is another pool's")
        os.chmod(bad, 0o644)
        expect_line(check(daemon.address, GPUPOOL_TOKEN_FILE=bad, **ca), "wrong", "token", "others can read it; chmod 600")
        first = daemon.start("memhog", "1", stdin=True)
        first.wait_for_output("free after")
        expect_line(check(daemon.address, **ca), "wrong", "slots",
                    r'no free session slot \(--max-sessions\); "gpupool run --wait 10m" waits for a session slot')
        first.finish().expect()


@case("check names a certificate's other names and its dates")
def _():
    with User() as user, Certificates() as certificates:
        ca = {"GPUPOOL_TLS_CA": certificates.file("ca")}
        for shows, pattern in (("elsewhere", r"is for \S+.*, not for 127\.0\.0\.1; use one of these names"),
                               ("old", r"has expired: \d{4}-\d\d-\d\d \d\d:\d\d, and it is \d{4}-")):
            with Encrypted(certificates, shows=shows) as daemon:
                expect_line(user.gpupool("check", "-p", daemon.address, status=1, **ca), "wrong", "certificate", pattern)


def compiled(folder, name, *options):
    path = os.path.join(folder, name)
    done = subprocess.run(["gcc", "-x", "c", "-", "-o", path, *options], input="int main(void) { return 0; }", text=True,
                          capture_output=True, check=False)
    if done.returncode:
        raise Skip(f"gcc {' '.join(options)}: {done.stderr}")
    return path


@case("run and check see that a program is static, runs with other rights, or finds another libcuda")
def _():
    with User() as user, Daemon() as daemon:
        user.write(f"[pool lab]\nurl = {daemon.address}\n")
        fixed = compiled(user.folder, "fixed", "-static")
        says = f"{fixed}.*linked statically, libc included, and looks for no library"
        expect_line(user.gpupool("check", fixed, status=1), "wrong", "program", says)
        require(re.fullmatch(f"gpupool: warning: {fixed} finds no GPU of the pool: it is linked statically.*\n",
                             user.gpupool("run", fixed, LD_PRELOAD="").err), "no warning")
        other = os.path.join(user.folder, "driver")
        os.mkdir(other)
        compiled(other, "libcuda.so.1", "-shared", "-fPIC")
        early = compiled(user.folder, "early", f"-Wl,--disable-new-dtags,-rpath,{other}")
        expect_line(user.gpupool("check", early, status=1), "wrong", "program",
                    f"early finds {other}/libcuda.so.1, which is not gpupool's, by the program's RPATH, which comes before")
        require(f"early finds {other}/libcuda.so.1, not gpupool's in " in user.gpupool("run", early, LD_PRELOAD="").err, "no warning")
        # After LD_LIBRARY_PATH it matters only if the program is started without gpupool run.
        late = compiled(user.folder, "late", f"-Wl,--enable-new-dtags,-rpath,$ORIGIN/driver")
        result = user.gpupool("check", late)
        expect_line(result, "ok", "program", r"finds gpupool's .*, by LD_LIBRARY_PATH")
        expect_line(result, "note", "without run", r"finds \S+/driver/libcuda.so.1, which is not gpupool's, by the program's RUNPATH")
        user.gpupool("run", late, LD_PRELOAD="").expect(err="")
        script = user.write(f"#!/usr/bin/env {os.path.basename(fixed)}\n", "script", 0o755)
        expect_line(user.gpupool("check", script, status=1, PATH=f"{user.folder}:{os.environ['PATH']}"), "wrong", "program",
                    "linked statically")
        expect_line(user.gpupool("check", "nosuch", status=1), "wrong", "program", "nosuch: No such file or directory")
        # Damaged files are no reason to fall over.
        whole = open(early, "rb").read()
        for size in (0, 3, 17, 63, 64, 100, 500, len(whole) // 2):
            with open(os.path.join(user.folder, "cut"), "wb") as file:
                file.write(whole[:size])
            os.chmod(os.path.join(user.folder, "cut"), 0o755)
            user.gpupool("check", os.path.join(user.folder, "cut"), status=0 if size < 4 else checked(user, "cut"))


def checked(user, name):
    """The status of gpupool check, which must be 0 or 1."""
    done = subprocess.run([GPUPOOL, "check", os.path.join(user.folder, name)], capture_output=True, check=False,
                          env={**base_environment(), **user.env()}, timeout=PATIENCE)
    require(done.returncode in (0, 1), f"{done}")
    return done.returncode


@case("setuid programs are warned of")
def _():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("only root can make a program another user's")
    with User() as user:
        user.write("[pool lab]\nurl = tcp://127.0.0.1\n")
        path = compiled(user.folder, "privileged")
        os.chown(path, 65534, 65534)
        os.chmod(path, 0o4755)
        os.chmod(user.folder, 0o755)
        result = user.gpupool("run", path, LD_PRELOAD="")
        require(re.search("runs with other privileges than yours", result.err), str(result))


SOURCES = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "cli")


def need_sources():
    if not os.path.isdir(SOURCES):
        raise Skip("the completions are not beside these tests")


def completed(user, *words):
    """The completions of bash for the last of these words."""
    need_sources()
    script = f'. {SOURCES}/completion/gpupool.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gpupool; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script, "bash", "gpupool", *words], capture_output=True, text=True, check=False,
                          env={**base_environment(), "XDG_CONFIG_HOME": user.folder}, cwd=user.folder)
    require(done.returncode == 0 and done.stderr == "", f"{done}")
    return sorted(done.stdout.split())


@case("completion knows commands, options and pools, and leaves the program's words to it")
def _():
    with User() as user:
        user.write("[pool lab]\nurl = tls://a\n [ pool x]\n[pool  b-2 ] # far\nurl = tls://b\n")
        require(completed(user, "") == ["--help", "--version", "check", "devices", "env", "help", "login", "logout", "pools", "run"], "not the commands")
        require(completed(user, "de") == ["devices"], "not devices")
        for words in (("run", "-p", ""), ("devices", "--pool", ""), ("login", ""), ("logout", "")):
            require(completed(user, *words) == ["b-2", "lab"], f"{words}: {completed(user, *words)}")
        require(completed(user, "run", "--m") == ["--memory"] and completed(user, "run", "--memory", "") == [], "not the options")
        require("bash" in completed(user, "run", "--gpus", "1", "bas"), "no programs")
        require(completed(user, "run", "bash", "--m") == [], "an option of gpupool after the program")
        if not shutil.which("fish"):
            return
        for words, offered in (("run --m", ["--memory"]), ("run -p l", ["lab"]), ("run --gpus 1 bash --m", []), ("check bash --p", []),
                               ("devices --j", ["--json"])):
            done = subprocess.run(["fish", "-N", "-c", f"source {SOURCES}/completion/gpupool.fish; complete -C 'gpupool {words}'"],
                                  capture_output=True, text=True, check=False, cwd=user.folder, stdin=subprocess.DEVNULL,
                                  env={**base_environment(), "XDG_CONFIG_HOME": user.folder}, timeout=PATIENCE)
            require(done.returncode == 0 and [line.split("\t")[0] for line in done.stdout.splitlines()] == offered, f"{words}: {done}")


@case("the options of the help are in the manual page and in each shell's completion")
def _():
    need_sources()
    with User() as user:
        texts = {name: read_file(os.path.join(SOURCES, name)).replace("\\-", "-")
                 for name in ("gpupool.1", "completion/gpupool.bash", "completion/_gpupool", "completion/gpupool.fish")}
        for command in ("run", "devices", "check", "env", "login"):
            for option in {*(["--pool"] if command != "login" else []), *re.findall(r"--[a-z][a-z-]+", user.gpupool("help", command).out)}:
                for name, text in texts.items():
                    wanted = f"-l {option[2:]} " if name.endswith(".fish") else option
                    require(command in text and wanted in text + " ", f"{name} has no {command} {option}")
        for shell, name in (("bash", "gpupool.bash"), ("zsh", "_gpupool"), ("fish", "gpupool.fish")):
            if shutil.which(shell):
                done = subprocess.run([shell, "-n", f"{SOURCES}/completion/{name}"], capture_output=True, text=True, check=False)
                require(done.returncode == 0 and done.stderr == "", f"{done}")
        keys = "url, token, authority, certificate, key, crl, tenant, gpus, memory, sm, wait".split(", ")
        page = texts["gpupool.1"]
        require(all(re.search(rf"^{key} = ", page, re.M) for key in keys), "a key of pools.conf is in no manual")


if __name__ == "__main__":
    sys.exit(main(at_once=4 if SOFTWARE else 1))
