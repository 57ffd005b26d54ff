# SPDX-License-Identifier: Apache-2.0
"""Programs over TLS, and every way in which TLS rejects a client: the program prints the reason, the daemon logs one
line, and the next client is served."""
import hashlib
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.request

import wire
from harness import (PATIENCE, Certificates, Encrypted, base_environment, case, driver_options, main, read_file, require,
                     run)
from wire import Conn, field, hello, message, preamble

LANES_OUT = read_file(os.path.join(os.path.dirname(__file__), "..", "apps", "expected", "lanes.out"))
FOUR = {"GPUPOOL_LANES": "4", "GPUPOOL_LOG": "info,error"}
REFUSED = r"gpupoold\[\d+\]: warning: tls://127\.0\.0\.1:\d+: refused: "


def refused_lines(daemon):
    return re.findall(r"gpupoold\[\d+\]: (?:warning|error): (?!the daemon stays root|the daemon's certificate expires).*$", daemon.log(), re.M)


def expect_refusal(daemon, says, logs, env, remote=None, lines=1):
    """The program ends with the reason on standard error, the daemon logs this number of lines and continues."""
    before = len(refused_lines(daemon))
    result = run("vectoradd", remote=remote or daemon.address, env=env)
    require(result.status == 1 and "(802)" in result.out, f"expected cudaErrorSystemNotReady: {result}")
    said = [line for line in result.err.splitlines() if line.startswith("gpupool: ")]
    require(len(said) == 1 and re.search(says, said[0]), f"expected one line with {says!r}: {result}")
    if logs:
        daemon.wait_for_log(logs)
    time.sleep(0.1)
    now = refused_lines(daemon)
    require(len(now) - before == lines, f"expected {lines} lines in the log: {now[before:]}")
    daemon.run("vectoradd").expect(out="vectoradd: ok\n")


