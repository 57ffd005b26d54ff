# SPDX-License-Identifier: Apache-2.0
"""Revoked client certificates, with a list that gpupoolctl writes: which clients are rejected, which sessions end, and
the effect of an unusable list."""
import grp
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request

from harness import (PATIENCE, SANITIZED, SOFTWARE, Daemon, Encrypted, Skip, base_environment, case, driver_options,
                     main, read_file, require)
from pool import ctl

# The maximum time for revoking a certificate, and a little more.
SOON = 30 if SANITIZED else 3
# The seconds that sessions continue while the list is not usable.
GRACE = 10
CONFIG = "[tenant carol]\n[tenant dave]\n"
REVOKED = "the client certificate has been revoked"
UNCHECKED = "the daemon cannot check whether the client certificate is revoked"


class Files:
    """A pool's folder with an authority, a daemon's certificate and those of carol and dave; a context manager."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="gpupool-files-")
        self.ctl("cert", "init", "127.0.0.1", "localhost")
        for name in ("carol", "dave"):
            self.ctl("cert", "client", name)

    def ctl(self, *args, status=0):
        return ctl(*args, "-D", self.folder, status=status)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        """In one piece, as gpupoolctl does."""
        with open(self.path(name + ".written"), "w", encoding="ascii") as file:
            file.write(text)
        os.rename(self.path(name + ".written"), self.path(name))
        return self.path(name)

    def serial(self, name):
        return json.loads(self.ctl("cert", "show", self.path(name + ".pem"), "--format=json"))["serial"]

    def daemon(self, name="server"):
        return ["--certificate", self.path(name + ".pem"), "--key", self.path(name + ".key"),
                "--client-authority", self.path("ca.pem")]

    def client(self, name=None, **more):
        env = {"GPUPOOL_TLS_CA": self.path("ca.pem")}
        if name:
            env.update(GPUPOOL_TLS_CERT=self.path(name + ".pem"), GPUPOOL_TLS_KEY=self.path(name + ".key"))
        return {**env, **more}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)


class Pool(Encrypted):
    """A daemon that finds the list where the configuration names it, or by these arguments."""

    def __init__(self, files, *args, config=CONFIG, **more):
        self.files = files
        self.config = files.write("gpupoold.conf", config)
        self.socket = files.path("admin.sock")
        super().__init__(files, "--config", self.config, "--admin-socket", self.socket, *args, **more)

    def works(self, name, **more):
        self.run("vectoradd", env=self.files.client(name, **more)).expect(out="vectoradd: ok\n", err="")

    def refused(self, name, text, log, **more):
        """Requires one line of the client with text, and one of the daemon with log. Sessions that end for
        the same reason may add lines meanwhile."""
        log = f"refused: .*(?:{log})"
        before = len(re.findall(log, self.log(), re.M))
        others = len(re.findall("refused", self.log()))
        result = self.run("vectoradd", env=self.files.client(name, **more))
        require(result.status == 1 and f"refused: {text}" in result.err and result.err.count("\n") == 1,
                f"expected one line with {text!r}: {result}")
        require(len(re.findall(log, self.log(), re.M)) == before + 1 and
                len(re.findall("refused", self.log())) == others + 1, f"not one more line like {log!r}:\n{self.log()}")

    def sleeper(self, name, ms=60000, **more):
        program = self.start("sleeper", f"-ms={ms}", env=self.files.client(name, **more))
        program.wait_for_output("running")
        return program

    def credentials(self):
        """The credentials of the only session."""
        row = ctl("--socket", self.socket, "session", "list", "--format=csv").splitlines()[1]
        return json.loads(ctl("--socket", self.socket, "session", "show", row.split(",")[0], "--format=json"))["credentials"]


def expect_ended(program, seconds):
    begin = time.monotonic()
    result = program.finish(seconds)
    require(time.monotonic() - begin < seconds, f"it took {time.monotonic() - begin:.1f} s")
    require(result.status == 1 and "(810)" in result.out, f"expected error 810: {result}")


def start_fails(files, text, *args, config=CONFIG, listen="tls://127.0.0.1:0", given=None):
    """The daemon does not start, and reports this in one line."""
    done = subprocess.run([os.environ["GP_DAEMON"], "--listen", listen, "--admin-socket", "off", *driver_options(),
                           "--config", files.write("other.conf", config),
                           *(files.daemon() if given is None else given), *args],
                          capture_output=True, text=True, env=base_environment(), timeout=PATIENCE, check=False)
    require(done.returncode == 1 and re.search(text, done.stderr) and done.stderr.count("\n") == 1,
            f"expected {text!r}: {done.returncode} {done.stderr}")


@case("a revoked certificate is refused, also with other credentials, and no other certificate is")
def _():
    with Files() as files:
        files.ctl("cert", "crl")
        serial = files.serial("carol")
        token = files.path("token")
        ctl("token", "create", "carol", "-D", files.folder, "-o", token)
        log = rf'the certificate of "carol", {serial}, has been revoked$'
        with Pool(files, "--crl", files.path("ca.crl"), "--tokens", files.path("tokens"), "--metrics=127.0.0.1:0") as pool:
            pool.works("carol")
            files.ctl("cert", "revoke", "carol")
            pool.refused("carol", REVOKED, log)
            pool.refused("carol", REVOKED, log, GPUPOOL_TOKEN_FILE=token)
            pool.works("dave")
            # Without the certificate, a client is authenticated by its other credentials.
            pool.works(None, GPUPOOL_TOKEN_FILE=token)
            pool.works(None)
            # Another one of this name is another one.
            files.ctl("cert", "client", "carol", "--force")
            pool.works("carol")
            url = re.search(r"^metrics at (\S+)$", read_file(pool.out_path), re.M)[1]
            with urllib.request.urlopen(url, timeout=20) as answer:
                text = answer.read().decode()
            require('gpupool_refused_clients_total{reason="revoked_certificate"} 2\n' in text, text)


@case("revoking a certificate ends its sessions within two seconds, and no others")
def _():
    with Files() as files:
        files.ctl("cert", "crl")
        ctl("token", "create", "carol", "-D", files.folder, "-o", files.path("token"))
        config = f"[daemon]\ncrl = {files.path('ca.crl')}\n{CONFIG}"
        with Pool(files, "--tokens", files.path("tokens"), config=config) as pool:
            ended = [pool.sleeper("carol", GPUPOOL_LANES="4"), pool.sleeper("carol", GPUPOOL_TOKEN_FILE=files.path("token"))]
            stays = [pool.sleeper("dave", 5000), pool.sleeper(None, 5000, GPUPOOL_TOKEN_FILE=files.path("token"))]
            begin = time.monotonic()
            files.ctl("cert", "revoke", files.serial("carol"))
            pool.wait_for_log(r"session \d+ .*: its certificate has been revoked", SOON, count=2)
            for program in ended:
                expect_ended(program, SOON)
            require(time.monotonic() - begin < SOON + 1, f"it took {time.monotonic() - begin:.1f} s")
            for program in stays:
                program.finish().expect()
            # A GPU does not stop a kernel: that is the last line about its session in the log.
            told = "closed: its certificate has been revoked" if SOFTWARE else r"session \d+ .*: its certificate has been revoked"
            require(len(re.findall(told, pool.log())) == 2, pool.log())


@case("session show has the number of a session's certificate, which revokes it")
def _():
    with Files() as files:
        files.ctl("cert", "crl")
        with Pool(files, "--crl", files.path("ca.crl")) as pool:
            program = pool.sleeper("carol")
            serial = files.serial("carol")
            require(pool.credentials() == f"certificate carol, {serial}", pool.credentials())
            os.unlink(files.path("carol.pem"))
            files.ctl("cert", "revoke", serial)
            expect_ended(program, SOON)


@case("a list in the usual folder is taken up when it comes, and missed when it goes")
def _():
    with Files() as files, Pool(files, env={"CONFIGURATION_DIRECTORY": files.folder}) as pool:
        pool.works("carol")
        program = pool.sleeper("carol")
        files.ctl("cert", "revoke", "carol")
        expect_ended(program, SOON)
        pool.refused("carol", REVOKED, "has been revoked")
        pool.works("dave")
        os.rename(files.path("ca.crl"), files.path("aside"))
        pool.refused("dave", UNCHECKED, r'the certificate of "dave", \w+, cannot be checked: '
                     "CRL not usable")
        require(len(re.findall(r"error: CRL not usable: .*/ca\.crl: No such file", pool.log()))
                == 1, pool.log())
        # A revocation that the daemon has read applies without the list.
        pool.refused("carol", REVOKED, "has been revoked")
        os.rename(files.path("aside"), files.path("ca.crl"))
        pool.works("dave")


def lists(files):
    """Unusable lists: a name, the text, and the error message."""
    other = os.path.join(files.folder, "elsewhere")
    ctl("cert", "init", "elsewhere", "-D", other)
    ctl("cert", "crl", "-D", other)
    shutil.copy(files.path("ca.crl"), files.path("kept"))
    files.ctl("cert", "crl", "--expires", "1s")
    time.sleep(1.1)
    expired = read_file(files.path("ca.crl"))
    os.rename(files.path("kept"), files.path("ca.crl"))
    good = read_file(files.path("ca.crl"))
    return [("nothing", "", "no CRL found"),
            ("a certificate", read_file(files.path("ca.pem")), "no CRL found"),
            ("half", good[:len(good) // 2], "malformed CRL: "),
            ("forged", good[:60] + ("A" if good[60] != "A" else "B") + good[61:], "malformed CRL|is signed by an authority"),
            ("another's", read_file(os.path.join(other, "ca.crl")), "is signed by an authority that is not trusted for client certificates: gpupool authority of"),
            ("expired", expired, r"the CRL has expired: \d{4}-")]


@case("the daemon does not start with a list that cannot be used")
def _():
    with Files() as files:
        files.ctl("cert", "crl")
        start_fails(files, r"^gpupoold: /nowhere/ca\.crl: No such file or directory$", "--crl", "/nowhere/ca.crl")
        start_fails(files, r"^gpupoold: /nowhere: No such file", config="[daemon]\ncrl = /nowhere\n")
        start_fails(files, r"^gpupoold: .*: Is a directory$", "--crl", files.folder)
        start_fails(files, r"crl = here: \"here\" is not an absolute path", config="[daemon]\ncrl = here\n")
        for _name, text, says in lists(files):
            start_fails(files, r"^gpupoold: .*/list: .*" + says, "--crl", files.write("list", text))


@case("a list without an address that requests client certificates is refused, and the text names the missing setting")
def _():
    with Files() as files:
        files.ctl("cert", "crl")
        own = ["--certificate", files.path("server.pem"), "--key", files.path("server.key")]
        for listen, given, says in (("tcp://127.0.0.1:0", [], "no address with TLS, or no certificate to show there"),
                                    ("tcp://127.0.0.1:0", own, r"no authority .*\(--client-authority\)"),
                                    ("tls://127.0.0.1:0", own, r"no authority .*\(--client-authority\)")):
            for path in (files.path("ca.crl"), "/nope"):
                for config, option in (("", ["--crl", path]), (f"[daemon]\ncrl = {path}\n", [])):
                    start_fails(files, f"^gpupoold: {path}: .*clients are not asked for a certificate: {says}", *option,
                                config=config, listen=listen, given=given)
        # A list that no option or setting names may be useless, in any folder.
        with Daemon(env={"CONFIGURATION_DIRECTORY": files.folder}) as daemon:
            daemon.check_works()


@case("while the list is not usable every certificate is refused, and the log has the reason once")
def _():
    with Files() as files:
        files.ctl("cert", "crl")
        token = files.path("token")
        ctl("token", "create", "carol", "-D", files.folder, "-o", token)
        bad = lists(files)
        good = read_file(files.path("ca.crl"))
        files.write("list", good)
        with Pool(files, "--crl", files.path("list"), "--tokens", files.path("tokens")) as pool:
            stays = pool.sleeper("carol", 4000)
            for name, text, says in bad:
                before = len(pool.log())
                files.write("list", text)
                for _again in range(2):
                    pool.refused("carol", UNCHECKED, "cannot be checked: CRL not usable")
                found = re.findall("error: CRL not usable: client certificates are rejected, and sessions "
                                   f"authenticated by a certificate end in {GRACE} s: .*(?:{says})", pool.log()[before:])
                require(len(found) == 1, f"{name}: {found} in\n{pool.log()}")
                # A token is as good as before.
                if name == "half":
                    pool.works("carol", GPUPOOL_TOKEN_FILE=token)
                    pool.works(None)
                files.write("list", good)
                pool.works("carol")
            # No session ended, because each time was short.
            stays.finish().expect()


@case("an expired list ends the sessions of certificates after ten seconds, and a new list accepts them again")
def _():
    with Files() as files:
        life = 8 if SANITIZED else 4
        files.ctl("cert", "crl")
        with Pool(files, "--crl", files.path("ca.crl")) as pool:
            program, own = pool.sleeper("carol"), pool.sleeper(None, 1000 * (life + GRACE + 2))
            begin = time.monotonic()
            files.ctl("cert", "crl", "--expires", f"{life}s")
            pool.wait_for_log("error: CRL not usable: .* has expired", life + SOON)
            pool.refused("carol", UNCHECKED, "cannot be checked")
            require(program.process.poll() is None, f"it has ended already: {program.out()}")
            expect_ended(program, GRACE + SOON)
            require(time.monotonic() - begin > GRACE, "it ended at once")
            pool.wait_for_log(r"session \d+ .*: its certificate cannot be checked: the daemon's CRL is not usable")
            own.finish().expect()
            files.ctl("cert", "crl")
            pool.works("carol")
            require(pool.log().count("error: CRL not usable") == 1, pool.log())


@case("a reload finds another list, and another authority whose list it must be")
def _():
    with Files() as files, Files() as others:
        for some in (files, others):
            some.ctl("cert", "crl")
        others.ctl("cert", "revoke", "dave")
        with Pool(files, config=f"[daemon]\ncrl = {files.path('ca.crl')}\n{CONFIG}") as pool:
            def reload(crl, words, status=1):
                before = len(re.findall(words, pool.log()))
                files.write("gpupoold.conf", f"[daemon]\ncrl = {crl}\n{CONFIG}")
                said = ctl("--socket", pool.socket, "reload", status=status)
                pool.wait_for_log(words, count=before + 1)
                require(status == 0 or re.search(f"^gpupoolctl: partly applied: CRL .*{words}", said), said)
            reload("/nowhere", "unchanged: /nowhere: No such file")
            pool.works("carol")
            reload(others.path("ca.crl"), "unchanged: .* is signed by an authority that")
            pool.works("carol")
            program = pool.sleeper("dave")
            shutil.copy(files.path("ca.crl"), files.path("next.crl"))
            files.ctl("cert", "revoke", "dave")
            expect_ended(program, SOON)
            reload(files.path("next.crl"), r"next\.crl has been read: 0 revoked, expires", status=0)
            pool.works("dave")
            # Another authority replaces the old one, whose list does not cover the new certificates.
            shutil.copy(others.path("ca.pem"), files.path("ca.pem"))
            reload(files.path("next.crl"), "not usable: .*is signed by an authority that")
            said = ctl("--socket", pool.socket, "reload", status=1)
            require(re.search("CRL not usable: .*is signed by an authority that", said), said)
            new = {**others.client("carol"), "GPUPOOL_TLS_CA": files.path("server-ca.pem")}
            shutil.copy(files.path("dave.pem"), files.path("server-ca.pem"))
            pool.refused(None, UNCHECKED, "cannot be checked", **new)
            shutil.copy(others.path("ca.crl"), files.path("next.crl"))
            pool.run("vectoradd", env=new).expect(out="vectoradd: ok\n", err="")
            result = pool.run("vectoradd", env={**new, "GPUPOOL_TLS_CERT": others.path("dave.pem"),
                                                "GPUPOOL_TLS_KEY": others.path("dave.key")})
            require(REVOKED in result.err, str(result))


@case("a client refuses a daemon whose certificate is revoked, by a list of its own")
def _():
    with Files() as files, Files() as others, Pool(files) as pool:
        files.ctl("cert", "crl")
        pool.works("carol", GPUPOOL_TLS_CRL=files.path("ca.crl"))
        others.ctl("cert", "crl")
        shutil.copy(files.path("ca.crl"), files.path("short.crl"))
        files.ctl("cert", "revoke", files.path("server.pem"), "--expires", "1s")
        shutil.copy(files.path("ca.crl"), files.path("short.crl"))
        files.ctl("cert", "crl")
        time.sleep(1.1)
        for name, says in ((files.path("ca.crl"), "the daemon's certificate has been revoked"),
                           (files.path("short.crl"), "the CRL has expired"),
                           (others.path("ca.crl"), "the CRL is not issued by the authority of the daemon's "
                            "certificate"),
                           (files.path("ca.pem"), r"TLS: CRL \S+ca\.pem cannot be used"),
                           ("/nowhere", "TLS: CRL /nowhere: No such file")):
            result = pool.run("vectoradd", env=files.client("carol", GPUPOOL_TLS_CRL=name))
            require(result.status == 1 and re.search(says, result.err) and result.err.count("\n") == 1,
                    f"expected {says!r}: {result}")


@case("gpupoolctl keeps the list, its owner and its mode, and reports invalid arguments")
def _():
    with Files() as files:
        path = files.path("ca.crl")

        def states():
            return {row["name"]: row["state"] for row in json.loads(files.ctl("cert", "list", "--format=json"))}

        def fails(text, *args):
            said = files.ctl("cert", *args, status=1)
            require(text in said and said.count("\n") == 1, f"{args}: expected {text!r}: {said!r}")
        require(json.loads(files.ctl("cert", "revoked", "--format=json")) == [], "nothing is revoked yet")
        carol = files.serial("carol")
        said = files.ctl("cert", "revoke", "carol")
        require(said.startswith(f"the certificate {carol} of carol is revoked\n{path}: 1 revoked, expires 20"), said)
        require(stat.S_IMODE(os.stat(path).st_mode) == 0o644, oct(os.stat(path).st_mode))
        require(states()["carol"] == "revoked" and states()["dave"] == "good", f"{states()}")
        require(json.loads(files.ctl("cert", "show", files.path("carol.pem"), "--format=json"))["state"] == "revoked", "show")
        if os.geteuid() == 0:
            os.chown(path, 65534, grp.getgrgid(0).gr_gid)
        os.chmod(path, 0o640)
        inode = os.stat(path).st_ino
        files.ctl("cert", "crl")
        now = os.stat(path)
        require(now.st_ino != inode and stat.S_IMODE(now.st_mode) == 0o640, f"{now}")
        require(os.geteuid() != 0 or now.st_uid == 65534, f"{now}")
        # By the file, by a number with colons, by a short number from another authority's software.
        files.ctl("cert", "revoke", files.path("dave.pem"), "--expires", "30d")
        number = "0123456789ABCDEF0123456789ABCDEF"
        files.ctl("cert", "revoke", ":".join(re.findall("..", number.lower())))
        files.ctl("cert", "revoke", "0x7")
        require(not os.path.exists(path + ".new"), "the temporary file is left")
        rows = json.loads(files.ctl("cert", "revoked", "--format=json"))
        require({row["serial"]: row["file"] for row in rows} ==
                {carol: files.path("carol.pem"), files.serial("dave"): files.path("dave.pem"),
                 number: None, "07": None}, f"{rows}")
        require(all(abs(row["revoked"] - time.time()) < 1000 for row in rows), f"{rows}")
        shutil.copy(files.path("ca.key"), files.path("ca.key.pem"))
        for text, args in (("is already revoked", ("revoke", "carol")), ("is already revoked", ("revoke", "0x7")),
                           ("no certificate bea.pem in", ("revoke", "bea")), ("No such file", ("revoke", "./x.pem")),
                           ("is the authority itself", ("revoke", "ca")), ("no certificate found", ("revoke", files.path("ca.key.pem"))),
                           ("usage", ("revoke",)), ("usage", ("revoke", "a", "b")), ("usage", ("crl", "x")),
                           ("invalid duration", ("crl", "--expires", "never")), ("unknown option", ("revoke", "x", "--force"))):
            fails(text, *args)
        with Files() as others:
            fails("is not signed by the pool's authority", "revoke", others.path("carol.pem"))
            os.unlink(others.path("ca.key"))
            require("exists without" in others.ctl("cert", "revoke", "carol", status=1), "an authority without its key")
            require("no authority in" in ctl("cert", "revoke", "x", "-D", files.path("none"), status=1), "no authority")
        require(len(json.loads(files.ctl("cert", "revoked", "--format=json"))) == 4, "a failure changed the list")
        os.unlink(files.path("ca.key.pem"))
        files.ctl("cert", "crl", "--expires", "1s")
        time.sleep(1.1)
        done = subprocess.run([os.environ["GP_CTL"], "cert", "list", "-D", files.folder], capture_output=True, text=True,
                              env=base_environment(), timeout=PATIENCE, check=True)
        require("CRL expired, so daemons reject client certificates" in done.stderr, done.stderr)
        files.write("ca.crl", "nonsense\n")
        fails("not a CRL", "revoke", "0x8")


@case("openssl takes the list for one, and the daemon takes one that openssl has made")
def _():
    if not shutil.which("openssl"):
        raise Skip("there is no openssl")
    with Files() as files:
        files.ctl("cert", "revoke", "carol")
        for name, text in (("carol", "certificate revoked"), ("dave", ": OK")):
            done = subprocess.run(["openssl", "verify", "-crl_check", "-CAfile", files.path("ca.pem"), "-CRLfile",
                                   files.path("ca.crl"), files.path(name + ".pem")], capture_output=True, text=True,
                                  timeout=PATIENCE, check=False)
            require(text in done.stdout + done.stderr, f"{name}: {done}")
        files.write("index.txt", "R\t400101000000Z\t260101000000Z\t" + files.serial("dave") + "\tunknown\t/CN=dave\n")
        files.write("crlnumber", "10\n")
        files.write("openssl.cnf", f"[ca]\ndefault_ca = pool\n[pool]\ndatabase = {files.path('index.txt')}\n"
                    f"crlnumber = {files.path('crlnumber')}\ndefault_md = sha256\ndefault_crl_days = 30\n")
        subprocess.run(["openssl", "ca", "-config", files.path("openssl.cnf"), "-gencrl", "-cert", files.path("ca.pem"),
                        "-keyfile", files.path("ca.key"), "-out", files.path("theirs.crl")], check=True, capture_output=True,
                       timeout=PATIENCE)
        with Pool(files, "--crl", files.path("theirs.crl")) as pool:
            pool.works("carol")
            pool.refused("dave", REVOKED, "has been revoked")


if __name__ == "__main__":
    sys.exit(main(at_once=4))
