"""An agent's identity over the years: real service, real database, real agent processes.

Replaced with an empty folder, upgraded, cloned, renamed, killed at each step of enrolment and of a token's rotation.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.server import Server, serving

from hugeplan.db import migrate
from hugeplan.embedded import TEST_SETTINGS, running
from hugeplan.settings import Settings

REPOSITORY = Path(__file__).resolve().parents[2]
SILENCE_SECONDS = 3.0
WAIT_SECONDS = 60.0
FILES = ("proc/cpuinfo", "proc/meminfo", "proc/stat", "proc/vmstat", "proc/loadavg", "proc/sys/kernel/osrelease")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The service over an empty database; who is silent for three seconds may be replaced."""
    folder = tmp_path_factory.mktemp("service")
    with running(folder / "data", TEST_SETTINGS) as postgres:
        postgres.ensure_database("identity")
        url = postgres.url("identity")
        migrate.upgrade(Settings(database_url=url).sqlalchemy_url(), REPOSITORY / "migrations")  # type: ignore[arg-type]
        seconds = str(SILENCE_SECONDS)
        with serving(url, folder, HUGEPLAN_REENROLMENT_SILENCE_SECONDS=seconds) as server:
            yield server


class Api:
    """The service as an administrator reaches it."""

    def __init__(self, server: Server) -> None:
        self.url, self.token = server.url, server.admin_token

    def call(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}/api/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def nodes(self, name: str) -> list[dict[str, Any]]:
        return [node for node in self.call("GET", "/nodes?limit=200")["items"] if node["name"] == name]

    def asked(self, name: str) -> list[dict[str, Any]]:
        return [one for one in self.call("GET", "/enrolments/requests")["items"] if one["node_name"] == name]


@pytest.fixture(scope="module")
def api(service: Server) -> Api:
    return Api(service)


class Machine:
    """A made-up machine: this one's /proc, with an id, a boot, a name and one network card of its own."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.name = f"node-{number}"
        self.write("etc/machine-id", f"{number:032x}\n")
        for file in FILES:
            text = Path("/", file).read_text()
            self.write(file, text)
        self.reboot(1)
        self.card(f"52:54:00:00:{number >> 8:02x}:{number & 255:02x}")

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def reboot(self, count: int) -> None:
        self.write("proc/sys/kernel/random/boot_id", f"11111111-0000-4000-8000-{count:012}\n")

    def card(self, address: str) -> None:
        self.write("sys/class/net/eth0/address", f"{address}\n")
        self.write("sys/class/net/eth0/addr_assign_type", "0\n")
        (self.root / "sys/class/net/eth0/device").mkdir(exist_ok=True)


class Pod:
    """An agent process with a state folder that it loses when it is replaced."""

    def __init__(self, machine: Machine, server: str, enrolment: str, state: str = "state") -> None:
        self.machine = machine
        self.state = machine.folder / state
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY / "agent"),
            "HUGEPLAN_AGENT_ROOT": str(machine.root),
            "HUGEPLAN_AGENT_NODE_NAME": machine.name,
            "HUGEPLAN_AGENT_SPOOL_DIR": str(self.state),
            "HUGEPLAN_AGENT_SERVER": server,
            "HUGEPLAN_AGENT_ENROLMENT_TOKEN": enrolment,
            "HUGEPLAN_AGENT_INTERVAL": "1s",
        }
        self.log = machine.folder / f"{state}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Pod:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hugeplan_agent", "run"], env=self.environment, stdout=log, stderr=log
            )
        return self

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(WAIT_SECONDS)
            self.process = None

    def said(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def health(self) -> str:
        words = [sys.executable, "-m", "hugeplan_agent.health", "ready"]
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False).stdout


def until(is_true: Callable[[], Any], what: str, pod: Pod | None = None) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_true():
        assert time.monotonic() < deadline, f"{what} did not come about; {pod.said() if pod else ''}"
        time.sleep(0.1)


#: Machine ids of one test are no other's.
NUMBERS = itertools.count(1)


@pytest.fixture
def pods(tmp_path: Path, service: Server, api: Api) -> Iterator[Callable[..., Pod]]:
    """Makes pods on machines; each test has machines of its own."""
    base = next(NUMBERS) << 8
    enrolment = api.call("POST", "/tokens", {"name": "nodes", "role": "enrolment"})["token"]
    made: list[Pod] = []

    def make(machine: Machine | None = None, server: str = service.url, state: str = "state") -> Pod:
        number = base + len(made)
        (tmp_path / str(number)).mkdir()
        pod = Pod(machine or Machine(tmp_path / str(number), number), server, enrolment, state)
        made.append(pod)
        return pod

    yield make
    for pod in made:
        if pod.process is not None:
            pod.process.kill()
            pod.process.wait()


def reports(api: Api, pod: Pod) -> str | None:
    """When the newest report of the pod's node arrived."""
    found = api.nodes(pod.machine.name)
    return found[0]["last_report_at"] if found else None


