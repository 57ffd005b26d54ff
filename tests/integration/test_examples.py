# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/examples work as they are."""
import os
import re
import shlex
import shutil
import subprocess

from harness import (PATIENCE, Daemon, Program, Skip, base_environment, case, client_environment, driver_options, main, read_file, require, run,
                     software_env)
from pool_folder import Folder

# A device that the quotas divide without rounding.
LARGE = software_env(GPUPOOL_SOFT_MULTIPROCESSORS="16", GPUPOOL_SOFT_MEMORY="8G")
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "examples")


def example(name):
    return read_file(os.path.join(EXAMPLES, name))


def change(text, *pairs):
    """Replaces each pattern, which must occur, by a value that a test may use."""
    for pattern, instead in pairs:
        require(re.search(pattern, text), f"no {pattern} in: {text}")
        text = re.sub(pattern, instead, text)
    return text


@case("the sample has every key of each section, and changes nothing unless edited")
def _():
    sample = read_file(os.path.join(EXAMPLES, "..", "..", "server", "gpupoold.conf"))
    sections = re.split(r"^(?:# )?\[", sample, flags=re.M)
    with Folder() as folder:
        for section in ("daemon", "device", "tenant"):
            folder.write(f"[{section}{'' if section == 'daemon' else ' 0'}]\nxx = 1\n")
            keys = re.search(r"unknown key \((.*)\)", folder.run("GP_DAEMON", "--check-config", *driver_options(""), status=1)[1])[1].split(", ")
            ours = "".join(text for text in sections if text.startswith(section))
            missing = [key for key in keys if not re.search(rf"^# {key} = ", ours, re.M)]
            require(len(keys) > 3 and not missing, f"[{section}] lacks {missing}")
        folder.write(sample)
        require(folder.run("GP_DAEMON", "--check-config", *driver_options(""))[0].endswith("valid: 1 tenant, 0 warnings\n"), "the unedited sample is not valid or has warnings")


@case("gpupoold.conf has no error and no warning, and its tenants have the limits in it")
def _():
    with Folder() as folder:
        folder.write(change(example("gpupoold.conf"), ("/var/lib/gpupool", folder.path), ("metrics = 9400", "metrics = off")))
        said, warnings = folder.run("GP_DAEMON", "--check-config", *driver_options(""), **LARGE)
        require(said.endswith("valid: 4 tenants, 0 warnings\n") and "warning" not in warnings, said + warnings)
        token, _ = folder.token("courses")
        with folder.daemon(**LARGE) as daemon:
            tenants = {tenant["tenant"] for tenant in folder.ask("tenant", "list")}
            require(tenants == {"default", "research", "production", "courses"}, f"{tenants}")
            refused = daemon.run("vectoradd").expect(status=1)
            require('tenant "default" may have no sessions' in refused.err, str(refused))
        with Daemon("--listen", f"unix://{folder.path}/run/gpupool.sock", "--admin-socket", folder.socket,
                    env={**folder.env, **LARGE}):
            run("vectoradd", remote=f"unix://{folder.path}/run/gpupool.sock",
                env={"GPUPOOL_TOKEN_FILE": token}).expect(out="vectoradd: ok\n")
        require("courses" in read_file(folder.file("usage.csv")), "no record of the session")


@case("/etc/default/gpupoold is a file that a shell and systemd read, with addresses that the daemon takes")
def _():
    with Folder() as folder:
        shell = subprocess.run(["sh", "-c", '. "$1" && printf "%s\n%s\n" "$GPUPOOLD_OPTIONS" "$UPGRADE_WAIT"', "sh",
                                os.path.join(EXAMPLES, "gpupoold.default")], capture_output=True, text=True, check=True, timeout=PATIENCE)
        options, wait = shell.stdout.splitlines()
        require(wait.isdigit() and not shell.stderr, f"{shell}")
        upgrade = read_file(os.path.join(EXAMPLES, "..", "..", "packaging", "upgrade.sh"))
        require("UPGRADE_WAIT" in upgrade, "the package asks for another name")
        folder.run("GP_CTL", "cert", "init", "127.0.0.1")
        options = change(options, (r"/run/gpupool", f"{folder.path}/run"), (r"0\.0\.0\.0:4833", "127.0.0.1:0"),
                         (r"--metrics 9400", "--metrics 127.0.0.1:0"))
        with folder.daemon(*shlex.split(options)):
            run("vectoradd", remote=f"unix://{folder.path}/run/gpupool.sock").expect(out="vectoradd: ok\n")


