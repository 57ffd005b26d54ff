# SPDX-License-Identifier: Apache-2.0
"""Authorization: which credentials give access, and the errors for all other clients; on the daemon's machine, as the
daemon's user and as another one."""
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import wire
from harness import (PATIENCE, SANITIZED, SOFTWARE, Daemon, Program, Skip, as_tenant, base_environment, case, driver_options, main,
                     require, wait_until)
from pool import Pool, ctl, share_with_other, token_of

# The longest time until a token's revocation takes effect, and a margin.
SOON = 30 if SANITIZED else 3


def write_token(pool, text):
    path = os.path.join(tempfile.mkdtemp(dir=pool.files), "token")
    os.chmod(os.path.dirname(path), 0o755)
    with open(path, "w", encoding="ascii") as file:
        file.write(text + "\n")
    share_with_other(path)
    return path


@case("the daemon's own user needs no credentials, another one does, over loopback and the local socket")
def _():
    with Pool() as pool:
        for remote in (pool.address, pool.local):
            pool.run("vectoradd") if remote == pool.address else Program("vectoradd", (), remote).finish().expect()
            pool.refused("the daemon belongs to another user: a token is required", r"no credentials, and user 65534", remote)
        path, _name = pool.create("alice")
        for remote in (pool.address, pool.local):
            pool.other("vectoradd", remote=remote, GPUPOOL_TOKEN_FILE=path).finish().expect(out="vectoradd: ok\n", err="")