def goes_on(api: Api, pod: Pod) -> None:
    """Wait for a report that was not there before."""
    before = reports(api, pod)
    until(lambda: reports(api, pod) not in {None, before}, "a new report", pod)


def test_a_replaced_pod_enrols_again_by_itself(api: Api, pods: Callable[..., Pod]) -> None:
    first = pods().start()
    goes_on(api, first)
    first.end()
    second = pods(first.machine, state="replaced").start()
    until(lambda: "can enrol in" in second.said(), "the wait for silence", second)
    goes_on(api, second)
    assert len(api.nodes(first.machine.name)) == 1
    assert api.asked(first.machine.name) == []
    assert second.health() == "reports reach the server\n"
    events = api.call("GET", "/audit?action=enrolments_create")["items"]
    assert events[0]["detail"]["how"] == "recognised by boot id and hardware addresses"


def test_a_replaced_pod_after_a_reboot_is_known_by_its_hardware(api: Api, pods: Callable[..., Pod]) -> None:
    first = pods().start()
    goes_on(api, first)
    first.end()
    first.machine.reboot(2)
    second = pods(first.machine, state="replaced").start()
    goes_on(api, second)
    assert len(api.nodes(first.machine.name)) == 1


def test_an_upgrade_keeps_the_folder_and_needs_nothing(api: Api, pods: Callable[..., Pod]) -> None:
    pod = pods().start()
    goes_on(api, pod)
    token = (pod.state / "token").read_text()
    pod.end()
    pod.start()
    goes_on(api, pod)
    assert (pod.state / "token").read_text() == token


def test_a_living_agent_is_not_displaced(api: Api, pods: Callable[..., Pod]) -> None:
    first = pods().start()
    goes_on(api, first)
    thief = pods(first.machine, state="thief").start()
    until(lambda: "was heard a moment ago" in thief.said(), "the refusal", thief)
    for _ in range(4):
        goes_on(api, first)
    assert not (thief.state / "token").exists()
    assert len(api.asked(first.machine.name)) == 1
    # The administrator's word is stronger.
    (asked,) = api.asked(first.machine.name)
    first.end()
    api.call("POST", f"/enrolments/requests/{asked['id']}/decision", {"decision": "approved"})
    until((thief.state / "token").exists, "the approved enrolment", thief)


def test_a_clone_on_other_hardware_gets_nothing_of_the_known_machine(api: Api, pods: Callable[..., Pod]) -> None:
    first = pods().start()
    goes_on(api, first)
    first.end()
    clone = pods()
    clone.machine.write("etc/machine-id", (first.machine.root / "etc/machine-id").read_text())
    # The whole disk was cloned, the state folder with the token too.
    shutil.copytree(first.state, clone.state)
    clone.start()
    goes_on(api, clone)
    ids = {node["machine_id"] for name in (first, clone) for node in api.nodes(name.machine.name)}
    plain = (first.machine.root / "etc/machine-id").read_text().strip()
    assert plain in ids
    assert any(one.startswith(f"{plain}~") for one in ids)


def test_a_renamed_node_goes_on_with_its_token_and_waits_without_it(api: Api, pods: Callable[..., Pod]) -> None:
    pod = pods().start()
    goes_on(api, pod)
    pod.end()
    former = pod.machine.name
    pod.machine.name = pod.environment["HUGEPLAN_AGENT_NODE_NAME"] = f"{former}-renamed"
    pod.start()
    goes_on(api, pod)
    assert api.nodes(former) == []
    pod.end()
    pod.machine.name = f"{former}-again"
    replaced = pods(pod.machine, state="replaced").start()
    until(lambda: "its name is" in "".join(one["reason"] for one in api.asked(pod.machine.name)), "a request", replaced)
    (asked,) = api.asked(pod.machine.name)
    api.call("POST", f"/enrolments/requests/{asked['id']}/decision", {"decision": "approved"})
    goes_on(api, replaced)