@case("the unit with override.conf is one that systemd understands")
def _():
    if not shutil.which("systemd-analyze"):
        raise Skip("there is no systemd-analyze")
    with Folder(any_device=True) as folder:
        folder.write(re.sub(r"^ExecStart=\S+", "ExecStart=" + os.environ["GP_DAEMON"], read_file(os.environ["GP_SERVICE"]), flags=re.M),
                     "gpupoold.service")
        os.mkdir(folder.file("gpupoold.service.d"))
        folder.write(example("override.conf"), "gpupoold.service.d/override.conf")
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", folder.file("gpupoold.service")],
                              capture_output=True, text=True, check=False, timeout=PATIENCE,
                              env={**base_environment(), "SYSTEMD_LOG_LEVEL": "info"})
        said = [line for line in (done.stdout + done.stderr).splitlines() if "gpupoold" in line or "override" in line]
        require(done.returncode == 0 and not said, f"status {done.returncode}: {said}")
        # systemd does not check the names of variables: the daemon's manual page must have them.
        for name in re.findall(r"^Environment=(\w+)=", example("override.conf"), re.M):
            require(name in read_file(os.path.join(EXAMPLES, "..", "..", "server", "gpupoold.8")), f"gpupoold(8) has no {name}")


@case("pools.conf names pools that gpupool run knows, with the settings in it")
def _():
    with Folder(any_device=True) as folder:
        os.mkdir(folder.file("gpupool"))
        folder.write(example("pools.conf"), "gpupool/pools.conf")
        env = {**client_environment(), "XDG_CONFIG_HOME": folder.path}
        said, warnings = folder.run("GP_GPUPOOL", "env", **env)
        for line in ("REMOTE_GPU='tls://gpunode'", "GPUPOOL_WAIT='10m'", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT='*=10240M'"):
            require(f"export {line}\n" in said and not warnings, said + warnings)
        said, _ = folder.run("GP_GPUPOOL", "env", "-p", "both", **env)
        require("export REMOTE_GPU='tls://gpunode,tls://gpunode2'\n" in said, said)


@case("compose.yaml: its daemon's preparations and its program's command work outside of containers, too")
def _():
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise Skip("there is no Python for YAML") from None
    services = yaml.safe_load(example("compose.yaml"))["services"]
    program = services["program"]
    with Folder() as folder:
        commands = re.findall(r"^# +docker compose run --rm --entrypoint gpupoolctl daemon (.*)$", example("compose.yaml"), re.M)
        require(len(commands) == 2, f"{commands}")
        for command in commands:
            # The service's name is not a name of this machine.
            folder.run("GP_CTL", *shlex.split(command.replace("init daemon", "init daemon 127.0.0.1").replace("/tokens", folder.path)))
        # Only the daemon has the volume with the authority's key.
        shared = {volume.split(":")[0] for volume in services["daemon"]["volumes"] if ":/etc/gpupool" in volume}
        require(shared and not shared & {volume.split(":")[0] for volume in program["volumes"]}, f"{services}")
        command = change(" ".join(program["command"]), (r"^gpupool run ", ""), (r"\./app", "vectoradd"))
        with folder.daemon("--listen", "tls://127.0.0.1:0") as daemon:
            address = re.search(r"^listening on (tls://\S+)$", read_file(daemon.out_path), re.M)[1]
            env = {name: value.replace("/tokens", folder.path).replace("tls://daemon", address)
                   for name, value in program["environment"].items()}
            Program("gpupool", ("run", os.path.join(os.environ["GP_APPS"], command)), env=env,
                    path=os.environ["GP_GPUPOOL"]).finish().expect(out="vectoradd: ok\n")
    images = {service["image"] for service in services.values()}
    containers = os.path.join(EXAMPLES, "..", "..", "packaging", "container")
    for image in images:
        role = image.removeprefix("gpupool-")
        require(f"-t {image} " in read_file(os.path.join(containers, f"{role}.Dockerfile")), f"nothing builds {image}")


if __name__ == "__main__":
    raise SystemExit(main())