@case("a program over TLS")
def _():
    with Certificates() as certificates:
        config = os.path.join(certificates.folder, "gpupoold.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write("[tenant alice]\n")
        with Encrypted(certificates, "--config", config) as daemon:
            daemon.run("vectoradd").expect(out="vectoradd: ok\n", err="")
            result = daemon.run("vectoradd", env=certificates.client("alice"))
            result.expect(out="vectoradd: ok\n", err="")
            run("vectoradd", remote=daemon.clear_address).expect(out="vectoradd: ok\n")


@case("the daemon's own user is refused, too, with a certificate of no tenant")
def _():
    with Certificates() as certificates:
        for more in ((), ("--insecure",)):
            with Encrypted(certificates, *more) as daemon:
                expect_refusal(daemon, "refused: the client certificate does not belong to a tenant",
                               'refused: the certificate of "alice" does not belong to a tenant', certificates.client("alice"))


@case("the name localhost, and authorities after a token, are accepted, too")
def _():
    with Certificates() as certificates:
        token = os.path.join(certificates.folder, "token")
        # The folder is a pool's: its ca.pem follows the token.
        subprocess.run([os.environ["GP_CTL"], "token", "create", "default", "-D", certificates.folder, "-o", token],
                       check=True, stdout=subprocess.DEVNULL, timeout=60)
        require("BEGIN CERTIFICATE" in read_file(token), read_file(token))
        with Encrypted(certificates, "--tokens", certificates.file("tokens", "").rstrip(".")) as daemon:
            remote = daemon.address.replace("127.0.0.1", "localhost")
            run("vectoradd", remote=remote, env={"GPUPOOL_TOKEN_FILE": token}).expect(out="vectoradd: ok\n")
            run("vectoradd", remote=remote, env=certificates.client()).expect(out="vectoradd: ok\n")


@case("copies of many sizes, of streams and threads, over three encrypted data lanes")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        result = daemon.run("lanes", env=certificates.client(**FOUR)).expect(out=LANES_OUT)
        require("3 data lanes" in result.err, f"not three data lanes: {result}")


@case("the daemon allows eight lanes, encrypted or not, or the number of its option")
def _():
    nine = {"GPUPOOL_LANES": "9", "GPUPOOL_LOG": "info,error"}
    with Certificates() as certificates:
        for more, encrypted, clear in ((), 7, 7), (("--lanes=3",), 2, 2):
            with Encrypted(certificates, *more) as daemon:
                for remote, count in (daemon.address, encrypted), (daemon.clear_address, clear):
                    result = run("lanes", "short", remote=remote, env=certificates.client(**nine)).expect(out="lanes: ok\n")
                    require(f" {count} data lanes" in result.err, f"not {count} data lanes: {result}")


@case("nbody over TLS is right")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        result = daemon.run("nbody", "-compare", "-numbodies=512", path=os.environ["GP_NBODY"])
        require(result.status == 0, str(result))


@case("callbacks, host functions, streams and errors over TLS")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        for name in ("callbacks", "hostfunc", "streams", "threads", "copies", "printf"):
            expected = os.path.join(os.path.dirname(__file__), "..", "apps", "expected", name + ".out")
            result = daemon.run(name)
            require(result.status == 0, str(result))
            if os.path.exists(expected):
                result.expect(out=read_file(expected))


@case("a program that is killed leaves nothing")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        program = daemon.start("sleeper", "-endless")
        program.wait_for_output("running")
        program.kill()
        daemon.wait_for_log(r"session 1 .*: closed: ")
        daemon.run("vectoradd").expect(out="vectoradd: ok\n")


@case("a daemon of an authority that the client does not know")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        says = r"tls://127\.0\.0\.1:\d+: the daemon's certificate is signed by an unknown authority"
        expect_refusal(daemon, says, REFUSED + "the client refuses the TLS handshake: unknown CA",
                       certificates.client(authority="other"))
        # Nor do the authorities of the machine know it.
        expect_refusal(daemon, says, REFUSED + "the client refuses the TLS handshake: unknown CA", {})


@case("a daemon's certificate for another name")
def _():
    with Certificates() as certificates, Encrypted(certificates, shows="elsewhere") as daemon:
        for host in ("127.0.0.1", "localhost"):
            result = run("vectoradd", remote=daemon.address.replace("127.0.0.1", host), env=certificates.client())
            require(result.status == 1 and "the daemon's certificate is for another name or address" in result.err,
                    str(result))
        daemon.wait_for_log(REFUSED, count=2)


@case("a daemon's certificate that has expired")
def _():
    with Certificates() as certificates, Encrypted(certificates, shows="old") as daemon:
        result = daemon.run("vectoradd")
        require(result.status == 1 and "the daemon's certificate has expired" in result.err, str(result))
        daemon.wait_for_log(REFUSED + "the client refuses the TLS handshake: certificate expired")
        warned = "warning: the daemon's certificate has expired"
        require(daemon.log().count(warned) == 1, f"one warning at the start: {daemon.log()}")
        os.kill(daemon.pid, signal.SIGHUP)
        daemon.wait_for_log(warned, count=2)
        for kind in ("pem", "key"):
            shutil.copy(certificates.file("renewed", kind), certificates.file("old", kind))
        os.kill(daemon.pid, signal.SIGHUP)
        daemon.wait_for_log("the certificate is active", count=2)
        require(daemon.log().count(warned) == 2, f"a warning of one that holds: {daemon.log()}")
        daemon.run("vectoradd").expect(out="vectoradd: ok\n")


@case("a client's certificate that has expired, or is of another authority")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        for name, says, logs in (("past", "certificate expired", "has expired"),
                                 ("mallory", "unknown CA", "is signed by an unknown authority")):
            expect_refusal(daemon, "the daemon does not accept this end's certificate: " + says,
                           REFUSED + "the client's certificate " + logs, certificates.client(name))


@case("refused handshakes are counted")
def _():
    with Certificates() as certificates, Encrypted(certificates, "--metrics=127.0.0.1:0") as daemon:
        for name in ("past", "mallory"):
            daemon.run("vectoradd", env=certificates.client(name))
        daemon.wait_for_log(REFUSED, count=2)
        url = re.search(r"^metrics at (\S+)$", read_file(daemon.out_path), re.M)[1]
        with urllib.request.urlopen(url, timeout=20) as answer:
            text = answer.read().decode()
        require('gpupool_refused_clients_total{reason="tls_handshake"} 2\n' in text, text)


@case("files that are no certificates are named")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        for env, says in (({"GPUPOOL_TLS_CA": "/nowhere/ca.pem"}, r"TLS: authority /nowhere/ca\.pem: No such file"),
                          ({"GPUPOOL_TLS_CA": certificates.file("ca", "nothing")}, "No such file"),
                          ({"GPUPOOL_TLS_CA": os.environ["GP_NBODY"]}, "authority .*nbody cannot be used"),
                          ({"GPUPOOL_TLS_CERT": certificates.file("alice")},
                           "GPUPOOL_TLS_CERT is set, and GPUPOOL_TLS_KEY is not"),
                          (certificates.client("alice", GPUPOOL_TLS_KEY=certificates.file("past", "key")),
                           "key .*past.key cannot be used: key values mismatch")):
            result = run("vectoradd", remote=daemon.address, env=env)
            require(result.status == 1 and re.search(says, result.err), f"expected {says!r}: {result}")


@case("clear text where TLS is wanted, and TLS where there is none")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        expect_refusal(daemon, "refused: this address requires TLS: use tls:// instead of tcp://",
                       REFUSED + "this address requires TLS", certificates.client(),
                       remote=daemon.address.replace("tls://", "tcp://"))
        expect_refusal(daemon, "refused, by an unauthenticated reply: this address of the daemon is without TLS",
                       "refused: this address of the daemon is without TLS", certificates.client(),
                       remote=daemon.clear_address.replace("tcp://", "tls://"))


@case("of a message in clear to a client that requests TLS, one line is printed, marked as unencrypted")
def _():
    with socket.create_server(("127.0.0.1", 0)) as server:
        def answer():
            conn, _address = server.accept()
            with conn:
                conn.recv(64, socket.MSG_WAITALL)
                conn.sendall(preamble() + message(field(3, field(1, 2) + field(2, "\x1b]0;mine\a\x1b[31mEVIL\ngpupool: all is fine\r"))))
                while conn.recv(4096):
                    pass
        thread = threading.Thread(target=answer)
        thread.start()
        result = run("vectoradd", remote=f"tls://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    require(re.fullmatch(r"gpupool: tls://127\.0\.0\.1:\d+: refused, by an unauthenticated reply: "
                         r"\\x1b\]0;mine\\x07\\x1b\[31mEVIL\\x0agpupool: all is fine\\x0d\n", result.err), f"{result.err!r}")


