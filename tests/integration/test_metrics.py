# SPDX-License-Identifier: Apache-2.0
"""The metrics of a daemon, read by a strict parser of Prometheus's text format."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from harness import PATIENCE, SOFTWARE, Configured, Daemon, Skip, as_tenant, base_environment, case, driver_options, main, read_file, require, wait_until

MIB = 1 << 20
UNIT = 2 * MIB  # of memory, to which shares are rounded
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*"'
SAMPLE = re.compile(rf"({NAME})(?:{{({LABEL}(?:,{LABEL})*)}})? ([0-9]+(?:\.[0-9]+)?)")
ESCAPES = {"\\\\": "\\", "\\n": "\n", '\\"': '"'}


class Scraped:
    """The samples of one answer: by name, each a dictionary of labels and a number."""

    def __init__(self, text):
        self.types, self.samples = {}, {}
        require(text.endswith("\n"), "the last line does not end")
        current, helped, seen = None, None, set()
        for line in text[:-1].split("\n"):
            if line.startswith("# HELP "):
                name, help_text = re.fullmatch(rf"# HELP ({NAME}) (\S.*)", line).groups()
                require(name not in self.types and help_text, f"helped twice: {line}")
                helped = name
                continue
            if line.startswith("# TYPE "):
                current, kind = re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge)", line).groups()
                require(current == helped, f"not after its help: {line}")
                require(kind != "counter" or current.endswith("_total"), f"a counter without _total: {line}")
                self.types[current], self.samples[current] = kind, []
                continue
            found = SAMPLE.fullmatch(line)
            require(found and found[1] == current, f"no sample of {current}: {line!r}")
            labels = {}
            for label in re.findall(LABEL, found[2] or ""):
                key, value = label.split("=", 1)
                require(key not in labels, f"the label {key} twice: {line}")
                labels[key] = re.sub(r'\\[\\n"]', lambda m: ESCAPES[m[0]], value[1:-1])
            identity = (current, tuple(sorted(labels.items())))
            require(identity not in seen, f"a sample twice: {line}")
            seen.add(identity)
            self.samples[current].append((labels, float(found[3])))

    def value(self, name, **labels):
        """The only sample with these labels."""
        found = [value for has, value in self.samples[name] if labels.items() <= has.items()]
        require(len(found) == 1, f"{name} {labels}: {found} in {self.samples[name]}")
        return found[0]

    def labels(self, name):
        return [labels for labels, _value in self.samples[name]]

    def counters(self):
        return {(name, tuple(sorted(labels.items()))): value for name, samples in self.samples.items()
                if self.types[name] == "counter" for labels, value in samples}


def metrics_port(daemon):
    found = re.search(r"^metrics at http://127\.0\.0\.1:(\d+)/metrics$", read_file(daemon.out_path), re.M)
    require(found, f"no line with the metrics' address: {read_file(daemon.out_path)}")
    return int(found[1])


def get(port, path="/metrics", method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request(method, path)
    response = connection.getresponse()
    text = response.read().decode("utf-8")
    connection.close()
    return response, text


def scrape(port):
    response, text = get(port)
    require(response.status == 200, f"status {response.status}")
    require(response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", str(response.headers))
    return Scraped(text)


@case("devices, tenants and sessions with what they hold, in gpupool's, DCGM's and HAMi's names")
def _():
    with Daemon("--metrics", "0") as daemon:
        port = metrics_port(daemon)
        idle = scrape(port)
        require(idle.samples["gpupool_session_launches_total"] == [], "a session of an idle daemon")
        require(idle.value("gpupool_tenant_sessions", tenant="default") == 0, "a tenant that has sessions")
        client = daemon.start("memhog", "64", stdin=True)
        client.wait_for_output("free after")
        now = scrape(port)
        labels = now.labels("gpupool_session_memory_used_bytes")[0]
        require(set(labels) == {"gpu", "UUID", "session", "tenant", "client", "user", "host", "pid", "program"}, f"{labels}")
        require(labels["program"] == "memhog" and labels["pid"] == str(client.process.pid) and labels["gpu"] == "0"
                and labels["host"] == socket.gethostname() and labels["tenant"] == "default"
                and labels["client"].startswith("tcp://127.0.0.1:"), f"{labels}")
        held = now.value("gpupool_session_memory_used_bytes", gpu="0")
        require(64 * MIB <= held <= 72 * MIB, f"{held}")
        for name in ("gpupool_tenant_memory_used_bytes", "gpupool_device_memory_used_bytes", "hami_vgpu_memory_used_bytes"):
            require(now.value(name) == held, f"{name} is not {held}")
        require(now.value("DCGM_FI_DEV_FB_USED", gpu="0", UUID=labels["UUID"]) == held // MIB, "DCGM's is not in MiB")
        total = now.value("gpupool_device_memory_limit_bytes")
        require(total == 4096 * MIB or not SOFTWARE, f"{total}")
        require(total == now.value("hami_vgpu_memory_limit_bytes", vdevice_index="0",
                                   device_uuid=labels["UUID"], tenant="default"), "limits")
        require(now.value("gpupool_session_launches_total") >= 1, "no launch")
        require(now.value("gpupool_session_multiprocessors_assigned") == now.value("gpupool_device_multiprocessors"), "SMs")
        require(abs(now.value("gpupool_session_start_time_seconds") - time.time()) < PATIENCE, "when it began")
        client.finish().expect()
        wait_until("its session ends", lambda: scrape(port).samples["gpupool_session_launches_total"] == [], 60)
        after = scrape(port)
        require(after.value("gpupool_tenant_memory_used_bytes") == 0, "its memory is still counted")
        require(after.value("gpupool_tenant_launches_total") >= now.value("gpupool_session_launches_total"),
                "its work is not counted any more")
        require(after.value("gpupool_tenant_sessions_total") == 1, "it is not counted")


@case("counters never fall when sessions open, close and are killed between two queries")
def _():
    with Daemon("--metrics", "127.0.0.1:0") as daemon:
        port = metrics_port(daemon)
        stop = threading.Event()
        wrong, looks = [], [0]

        def poll():
            last = {}
            while not stop.is_set():
                counters = scrape(port).counters()
                wrong.extend((key, last[key], value) for key, value in counters.items() if value < last.get(key, 0))
                last.update(counters)
                looks[0] += 1
                # Programs get their part of a small machine.
                time.sleep(0.02)

        watcher = threading.Thread(target=poll)
        watcher.start()
        try:
            for _round in range(4):
                clients = [daemon.start(name) for name in ("vectoradd", "copies", "streams")]
                victim = daemon.start("memhog", stdin=True)
                victim.wait_for_output("free after")
                victim.kill()
                for client in clients:
                    client.finish().expect()
        finally:
            stop.set()
            watcher.join()
        require(not wrong, f"counters that fell: {wrong[:5]}")
        require(looks[0] >= 10, f"only {looks[0]} looks")
        wait_until("all sessions end", lambda: scrape(port).samples["gpupool_session_launches_total"] == [], 60)
        now = scrape(port)
        require(now.value("gpupool_tenant_sessions_total") == 16, "sessions are lost")
        require(now.value("gpupool_tenant_copied_bytes_total", direction="in") > 0
                and now.value("gpupool_tenant_copied_bytes_total", direction="out") > 0, "no bytes")


@case("tenants have their own sums, refusals are counted, and limits are shown")
def _():
    with Configured("[tenant default]\nmemory = 50%\n[tenant a]\nmemory = 64M\n", "--metrics", "0") as daemon:
        port = metrics_port(daemon)
        result = daemon.run("memhog", "80", env=as_tenant("a"))
        require(result.status == 1, str(result))
        daemon.run("memhog", "80").expect()
        wait_until("all sessions end", lambda: scrape(port).samples["gpupool_session_launches_total"] == [], 60)
        now = scrape(port)
        require(now.value("gpupool_tenant_memory_limit_bytes", tenant="a") == 64 * MIB, "the limit")
        require(now.value("gpupool_tenant_memory_limit_bytes", tenant="default")
                == now.value("gpupool_device_memory_limit_bytes") // 2 // UNIT * UNIT, "the limit")
        require(now.value("gpupool_tenant_refusals_total", tenant="a") >= 1, "the refusal")
        require(now.value("gpupool_tenant_refusals_total", tenant="default") == 0, "a refusal of another")


@case("not found: use /metrics, to be read")
def _():
    with Daemon("--metrics", "0") as daemon:
        port = metrics_port(daemon)
        for path in ("/", "/metrics/", "/metrics.txt", "/../etc/passwd", "*"):
            require(get(port, path)[0].status == 404, path)
        for method in ("POST", "PUT", "DELETE", "BREW"):
            response, _text = get(port, method=method)
            require(response.status == 405 and response.headers["Allow"] == "GET, HEAD", f"{method}: {response.status}")
        response, text = get(port, method="HEAD")
        require(response.status == 200 and text == "", "HEAD")
        require(get(port, "/metrics?x=1")[0].status == 200, "a query string is not ignored")


@case("clients that send nothing, too much or nonsense do not block other readers")
def _():
    with Daemon("--metrics", "0") as daemon:
        port = metrics_port(daemon)
        for data in (b"\0\1\2\3\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n", b"GET " + b"/x" * 20000,
                     b"GET /metrics HTTP/1.1\r\n" + b"a: " + b"b" * 40000 + b"\r\n\r\n", b"\r\n" * 1000):
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as sock:
                try:
                    sock.sendall(data)
                    sock.shutdown(socket.SHUT_WR)
                    while sock.recv(65536):
                        pass
                except OSError:
                    pass
            scrape(port)
        silent = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(32)]
        try:
            wait_until("silent connections are closed", lambda: is_answered(port), 60)
        finally:
            for sock in silent:
                sock.close()
        daemon.check_works()


def is_answered(port):
    try:
        return get(port)[0].status == 200
    except OSError:
        return False
    except http.client.HTTPException:
        return False


@case("an address that others can reach needs --insecure, and one in use is named")
def _():
    def start(*args):
        command = [os.environ["GP_DAEMON"], "--listen", "127.0.0.1:0", *driver_options(),
                   "--admin-socket", "off", *args]
        return subprocess.run(command, capture_output=True, text=True, env=base_environment(), timeout=PATIENCE, check=False)

    for address in ("0.0.0.0:9", "*:9", "[::]:9"):
        refused = start("--metrics", address)
        require(refused.returncode == 1 and "--insecure" in refused.stderr, f"{address}: {refused.stderr}")
    for address in ("x:y", "", "127.0.0.1:", "1:2:3", "99999"):
        refused = start("--metrics", address)
        require(refused.returncode == 1 and "is not an address to listen on" in refused.stderr, f"{address}: {refused.stderr}")
    with Daemon("--metrics", "0") as daemon:
        second = start("--metrics", str(metrics_port(daemon)))
        require(second.returncode == 1 and second.stderr.endswith(
            f"gpupoold: no metrics: cannot listen on tcp://127.0.0.1:{metrics_port(daemon)}: Address already in use "
            f"(in use by process {daemon.pid}, gpupoold)\n"), second.stderr)


@case("a configuration turns the metrics on, and an option off again")
def _():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    text = f"[daemon]\nmetrics = 127.0.0.1:{port}\n"
    with Configured(text) as daemon:
        require(metrics_port(daemon) == port, "another port")
        scrape(port)
    with Configured(text, "--metrics", "off") as daemon:
        require("metrics" not in daemon.log(), "they are on")
        daemon.reload(f"[daemon]\nmetrics = 127.0.0.1:{port}\nsessions = 3\n")
        require(not is_answered(port), "a reload turned them on")


@case("a reload reports that another address for metrics needs a restart")
def _():
    with socket.socket() as first, socket.socket() as second, tempfile.TemporaryDirectory(prefix="gpupool-admin-") as folder:
        for sock in (first, second):
            sock.bind(("127.0.0.1", 0))
        here, there = (sock.getsockname()[1] for sock in (first, second))
        first.close()
        second.close()
        admin = f"{folder}/admin"
        with Configured(f"[daemon]\nmetrics = {here}\n", "--admin-socket", admin) as daemon:
            def reload(value, err):
                daemon.write(f"[daemon]\nmetrics = {value}\n[tenant a]\n")
                done = subprocess.run([os.environ["GP_CTL"], "--socket", admin, "reload"], capture_output=True, text=True,
                                      env=base_environment(), timeout=PATIENCE, check=False)
                require(done.returncode == 0 and err in done.stderr and bool(done.stderr) == bool(err), f"{done}")
                require("a" in [labels["tenant"] for labels in scrape(here).labels("gpupool_tenant_sessions")], "no tenant a")
            said = f"metrics: takes effect after a restart (now: http://127.0.0.1:{here}/metrics)"
            reload(there, said)
            reload("off", said)
            reload(here, "")


ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PROMETHEUS = os.path.join(ROOT, "docs/prometheus")
FETCHED = os.path.join(ROOT, ".toolkit/promtool/promtool")


@case("expiry times, losses and waiting clients are metrics, and every name in the alarms and the dashboard is a metric")
def _():
    with tempfile.TemporaryDirectory(prefix="gpupool-metrics-") as folder:
        env = {**base_environment(), "CONFIGURATION_DIRECTORY": folder}
        for words in (("cert", "init", "127.0.0.1", "--expires", "10d"), ("cert", "crl", "--expires", "2d"),
                      ("token", "create", "late", "--expires", "3d", "-o", "-"), ("token", "create", "soon", "--expires", "1d", "-o", "-"),
                      ("token", "create", "never", "-o", "-")):
            subprocess.run([os.environ["GP_CTL"], *words], check=True, env=env, timeout=PATIENCE, capture_output=True)
        with Daemon("--metrics", "0", "--listen", "tls://127.0.0.1:0", env={"CONFIGURATION_DIRECTORY": folder}) as daemon:
            port = metrics_port(daemon)
            client = daemon.start("memhog", "16", stdin=True)
            client.wait_for_output("free after")
            now = scrape(port)
            for name, days in (("certificate", 10), ("crl", 2)):
                left = now.value(f"gpupool_{name}_expiry_time_seconds") - time.time()
                require(abs(left - days * 86400) < 3600, f"{name}: {left} s")
            tokens = [(labels["tenant"], round((value - time.time()) / 86400)) for labels, value in
                      now.samples["gpupool_token_expiry_time_seconds"]]
            require(tokens == [("soon", 1), ("late", 3)], f"{tokens}")
            for name in ("waiting_clients", "workers_lost_total", "usage_records_lost_total"):
                require(now.value(f"gpupool_{name}") == 0, name)
            require(now.value("gpupool_workers") == 1, "workers")
            for file in os.listdir(PROMETHEUS):
                names = set(re.findall(r"\bgpupool_[a-z_]+", read_file(os.path.join(PROMETHEUS, file))))
                require(names and names <= set(now.samples), f"{file}: no such metrics: {names - set(now.samples)}")
            client.finish().expect()
            os.kill(daemon.workers()[0], signal.SIGKILL)
            wait_until("a lost worker is counted", lambda: scrape(port).value("gpupool_workers_lost_total") == 1, 60)
            wait_until("another worker is ready", lambda: scrape(port).value("gpupool_workers_ready") == 1, 60)
            daemon.check_works()
            daemon.take_idle()
    with Daemon("--metrics", "0") as daemon:
        require(scrape(metrics_port(daemon)).samples["gpupool_certificate_expiry_time_seconds"] == [], "of no certificate")


@case("the alarms are rules that Prometheus takes, and ring when they should")
def _():
    promtool = shutil.which("promtool") or (os.path.abspath(FETCHED) if os.path.exists(FETCHED) else None)
    if not promtool:
        raise Skip("needs promtool (scripts/promtool.sh fetches it)")
    for words in (("check", "rules", "gpupool.rules.yml"), ("test", "rules", "gpupool.tests.yml")):
        done = subprocess.run([promtool, *words], cwd=PROMETHEUS, capture_output=True, text=True, timeout=PATIENCE, check=False)
        require(done.returncode == 0, f"{words}: {done.stdout}{done.stderr}")
    dashboard = json.loads(read_file(os.path.join(PROMETHEUS, "gpupool-dashboard.json")))
    require(len(dashboard["panels"]) > 10 and len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"]), "panels")


@case("connections that never finish their request do not block other readers of the metrics")
def _():
    with Daemon("--metrics", "0") as daemon:
        port = metrics_port(daemon)
        over = threading.Event()
        opened = [0] * 60

        def hold(number):
            """A byte from time to time, so that no limit of silence ends the connection; and another connection after it."""
            while not over.is_set():
                try:
                    with socket.create_connection(("127.0.0.1", port), PATIENCE, ("127.0.0.2", 0)) as held:
                        opened[number] += 1
                        held.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: ")
                        while not over.wait(0.2):
                            held.sendall(b"x")
                except OSError:
                    over.wait(0.05)

        threads = [threading.Thread(target=hold, args=(number,), daemon=True) for number in range(len(opened))]
        for thread in threads:
            thread.start()
        try:
            wait_until("all have connected", lambda: all(opened), PATIENCE)
            for _ in range(3):
                scrape(port)
        finally:
            over.set()
            for thread in threads:
                thread.join()


if __name__ == "__main__":
    sys.exit(main(at_once=3 if SOFTWARE else 1))
