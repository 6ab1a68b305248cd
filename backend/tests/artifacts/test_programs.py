"""Each kind of file is read by the program that it is for, or the table says why it is not.

The checks of engines, Ansible, promtool, tmpfiles and units are in test_kinds.py, those of Kubernetes objects in
test_api_server.py, those of kubelet and pods on a real node in deploy/kubernetes/tests. A program that is not installed
is a SKIP with its name.
"""

from __future__ import annotations

import email
import json
import os
import re
import shutil
import subprocess
import tomllib
from configparser import ConfigParser
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from artifacts.samples import here, rendered, request_of
from artifacts.test_kinds import needs, run

from hugeplan.artifacts import KINDS, Artifact, Platform, render
from hugeplan.artifacts.base import mark
from hugeplan.artifacts.bundle import bundle
from hugeplan.artifacts.kernel_command_line import parameters
from hugeplan.planner.memory.kernel_replay import replay
from hugeplan.planner.memory.kernel_words import words_of
from hugeplan.planner.plan import plan

#: kind -> the program that reads the rendered file in a test, and what no test here can do.
READ_BY = {
    "installer": "sh, for whole plans in tests/artifacts/test_files_pasted.py",
    "kernel_command_line": "the shell of grub-mkconfig, and our replay of mm/hugetlb.c; no boot of a kernel",
    "systemd_boot": "kernel-install, and our replay of mm/hugetlb.c; no boot of a kernel",
    "sysctl": "sysctl --dry-run",
    "numa_script": "sh, on real pools in deploy/kubernetes/tests/test_node.py",
    "tmpfiles": "systemd-tmpfiles",
    "systemd_unit": "systemd-analyze verify",
    "thp_tmpfiles": "systemd-tmpfiles",
    "limits_d": "pam_limits by runuser, in a mount namespace of its own",
    "memlock_dropin": "systemd-analyze verify",
    "tuned_profile": "Python's configparser, which TuneD uses; tuned-adm where it is installed",
    "cloud_config": "cloud-init schema where it is installed",
    "ansible_playbook": "ansible-playbook --syntax-check",
    "kubelet_configuration": "a kubelet 1.34 in deploy/kubernetes/tests/test_node.py",
    "pod": "kube-apiserver, and a kubelet in deploy/kubernetes/tests/test_node.py",
    "statefulset_patch": "kube-apiserver, and its controller in deploy/kubernetes/tests/test_node.py",
    "statefulset_snippet": "nothing: it has placeholders, and kube-apiserver refuses it",
    "node_label": "kubectl and kube-apiserver",
    "node_feature_rule": "kube-apiserver with the published definition",
    "performance_profile": "kube-apiserver with the published definition",
    "openshift_tuned": "kube-apiserver with the published definition",
    "machine_config": "nothing: its definition is not among the published ones in the shared folder",
    "gke_system_config": "gcloud's own parser",
    "terraform_gke": "terraform fmt; no provider, which validate would download",
    "eks_user_data": "Python's MIME parser and sh; no cloud-init on Amazon Linux",
    "bottlerocket_settings": "a TOML parser; no apiclient outside Bottlerocket",
    "karpenter_node_overlay": "kube-apiserver with the published definition",
    "aks_daemonset": "kube-apiserver",
    "aks_node_config": "a JSON parser; az checks it in the cloud only",
    "prometheus_rules": "promtool",
    "grafana_dashboard": "a JSON parser; no Grafana",
    "postgresql_conf": "postgres -C",
    "postgresql_conf_snippet": "postgres -C reads the same lines as a file",
    "my_cnf": "mysqld of MySQL where it is installed",
    "my_cnf_snippet": "nothing: its section is a placeholder",
    "mariadb_cnf": "mariadbd --help --verbose",
    "mariadb_cnf_snippet": "nothing: its section is a placeholder",
    "oracle_parameters": "nothing: SQL*Plus and a database under licence",
    "db2_settings": "sh -n; db2set and a database under licence",
    "jvm_options": "java -XX:+PrintFlagsFinal",
    "redis_conf": "redis-server where it is installed",
    "redis_conf_snippet": "redis-server takes the same lines",
    "engine_settings": "nothing: it is text for a person",
    "cloudnative_pg": "kube-apiserver with the published definition",
    "crunchy_cluster": "kube-apiserver with the published definition",
    "percona_postgresql_cluster": "kube-apiserver with the published definition",
    "zalando_postgresql": "kube-apiserver with the published definition",
    "mariadb_operator": "kube-apiserver with the published definition",
}