def context(version=None, certificates=None, verify=True):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED if verify else ssl.CERT_NONE
    if version:
        made.maximum_version = version
    if certificates:
        made.load_verify_locations(certificates.file("ca"))
    return made


def open_tls(daemon, made, kind=wire.CONTROL_TLS, lane=0, ticket=bytes(32)):
    """A socket of Python's TLS after the preambles."""
    raw = socket.create_connection(("127.0.0.1", daemon.port), timeout=20)
    raw.sendall(preamble(kind, lane, ticket))
    if kind == wire.CONTROL_TLS:
        answer = wire.take(raw, 64)
        require(struct.unpack_from("<H", answer, 12)[0] == wire.CONTROL_TLS, f"answer {answer.hex()}")
    return made.wrap_socket(raw, server_hostname="127.0.0.1")


@case("another implementation's records are understood, and ours by it")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        with open_tls(daemon, context(certificates=certificates)) as tls:
            require(tls.version() == "TLSv1.3", tls.version())
            tls.sendall(message(hello()))
            answer = wire.take(tls, struct.unpack_from("<I", wire.take(tls, 8))[0])
            require(2 in wire.fields_of(answer), "no Welcome")
            tls.sendall(message(field(7, field(1, "bye"))))


@case("TLS 1.2 is refused")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        try:
            open_tls(daemon, context(ssl.TLSVersion.TLSv1_2, certificates))
            require(False, "TLS 1.2 was accepted")
        except ssl.SSLError:
            pass
        daemon.wait_for_log(REFUSED + r"the client does not speak TLS 1\.3")
        require(len(refused_lines(daemon)) == 1, daemon.log())
        daemon.run("vectoradd").expect(out="vectoradd: ok\n")


@case("data after the preambles that is not TLS is refused")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        for bytes_, logs in ((message(hello()), "the client does not speak TLS"),
                             (b"GET / HTTP/1.1\r\n\r\n" + bytes(100), "the client does not speak TLS"),
                             (b"\x16\x03\x01\x00\x05hello" + bytes(100), "the TLS handshake failed|does not speak TLS")):
            with Conn(daemon.port) as conn:
                conn.send(preamble(wire.CONTROL_TLS))
                conn.take(64)
                conn.send(bytes_)
                daemon.wait_for_log(REFUSED + "(?:" + logs + ")")
        daemon.run("vectoradd").expect(out="vectoradd: ok\n")