class TakenOver:
    """A daemon with a local socket and an admin socket, whose worker connects wherever the test wants."""

    def __init__(self, folder):
        self.local, self.admin, confederate = (f"{folder}/{name}" for name in ("socket", "admin", "confederate"))
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(confederate)
        self.listener.listen()
        self.listener.settimeout(PATIENCE)
        env = {"LD_PRELOAD": os.environ["GP_TAKEN_OVER"], "GP_CONFEDERATE": confederate}
        if SANITIZED:
            env["ASAN_OPTIONS"] = "detect_leaks=1:verify_asan_link_order=0"
        self.daemon = Daemon("--listen", f"unix://{self.local}", "--admin-socket", self.admin, env=env)
        try:
            self.worker, _ = self.listener.accept()
        except BaseException:
            self.daemon.discard()
            raise
        self.worker.settimeout(PATIENCE)
        self.pid, = struct.unpack_from("i", self.worker.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        require([self.pid] == self.daemon.workers(), f"worker {self.pid} of {self.daemon.workers()}")

    def connect(self, path):
        """A connection that the worker has made."""
        self.worker.send(path.encode())
        _, fds, _, _ = socket.recv_fds(self.worker, 1, 1)
        require(fds, f"the worker cannot connect to {path}")
        conn = wire.Conn.__new__(wire.Conn)
        conn.socket = socket.socket(fileno=fds[0])
        conn.socket.settimeout(PATIENCE)
        return conn

    def close(self):
        self.worker.close()
        self.listener.close()


@case("a worker has the daemon's user, and is refused as an administrator and as a client without credentials")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-taken-") as folder:
        taken = TakenOver(folder)
        with taken.daemon as daemon:
            with taken.connect(taken.admin) as conn:
                conn.wait_closed()
            daemon.wait_for_log(rf"admin socket: process {taken.pid} of user \d+: a worker of this daemon")
            with taken.connect(taken.local) as conn:
                conn.send(wire.preamble() + wire.message(wire.hello()))
                conn.take(64)
                kinds = wire.fields_of(conn.take_message()[0])
                require(2 not in kinds, "the worker is welcome")
                conn.wait_closed()
            daemon.wait_for_log(rf"refused: no credentials, and process {taken.pid} is a worker of this daemon")
            # The same user, in another process.
            Program("vectoradd", (), f"unix://{taken.local}").finish().expect(out="vectoradd: ok\n")
            listed = subprocess.run([os.environ["GP_CTL"], "--socket", taken.admin, "status"], capture_output=True, text=True,
                                    env=base_environment(), timeout=PATIENCE, check=False)
            require(listed.returncode == 0, f"{listed}")
        taken.close()


@case("the log line of a new session has its tenant and the credential that authenticated it")
def _():
    with Pool(config="[tenant bob]\n") as pool:
        Program("vectoradd", (), pool.local).finish().expect()
        Program("vectoradd", (), pool.address, env=as_tenant("bob")).finish().expect()
        pool.wait_for_log(rf": open from shm://.*, tenant default, authenticated by local user {os.geteuid()}, ")
        pool.wait_for_log(rf": open from tcp://.*, tenant bob, authenticated by local user {os.geteuid()}, ")
    with Pool("--insecure") as pool:
        pool.other("vectoradd", remote=pool.local).finish().expect()
        pool.wait_for_log(r": open from shm://.*, tenant default, authenticated by --insecure, ")


@case("a file of tokens that is named and is not there is warned of, where it usually is none need be")
def _():
    missing = "warning: {}: token file does not exist: tokens are rejected"
    with Pool() as pool:
        pool.wait_for_log(missing.format(pool.tokens_path()))
        path, _name = pool.create("alice")
        pool.other("vectoradd", remote=pool.local, GPUPOOL_TOKEN_FILE=path).finish().expect()
        require(pool.log().count("token file does not exist") == 1, pool.log())
    with Pool(config="[daemon]\ntokens = /nope/tokens\n", tokens=False) as pool:
        pool.wait_for_log(missing.format("/nope/tokens"))
        pool.write_config(f"[daemon]\ntokens = {pool.files}/others\n")
        os.kill(pool.pid, signal.SIGHUP)
        pool.wait_for_log(missing.format(f"{pool.files}/others"))
    with tempfile.TemporaryDirectory(prefix="gpupool-files-") as folder:
        with Daemon(env={"CONFIGURATION_DIRECTORY": folder}) as daemon:
            daemon.check_works()
            require("token file does not exist" not in daemon.log(), daemon.log())


@case("large copies go over four connections to the local socket")
def _():
    with Pool() as pool:
        result = Program("lanes", (), pool.local, env={"GPUPOOL_LANES": "4", "GPUPOOL_LOG": "info"}).finish().expect()
        require("3 data lanes" in result.err, f"not three data lanes: {result}")


@case("the log is printable ASCII, with one line for each refusal, for any names that a client sends")
def _():
    with Pool() as pool:
        said = wire.field(3, "h\u009b2J\u202egnihtemos\u2028x") + wire.field(4, b"u\xc2\x9d0;owned\xff\xfe\ngpupoold[1]: warning: y")
        with socket.create_connection(("127.0.0.1", pool.port), timeout=PATIENCE) as sock:
            sock.sendall(wire.preamble() + wire.message(wire.hello(program="p\u0085q", more=said + wire.field(9, "gpt_x"))))
            while sock.recv(65536):
                pass
        with open(pool.log_path, "rb") as file:
            log = file.read()
        require(re.fullmatch(rb"[ -~\n]*", log), f"not printable: {log}")
        found = [line for line in log.splitlines() if b"refused" in line]
        require(len(found) == 1 and rb'("h\xc2\x9b2J\xe2\x80\xaegnihtemos\xe2\x80\xa8x" ' in found[0] and
                rb'user "u\xc2\x9d0;owned\xff\xfe\x0agpupoold[1]: warning: y")' in found[0], f"{found}")
        require(log.count(b"\ngpupoold[1]") == 0, f"{log}")


@case("a token determines the session's tenant, and a claim to another tenant is refused")
def _():
    with Pool(config="[tenant bob]\nmemory = 64M\n") as pool:
        # A tenant of the configuration, and one that only the token names and that has the whole device.
        for name, size in (("bob", "64"), ("alice", "4096" if SOFTWARE else r"\d{4,}")):
            path, token = pool.create(name)
            for tenant in ({}, as_tenant(name)):
                program = Program("memhog", ["1"], pool.local, env={"GPUPOOL_TOKEN_FILE": path, **tenant}, stdin=True)
                program.wait_for_output("free after")
                require(pool.sessions() == [name], f"{pool.sessions()}")
                require(pool.credentials() == f"token {token}", pool.credentials())
                pool.wait_for_log(rf"session \d+ \(.* memhog\S*\): open from shm://.*, tenant {name}, authenticated by token {token}, ")
                require(re.search(f"free before: {size} MiB", program.out()), program.out())
                program.finish().expect()
            for other in ("default", "carol"):
                pool.refused("the credentials are not those of the tenant that GPUPOOL_TENANT names",
                             rf'not those of tenant "{other}"', user="own", GPUPOOL_TOKEN_FILE=path,
                             **as_tenant(other))


@case("tenants that only tokens name have what the default tenant has, each on its own account")
def _():
    with Pool(config="[tenant default]\nsessions = 1\n") as pool:
        alice, bob = pool.create("alice")[0], pool.create("bob")[0]
        first = Program("memhog", ["1"], pool.local, env={"GPUPOOL_TOKEN_FILE": alice}, stdin=True)
        first.wait_for_output("free after")
        Program("vectoradd", (), pool.local, env={"GPUPOOL_TOKEN_FILE": bob}).finish().expect()
        pool.check_works()
        again = Program("vectoradd", (), pool.local, env={"GPUPOOL_TOKEN_FILE": alice}).finish()
        require(again.status == 1 and "tenant alice has reached its limit of 1 sessions" in again.err, str(again))
        pool.write_config("[tenant default]\nsessions = 0\n")
        ctl("--socket", pool.socket, "reload")
        kept_out = Program("vectoradd", (), pool.local, env={"GPUPOOL_TOKEN_FILE": bob}).finish()
        require(kept_out.status == 1 and "may have no sessions" in kept_out.err, str(kept_out))
        # Named by the configuration from now on.
        pool.write_config("[tenant default]\nsessions = 0\n[tenant alice]\nmemory = 64M\n")
        ctl("--socket", pool.socket, "reload")
        Program("vectoradd", (), pool.local, env={"GPUPOOL_TOKEN_FILE": alice}).finish().expect()
        first.finish().expect()


@case("wrong, revoked and expired tokens are refused for each user, each with its line in the log")
def _():
    with Pool("--metrics", "0") as pool:
        good, name = pool.create("alice")
        token = token_of(good)
        wrong = write_token(pool, token[:-1] + ("a" if token[-1] != "a" else "b"))
        unknown = write_token(pool, "gpt_" + "z" * 10 + token[14:])
        revoked, revoked_name = pool.create("alice")
        pool.revoke(revoked_name)
        expired, expired_name = pool.create("alice", "--expires", "1s")
        time.sleep(1.1)
        for user in ("own", "other"):
            pool.refused("unknown token", rf"unknown token {name}, or not its secret", user=user,
                         GPUPOOL_TOKEN_FILE=wrong)
            pool.refused("unknown token", r"unknown token zzzzzzzzzz, or not its secret", user=user,
                         GPUPOOL_TOKEN_FILE=unknown)
            pool.refused("the token has been revoked", rf"the token {revoked_name} has been revoked", user=user,
                         GPUPOOL_TOKEN_FILE=revoked)
            pool.refused("the token has expired", rf"the token {expired_name} has expired", user=user,
                         GPUPOOL_TOKEN_FILE=expired)
        require(token not in pool.log() and token[15:] not in pool.log(), "the log has a secret")
        text = fetch_metrics(pool)
        for reason, count in (("unknown_token", 4), ("revoked_token", 2), ("expired_token", 2), ("no_credentials", 0)):
            require(f'gpupool_refused_clients_total{{reason="{reason}"}} {count}\n' in text, f"{reason}:\n{text}")


def fetch_metrics(pool):
    url = re.search(r"^metrics at http://([\d.]+):(\d+)", open(pool.out_path, encoding="utf-8").read(), re.M)
    with socket.create_connection((url[1], int(url[2])), timeout=PATIENCE) as sock:
        sock.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        data = b""
        while part := sock.recv(65536):
            data += part
    return data.decode()


@case("a malformed token of any size is refused, and the reply reveals nothing about valid tokens")
def _():
    with Pool() as pool:
        token = token_of(pool.create("alice")[0])
        texts = set()
        for shown in (b"x", bytes(67), b"\xff" * 1000, token[:-1].encode(), token.encode() + b"\n",
                      b"gpt_" + b"a" * 63, token.upper().encode(), b"A" * 15000):
            with socket.create_connection(("127.0.0.1", pool.port), timeout=PATIENCE) as sock:
                sock.sendall(wire.preamble() + wire.message(wire.hello(more=wire.field(9, shown))))
                answer = b""
                while part := sock.recv(65536):
                    answer += part
            size, _bulk = struct.unpack("<II", answer[64:72])
            refused = wire.fields_of(wire.fields_of(answer[72:72 + size])[3][0])
            require(refused[1] == [2], f"the reason is {refused}")
            texts.add(refused[2][0])
        require(texts == {b"unknown token"}, f"{texts}")
        pool.check_works()


@case("revoking a token ends its sessions within two seconds, and no others")
def _():
    with Pool() as pool:
        (first, name), (second, _) = pool.create("alice"), pool.create("alice")
        ended = pool.other("sleeper", "-ms=60000", GPUPOOL_TOKEN_FILE=first)
        stays = Program("sleeper", ["-ms=6000"], pool.local, env={"GPUPOOL_TOKEN_FILE": second})
        own = pool.start("sleeper", "-ms=6000")
        for program in (ended, stays, own):
            program.wait_for_output("running")
        pool.revoke(name)
        begin = time.monotonic()
        pool.wait_for_log(r"session \d+ .*: its token has been revoked", SOON)
        result = ended.finish()
        require(time.monotonic() - begin < SOON, f"it took {time.monotonic() - begin:.1f} s")
        require(result.status == 1 and "(810)" in result.out, f"expected error 810: {result}")
        require(result.err.count("the session ended with error 810: its token has been revoked\n") == 1, f"no reason: {result}")
        for program in (stays, own):
            program.finish().expect()
        pool.refused("the token has been revoked", rf"the token {name} has been revoked", GPUPOOL_TOKEN_FILE=first)


@case("a token that expires ends its sessions, and so does one that is there no more")
def _():
    with Pool() as pool:
        path, _name = pool.create("alice", "--expires", "3s")
        program = pool.start("sleeper", "-ms=60000", env={"GPUPOOL_TOKEN_FILE": path})
        program.wait_for_output("running")
        result = program.finish(3 + SOON + 10)
        require(result.status == 1 and "(810)" in result.out, f"expected error 810: {result}")
        require(result.err.count("the session ended with error 810: its token has expired\n") == 1, f"no reason: {result}")
        pool.wait_for_log(r"session \d+ .*: its token has expired")
        # A GPU ends its kernel only with the worker.
        pool.wait_for_log(r"session 1 .*: closed: ")
        path, _name = pool.create("alice")
        program = pool.start("sleeper", "-ms=60000", env={"GPUPOOL_TOKEN_FILE": path})
        program.wait_for_output("running")
        os.unlink(pool.tokens_path())
        result = program.finish(SOON + 10)
        require(result.status == 1 and "(810)" in result.out, f"expected error 810: {result}")
        pool.wait_for_log(r"session 2 .*: closed: ")


@case("a reload reads the tokens from another file; while that is malformed every token is refused")
def _():
    with Pool(config="", tokens=False) as pool:
        pool.write_config(f"[daemon]\ntokens = {pool.tokens_path()}\n")
        ctl("--socket", pool.socket, "reload")
        path, _name = pool.create("alice")
        env = {"GPUPOOL_TOKEN_FILE": path}
        pool.run("vectoradd", env=env).expect()
        elsewhere = os.path.join(pool.files, "elsewhere")
        other, _name = pool.create("bob", folder=elsewhere)
        pool.refused("unknown token", r"unknown token", user="own", GPUPOOL_TOKEN_FILE=other)
        pool.write_config(f"[daemon]\ntokens = {elsewhere}/tokens\n")
        ctl("--socket", pool.socket, "reload")
        pool.run("vectoradd", env={"GPUPOOL_TOKEN_FILE": other}).expect()
        pool.refused("unknown token", r"unknown token", user="own", GPUPOOL_TOKEN_FILE=path)
        # None of them is thrown away for a file that there is not.
        pool.write_config(f"[daemon]\ntokens = {elsewhere}/token\n")
        said = ctl("--socket", pool.socket, "reload", status=1)
        require(said == "gpupoolctl: partly applied: tokens unchanged: "
                f"{elsewhere}/token: No such file or directory\n", said)
        pool.run("vectoradd", env={"GPUPOOL_TOKEN_FILE": other}).expect()
        pool.write_config(f"[daemon]\ntokens = {elsewhere}/tokens\n")
        ctl("--socket", pool.socket, "reload")
        stays = pool.start("sleeper", "-ms=3000", env={"GPUPOOL_TOKEN_FILE": other})
        stays.wait_for_output("running")
        size = os.stat(f"{elsewhere}/tokens").st_size
        with open(f"{elsewhere}/tokens", "a", encoding="ascii") as file:
            file.write("nonsense\n")
        for _again in range(2):
            pool.refused("the daemon cannot read its token file", "refused: a token, but the token file is not readable",
                         user="own", GPUPOOL_TOKEN_FILE=other)
        pool.check_works()
        os.truncate(f"{elsewhere}/tokens", size)
        pool.run("vectoradd", env={"GPUPOOL_TOKEN_FILE": other}).expect()
        # It was mended in time for those that were there.
        stays.finish().expect()
        require(len(re.findall(r"token file not readable: .* end in \d+ s: .*elsewhere/tokens:4: fewer than six fields", pool.log())) == 1,
                pool.log())


@case("a daemon does not start with tokens that make no sense")
def _():
    with tempfile.NamedTemporaryFile("w", suffix=".tokens") as file:
        file.write("nonsense\n")
        file.flush()
        done = subprocess.run([os.environ["GP_DAEMON"], "--listen", "127.0.0.1:0", "--admin-socket", "off", "--tokens",
                               file.name, *driver_options()], capture_output=True, text=True,
                              env=base_environment(), timeout=PATIENCE, check=False)
    require(done.returncode == 1 and f"gpupoold: {file.name}:1: fewer than six fields" in done.stderr, done.stderr)


@case("an insecure daemon lets another user in without a token, but with none that is wrong")
def _():
    with Pool("--insecure") as pool:
        pool.other("vectoradd").finish().expect(out="vectoradd: ok\n")
        pool.other("vectoradd", remote=pool.local).finish().expect(out="vectoradd: ok\n")
        path, name = pool.create("alice")
        pool.revoke(name)
        pool.refused("the token has been revoked", "has been revoked", GPUPOOL_TOKEN_FILE=path)


@case("a client reports what is wrong with its token file, without contacting a daemon")
def _():
    with Pool() as pool:
        connections = pool.log().count("no session")
        missing = os.path.join(pool.files, "missing")
        for path, text in ((missing, "No such file or directory"), (pool.files, "Is a directory"),
                           (write_token(pool, "# nothing but a comment\n"), "the file is empty: it contains no token"),
                           (write_token(pool, "secret"), "its first line is not a token"),
                           (write_token(pool, "x" * (1 << 20)), "larger than 1 MiB")):
            result = pool.run("vectoradd", env={"GPUPOOL_TOKEN_FILE": path})
            require(result.status == 1 and f"GPUPOOL_TOKEN_FILE={path}: {text}" in result.err and
                    result.err.count("\n") == 1, f"expected one line with {text!r}: {result}")
        require(pool.log().count("no session") == connections, pool.log())
        # An empty variable is none.
        pool.run("vectoradd", env={"GPUPOOL_TOKEN_FILE": ""}).expect()


@case("an authority, a daemon's and a client's certificate are made, listed and shown, and nothing is lost")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-files-") as folder:
        at = ("-D", folder)
        refused_by_ctl("no authority", "cert", "client", "alice", *at)
        said = ctl("cert", "init", "gpunode", "10.0.0.5", "fd00::5", *at)
        require("server.pem: a daemon at gpunode, 10.0.0.5, fd00::5, until" in said, said)
        ctl("cert", "client", "alice", *at)
        modes = {name: oct(os.stat(os.path.join(folder, name)).st_mode & 0o777) for name in os.listdir(folder)}
        require(modes == {"ca.pem": "0o644", "ca.key": "0o600", "server.pem": "0o644", "server.key": "0o600",
                          "alice.pem": "0o644", "alice.key": "0o600"}, f"{modes}")
        before = {name: read_bytes(folder, name) for name in modes}
        # A folder of its own, which is made as that of --directory is.
        with tempfile.TemporaryDirectory(prefix="gpupool-clients-") as clients:
            refused_by_ctl("invalid duration", "cert", "client", "alice", "--expires", "1", "-o", f"{clients}/new", *at)
            require(not os.listdir(clients), "a folder was made for nothing")
            ctl("cert", "client", "alice", "-o", f"{clients}/new/one", *at)
            ctl("cert", "init", "gpunode", "-D", f"{clients}/pool/one")
            for made in ("new", "new/one"):
                mode = os.stat(f"{clients}/{made}").st_mode
                require(mode == os.stat(f"{clients}/{made.replace('new', 'pool')}").st_mode, f"{made}: {oct(mode)}")
            require(sorted(os.listdir(f"{clients}/new/one")) == ["alice.key", "alice.pem"], "the files")
            ctl("cert", "client", "bob", "-o", f"{clients}/new/one", *at)
        refused_by_ctl("server.pem already exists; use --force to replace it", "cert", "init", "other", *at)
        refused_by_ctl("alice.pem already exists; use --force to replace it", "cert", "client", "alice", *at)
        for name in ("ca", "server", "a/b", ".a", "a,b", "J\u00f6rg", ""):
            refused_by_ctl("name", "cert", "client", name, *at)
        for host in ("a,IP:1.2.3.4", "a b", "[::1]", ""):
            refused_by_ctl("neither a host's name nor an address", "cert", "init", host, "--force", *at)
        for time_ in ("never", "1", "0d"):
            refused_by_ctl("invalid duration", "cert", "client", "bob", "--expires", time_, *at)
        require(before == {name: read_bytes(folder, name) for name in os.listdir(folder)}, "files have changed")
        ctl("cert", "init", "other", "--force", "--expires", "1d", *at)
        require(read_bytes(folder, "ca.pem") == before["ca.pem"] and read_bytes(folder, "ca.key") == before["ca.key"]
                and read_bytes(folder, "server.pem") != before["server.pem"], "the authority was replaced, or the certificate was not")
        # A certificate that cannot be written leaves the key of the one that is there.
        fits = {name: read_bytes(folder, name) for name in ("server.pem", "server.key")}
        os.mkdir(f"{folder}/server.pem.new")
        refused_by_ctl("server.pem.new", "cert", "init", "other", "--force", *at)
        os.rmdir(f"{folder}/server.pem.new")
        require(fits == {name: read_bytes(folder, name) for name in fits} and
                not os.path.exists(f"{folder}/server.key.new"), "half of a pair was replaced")
        rows = ctl("cert", "list", "--format=csv", *at).splitlines()
        require([row.split(",")[1] for row in rows] == ["use", "client", "authority", "daemon"]
                and [row.split(",")[4] for row in rows[1:]] == ["good"] * 3, f"{rows}")
        shown = json.loads(ctl("cert", "show", "--format=json", *at))
        require(shown["hosts"] == "other" and shown["use"] == "daemon" and 0 < shown["expires"] - time.time() <= 86400
                and shown["issuer"].startswith("gpupool authority of"), f"{shown}")
        require("alice" in ctl("cert", "show", f"{folder}/alice.pem"), "the client's")
        # A token's file contains the authority after the token.
        with open(f"{folder}/ca.pem", encoding="ascii") as file:
            require(ctl("token", "create", "alice", *at).endswith(file.read()), "no authority in the token's file")
        with open(f"{folder}/broken.pem", "w", encoding="ascii") as file:
            file.write("nonsense")
        refused_by_ctl("broken.pem: no certificate found", "cert", "list", *at)
        os.unlink(f"{folder}/ca.key")
        refused_by_ctl("ca.pem exists without", "cert", "client", "carol", *at)


def read_bytes(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def refused_by_ctl(text, *args):
    """One line with this text, and status 1."""
    done = subprocess.run([os.environ["GP_CTL"], *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=base_environment(), timeout=PATIENCE, check=False)
    require(done.returncode == 1 and text in done.stderr and done.stderr.count("\n") == 1,
            f"{args}: expected {text!r}: {done}")


@case("tokens are created, listed and revoked; invalid arguments are refused in one line")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-files-") as folder:
        at = ("-D", folder)
        require(ctl("token", "list", "--format=json", *at) == "[]\n", "a new folder has tokens")
        path = os.path.join(folder, "alice.token")
        ctl("token", "create", "alice", "--comment", "her laptop, \"old\"", "-o", path, *at)
        require(os.stat(path).st_mode & 0o777 == 0o600, "the mode of a token's file")
        refused_by_ctl("alice.token already exists", "token", "create", "alice", "-o", path, *at)
        ctl("token", "create", "bob", "--expires", "30d", "-o", path, "--force", *at)
        rows = json.loads(ctl("token", "list", "--format=json", *at))
        require([(row["tenant"], row["state"], row["comment"]) for row in rows] ==
                [("alice", "good", 'her laptop, "old"'), ("bob", "good", "")], f"{rows}")
        require(rows[0]["expires"] is None and abs(rows[1]["expires"] - time.time() - 30 * 86400) < 1000, f"{rows}")
        ctl("token", "revoke", rows[1]["id"], *at)
        rows = json.loads(ctl("token", "list", "--format=json", *at))
        require([row["state"] for row in rows] == ["good", "revoked"], f"{rows}")
        csv = ctl("token", "list", "--format=csv", *at).splitlines()
        require(len(csv) == 3 and csv[0] == "id,tenant,state,created,expires,revoked,comment", f"{csv}")
        require("her laptop" in ctl("token", "list", *at), "people's table")
        # - is standard output, and -- ends the options: a tenant's name may begin with a hyphen.
        here = subprocess.run([os.environ["GP_CTL"], "token", "create", "-o", "-", *at, "--", "--format=csv"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder,
                              env=base_environment(), timeout=PATIENCE, check=False)
        require(here.returncode == 1 and '"--format=csv" is not a valid name' in here.stderr, f"{here}")
        here = subprocess.run([os.environ["GP_CTL"], "token", "create", "-o", "-", *at, "--", "-dave"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder,
                              env=base_environment(), timeout=PATIENCE, check=False)
        require(here.returncode == 0 and here.stderr == "" and re.fullmatch(
            r"# Token of tenant -dave\. [^\n]*\ngpt_\w+\n", here.stdout) and not os.path.exists(f"{folder}/-"), f"{here}")
        require(json.loads(ctl("token", "list", "--format=json", *at))[-1]["tenant"] == "-dave", "not the tenant's")
        # A token that could not be written is revoked.
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([os.environ["GP_CTL"], "token", "create", "carol", *at], stdout=full,
                                  stderr=subprocess.PIPE, text=True, env=base_environment(), timeout=PATIENCE,
                                  check=False)
        require(done.returncode == 1 and done.stderr == "gpupoolctl: cannot write to standard output\n", f"{done}")
        last = json.loads(ctl("token", "list", "--format=json", *at))[-1]
        require((last["tenant"], last["state"]) == ("carol", "revoked"), f"{last}")
        for text, args in (("is not a", ("create", "a b")), ("invalid duration", ("create", "a", "-e", "1h30m")),
                           ("unknown option", ("create", "a", "--expire", "1h")), ("usage", ("create",)),
                           ("is not a token ID", ("revoke", "x")), ("unknown token ID", ("revoke", "a" * 10)),
                           ("already revoked", ("revoke", rows[1]["id"])), ("usage", ("remove", "x")),
                           ("cannot be printed", ("create", "a", "--comment", "a\nb"))):
            refused_by_ctl(text, "token", *args, *at)


# A network of its own, in which 10.99.99.1 is an address that is not loopback.
IN_NETWORK = """
ip link set lo up && ip addr add 10.99.99.1/32 dev lo || exit 77
"$@"
"""
# The program that runs there: it calls a function of the given file with the folder.
STEPS = """
import importlib.util, json, os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
spec = importlib.util.spec_from_file_location("steps", sys.argv[1])
steps = importlib.util.module_from_spec(spec)
spec.loader.exec_module(steps)
getattr(steps, sys.argv[2])(sys.argv[3])
"""


def in_network(function, folder, user=None):
    """Runs a function of this file in a network of its own."""
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("ip") or not shutil.which("setpriv"):
        raise Skip("it takes root, unshare, ip and setpriv")
    wrap = []
    if user:
        wrap = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        os.chown(folder, user, user)
        for needed in (os.environ["GP_DAEMON"], os.environ["GP_APPS"], os.environ["GP_CLIENT"], os.path.abspath(__file__)):
            if subprocess.run([*wrap, "test", "-r", needed], check=False).returncode:
                raise Skip(f"another user cannot read {needed}")
    env = {**base_environment(), **{name: value for name, value in os.environ.items() if name.startswith("GP_")},
           "HOME": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    if user:
        # It uses the folder of its home.
        env = {name: value for name, value in env.items() if name not in ("CONFIGURATION_DIRECTORY", "XDG_CONFIG_HOME")}
        env["GP_HOME_IS_OURS"] = "1"
    done = subprocess.run(["unshare", "-n", "sh", "-c", IN_NETWORK, "sh", *wrap, sys.executable, "-c", STEPS,
                           os.path.abspath(__file__), function.__name__, folder],
                          capture_output=True, text=True, env=env, timeout=PATIENCE * 3, check=False)
    if done.returncode == 77 or "unshare failed" in done.stderr:
        raise Skip("there can be no network of its own here")
    require(done.returncode == 0, f"{function.__name__}: {done.stdout}{done.stderr}")


class Remote:
    """A daemon in such a network, and programs that connect to it from an address that is not loopback."""

    def __init__(self, folder, *args):
        self.log_path = os.path.join(folder, "log")
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [os.environ["GP_DAEMON"], *args, "--print-address", "--admin-socket", "off",
                 *driver_options()], stdout=subprocess.PIPE, stderr=log, text=True,
                env={**base_environment(), "HOME": os.environ["HOME"]})
        line = self.process.stdout.readline()
        require(line.startswith("listening on "), f"the daemon does not start: {self.log()}")
        self.address = line.split()[-1].replace("0.0.0.0", "10.99.99.1")

    def log(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def works(self, **env):
        Program("vectoradd", (), self.address, env=env).finish().expect(out="vectoradd: ok\n", err="")

    def refused(self, text, log, remote=None, **env):
        """One line of the client, and one of the daemon if it is asked at all."""
        before = len(re.findall("warning|error", self.log()))
        result = Program("vectoradd", (), remote or self.address, env=env).finish()
        require(result.status == 1 and text in result.err and result.err.count("\n") == 1, f"expected {text!r}: {result}")
        if log:
            wait_until(f"the log has {log!r}: {self.log()}", lambda: re.search(log, self.log()), 60)
        lines = len(re.findall("warning|error", self.log())) - before
        require(lines == (1 if log else 0), f"{lines} lines in the log:\n{self.log()}")

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.process.terminate()
        require(self.process.wait(PATIENCE) == 0, f"the daemon ended with {self.process.returncode}: {self.log()}")
        self.process.stdout.close()


def send_in_clear(folder):
    path = os.path.join(folder, "token")
    ctl("token", "create", "alice", "-D", folder, "-o", path)
    with Remote(folder, "--listen", "10.99.99.1:0", "--insecure", "--tokens", f"{folder}/tokens") as daemon:
        daemon.works()
        daemon.refused("the connection is not encrypted, so the token of GPUPOOL_TOKEN_FILE is not sent", None,
                       GPUPOOL_TOKEN_FILE=path)
        host, port = daemon.address.removeprefix("tcp://").split(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as sock:
            sock.sendall(wire.preamble() + wire.message(wire.hello(more=wire.field(9, token_of(path)))))
            data = b""
            while part := sock.recv(65536):
                data += part
        require(b"it may be compromised" in data, f"{data}")
        require(re.search(r"refused: token \w{10} was sent unencrypted: revoke it", daemon.log()), daemon.log())


@case("a token is not sent where others could read it, and one that was sent so is refused")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-files-") as folder:
        in_network(send_in_clear, folder)


def set_up_a_pool(folder):
    token = os.path.join(folder, "alice.token")
    ctl("cert", "init", "10.99.99.1")
    ctl("token", "create", "alice", "-o", token)
    with Remote(folder, "--listen", "tls://0.0.0.0:4833") as daemon:
        require(daemon.address == "tls://10.99.99.1:4833", daemon.address)
        daemon.works(GPUPOOL_TOKEN_FILE=token)
        # The same user, but for the daemon the connection is from another machine.
        authority = {"GPUPOOL_TLS_CA": f"{folder}/.config/gpupool/ca.pem"}
        daemon.refused("refused: credentials are required: a token", "refused: no credentials$", **authority)
        daemon.refused("refused: the credentials are not those of the tenant", 'not those of tenant "bob"',
                       GPUPOOL_TOKEN_FILE=token, GPUPOOL_TENANT="bob")
        ctl("cert", "client", "carol")
        carol = {**authority, "GPUPOOL_TLS_CERT": f"{folder}/.config/gpupool/carol.pem",
                 "GPUPOOL_TLS_KEY": f"{folder}/.config/gpupool/carol.key"}
        daemon.refused("refused: the client certificate does not belong to a tenant", 'the certificate of "carol" does not belong to a tenant', **carol)
        # With a token the certificate need not belong to a tenant.
        daemon.works(GPUPOOL_TOKEN_FILE=token, **carol)
        program = Program("sleeper", ["-ms=60000"], daemon.address, env={"GPUPOOL_TOKEN_FILE": token, "GPUPOOL_LANES": "4"})
        program.wait_for_output("running")
        name = json.loads(ctl("token", "list", "--format=json"))[0]["id"]
        ctl("token", "revoke", name)
        result = program.finish(SOON + 10)
        require(result.status == 1 and "(810)" in result.out, f"expected error 810: {result}")
        daemon.refused("refused: the token has been revoked", f"the token {name} has been revoked", GPUPOOL_TOKEN_FILE=token)
        # A client without TLS is refused.
        daemon.refused("TLS", "refused: ", remote="tcp://10.99.99.1:4833")


@case("two commands set a pool up for another machine: over TLS, with a token, from the usual folder")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-files-") as folder:
        in_network(set_up_a_pool, folder, user=12345)


def know_certificates(folder):
    config = os.path.join(folder, "gpupoold.conf")
    ctl("cert", "init", "10.99.99.1", "-D", folder)
    for name in ("carol", "dave", "eve"):
        ctl("cert", "client", name, "-D", folder)
    with open(config, "w", encoding="ascii") as file:
        file.write(f"[daemon]\ncertificate = {folder}/server.pem\nkey = {folder}/server.key\n"
                   f"client-authority = {folder}/ca.pem\n"
                   "[tenant carol]\n[tenant lab]\ncertificate = dave, late\nmemory = 64M\n")

    def as_client(name):
        # The client's file has the authority in it, too.
        return {"GPUPOOL_TLS_CA": f"{folder}/{name}.pem", "GPUPOOL_TLS_CERT": f"{folder}/{name}.pem",
                "GPUPOOL_TLS_KEY": f"{folder}/{name}.key"}
    with Remote(folder, "--listen", "tls://10.99.99.1:0", "--config", config) as daemon:
        daemon.works(**as_client("carol"))
        daemon.works(GPUPOOL_TENANT="lab", **as_client("dave"))
        require(re.search(": open from tls://.*, tenant lab, authenticated by certificate dave, [0-9A-F]+, ", daemon.log()), daemon.log())
        result = Program("quota", (), daemon.address, env=as_client("dave")).finish().expect()
        require(result.out.startswith("device 64 MiB"), str(result))
        daemon.refused("refused: the client certificate does not belong to a tenant", 'certificate of "eve"', **as_client("eve"))
        # The certificate now belongs to another tenant, which ends the session that it authenticated.
        programs = [Program("sleeper", ["-ms=5000"], daemon.address, env=as_client(name)) for name in ("dave", "carol")]
        for program in programs:
            program.wait_for_output("running")
        with open(config, "r+", encoding="ascii") as file:
            text = file.read()
            file.seek(0)
            file.write(text.replace("[tenant lab]", "[tenant dave]\n[tenant lab]").replace("dave, late", "late"))
        os.kill(daemon.process.pid, signal.SIGHUP)
        result = programs[0].finish()
        require(result.status == 1 and "(810)" in result.out, f"expected error 810: {result}")
        programs[1].finish().expect()
        with open(config, "w", encoding="ascii") as file:
            file.write(text)
        os.kill(daemon.process.pid, signal.SIGHUP)
        wait_until("it is read", lambda: daemon.log().count("is active") == 2, 60)
        daemon.refused("refused: the credentials are not those of the tenant", 'tenant "carol"', GPUPOOL_TENANT="carol",
                       **as_client("dave"))
        ctl("cert", "client", "late", "-D", folder, "--expires", "3s", "--force")
        program = Program("sleeper", ["-ms=60000"], daemon.address, env=as_client("late"))
        program.wait_for_output("running")
        result = program.finish(3 + SOON + 10)
        require(result.status == 1 and "(810)" in result.out, f"expected error 810: {result}")
        require("its certificate has expired" in daemon.log(), daemon.log())
        daemon.refused("expired", "refused: .*expired", **as_client("late"))
        # One that another authority has signed is none.
        ctl("cert", "init", "elsewhere", "-D", f"{folder}/other")
        ctl("cert", "client", "carol", "-D", f"{folder}/other")
        daemon.refused("does not accept this end's certificate: unknown CA", "refused: ", **{**as_client("carol"), "GPUPOOL_TLS_CERT": f"{folder}/other/carol.pem",
                                                 "GPUPOOL_TLS_KEY": f"{folder}/other/carol.key"})


@case("a client certificate determines the tenant, by its name or by the configuration")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-files-") as folder:
        in_network(know_certificates, folder)


if __name__ == "__main__":
    sys.exit(main(at_once=4))