def test_the_table_names_every_kind() -> None:
    assert set(READ_BY) == set(KINDS)


def written(artifact: Artifact, folder: Path) -> Path:
    path = folder / artifact.filename
    path.write_text(artifact.content, encoding="utf-8")
    return path


def test_sysctl_reads_the_file(tmp_path: Path) -> None:
    program = needs("sysctl")
    if "--dry-run" not in run(program, "--help").stdout:
        pytest.skip("this sysctl has no --dry-run (procps 4)")
    found, files = rendered(request_of("postgresql", "oracle", "db2"))
    done = run(program, "--dry-run", f"--load={written(files['sysctl'], tmp_path)}")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    pages = sum(p.pages for p in found.pools if p.page_bytes == 2**21)
    assert f"vm.nr_hugepages = {pages}" in done.stdout.splitlines()
    assert "kernel.shmmni" in done.stdout


def reserved_by(line: str, request: object) -> dict[tuple[int, int | None], int]:
    """Page size and NUMA node -> pages, as a kernel 6.12 reads the words."""
    node = request.node  # type: ignore[attr-defined]
    boot = replay(
        words_of(line), sizes=node.huge_page_sizes_bytes, pmd_bytes=node.default_huge_page_bytes, version=(6, 12),
        arch=node.arch, online=[numa.id for numa in node.numa],
    )  # fmt: skip
    return {(size, n): count for size, by_node in boot.pools.items() for n, count in by_node.items()}


def test_the_shell_of_grub_mkconfig_joins_the_words(tmp_path: Path) -> None:
    request = request_of("postgresql")
    found, files = rendered(request)
    drop_in = written(files["kernel_command_line"], tmp_path)
    text = (
        "GRUB_CMDLINE_LINUX='quiet hugepagesz=1G\thugepages=4\tx=\\0040\\c console=ttyS0 default_hugepagesz=1G';"
        ' GRUB_CMDLINE_LINUX_DEFAULT="hugepages=512 splash";'
        f' . {drop_in}; printf "%s|%s" "$GRUB_CMDLINE_LINUX" "$GRUB_CMDLINE_LINUX_DEFAULT"'
    )
    done = run("/bin/sh", "-euc", text)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"quiet\tx=\\0040\\c console=ttyS0 {parameters(found, request)}| splash"


@pytest.mark.parametrize(
    ("release", "nodes", "first"),
    [
        ("5.15.0-91-generic", 2, "numa_script"),
        ("5.15.0-91-generic", 1, "kernel_command_line"),
        ("5.16.0", 2, "kernel_command_line"),
        (None, 2, "kernel_command_line"),
    ],
)
def test_a_kernel_that_reads_no_counts_per_numa_node_gets_none(release: str | None, nodes: int, first: str) -> None:
    request = request_of("postgresql", nodes=nodes)
    request = replace(request, node=replace(request.node, kernel_release=release))
    files = render(plan(request), request)
    assert [file.kind for file in files[:2]] == ["installer", first]
    counts = [one.kind for one in files if re.search(r"hugepages=0:\d", one.content)]
    assert bool(counts) == (first != "numa_script" and nodes > 1)