@case("a handshake that was recorded is worth nothing the second time")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        recorded = []
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]

            def relay():
                near, _ = server.accept()
                far = socket.create_connection(("127.0.0.1", daemon.port))

                def pump(source, target, keep):
                    while True:
                        try:
                            data = source.recv(65536)
                        except OSError:
                            data = b""
                        if keep is not None:
                            keep.append(data)
                        if not data:
                            break
                        target.sendall(data)
                    try:
                        target.shutdown(socket.SHUT_WR)
                    except OSError:
                        pass
                back = threading.Thread(target=pump, args=(far, near, None), daemon=True)
                back.start()
                pump(near, far, recorded)
                back.join(10)

            thread = threading.Thread(target=relay, daemon=True)
            thread.start()
            made = context(certificates=certificates)
            raw = socket.create_connection(("127.0.0.1", port), timeout=20)
            raw.sendall(preamble(wire.CONTROL_TLS))
            wire.take(raw, 64)
            with made.wrap_socket(raw, server_hostname="127.0.0.1") as tls:
                tls.sendall(message(hello()))
                tls.recv(65536)
            thread.join(10)
        replayed = b"".join(recorded)
        require(len(replayed) > 400, f"{len(replayed)} bytes recorded")
        with Conn(daemon.port) as conn:
            conn.send(replayed)
            daemon.wait_for_log(REFUSED + "(?!the client refuses).*")
        require(len(re.findall(r"session 2 ", daemon.log())) == 0, "the replay has a session")
        daemon.run("vectoradd").expect(out="vectoradd: ok\n")


@case("a silent peer is dropped after ten seconds, and delays no other client")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        begin = time.monotonic()
        with Conn(daemon.port) as silent, Conn(daemon.port) as half:
            silent.send(preamble(wire.CONTROL_TLS))
            silent.take(64)
            half.send(preamble(wire.CONTROL_TLS) + b"\x16\x03\x01\x01\x00\x01\x00")
            daemon.run("vectoradd").expect(out="vectoradd: ok\n")
            daemon.wait_for_log(r"warning: tls://.*(?:in time|within the timeout)", 30, count=2)
        require(time.monotonic() - begin >= 9, "they were given up too early")


@case("a lane without the key, or with a name that is none, costs the session nothing")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        tls = open_tls(daemon, context(certificates=certificates))
        tls.sendall(message(hello(lanes=4)))
        answer = wire.take(tls, struct.unpack_from("<I", wire.take(tls, 8))[0])
        ticket = wire.fields_of(wire.fields_of(answer)[2][0])[4][0]
        # The ticket itself is not what a lane shows.
        with Conn(daemon.port) as conn:
            conn.send(preamble(wire.LANE_TLS, 0, ticket))
            daemon.wait_for_log("a lane with an unknown ticket: closed")
        name = hashlib.sha256(b"gpupool ticket name" + ticket).digest()
        for number in (1, 2):
            try:
                open_tls(daemon, context(verify=False), wire.LANE_TLS, 0, name)
                require(False, "a lane without the key was accepted")
            except ssl.SSLError:
                pass
            daemon.wait_for_log(r"session 1: a lane \(0\) is refused: the client has no key", count=number)
            time.sleep(0.2)
        with Conn(daemon.port) as conn:
            conn.send(preamble(wire.LANE_TLS, 0, name) + bytes(200))
            daemon.wait_for_log(r"session 1: a lane \(0\) is refused: the client does not speak TLS")
        # This address does not accept a lane in clear.
        with Conn(daemon.port) as conn:
            conn.send(preamble(wire.LANE, 0, ticket))
            daemon.wait_for_log(REFUSED + "this address requires TLS")
        # Where lanes in clear may come it is one, but none of this session's.
        with Conn(daemon.clear_port) as conn:
            conn.send(preamble(wire.LANE, 0, ticket))
            daemon.wait_for_log(r"session 1: a lane \(0\) unencrypted, of a session over TLS: closed")
        require("session 1 (" not in "".join(line for line in daemon.log().splitlines() if "closed" in line), daemon.log())
        tls.sendall(message(field(7, field(1, "bye"))))
        tls.close()
        daemon.run("lanes", "short", env=certificates.client(**FOUR)).expect(out="lanes: ok\n")


