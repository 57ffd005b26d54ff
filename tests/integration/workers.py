# SPDX-License-Identifier: Apache-2.0
"""A daemon whose workers are listed, and programs that stay in one."""
import json
import os
import subprocess
import tempfile

from harness import PATIENCE, Configured, as_tenant, base_environment


class Workers(Configured):
    """A daemon with an admin socket, which lists its workers. reserve: ready-workers of its configuration."""

    reserve = 0

    def __init__(self, text, *args, **more):
        self.admin_folder = tempfile.TemporaryDirectory(prefix="gpupool-admin-")
        self.socket = f"{self.admin_folder.name}/admin.sock"
        super().__init__(text, "--admin-socket", self.socket, *args, **more)

    def ctl(self, *words):
        """The rows that a command of gpupoolctl prints."""
        out = subprocess.run([os.environ["GP_CTL"], "-s", self.socket, *words, "--format=json"],
                             capture_output=True, text=True, check=True, env=base_environment()).stdout
        return json.loads(out) if out.strip() else []

    def replace(self, pid):
        """The exit status of gpupoolctl worker replace."""
        return subprocess.run([os.environ["GP_CTL"], "-s", self.socket, "worker", "replace", str(pid)], capture_output=True,
                              env=base_environment()).returncode

    def rows(self):
        return self.ctl("worker", "list")

    def list(self):
        """[(class, tenant, sessions)] in order, without those that end."""
        return sorted((row["class"], row["tenant"], row["sessions"]) for row in self.rows()
                      if row["state"] in ("starting", "serving"))

    def ready(self):
        return sum(row["class"] == "reserve" and row["state"] == "serving" for row in self.rows())

    def settle(self, seconds=PATIENCE):
        """Workers without a session end at once."""
        self.reload(f"[daemon]\nworker-idle-timeout = 0\nready-workers = {self.reserve}\n")
        super().settle(seconds)

    def discard(self):
        super().discard()
        self.admin_folder.cleanup()


def stay(daemon, tenant, **more):
    program = daemon.start("memhog", "16", stdin=True, env=as_tenant(tenant, **more))
    program.wait_for_output("free after")
    return program
