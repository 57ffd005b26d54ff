# SPDX-License-Identifier: Apache-2.0
"""A pool's folder for one test, with a daemon and gpupoolctl that use it, as an operator has it. Used by
test_operator.py and test_doctor.py."""
import json
import os
import shutil
import subprocess
import tempfile
import time

from harness import PATIENCE, SOFTWARE, Daemon, Skip, base_environment, require, software_env

# Of the software device, on which all of this runs: the numbers below are its own.
DEVICE = {"GPUPOOL_SOFT_MEMORY": "512M", "GPUPOOL_SOFT_MULTIPROCESSORS": "4"}


class Folder:
    """The pool's usual folder, of this test alone; a context manager. any_device: its daemons' may be a GPU."""

    def __init__(self, any_device=False):
        self.any_device = any_device

    def __enter__(self):
        if not SOFTWARE and not self.any_device:
            raise Skip("its numbers are those of the software device")
        self.path = tempfile.mkdtemp(prefix="gpupool-operator-")
        os.chmod(self.path, 0o755)
        self.socket = os.path.join(self.path, "admin.sock")
        self.env = {"CONFIGURATION_DIRECTORY": self.path}
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name="gpupoold.conf"):
        return os.path.join(self.path, name)

    def write(self, text, name="gpupoold.conf"):
        with open(self.file(name), "w", encoding="ascii") as file:
            file.write(text)

    def daemon(self, *args, **more):
        return Daemon("--admin-socket", self.socket, *args, env={**self.env, **software_env(**DEVICE), **more})

    def run(self, program, *args, stdin=None, status=0, **more):
        """(standard output, standard error)"""
        done = subprocess.run([os.environ[program], *args], capture_output=True, text=True, input=stdin or "", check=False,
                              timeout=PATIENCE, env={**base_environment(), **self.env, **more})
        require(done.returncode == status, f"{args} ended with {done.returncode}, not {status}: {done.stdout}{done.stderr}")
        return done.stdout, done.stderr

    def ctl(self, *args, **more):
        return self.run("GP_CTL", "--socket", self.socket, *args, **more)

    def ask(self, *args):
        return json.loads(self.ctl(*args, "--format=json")[0])

    def token(self, tenant, *args):
        path = self.file(f"{tenant}.token")
        return path, self.ctl("token", "create", tenant, "-o", path, "--force", *args)[1]


def has(text, *words):
    for word in words:
        require(word in text, f"expected {word!r} in: {text}")


def sign(folder, begin, end):
    """Another certificate for the daemon's key; begin and end are days from now."""
    if not shutil.which("openssl"):
        raise Skip("needs openssl")
    days = [time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + int(day) * 86400)) for day in (begin, end)]
    ca = folder.file("made")
    shutil.rmtree(ca, ignore_errors=True)
    os.makedirs(ca)
    for name, text in (("index", ""), ("serial", "77\n"), ("config", "[ca]\ndefault_ca = d\n[d]\ndatabase = %s/index\nserial = %s/serial\n"
                                                          "new_certs_dir = %s\ndefault_md = sha256\npolicy = p\nx509_extensions = x\n[p]\n"
                                                          "commonName = supplied\n[x]\nsubjectAltName = IP:127.0.0.1\n"
                                                          "extendedKeyUsage = serverAuth\n" % (ca, ca, ca))):
        with open(os.path.join(ca, name), "w", encoding="ascii") as file:
            file.write(text)
    for command in (["req", "-new", "-key", folder.file("server.key"), "-subj", "/CN=server", "-out", f"{ca}/request"],
                    ["ca", "-batch", "-config", f"{ca}/config", "-in", f"{ca}/request", "-cert", folder.file("ca.pem"), "-keyfile",
                     folder.file("ca.key"), "-startdate", days[0], "-enddate", days[1], "-out", folder.file("server.pem"), "-notext"]):
        subprocess.run(["openssl", *command], check=True, capture_output=True, timeout=PATIENCE)