@case("the certificate is read again on SIGHUP, and a bad one changes nothing")
def _():
    with Certificates() as certificates, Encrypted(certificates, shows="elsewhere") as daemon:
        require(daemon.run("vectoradd").status == 1, "another's certificate was accepted")
        for kind in ("pem", "key"):
            shutil.copy(certificates.file("renewed", kind), certificates.file("elsewhere", kind))
        os.kill(daemon.pid, signal.SIGHUP)
        daemon.wait_for_log("the certificate is active")
        daemon.run("vectoradd").expect(out="vectoradd: ok\n")
        shutil.copy(certificates.file("old", "key"), certificates.file("elsewhere", "key"))
        os.kill(daemon.pid, signal.SIGHUP)
        daemon.wait_for_log("reload failed, nothing changed: key .*elsewhere.key cannot be used: key values mismatch")
        daemon.run("vectoradd").expect(out="vectoradd: ok\n")
        # Clients would refuse a client's certificate as the daemon's, and accept one without a stated use.
        for name, words in (("alice", "reload failed, nothing changed: certificate .*elsewhere.pem is not valid for servers"),
                            ("any", "the certificate is active")):
            before = len(re.findall(words, daemon.log()))
            for kind in ("pem", "key"):
                shutil.copy(certificates.file(name, kind), certificates.file("elsewhere", kind))
            os.kill(daemon.pid, signal.SIGHUP)
            daemon.wait_for_log(words, count=before + 1)
            daemon.run("vectoradd").expect(out="vectoradd: ok\n")


def start_fails(args, says, env=None):
    command = [os.environ["GP_DAEMON"], *driver_options(), "--admin-socket", "off", *args]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                            env={**base_environment(), **(env or {})})
    require(result.returncode == 1 and re.search(says, result.stderr), f"{args}: {result}")


@case("pipes and devices in place of files are refused at once, and named")
def _():
    with Certificates() as certificates, Encrypted(certificates) as daemon:
        pipe = os.path.join(certificates.folder, "pipe")
        os.mkfifo(pipe)
        alice = certificates.client("alice")
        for file, kind in ((pipe, "pipe"), ("/dev/zero", "zero")):
            for name, says in (("GPUPOOL_TLS_CA", "TLS: authority "), ("GPUPOOL_TLS_CRL", "TLS: CRL "),
                               ("GPUPOOL_TLS_CERT", "TLS: certificate "), ("GPUPOOL_TLS_KEY", "TLS: key ")):
                result = run("vectoradd", remote=daemon.address, env={**alice, name: file})
                require(result.status == 1 and f"{says}{file}: not a regular file" in result.err,
                        f"{name} {kind}: {result}")
            token = {"GPUPOOL_TOKEN_FILE": file}
            # Where the token's file would have the authority, too, and where not.
            for env in (token, {**token, "GPUPOOL_TLS_CA": alice["GPUPOOL_TLS_CA"]}):
                result = run("vectoradd", remote=daemon.address, env=env)
                require(result.status == 1 and result.seconds < PATIENCE / 4, f"{kind}: {result}")
            require(f"GPUPOOL_TOKEN_FILE={file}: Invalid argument" in result.err, f"{kind}: {result}")
            own = {"--certificate": certificates.file("server"), "--key": certificates.file("server", "key"),
                   "--client-authority": certificates.file("ca")}
            for option, says in (("--certificate", "certificate "), ("--key", "key "), ("--client-authority", "authority ")):
                files = [f"{name}={path}" for name, path in {**own, option: file}.items()]
                start_fails(["--listen", "tls://127.0.0.1:0", *files], f"{says}{file}: not a regular file")
            for option in ("--crl", "--tokens"):
                files = [f"{name}={path}" for name, path in {**own, option: file}.items()]
                start_fails(["--listen", "tls://127.0.0.1:0", *files], f"{file}: Invalid argument")


@case("a daemon without a usable certificate does not start with TLS")
def _():
    with Certificates() as certificates:
        nowhere = {"HOME": certificates.folder, "XDG_CONFIG_HOME": certificates.folder}
        listen = ["--listen", "tls://127.0.0.1:0"]
        start_fails(listen, r"cannot listen on tls://127\.0\.0\.1:0: the daemon has no certificate", nowhere)
        start_fails([*listen, "--certificate", certificates.file("server")], "a certificate needs its key", nowhere)
        start_fails([*listen, "--certificate", "/nowhere", "--key", "/nowhere"], "certificate /nowhere: No such file")
        start_fails([*listen, "--certificate", certificates.file("server"), "--key", certificates.file("old", "key")],
                    "key values mismatch")
        start_fails([*listen, *certificates.daemon("alice")], r"gpupoold: certificate \S+/alice.pem is not valid for servers ")


if __name__ == "__main__":
    sys.exit(main(at_once=3))