def test_a_revoked_machine_stays_out_until_somebody_lets_it_in(api: Api, pods: Callable[..., Pod]) -> None:
    pod = pods().start()
    goes_on(api, pod)
    machine_id = (pod.machine.root / "etc/machine-id").read_text().strip()
    (token,) = [one for one in api.call("GET", "/tokens?limit=200")["items"] if one["machine_id"] == machine_id]
    api.call("DELETE", f"/tokens/{token['id']}")
    until(lambda: api.asked(pod.machine.name), "the request", pod)
    assert "revoked" in api.asked(pod.machine.name)[0]["reason"]


class Line:
    """A line to the service that kills the agent, or breaks, at a moment of its enrolment, and then works."""

    def __init__(self, service: Server, moment: str, fault: str = "kill -9") -> None:
        self.moment, self.service, self.fault = moment, service, fault
        self.pod: Pod | None = None
        self.killed = threading.Event()
        line = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                line.pass_on(self)

            def log_message(self, *_: object) -> None:
                """Keep the test output quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _fails(self, at: str, path: str) -> bool:
        """Whether this is the moment: the connection ends without an answer, and the agent with it if asked."""
        if self.killed.is_set() or at != self.moment or not path.endswith(("/enrolments", "/token/rotate")):
            return False
        assert self.pod is not None
        assert self.pod.process is not None
        if self.fault == "kill -9":
            self.pod.process.kill()
            self.pod.process.wait(WAIT_SECONDS)
        self.killed.set()
        return True

    def pass_on(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        if self._fails("before the server hears of it", request.path):
            return
        to = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=30)
        to.request("POST", request.path, body, dict(request.headers.items()))
        answer = to.getresponse()
        content = answer.read()
        to.close()
        if self._fails("when the server has answered", request.path):
            return
        request.send_response(answer.status)
        for name in ("Content-Type", "Retry-After"):
            if answer.headers[name]:
                request.send_header(name, answer.headers[name])
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)


MOMENTS = ("before the server hears of it", "when the server has answered")


@pytest.mark.parametrize(("moment", "fault"), [*itertools.product(MOMENTS, ("kill -9", "the line breaks"))])
@pytest.mark.parametrize("what", ["first enrolment", "refused token"])
def test_a_fault_while_it_enrols_mends_itself(
    service: Server, pods: Callable[..., Pod], moment: str, fault: str, what: str
) -> None:
    api, line = Api(service), Line(service, moment, fault)
    try:
        pod = pods(server=line.url)
        line.pod = pod
        if what == "refused token":
            pod.state.mkdir(mode=0o700)
            (pod.state / "token").write_text("hp_of_another_service\n")
            (pod.state / "token").chmod(0o600)
        pod.start()
        assert line.killed.wait(WAIT_SECONDS), pod.said()
        # What a kill within a write leaves, by a process with the id that every agent has in its container.
        leftovers = [pod.state / name for name in (".token.1.tmp", ".health.json.1.tmp", ".token.a1b2c3d4.tmp")]
        if fault == "kill -9":
            for path in leftovers:
                path.write_text("half")
            pod.process = None
            pod.start()
        goes_on(api, pod)
        assert api.asked(pod.machine.name) == []
        # Those of the killed one alone: the living one writes files of its own, at this moment too.
        assert not any(path.exists() for path in leftovers)
        pod.end()
        assert list(pod.state.rglob(".*.tmp")) == []
    finally:
        line.close()


@pytest.mark.parametrize("what", ["the state folder", "the reports", "what the token file holds"])
def test_what_is_removed_under_a_running_agent_comes_back(api: Api, pods: Callable[..., Pod], what: str) -> None:
    """By a cleaning job, or by a machine that crashed with the file's contents not on its disk."""
    pod = pods().start()
    goes_on(api, pod)
    if what == "the state folder":
        pod.state.rename(pod.machine.folder / "aside")  # at once: the agent writes into it meanwhile
    elif what == "the reports":
        (pod.state / "pending").rename(pod.machine.folder / "aside")
    else:
        (pod.state / "token").write_text("")
    goes_on(api, pod)
    assert pod.process is not None
    assert pod.process.poll() is None
    assert "Traceback" not in pod.said()
    assert len(api.nodes(pod.machine.name)) == 1
    assert (pod.state / "token").stat().st_mode & 0o777 == 0o600


