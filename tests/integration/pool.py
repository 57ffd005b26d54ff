# SPDX-License-Identifier: Apache-2.0
"""A daemon with authentication: tokens, a local socket, an admin socket, and programs of another user of the machine.
Used by test_credentials.py and the tests of limits."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from harness import PATIENCE, Daemon, Program, Result, Skip, base_environment, require

OTHER_USER = 65534


def ctl(*args, status=0):
    begin = time.monotonic()
    done = subprocess.run([os.environ["GP_CTL"], *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=base_environment(), timeout=PATIENCE, check=False)
    result = Result("gpupoolctl " + " ".join(args), done.stdout, done.stderr, done.returncode, time.monotonic() - begin)
    result.expect(status=status)
    return result.out if status == 0 else result.err


def share_with_other(path):
    """Gives the file to another user, if this is root: root may read it, and other readers cause a warning."""
    os.chmod(path, 0o600)
    if os.geteuid() == 0:
        os.chown(path, OTHER_USER, OTHER_USER)


class Pool(Daemon):
    """A daemon on loopback and on a local socket, with a folder of its own for the pool's files."""

    def __init__(self, *args, config=None, tokens=True, **more):
        self.files = tempfile.mkdtemp(prefix="gpupool-files-")
        os.chmod(self.files, 0o755)
        self.local = f"unix://{self.files}/run/gpupool.sock"
        self.socket = os.path.join(self.files, "admin.sock")
        if config is not None:
            self.config = os.path.join(self.files, "gpupoold.conf")
            self.write_config(config)
            args = ("--config", self.config, *args)
        if tokens:
            args = ("--tokens", self.tokens_path(), *args)
        super().__init__("--listen", self.local, "--admin-socket", self.socket, *args, **more)

    def tokens_path(self):
        return os.path.join(self.files, "tokens")

    def write_config(self, text):
        with open(self.config, "w", encoding="ascii") as file:
            file.write(text)

    def create(self, tenant, *args, folder=None):
        """The file of a new token, which the other user can read, and its ID."""
        path = os.path.join(tempfile.mkdtemp(dir=self.files), "token")
        said = ctl("token", "create", tenant, "-D", folder or self.files, "-o", path, *args)
        os.chmod(os.path.dirname(path), 0o755)
        share_with_other(path)
        return path, re.search(r"token (\w+) of tenant", said)[1]

    def revoke(self, name):
        ctl("token", "revoke", name, "-D", self.files)

    def other(self, name, *args, remote=None, **env):
        """A program of another user under way."""
        return Stranger(name, args, remote or self.address, env=env)

    def refused(self, text, log, remote=None, user=None, **env):
        """The program is refused with this text, and the log has one more line like that."""
        before = len(re.findall(log, self.log()))
        start = Program if user == "own" else Stranger
        result = start("vectoradd", (), remote or self.address, env=env).finish()
        require(result.status == 1 and f"refused: {text}" in result.err and result.err.count("\n") == 1,
                f"expected one line with {text!r}: {result}")
        require(len(re.findall(log, self.log())) == before + 1, f"not one more line like {log!r}:\n{self.log()}")

    def sessions(self):
        rows = ctl("--socket", self.socket, "session", "list", "--format=csv").splitlines()[1:]
        return [row.split(",")[1] for row in rows]

    def credentials(self):
        """The credentials of the only session."""
        row = ctl("--socket", self.socket, "session", "list", "--format=csv").splitlines()[1]
        return json.loads(ctl("--socket", self.socket, "session", "show", row.split(",")[0], "--format=json"))["credentials"]

    def discard(self):
        super().discard()
        shutil.rmtree(self.files, ignore_errors=True)


class Stranger(Program):
    """A program of a user who is not the daemon's."""

    def __init__(self, name, args=(), remote=None, env=None):
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            raise Skip("only root can start a program as another user")
        wrap = ["setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups"]
        path = os.path.join(os.environ["GP_APPS"], name)
        for needed in (path, os.path.join(os.environ["GP_CLIENT"], "libcuda.so.1")):
            if subprocess.run([*wrap, "test", "-r", needed], check=False).returncode:
                raise Skip(f"another user cannot read {needed}")
        super().__init__(wrap[0], [*wrap[1:], path, *args], remote, env, path=shutil.which("setpriv"))


def token_of(path):
    with open(path, encoding="ascii") as file:
        return next(line.strip() for line in file if line.strip() and not line.startswith("#"))