@pytest.mark.parametrize(
    "before",
    [
        None,
        "root=/dev/sda1 ro -- single\n",
        "root=/dev/sda1 ro hugepagesz=1G hugepages=4 transparent_hugepage=always\n",
    ],
)
def test_kernel_install_writes_an_entry_with_the_words_and_the_way_back_restores_it(
    tmp_path: Path, before: str | None
) -> None:
    program = needs("kernel-install")
    request = request_of("postgresql")
    found, _ = rendered(request)
    (artifact,) = (a for a in render(found, request, Platform.SYSTEMD_BOOT) if a.kind == "systemd_boot")
    written(artifact, tmp_path)
    settings, boot, image = tmp_path / "etc", tmp_path / "boot", tmp_path / "vmlinuz"
    settings.mkdir()
    (boot / "loader/entries").mkdir(parents=True)
    (boot / "hugeplan").mkdir()
    image.write_text("a kernel")
    (settings / "install.conf").write_text("layout=bls\n")
    (settings / "entry-token").write_text("hugeplan\n")
    if before is not None:
        (settings / "cmdline").write_text(before)
    environment = {
        **os.environ, "KERNEL_INSTALL_CONF_ROOT": str(settings), "BOOT_ROOT": str(boot),
        "KERNEL_INSTALL_PLUGINS": "/usr/lib/kernel/install.d/90-loaderentry.install", "MACHINE_ID": "1" * 32,
    }  # fmt: skip

    def shell(commands: str, result: int = 0) -> None:
        own = commands.replace("/etc/kernel", str(settings)).replace("\nreboot", "\n:")
        own = own.replace('"/boot/vmlinuz-$(uname -r)"', f'"{image}"').replace("kernel-install", program)
        own = own.replace('"/usr/lib/modules/$(uname -r)/vmlinuz" ', "")
        done = subprocess.run(
            ["/bin/sh", "-euc", here(own)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == result, done.stderr

    def options() -> str:
        entries = list((boot / "loader/entries").glob("*.conf"))
        if not entries:
            pytest.skip(f"kernel-install wrote no entry: {list(boot.rglob('*'))}")
        (line,) = (line for line in entries[0].read_text().splitlines() if line.startswith("options"))
        return line.removeprefix("options").strip()

    shell(artifact.install)
    wanted = {(p.page_bytes, p.numa_node): p.pages for p in found.pools if p.pages}
    assert reserved_by(options(), request) == wanted
    if before is not None:
        assert " root=/dev/sda1 ro" in options()
        assert "always" not in options()
    # A second time changes nothing, and another plan's way back ends here.
    first = (settings / "cmdline").read_text()
    shell(artifact.install)
    assert (settings / "cmdline").read_text() == first
    bigger = request_of("postgresql", "jvm")
    (other,) = (a for a in render(plan(bigger), bigger, Platform.SYSTEMD_BOOT) if a.kind == "systemd_boot")
    written(other, tmp_path)
    shell(other.install)
    assert (settings / "cmdline").read_text() != first
    for result in (0, 1):
        shell(other.rollback, result)
        assert (settings / "cmdline").read_text() == first
    shell(artifact.rollback)
    # Where there was none, kernel-install would take the running line again, which has the plan's words by then.
    running = [word for word in Path("/proc/cmdline").read_text().split() if not word.startswith(("BOOT_", "initrd="))]
    former = running if before is None else before.split()
    assert (settings / "cmdline").read_text().split() == former
    assert options().split()[: len(former)] == former


@pytest.mark.parametrize(
    ("fails", "now", "booted", "result"),
    [
        ("", "root=/dev/sda1 ro quiet\n", "root=/dev/sda1 ro", "root=/dev/sda1 ro quiet"),
        ("", "quiet\n", "quiet", "quiet"),
        ("", "hugepages=4\n", "quiet", ""),
        ("", None, "BOOT_IMAGE=/x root=/dev/sda1 ro", "root=/dev/sda1 ro"),
        ("", "quiet\n", "ro root=/dev/sda1", None),
        ("", "", "root=/dev/sda1", None),
        ("cd", "root=/dev/sda1 ro\n", "root=/dev/sda1", None),
        ("image", "root=/dev/sda1 ro\n", "root=/dev/sda1", None),
        *((program, "root=/dev/sda1 ro\n", "root=/dev/sda1", None) for program in ("tr", "grep", "awk", "sed")),
    ],
)
def test_no_part_of_the_command_line_that_failed_is_booted(
    tmp_path: Path, fails: str, now: str | None, booted: str, result: str | None
) -> None:
    """A node would reboot with the words of the plan alone, or without them."""
    request = request_of("postgresql")
    (artifact,) = (a for a in render(plan(request), request, Platform.SYSTEMD_BOOT) if a.kind == "systemd_boot")
    step, line, own = tmp_path / "step", tmp_path / "cmdline", tmp_path / "bin"
    for folder in (step, own):
        folder.mkdir()
    written(artifact, step)
    (tmp_path / "booted").write_text(f"{booted}\n")
    if now is not None:
        line.write_text(now)
    (tmp_path / "vmlinuz").write_text("a kernel")
    programs = {"kernel-install": 'test -e "$3" || exit 1', "reboot": f": > {tmp_path}/rebooted"}
    if fails not in {"", "cd", "image"}:
        programs[fails] = "cat > /dev/null; printf 'half '; exit 1"
    for name, text in programs.items():
        (own / name).write_text(f"#!/bin/sh\n{text}\n")
        (own / name).chmod(0o755)
    image = tmp_path / ("none" if fails == "image" else "vmlinuz")
    commands = here(artifact.install).replace("/etc/kernel/cmdline", str(line)).replace("/boot/vmlinuz-", f"{image}#")
    commands = commands.replace("/proc/cmdline", str(tmp_path / "booted")).replace("#$(uname -r)", "")
    words = ["env", f"PATH={own}:{os.environ['PATH']}", "/bin/sh", "-c", commands]
    done = run(*words, cwd=tmp_path if fails == "cd" else step)
    is_done = (done.returncode == 0, (tmp_path / "rebooted").exists())
    planned = f"{artifact.content.splitlines()[-1]} hugeplan.files={mark(artifact.content)}"
    if result is not None:
        assert is_done == (True, True), done.stderr
        assert line.read_text().split() == [*planned.split(), *result.split()]
    elif fails in {"tr", "grep", "awk", "sed"} and is_done[0]:  # a program that is not used
        assert line.read_text().split() == [*planned.split(), *(now or "").split()]
    else:
        assert is_done == (False, False)
        assert fails == "image" or (line.read_text() if line.exists() else None) == now


@pytest.mark.parametrize(("regions", "memory"), [("", "AUTOMATIC(51200)"), ("*", "2000000")])
def test_db2s_way_back_is_what_the_server_had(tmp_path: Path, regions: str, memory: str) -> None:
    """Programs that print as its manual shows stand for it."""
    answers = {
        "db2set": 'if [ "$1" = -all ]; then sed "s/^/[i] /" reg; else grep -v "=$" > reg << END\n$1\nEND\nfi; :',
        "db2": 'case $1 in get) cat cfg;; *) echo " Memory (4KB) ($7) = $8" > cfg;; esac',
        "db2stop": ":", "db2start": ":", "id": "echo 1001",
    }  # fmt: skip
    for name, text in answers.items():
        (tmp_path / name).write_text("#!/bin/sh\n" + text.replace("\\n", "\n") + "\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "reg").write_text(f"DB2_LARGE_PAGE_MEM={regions}\n" if regions else "")
    (tmp_path / "cfg").write_text(f" Memory (4KB) (DATABASE_MEMORY) = {memory}\n")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "DB": "shop"}

    def state(commands: str) -> list[str]:
        subprocess.run(["/bin/sh", "-ec", commands], env=environment, cwd=tmp_path, check=True, timeout=60)
        return [(tmp_path / name).read_text().split("=")[-1].strip() for name in ("reg", "cfg")]

    artifact = rendered(request_of("db2"))[1]["db2_settings"]
    written(artifact, tmp_path)
    install = artifact.install.replace("DB=name ", "")
    assert [state(install) for _ in "12"] == [["DB", "1048576"]] * 2
    assert state(artifact.rollback) == [regions, memory.partition("(")[0]]
    assert not list(tmp_path.glob("before-*"))


@pytest.mark.parametrize("how", ["kill -9 $PPID $$", "echo half; exit 4"])
@pytest.mark.parametrize("at", range(1, 10))
def test_db2s_way_back_is_kept_whole_or_not_at_all(tmp_path: Path, at: int, how: str) -> None:
    """The install ends at its program of this number, and is pasted again."""
    counts = 'echo >> calls; if [ "$(wc -l < calls)" = "$(cat at)" ]; then . ./how; fi; '
    answers = {
        "db2set": 'if [ "$1" = -all ]; then sed "s/^/[i] /" reg; else echo "$1" | grep -v "=$" > reg; fi; :',
        "db2": 'case $1 in get) cat cfg;; *) echo " Memory (4KB) ($7) = $8" > cfg;; esac',
        "sync": ":", "mv": 'exec /bin/mv "$@"', "db2stop": ":", "db2start": ":", "id": "echo 1001",
    }  # fmt: skip
    for name, text in answers.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{counts}{text}\n")
        (tmp_path / name).chmod(0o755)
    had = ("DB2_LARGE_PAGE_MEM=*\n", " Memory (4KB) (DATABASE_MEMORY) = AUTOMATIC(51200)\n")
    for name, text in zip(("reg", "cfg", "how", "at"), (*had, how, f"{at}"), strict=True):
        (tmp_path / name).write_text(text)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "DB": "shop"}
    artifact = rendered(request_of("db2"))[1]["db2_settings"]
    written(artifact, tmp_path)

    def shell(commands: str) -> int:
        words = ["/bin/sh", "-ec", commands]
        return subprocess.run(words, env=environment, cwd=tmp_path, check=False, timeout=60).returncode

    install = artifact.install.replace("DB=name ", "")
    shell(install)
    (tmp_path / "at").write_text("0")
    assert shell(install) == 0
    assert shell(artifact.rollback) == 0
    assert (tmp_path / "reg").read_text() == had[0]
    assert (tmp_path / "cfg").read_text() == " Memory (4KB) (DATABASE_MEMORY) = AUTOMATIC\n"
    assert not list(tmp_path.glob("before-*"))


def test_systemd_accepts_the_drop_in_beside_a_unit(tmp_path: Path) -> None:
    program = needs("systemd-analyze")
    _, files = rendered(request_of("oracle"))
    unit = tmp_path / "oracle.service"
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    folder = tmp_path / f"{unit.name}.d"
    folder.mkdir()
    drop_in = written(files["memlock_dropin"], folder)
    done = run(program, "verify", str(unit))
    assert [line for line in done.stderr.splitlines() if str(tmp_path) in line or drop_in.name in line] == []
    # The same program says what is wrong in a drop-in, so its silence means something.
    drop_in.write_text("[Service]\nLimitMEMLOCKED=infinity\n")
    assert "LimitMEMLOCKED" in run(program, "verify", str(unit)).stderr


def test_systemd_tmpfiles_writes_the_mode(tmp_path: Path) -> None:
    program = needs("systemd-tmpfiles")
    _, files = rendered(request_of("redis"))
    config = tmp_path / "t.conf"
    config.write_text(files["thp_tmpfiles"].content.replace(" /sys/", f" {tmp_path}/sys/"))
    target = tmp_path / "sys/kernel/mm/transparent_hugepage/enabled"
    target.parent.mkdir(parents=True)
    target.write_text("always")
    assert run(program, "--create", str(config)).returncode == 0
    assert target.read_text() == "madvise"


def test_pam_limits_gives_a_session_the_limit(tmp_path: Path) -> None:
    """In a mount namespace, where the folder of limits is the test's. A small size: this root may not raise limits."""
    if os.geteuid() != 0:
        pytest.skip("only root may make a mount namespace here")
    programs = [needs(name) for name in ("unshare", "runuser")]
    _, files = rendered(request_of("oracle"))
    (kib,) = set(re.findall(r"memlock (\d+)$", files["limits_d"].content, re.M))
    (tmp_path / "60-hugeplan.conf").write_text(files["limits_d"].content.replace(kib, "64"))
    inner = f"mount --bind {tmp_path} /etc/security/limits.d && exec {programs[1]} -u nobody -- sh -c 'ulimit -l'"
    done = run(programs[0], "--mount", "sh", "-c", inner)
    if done.returncode:
        pytest.skip(f"no session with pam_limits here: {done.stderr.strip()}")
    assert done.stdout.strip() == "64"


def test_tuned_reads_the_profile(tmp_path: Path) -> None:
    program = needs("tuned-adm")
    _, files = rendered(request_of("postgresql"))
    folder = tmp_path / "hugeplan"
    folder.mkdir()
    written(files["tuned_profile"], folder)
    done = run(program, "profile_info", str(folder))
    assert done.returncode == 0, done.stderr
    assert "Huge pages by hugeplan" in done.stdout


@pytest.mark.parametrize(("found", "kept"), [(None, "madvise"), ("always", None), ("never", "never")])
def test_a_tuned_profile_does_not_turn_thp_on(found: str | None, kept: str | None) -> None:
    """The profile that it includes sets always. A word of the command line is stronger than either."""
    request = request_of("postgresql")
    _, files = rendered(replace(request, node=replace(request.node, thp_enabled=found)))
    profile = ConfigParser(strict=True)
    profile.read_string(files["tuned_profile"].content)
    assert profile.get("vm", "transparent_hugepages", fallback=None) == kept
    assert ("transparent_hugepage=madvise" in profile["bootloader"]["cmdline_hugeplan"]) is (kept is None)


def test_cloud_init_accepts_the_document(tmp_path: Path) -> None:
    program = needs("cloud-init")
    _, files = rendered(request_of("postgresql"))
    done = run(program, "schema", "--config-file", str(written(files["cloud_config"], tmp_path)))
    assert done.returncode == 0, done.stdout + done.stderr


_GCLOUD = """
import sys
sys.path[:0] = [sys.argv[1] + "/lib", sys.argv[1] + "/lib/third_party"]
from googlecloudsdk.api_lib.container import util
from googlecloudsdk.generated_clients.apis.container.v1 import container_v1_messages as messages
config = messages.NodeConfig()
util.LoadSystemConfigFromYAML(config, sys.stdin.read(), False, messages)
pages = config.linuxNodeConfig.hugepages
print(pages.hugepageSize2m or 0, pages.hugepageSize1g or 0)
"""


def test_gcloud_reads_the_node_system_configuration() -> None:
    """The parser behind --system-config-from-file refuses what it does not know; no cluster is asked."""
    needs("gcloud")
    root = next((p for p in map(Path, ("/usr/lib/google-cloud-sdk", "/opt/google-cloud-sdk")) if p.is_dir()), None)
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if root is None or python is None:
        pytest.skip("gcloud's library is not where its package puts it")
    found, files = rendered(request_of("mariadb", kubernetes=True, provider="gke"))

    def parse(text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-c", _GCLOUD, str(root)], input=text, capture_output=True, text=True, check=False, timeout=120
        )

    done = parse(files["gke_system_config"].content)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip("this gcloud's library has no such module")
    assert done.returncode == 0, done.stderr[-1000:]
    assert done.stdout.split() == [str(sum(p.pages for p in found.pools if p.page_bytes == 2**21)), "0"]
    assert parse(files["gke_system_config"].content.replace("hugepageConfig", "hugePageConfig")).returncode != 0


def test_user_data_is_mime_with_a_script(tmp_path: Path) -> None:
    _, files = rendered(request_of("mysql", kubernetes=True, provider="eks"))
    message = email.message_from_string(files["eks_user_data"].content)
    (part,) = message.get_payload()  # type: ignore[misc]
    assert part.get_content_type() == "text/x-shellscript"  # type: ignore[union-attr]
    script = tmp_path / "script"
    script.write_text(part.get_payload())  # type: ignore[union-attr, arg-type]
    assert run("/bin/sh", "-n", str(script)).returncode == 0


def test_documents_of_clouds_parse() -> None:
    found, files = rendered(request_of("mysql", kubernetes=True, provider="eks"))
    static = tomllib.loads(files["bottlerocket_settings"].content)["settings"]["kernel"]["hugepages"]["static"]
    assert int(static["2Mi"]["count"]) == sum(p.pages for p in found.pools if p.page_bytes == 2**21)
    _, files = rendered(request_of("postgresql", kubernetes=True))
    assert json.loads(files["aks_node_config"].content) == {"transparentHugePageEnabled": "madvise"}
    (words,) = yaml.safe_load(files["machine_config"].content)["spec"]["kernelArguments"]
    request = request_of("postgresql", kubernetes=True)
    wanted = {(p.page_bytes, p.numa_node): p.pages for p in plan(request).pools if p.pages}
    assert reserved_by(words, request) == wanted


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("runuser"), reason="SKIP: root pastes, with runuser")
def test_root_follows_no_link_of_whose_folder_it_is(tmp_path: Path) -> None:
    """A package may give /etc/redis to redis: root would append to whatever redis.conf is a link to."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    _, files = rendered(request_of("redis", "postgresql", reserve_at="runtime"))
    for kind, etc in (("redis_conf", "/etc/redis"), ("prometheus_rules", "/etc/prometheus")):
        file, place, victim = files[kind], tmp_path / kind, tmp_path / f"{kind}-of-root"
        written(file, tmp_path)
        for folder in (place, victim):
            folder.mkdir()
        shutil.chown(place, "nobody")
        paste = here(file.install.replace(etc, str(place)).rpartition(" &&\n")[0])
        run("/bin/sh", "-ec", paste, cwd=tmp_path)
        own = [path for path in place.rglob("*") if path.is_file()]
        assert {path.stat().st_uid for path in own} == {65534}
        for path in own:
            path.unlink()
            path.symlink_to(victim / "file")
        run("/bin/sh", "-c", paste, cwd=tmp_path)
        assert not list(victim.iterdir())


def test_redis_server_takes_the_file(tmp_path: Path) -> None:
    program = needs("redis-server")
    _, files = rendered(request_of("redis"))
    path = written(files["redis_conf"], tmp_path)
    # A port of none and a folder of its own: it starts, answers about its configuration, and ends.
    socket = tmp_path / "s"
    server = subprocess.Popen(
        [program, str(path), "--port", "0", "--unixsocket", str(socket), "--dir", str(tmp_path), "--save", ""],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        client = needs("redis-cli")
        while not socket.exists():
            assert server.poll() is None
        done = run(client, "-s", str(socket), "config", "get", "disable-thp")
        assert done.stdout.split() == ["disable-thp", "yes"]
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.mark.parametrize("engine", ["mysql", "mariadb"])
@pytest.mark.parametrize(
    ("main_file", "own", "read"),
    [
        ("mysql/my.cnf", ("mysql/conf.d", "mysql/{}.conf.d"), "mysql/{}.conf.d"),  # Debian, Ubuntu, Oracle's deb
        ("my.cnf", ("my.cnf.d",), "my.cnf.d"),  # Red Hat, SUSE
        ("my.cnf", ("mysql/conf.d",), "mysql/conf.d"),  # Docker's images
        ("my.cnf", (), None),  # Oracle's rpm
    ],
)
def test_a_mysqls_file_lies_where_its_server_reads_it(
    tmp_path: Path, engine: str, main_file: str, own: tuple[str, ...], read: str | None
) -> None:
    """It was put into a folder made for it, which neither Debian's packages nor Oracle's read."""
    program, etc = needs("my_print_defaults"), tmp_path / "etc"
    (etc / "mysql").mkdir(parents=True)
    (etc / "my.cnf.d").mkdir()  # there and not read, unless its main file says so
    lines = [f"  !includedir {etc / folder.format(engine)}/" for folder in own]
    for folder in own:
        (etc / folder.format(engine)).mkdir(exist_ok=True)
        (etc / folder.format(engine) / "server.cnf").write_text("[mysqld]\nlarge_pages = OFF\n")
    (etc / main_file).write_text("\n".join(["[mysqld]", *lines, ""]))
    file = rendered(request_of(engine))[1]["my_cnf" if engine == "mysql" else "mariadb_cnf"]
    script = next(one.text for one in bundle("n", "", (file,)) if one.path == "verify.sh")
    (tmp_path / file.filename).write_text(file.content)
    (tmp_path / "systemctl").write_text("#!/bin/sh\ntouch restarted\n")
    (tmp_path / "systemctl").chmod(0o755)

    def paste(commands: str) -> subprocess.CompletedProcess[str]:
        words = ["/bin/sh", "-c", here(commands.replace("/etc/", f"{etc}/"))]
        env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        return subprocess.run(words, check=False, capture_output=True, text=True, cwd=tmp_path, env=env)

    def says() -> str:
        return run(program, f"--defaults-file={etc / main_file}", "mysqld", engine).stdout.strip().split("\n")[-1]

    folders = {path for path in etc.rglob("*") if path.is_dir()}
    before, done = says(), paste(file.install)
    assert (done.returncode == 0) is (tmp_path / "restarted").exists() is (read is not None)
    assert folders == {path for path in etc.rglob("*") if path.is_dir()}
    assert ("write the lines into the file that the server reads" in done.stderr) is (read is None)
    if read is not None:
        (written_to,) = etc.rglob("*-hugepages.cnf")
        assert written_to.parent == etc / read.format(engine)
        assert says() == "--large_pages=ON"
        assert "not installed" not in paste(script).stdout
    paste(file.rollback)
    assert says() == before
    assert "not installed, not checked" in paste(script).stdout


def test_mysqld_takes_the_option_file(tmp_path: Path) -> None:
    program = needs("mysqld")
    if "MariaDB" in run(program, "--no-defaults", "--version").stdout:
        pytest.skip("mysqld here is MariaDB's, which is checked with its own file")
    _, files = rendered(request_of("mysql"))
    option_file = written(files["my_cnf"], tmp_path)
    option_file.chmod(0o644)
    done = run(program, f"--defaults-file={option_file}", "--help", "--verbose", "--user=nobody")
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(r"^large-pages\s+TRUE$", done.stdout, re.M)