def enrolled_without_a_token_for_more(api: Api, pods: Callable[..., Pod]) -> tuple[Pod, dict[str, str]]:
    """A daemon that runs with a token of its own and nothing to ask for another with; and what ``enrol`` is given."""
    pod = pods().start()
    goes_on(api, pod)
    pod.end()
    given = dict(pod.environment)
    del pod.environment["HUGEPLAN_AGENT_ENROLMENT_TOKEN"]
    pod.start()
    goes_on(api, pod)
    return pod, given


def enrol(environment: dict[str, str]) -> subprocess.Popen[str]:
    """``hugeplan-agent enrol`` as docs/agent.md types it to take a new token."""
    words = [sys.executable, "-m", "hugeplan_agent", "enrol"]
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def takes_a_new_token(api: Api, pod: Pod, given: dict[str, str]) -> None:
    """The same command again ends well; the daemon goes on with the new token, and nothing is left to be cleaned up."""
    before = (pod.state / "token").read_text()
    again = enrol(given)
    said = again.communicate(timeout=WAIT_SECONDS)[0]
    assert again.returncode == 0, said
    assert (pod.state / "token").read_text() != before
    goes_on(api, pod)
    assert len(api.nodes(pod.machine.name)) == 1
    assert api.asked(pod.machine.name) == []
    pod.end()
    assert list(pod.state.rglob(".*.tmp")) == []


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("fault", ["kill -9", "the line breaks"])
def test_a_fault_while_a_node_takes_a_new_token_costs_no_report(
    service: Server, api: Api, pods: Callable[..., Pod], moment: str, fault: str
) -> None:
    pod, given = enrolled_without_a_token_for_more(api, pods)
    line = Line(service, moment, fault)
    try:
        line.pod = Pod(pod.machine, line.url, "")  # its process is the command
        line.pod.process = asking = enrol({**given, "HUGEPLAN_AGENT_SERVER": line.url})  # type: ignore[assignment]
        assert line.killed.wait(WAIT_SECONDS)
        said = asking.communicate(timeout=WAIT_SECONDS)[0]
        assert asking.returncode != 0
        assert fault == "kill -9" or said.count("\n") == 1, said
    finally:
        line.close()
    if moment == MOMENTS[0]:
        goes_on(api, pod)  # the former token is as good as before
    waiting = {path.name for path in (pod.state / "pending").glob("*.json")}
    takes_a_new_token(api, pod, given)
    assert not waiting & {path.name for path in (pod.state / "pending").glob("*.json")}, "what waited has arrived"
    assert not list((pod.state / "rejected").iterdir())


def test_a_server_that_is_not_reached_while_a_node_takes_a_new_token(api: Api, pods: Callable[..., Pod]) -> None:
    pod, given = enrolled_without_a_token_for_more(api, pods)
    asking = enrol({**given, "HUGEPLAN_AGENT_SERVER": "http://127.0.0.1:1"})
    said = asking.communicate(timeout=WAIT_SECONDS)[0]
    assert asking.returncode == 1
    assert said.count("\n") == 1, said
    goes_on(api, pod)
    takes_a_new_token(api, pod, given)


@pytest.mark.parametrize("days", [-3, 3])
def test_a_wrong_clock_while_a_node_takes_a_new_token(
    api: Api, pods: Callable[..., Pod], clock_shim: Path, days: int
) -> None:
    pod, given = enrolled_without_a_token_for_more(api, pods)
    offset = pod.machine.folder / "offset"
    offset.write_bytes(struct.pack("=q", days * 86400))
    takes_a_new_token(api, pod, {**given, "LD_PRELOAD": str(clock_shim), "CLOCK_OFFSET_FILE": str(offset)})


