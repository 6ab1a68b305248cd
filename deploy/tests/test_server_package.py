"""The service's deb on a Debian with systemd, behind nginx and Caddy with its examples; and the database's roles."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from support.server import free_port

from hugeplan.embedded import TEST_SETTINGS, EmbeddedPostgres, running
from nspawn_rig import Machine, NotAvailableError, machine

REPOSITORY = Path(__file__).resolve().parents[2]
GUIDE = REPOSITORY / "docs/install-bare-metal.md"
OLD, NEW = "0.0.9", "0.1.0"
SECRETS = "/etc/hugeplan/server-secrets"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions of the deb, for Debian's Python."""
    if not (REPOSITORY / "frontend/dist/index.html").exists():
        pytest.skip("SKIP: the user interface is not built; run: make frontend")
    if sys.version_info[:2] != (3, 11):
        pytest.skip("SKIP: the tree's Debian has Python 3.11, and this is another")
    out = tmp_path_factory.mktemp("server")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    built = subprocess.run(
        [*pip, "--wheel-dir", str(out), str(REPOSITORY / "backend")], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr[-500:]
    (wheel,) = out.glob("*.whl")
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "deploy/packaging/server.py"), "--wheel", str(wheel), "--out", str(out)],
        env={**os.environ, "HUGEPLAN_PACKAGE_VERSION": f"{OLD},{NEW}"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def database(tmp_path: Path) -> Iterator[tuple[EmbeddedPostgres, int]]:
    """A PostgreSQL that listens on loopback, and its port."""
    port = free_port()
    settings = TEST_SETTINGS | {"listen_addresses": "127.0.0.1", "port": str(port)}
    with running(tmp_path / "data", settings) as postgres:
        yield postgres, port


@pytest.fixture
def node(tmp_path: Path, packages: Path) -> Iterator[Machine]:
    try:
        with machine(tmp_path, {f"/root/{path.name}": path for path in packages.glob("*.deb")}) as booted:
            yield booted
    except NotAvailableError as error:
        pytest.skip(f"SKIP: {error}")


def roles_of_the_guide() -> str:
    """The SQL that the guide prints."""
    text = GUIDE.read_text()
    found = text.partition("<<'SQL'\n")[2].partition("SQL\n")[0]
    assert found.count("CREATE ROLE") == 3
    return found


def test_the_service_starts_behind_proxies_upgrades_and_goes(
    node: Machine, database: tuple[EmbeddedPostgres, int]
) -> None:
    postgres, port = database
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        for statement in roles_of_the_guide().split(";\n"):
            if statement.strip():
                connection.execute(statement)
    http = free_port()
    node.run("dpkg", "-i", f"/root/hugeplan-server_{OLD}_amd64.deb")
    assert node.call("systemctl", "is-active", "hugeplan-server").stdout.strip() == "inactive", "nothing is started"
    urls = {
        f"{SECRETS}/hugeplan_database_url": f"postgresql://hugeplan_service:service@127.0.0.1:{port}/hugeplan",
        f"{SECRETS}/migrate/hugeplan_database_url": f"postgresql://hugeplan_owner:owner@127.0.0.1:{port}/hugeplan",
    }
    node.shell(f"install -d -m 0750 -g hugeplan-server {SECRETS}/migrate")
    for path, url in urls.items():
        node.shell(f"(umask 027; echo '{url}' > {path}); chgrp hugeplan-server {path}")
    node.shell(
        f"printf 'HUGEPLAN_PORT={http}\\nHUGEPLAN_PUBLIC_URL=https://hugeplan.example\\n' > /etc/hugeplan/server.env"
    )
    node.run("systemctl", "enable", "--now", "hugeplan-server")
    # Started is what answers: nothing is waited for.
    health = ("curl", "--fail", "--silent", f"http://127.0.0.1:{http}/healthz")
    assert node.call(*health).returncode == 0
    node.until(lambda: node.call("curl", "--fail", "-s", f"http://127.0.0.1:{http}/readyz").returncode == 0, "ready")
    a_restart_that_comes_to_nothing_fails(node)
    assert node.call(*health).returncode == 0

    # No credential in the journal; the file is for root and the service's user.
    assert "hp_" not in node.journal("hugeplan-server")
    assert node.run("stat", "--format=%U %a", "/var/lib/hugeplan-server/first-admin-token") == "hugeplan-server 600"
    token = node.run("cat", "/var/lib/hugeplan-server/first-admin-token")
    assert node.run("hugeplan", "token", "login-link").startswith("https://hugeplan.example/login#token=")
    doctor = node.run("hugeplan", "doctor")
    assert "ok        The database's role hugeplan_service changes rows and no table." in doctor, doctor
    assert "wrong" not in doctor, doctor

    who_may_not_and_what_is_wrong_is_said(node, port)

    # What changes tables is the owner's, whose file the command takes by itself; the service's role may not do it.
    assert "hugeplan_service may change rows and no table." in node.run("hugeplan", "migrate")
    libpq_looks_for_certificates_where_it_may(node)

    node.shell(
        "openssl req -x509 -newkey ed25519 -nodes -days 2 -subj /CN=hugeplan.example"
        " -addext subjectAltName=DNS:hugeplan.example -keyout /root/tls.key -out /root/tls.pem 2>/dev/null"
    )
    agents = node.run("hugeplan", "token", "create", "--role", "agent", "--name", "sender")
    nginx_passes_it_on(node, http, token, agents)
    caddy_passes_it_on(node, http, token, agents)

    before = node.run("systemctl", "show", "--property=MainPID", "--value", "hugeplan-server")
    node.run("dpkg", "--force-confold", "-i", f"/root/hugeplan-server_{NEW}_amd64.deb")
    assert node.call(*health).returncode == 0, "the upgraded service"
    assert node.run("systemctl", "show", "--property=MainPID", "--value", "hugeplan-server") not in {"0", before}
    assert node.run("find", "/usr/lib/hugeplan-server", "-name", "*.pyc") == ""
    node.run("dpkg", "--purge", "hugeplan-server")
    for left in ("/var/lib/hugeplan-server", SECRETS, "/usr/lib/hugeplan-server"):
        assert node.call("ls", "-d", left).returncode != 0, left


def nginx_passes_it_on(node: Machine, http: int, *tokens: str) -> None:
    """With the example as it is printed, but for the lines that name the host, and the ports."""
    https, plain = free_port(), free_port()
    example = node.run("cat", "/usr/share/doc/hugeplan-server/nginx.conf")
    # Debian 12's nginx is from before 1.25.1, for which the example says what to write.
    assert "http2 on;" in example
    mine = (
        example.replace("    http2 on;\n", "")
        .replace("listen 443 ssl;", f"listen 127.0.0.1:{https} ssl http2;")
        .replace("listen 80;", f"listen 127.0.0.1:{plain};")
        .replace("/etc/ssl/hugeplan.example.pem", "/root/tls.pem")
        .replace("/etc/ssl/private/hugeplan.example.key", "/root/tls.key")
        .replace("127.0.0.1:8000", f"127.0.0.1:{http}")
    )
    (node.root / "etc/nginx/conf.d/hugeplan.conf").write_text(mine)
    node.shell("rm -f /etc/nginx/sites-enabled/default")
    node.run("nginx", "-t")
    node.run("systemd-run", "--property=Type=forking", "/usr/sbin/nginx")
    it_is_passed_on(node, https, plain, *tokens)


def caddy_passes_it_on(node: Machine, http: int, *tokens: str) -> None:
    """With the example as it is printed, but for the ports, and a certificate that no authority has to be asked for."""
    https, plain = free_port(), free_port()
    example = node.run("cat", "/usr/share/doc/hugeplan-server/Caddyfile")
    site = "\nhugeplan.example {\n"
    assert site in example
    mine = example.replace(site, f"{site}\tbind 127.0.0.1\n\ttls /root/tls.pem /root/tls.key\n")
    mine = mine.replace("127.0.0.1:8000", f"127.0.0.1:{http}")
    options = f"{{\n\tadmin off\n\thttp_port {plain}\n\thttps_port {https}\n}}\n"
    (node.root / "etc/caddy/Caddyfile").write_text(f"{options}{mine}\n")
    given = ("--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile")
    node.run("caddy", "validate", *given)
    node.run("systemd-run", "--setenv=HOME=/root", "/usr/bin/caddy", "run", *given)
    it_is_passed_on(node, https, plain, *tokens)


def it_is_passed_on(node: Machine, https: int, plain: int, admins: str, agents: str) -> None:
    """The API, the interface, events at once and bodies up to the limit; and never the metrics."""
    curl = ["curl", "--silent", "--cacert", "/root/tls.pem", "--resolve", f"hugeplan.example:{https}:127.0.0.1"]
    status = ["--output", "/dev/null", "--write-out", "%{http_code}"]
    base = f"https://hugeplan.example:{https}"
    bearer, sender = (["--header", f"Authorization: Bearer {token}"] for token in (admins, agents))
    sender += ["--header", "Content-Type: application/json"]
    node.until(lambda: node.call(*curl, "--fail", f"{base}/healthz").returncode == 0, "the proxy")
    assert '"role":"admin"' in node.run(*curl, *bearer, f"{base}/api/v1/session").replace(" ", "")
    assert node.run(*curl, *status, f"{base}/metrics") == "404"
    assert "<html" in node.run(*curl, f"{base}/")
    # The stream stays open; what it says first comes through before it ends.
    assert node.call(*curl, *bearer, "--max-time", "5", f"{base}/api/v1/events").stdout
    node.shell("head -c 7M /dev/zero > /root/body; head -c 9M /dev/zero > /root/larger")
    sent = [
        node.run(*curl, *sender, *status, "--data-binary", f"@/root/{name}", f"{base}/api/v1/reports")
        for name in ("body", "larger")
    ]
    # A body below the limit is the service's to judge.
    assert sent in (["400", "413"], ["422", "413"])
    plainly = ["--header", "Host: hugeplan.example", "--output", "/dev/null", "--write-out", "%{redirect_url}"]
    assert (
        node.run("curl", "-s", *plainly, f"http://127.0.0.1:{plain}/nodes?x=1") == "https://hugeplan.example/nodes?x=1"
    )


def who_may_not_and_what_is_wrong_is_said(node: Machine, port: int) -> None:
    """With what mends it."""
    nobody = ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups")
    assert "run it as root: sudo hugeplan token list\n" in node.call(*nobody, "hugeplan", "token", "list").stderr
    elsewhere = f"HUGEPLAN_DATABASE_URL=postgresql://no_such_role:x@127.0.0.1:{port}/hugeplan"
    said = node.call("env", elsewhere, "hugeplan", "doctor").stdout
    assert "the roles and the database are made once" in said, said


def a_restart_that_comes_to_nothing_fails(node: Machine) -> None:
    """A bad setting, a port that is taken, a misspelt name beside a good one: each is said where an operator looks."""
    settings = "/etc/hugeplan/server.env"
    node.shell(f"cp {settings} /root/kept")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for line, said in (
            ("HUGEPLAN_MAX_BODY_BYTES=x", "HUGEPLAN_MAX_BODY_BYTES is 'x'"),
            (f"HUGEPLAN_PORT={taken.getsockname()[1]}", "is in use; stop what uses it"),
        ):
            node.shell(f"echo '{line}' >> {settings}")
            failed = node.call("systemctl", "restart", "hugeplan-server")
            assert failed.returncode != 0, line
            assert "failed" in failed.stderr, failed.stderr
            assert said in node.journal("hugeplan-server")
            node.shell(f"cp /root/kept {settings}; systemctl reset-failed hugeplan-server || true")
    node.shell(f"echo HUGEPLAN_DATABSE_URL=postgresql:///x >> {settings}; systemctl restart hugeplan-server")
    warning = "HUGEPLAN_DATABSE_URL is no setting of hugeplan, and nothing reads it. Is HUGEPLAN_DATABASE_URL meant?"
    assert warning in node.journal("hugeplan-server")
    assert warning in node.call("hugeplan", "doctor").stderr
    node.shell(f"cp /root/kept {settings}; systemctl restart hugeplan-server")


def libpq_looks_for_certificates_where_it_may(node: Machine) -> None:
    """A server that offers TLS makes libpq look into the home folder: root's is closed to the service's user."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def offer_tls() -> None:
            with suppress(OSError):
                while True:
                    connection = listening.accept()[0]
                    with connection:
                        connection.recv(8)
                        connection.sendall(b"S")

        thread = threading.Thread(target=offer_tls, daemon=True)
        thread.start()
        url = f"postgresql://x:x@127.0.0.1:{listening.getsockname()[1]}/x?sslmode=require"
        said = node.call("env", "HOME=/root", f"HUGEPLAN_DATABASE_URL={url}", "hugeplan", "token", "list").stderr
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)
    assert "SSL" in said, said
    assert "certificate file" not in said, said


def test_an_installation_of_one_role_goes_on_and_becomes_one_of_two(database: tuple[EmbeddedPostgres, int]) -> None:
    """The service acted as the owner; docs/upgrading.md has the two statements that end that."""
    postgres, port = database
    statements = (
        "CREATE ROLE hugeplan_owner LOGIN PASSWORD 'owner'",
        "CREATE ROLE hugeplan_service LOGIN PASSWORD 'service' IN ROLE hugeplan_owner",
        "ALTER ROLE hugeplan_service SET role = 'hugeplan_owner'",
        "CREATE DATABASE hugeplan OWNER hugeplan_owner ENCODING 'UTF8' TEMPLATE template0",
    )
    printed = re.findall(r"--command '([^']+)'", (REPOSITORY / "docs/upgrading.md").read_text())
    assert len(printed) == 2
    base = f"127.0.0.1:{port}/hugeplan"

    def hugeplan(role: str, *words: str) -> str:
        environment = {**os.environ, "HUGEPLAN_DATABASE_URL": f"postgresql://{role}@{base}"}
        done = subprocess.run(
            [sys.executable, "-m", "hugeplan.cli", *words], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode in {0, 1}, done.stderr
        return done.stdout

    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)
        hugeplan("hugeplan_service:service", "migrate")
        assert "attention The database's role hugeplan_service may make and drop tables" in (
            hugeplan("hugeplan_service:service", "doctor")
        )
        for statement in printed:
            connection.execute(statement)
    assert "ok        The database's role hugeplan_service changes rows and no table." in (
        hugeplan("hugeplan_service:service", "doctor")
    )
    assert hugeplan("hugeplan_service:service", "token", "create", "--role", "viewer", "--name", "x").startswith("hp_")
    hugeplan("hugeplan_owner:owner", "migrate")


def test_the_roles_of_the_guide_hold(database: tuple[EmbeddedPostgres, int]) -> None:
    """The reader reads and no more; the service is no superuser and needs none."""
    postgres, port = database
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        for statement in roles_of_the_guide().split(";\n"):
            if statement.strip():
                connection.execute(statement)
    base = f"127.0.0.1:{port}/hugeplan"
    hugeplan = [sys.executable, "-m", "hugeplan.cli"]
    owner = {**os.environ, "HUGEPLAN_DATABASE_URL": f"postgresql://hugeplan_owner:owner@{base}"}
    service = {**os.environ, "HUGEPLAN_DATABASE_URL": f"postgresql://hugeplan_service:service@{base}"}
    subprocess.run([*hugeplan, "migrate"], env=owner, check=True)
    made = subprocess.run(
        [*hugeplan, "token", "create", "--role", "viewer", "--name", "x"], env=service, check=True, capture_output=True
    )
    assert made.stdout.startswith(b"hp_")
    seed = [sys.executable, "-m", "tools.seed", "--nodes", "3"]
    subprocess.run(seed, cwd=REPOSITORY / "backend", env=service, check=True, capture_output=True)
    with psycopg.connect(f"postgresql://hugeplan_reader:reader@{base}", autocommit=True) as reader:
        row = reader.execute("SELECT count(*) FROM nodes").fetchone()
        assert row == (3,)
        for statement in ("DELETE FROM nodes", "CREATE TABLE x (y int)", "SELECT secret_sha256 FROM tokens"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(statement)
    with psycopg.connect(service["HUGEPLAN_DATABASE_URL"]) as connection:
        found = connection.execute(
            "SELECT rolsuper OR rolcreaterole OR rolcreatedb FROM pg_roles WHERE rolname = current_user"
        )
        assert found.fetchone() == (False,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("CREATE TABLE x (y int)")


def test_lintian_finds_no_error(packages: Path) -> None:
    if shutil.which("lintian") is None:
        pytest.skip("SKIP: lintian is not installed")
    (deb,) = packages.glob(f"*_{NEW}_*.deb")
    words = ["lintian", "--fail-on", "error", "--allow-root", str(deb)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