def test_a_full_disk_while_a_node_takes_a_new_token(api: Api, pods: Callable[..., Pod], small_disk: Path) -> None:
    pod = pods()
    pod.state = small_disk
    pod.environment["HUGEPLAN_AGENT_SPOOL_DIR"] = str(small_disk)
    given = dict(pod.environment)
    pod.start()
    goes_on(api, pod)
    before = (small_disk / "token").read_text()
    fill(small_disk)
    asking = enrol(given)
    said = asking.communicate(timeout=WAIT_SECONDS)[0]
    assert asking.returncode == 1
    assert "No space left on device" in said
    assert (small_disk / "token").read_text() == before
    (small_disk / "filler").unlink()
    takes_a_new_token(api, pod, given)


def test_a_rotated_token_is_taken_up_from_the_file(api: Api, pods: Callable[..., Pod]) -> None:
    pod = pods().start()
    goes_on(api, pod)
    machine_id = (pod.machine.root / "etc/machine-id").read_text().strip()
    (token,) = [one for one in api.call("GET", "/tokens?limit=200")["items"] if one["machine_id"] == machine_id]
    fresh = api.call("POST", f"/tokens/{token['id']}/rotate", {"overlap_seconds": 0})["token"]
    # Written beside and renamed, as a provisioning tool does; killed in between, the former file stands.
    beside = pod.state / "token.new"
    beside.write_text(f"{fresh}\n")
    beside.chmod(0o600)
    pod.end(signal.SIGKILL)
    beside.replace(pod.state / "token")
    pod.start()
    goes_on(api, pod)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of its own, with a file that fills it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "hugeplan-test", str(folder)],
        capture_output=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("SKIP: no file system can be mounted here, so no disk is full")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Leave no byte."""
    with contextlib.suppress(OSError), (folder / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@pytest.mark.parametrize("what", ["first enrolment", "refused token"])
def test_a_full_disk_while_it_enrols_is_said_and_mends_itself(
    api: Api, pods: Callable[..., Pod], small_disk: Path, what: str
) -> None:
    pod = pods()
    pod.state = small_disk
    pod.environment["HUGEPLAN_AGENT_SPOOL_DIR"] = str(small_disk)
    if what == "refused token":
        (small_disk / "token").write_text("hp_of_another_service\n")
        (small_disk / "token").chmod(0o600)
    fill(small_disk)
    pod.start()
    until(lambda: "No space left on device" in pod.said(), "the cause", pod)
    assert pod.process is not None
    assert pod.process.poll() is None, pod.said()
    (small_disk / "filler").unlink()
    goes_on(api, pod)
    assert api.asked(pod.machine.name) == []
    assert len(api.nodes(pod.machine.name)) == 1


@pytest.fixture(scope="module")
def clock_shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that moves one process's wall clock (the chaos tool's)."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("SKIP: there is no C compiler (cc) to build the shim of the clock with")
    library = tmp_path_factory.mktemp("clock") / "clock_offset.so"
    source = REPOSITORY / "backend/tools/chaos/clock_offset.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(source)], check=True)
    return library


@pytest.mark.parametrize("days", [-3, 3])
@pytest.mark.parametrize("what", ["first enrolment", "refused token"])
def test_a_wrong_clock_while_it_enrols_is_said_and_costs_nothing(
    api: Api, pods: Callable[..., Pod], clock_shim: Path, days: int, what: str
) -> None:
    """What a token allows is the server's clock's affair. A clock that is put right needs no clean-up."""
    pod = pods()
    if what == "refused token":
        pod.state.mkdir(mode=0o700)
        (pod.state / "token").write_text("hp_of_another_service\n")
        (pod.state / "token").chmod(0o600)
    offset = pod.machine.folder / "offset"
    offset.write_bytes(struct.pack("=q", days * 86400))
    pod.environment |= {"LD_PRELOAD": str(clock_shim), "CLOCK_OFFSET_FILE": str(offset)}
    pod.start()
    until(lambda: "this machine's clock is" in pod.said(), "the sentence about the clock", pod)
    own = pod.state / "token"
    until(lambda: own.exists() and "of_another_service" not in own.read_text(), "a token of its own", pod)
    with offset.open("r+b") as file:
        file.write(struct.pack("=q", 0))
    goes_on(api, pod)
    assert len(api.nodes(pod.machine.name)) == 1
    assert api.asked(pod.machine.name) == []
