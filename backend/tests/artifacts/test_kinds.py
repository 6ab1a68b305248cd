"""Every kind: rendered, complete, as its golden file has it, clean by the linter, and accepted by the real program."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from artifacts.samples import EVERYTHING, OBJECTS, rendered, request_of
from planner.test_any_scenario import Dice

from hugeplan.artifacts import KINDS, PATHS, Artifact, Platform, Restart, installer, render, withheld
from hugeplan.artifacts.kernel_command_line import parameters
from hugeplan.artifacts.kubelet_configuration import configuration
from hugeplan.embedded import programs_dir
from hugeplan.lint import Context, Source, lint
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.kernel_replay import MAX_HSTATES, replay
from hugeplan.planner.memory.kernel_words import words_of
from hugeplan.planner.model import GIB, MIB, PlanRequest
from hugeplan.planner.plan import plan
from hugeplan.planner.units import parse_kubernetes_bytes
from hugeplan.scenario_file import ScenarioDocument, to_request

GOLDEN = Path(__file__).parent / "golden"
NAMES = ("bare", "kubernetes", "eks", "gke", "runtime", "postgresql_conf_snippet", "redis_conf_snippet", *OBJECTS)
#: Kinds that the linter has no rules for: programs and files of other tools.
NOT_LINTED = {
    "numa_script", "node_label", "terraform_gke", "eks_user_data", "prometheus_rules", "grafana_dashboard",
    "oracle_parameters", "db2_settings", "engine_settings", "cloud_config", "ansible_playbook", "installer",
}  # fmt: skip


def base_kind(kind: str) -> str:
    return next(known for known in KINDS if kind == known or kind.startswith(f"{known}-"))


def everything() -> list[tuple[str, PlanRequest, Artifact]]:
    return [
        (name, request, artifact)
        for name, request in zip(NAMES, EVERYTHING, strict=True)
        for artifact in rendered(request)[1].values()
        if name not in KINDS or base_kind(artifact.kind) == name  # the others are as on any Kubernetes node
    ]


ALL = everything()
CASES = [pytest.param(request, artifact, id=f"{name}-{artifact.kind}") for name, request, artifact in ALL]


def test_every_kind_is_rendered() -> None:
    assert len(KINDS) >= 25
    assert {base_kind(artifact.kind) for _, _, artifact in ALL} == set(KINDS)
    assert {kind for paths in PATHS.values() for path in paths.values() for kind in path} <= set(KINDS)


@pytest.mark.parametrize(("request_", "artifact"), CASES)
def test_is_complete(request_: PlanRequest, artifact: Artifact) -> None:
    assert request_.node.name == "db-7"
    assert artifact.content.endswith("\n")
    assert artifact.summary.endswith(".")
    assert artifact.summary.count(". ") == 0
    assert artifact.install
    assert artifact.verify
    assert artifact.rollback
    assert artifact.avoid_when.endswith(".")
    assert artifact.restart in Restart
    # A check only reads: nothing in it writes a file, starts or stops anything.
    assert not re.search(
        r"(?<![0-9&])>(?!&2|\s*/dev/null)|\b(rm|restart|apply|patch|install|tee|create)\b",
        artifact.verify,
    )


@pytest.mark.parametrize(("name", "artifact"), [pytest.param(n, a, id=f"{n}-{a.kind}") for n, _, a in ALL])
def test_is_as_its_golden_file(name: str, artifact: Artifact) -> None:
    """HUGEPLAN_GOLDEN=write writes the files anew; read the difference before it is committed."""
    path = GOLDEN / name / f"{artifact.kind}.txt"
    parts = (
        artifact.content, f"--- path: {artifact.path}", f"--- restart: {artifact.restart}",
        "--- install", artifact.install,
        "--- verify", artifact.verify, "--- rollback", artifact.rollback, "",
    )  # fmt: skip
    # A file's mark is of all files of its plan: each would change with any of them.
    text = re.sub(r"\b[0-9a-f]{16}\b", "MARK", "\n".join(parts))
    for indent in ("", " " * 4, " " * 8):
        text = text.replace(textwrap.indent(installer.text(), indent), f"{indent}PROGRAM\n")
    if os.environ.get("HUGEPLAN_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(("request_", "artifact"), CASES)
def test_is_clean_by_the_linter(request_: PlanRequest, artifact: Artifact) -> None:
    if base_kind(artifact.kind) in NOT_LINTED:
        return
    ids = tuple(numa.id for numa in request_.node.numa)
    context = Context(numa_nodes=ids, mem_total_bytes=request_.node.mem_total_bytes)
    (report,) = lint([Source(artifact.filename, artifact.content)], context)
    assert report.unreadable is None
    assert [(p.rule.id, p.message) for p in report.problems] == []


@pytest.mark.parametrize("request_", EVERYTHING, ids=NAMES)
def test_all_files_of_a_plan_together_are_clean_by_the_linter(request_: PlanRequest) -> None:
    """As ``hugeplan lint BUNDLE`` sees them: each way to the same pool holds all of it, and is counted once."""
    ids = tuple(numa.id for numa in request_.node.numa)
    context = Context(numa_nodes=ids, mem_total_bytes=request_.node.mem_total_bytes)
    files = [a for a in rendered(request_)[1].values() if base_kind(a.kind) not in NOT_LINTED]
    reports = lint([Source(artifact.filename, artifact.content) for artifact in files], context)
    assert [(r.source.name, p.rule.id, p.message) for r in reports for p in r.problems] == []


@pytest.mark.parametrize("request_", EVERYTHING, ids=NAMES)
def test_rendering_twice_gives_the_same_bytes(request_: PlanRequest) -> None:
    found = plan(request_)
    assert render(found, request_) == render(plan(request_), request_)


class TestCommandLine:
    @pytest.mark.parametrize("seed", range(150))
    def test_it_parses_back_to_the_plan(self, seed: int) -> None:
        """For all plans: the words that we write reserve the plan's pools, on the plan's NUMA nodes."""
        try:
            request = to_request(ScenarioDocument.model_validate(Dice(seed).scenario()))
            found = plan(request)
        except PlannerError:
            return
        wanted = {(p.page_bytes, p.numa_node): p.pages for p in found.pools if p.pages}
        if not wanted:
            return
        node = request.node
        for version in ((5, 16), (6, 12)):
            boot = replay(
                words_of(parameters(found, request)),
                sizes=node.huge_page_sizes_bytes,
                pmd_bytes=node.default_huge_page_bytes,
                version=version,
                arch=node.arch,
                online=[numa.id for numa in node.numa],
            )
            only = node.numa[0].id
            got = {(s, only if n is None else n): c for s, by_node in boot.pools.items() for n, c in by_node.items()}
            assert got == wanted
            assert boot.default_page_bytes == node.default_huge_page_bytes
            assert all(step.verdict == "taken" for step in boot.steps)
        words = [w for w in words_of(parameters(found, request)) if "hugepages" in w.name]
        if len(words) > 2 * MAX_HSTATES[node.arch] + 1:
            files = {a.kind: a for a in render(found, request, force=True)}
            assert "6.15" in files["kernel_command_line"].content


class TestKubelet:
    @pytest.mark.parametrize("seed", range(40))
    def test_reserved_memory_has_the_sum_the_kubelet_demands(self, seed: int) -> None:
        document = Dice(seed).scenario()
        document["reservations"] = {"kubernetes": True, "memory_manager_static": True, "provider": "gke"}
        try:
            request = to_request(ScenarioDocument.model_validate(document))
            found = plan(request)
        except PlannerError:
            return
        config, comments = configuration(found, request)
        if "reservedMemory" not in config:
            assert any("reservedMemory" in line for line in comments)
            return

        def size(text: str) -> int:
            return parse_kubernetes_bytes(text, "x")

        total = sum(size(config[k]["memory"]) for k in ("kubeReserved", "systemReserved") if k in config)
        total += size(config["evictionHard"]["memory.available"])
        assert sum(size(entry["limits"]["memory"]) for entry in config["reservedMemory"]) == total

    @pytest.mark.parametrize("seed", range(40))
    @pytest.mark.parametrize("aware", [None, False, True])
    def test_a_kubelet_with_it_offers_what_the_plan_says(self, seed: int, aware: bool | None) -> None:
        """The kubelet's own sum over the written fields is the plan's allocatable memory, to the byte."""
        document = Dice(seed).scenario()
        document["reservations"] = {"kubernetes": True, "provider": "gke"}
        if aware is not None:
            document["reservations"]["hugepage_aware_eviction"] = aware
        try:
            request = to_request(ScenarioDocument.model_validate(document))
            found = plan(request)
        except PlannerError:
            return
        assert found.kubernetes is not None
        config, _ = configuration(found, request)
        pool = sum(p.pages * p.page_bytes for p in found.pools)
        held = allocatable_by_the_kubelet(request.node.mem_total_bytes, config, pool)
        assert held == found.kubernetes.allocatable["memory"]
        soft = config.get("evictionSoft", {}).get("memory.available")
        if pool and not aware:
            hard = parse_kubernetes_bytes(config["evictionHard"]["memory.available"], "x")
            assert parse_kubernetes_bytes(soft, "x") == hard + pool
            assert config["evictionSoftGracePeriod"]["memory.available"] == "10s"
        else:
            assert soft is None

    def test_the_measured_node(self) -> None:
        """A node of Kubernetes 1.34 reported 21689936Ki with these reservations and pools of 700 x 2M and 1 x 1G."""
        config = {
            "kubeReserved": {"memory": "200Mi"},
            "systemReserved": {"memory": "200Mi"},
            "evictionHard": {"memory.available": "100Mi"},
        }
        pool = 700 * 2 * MIB + GIB
        assert allocatable_by_the_kubelet(24684112 * 1024, config, pool) == 21689936 * 1024
        raised = {**config, "evictionHard": {"memory.available": "2524Mi"}}
        assert allocatable_by_the_kubelet(24684112 * 1024, raised, pool) == 21689936 * 1024 - pool

    def test_the_documented_node(self) -> None:
        """Kubernetes documentation, reserve compute resources: 32Gi, 2Gi, 1Gi, 500Mi leave 29196Mi without pools."""
        config = {
            "kubeReserved": {"memory": "2Gi"},
            "systemReserved": {"memory": "1Gi"},
            "evictionHard": {"memory.available": "500Mi"},
        }
        assert allocatable_by_the_kubelet(32 * GIB, config, 0) == 29196 * MIB


def allocatable_by_the_kubelet(capacity_bytes: int, config: dict[str, Any], pool_bytes: int) -> int:
    """pkg/kubelet/nodestatus/setters.go, over the fields of a KubeletConfiguration."""
    held = sum(
        parse_kubernetes_bytes(config.get(k, {}).get("memory", "0"), k) for k in ("kubeReserved", "systemReserved")
    )
    held += parse_kubernetes_bytes(config["evictionHard"]["memory.available"], "evictionHard")
    return max(0, max(0, capacity_bytes - held) - pool_bytes)


class TestPaths:
    def test_the_recommended_path_comes_first_in_order(self) -> None:
        request = request_of("postgresql")
        files = render(plan(request), request)
        steps = [a.step for a in files if a.recommended]
        assert steps == list(range(1, len(steps) + 1))
        assert [a.recommended for a in files] == sorted((a.recommended for a in files), reverse=True)
        assert [a.kind for a in files[:2]] == ["installer", "kernel_command_line"]

    @pytest.mark.parametrize(("platform", "first"), [
        (Platform.SYSTEMD_BOOT, "systemd_boot"), (Platform.CLOUD_IMAGE, "cloud_config"),
        (Platform.ANSIBLE, "ansible_playbook"),
    ])  # fmt: skip
    def test_linux_platforms(self, platform: Platform, first: str) -> None:
        request = request_of("postgresql")
        assert [a.kind for a in render(plan(request), request, platform)[:2]] == ["installer", first]

    @pytest.mark.parametrize(("platform", "first"), [
        (Platform.KUBEADM, "kernel_command_line"), (Platform.OPENSHIFT, "performance_profile"),
        (Platform.GKE, "gke_system_config"), (Platform.EKS, "eks_user_data"), (Platform.AKS, "aks_daemonset"),
        (Platform.BOTTLEROCKET, "bottlerocket_settings"), (Platform.KARPENTER, "eks_user_data"),
        (Platform.TERRAFORM, "terraform_gke"),
    ])  # fmt: skip
    def test_kubernetes_platforms(self, platform: Platform, first: str) -> None:
        request = request_of("postgresql", kubernetes=True)
        steps = [a.kind for a in render(plan(request), request, platform) if a.recommended]
        assert (steps[0] == "installer", first) == (platform is Platform.KUBEADM, steps[platform is Platform.KUBEADM])
        bare = request_of("postgresql")
        with pytest.raises(PlannerError, match="platform"):
            render(plan(bare), bare, platform)

    def test_a_plan_that_does_not_fit_hands_out_nothing_without_force(self) -> None:
        request = request_of("postgresql", "mysql", "mariadb", nodes=1)
        small = request.node.numa[0].__class__(id=0, mem_total_bytes=4 * GIB, pools=())
        request = PlanRequest(
            node=request.node.__class__(name="small", numa=(small,), kernel_used_bytes=3 * GIB),
            databases=tuple(d.__class__(name=d.name, engine=d.engine, settings=d.settings, page_bytes=2 * MIB)
                            for d in request.databases),
        )  # fmt: skip
        found = plan(request)
        assert "does not fit" in (withheld(found) or "")
        assert render(found, request) == ()
        forced = render(found, request, force=True)
        assert {a.media_type for a in forced} >= {"application/json"}
        for artifact in forced:  # every file says it, JSON as a member since it has no comments
            assert "WARNING: Does not fit" in artifact.content, artifact.kind
            if artifact.media_type == "application/json":
                assert "Does not fit" in json.loads(artifact.content)["_warning"]

    def test_run_time_recommends_the_unit(self) -> None:
        request = request_of("postgresql", reserve_at="runtime")
        assert [a.kind for a in render(plan(request), request)][1:3] == ["numa_script", "systemd_unit"]


def needs(program: str) -> str:
    # Programs of the development environment, such as ansible-playbook, are beside its Python.
    found = shutil.which(program) or shutil.which(program, path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, cwd=cwd)


class TestRealPrograms:
    def test_systemd_accepts_the_unit(self, tmp_path: Path) -> None:
        program = needs("systemd-analyze")
        _, files = rendered(request_of("postgresql", reserve_at="runtime"))
        unit = tmp_path / files["systemd_unit"].filename
        text = files["systemd_unit"].content.replace("/usr/local/sbin/hugeplan-reserve", "/bin/true")
        unit.write_text(text)
        done = run(program, "verify", str(unit))
        own = [line for line in done.stderr.splitlines() if unit.name in line]
        assert own == []

    def test_the_shell_accepts_every_script_and_command(self) -> None:
        for _, _, artifact in ALL:
            texts = [artifact.install, artifact.verify, artifact.rollback]
            if artifact.media_type == "text/x-shellscript":
                texts.append(artifact.content)
            for text in texts:
                done = run("/bin/sh", "-n", "-c", text)
                assert done.returncode == 0, (artifact.kind, text, done.stderr)

    def test_systemd_tmpfiles_writes_the_counts(self, tmp_path: Path) -> None:
        program = needs("systemd-tmpfiles")
        found, files = rendered(request_of("postgresql"))
        config = tmp_path / "t.conf"
        config.write_text(files["tmpfiles"].content.replace(" /sys/", f" {tmp_path}/sys/"))
        paths = [Path(line.split()[1]) for line in config.read_text().splitlines() if line.startswith("w ")]
        for path in paths:
            path.parent.mkdir(parents=True)
            path.write_text("0")
        assert run(program, "--create", str(config)).returncode == 0
        assert sorted(int(p.read_text()) for p in paths) == sorted(
            p.pages for p in found.pools if p.pages or p.present_pages
        )

    @pytest.mark.parametrize("name", ["db-7", "db_7.example.org", "DB-7-" + "x" * 40])
    def test_promtool_accepts_the_rules(self, tmp_path: Path, name: str) -> None:
        program = needs("promtool")
        for reservations in ({}, {"kubernetes": True}):
            _, files = rendered(request_of("postgresql", name=name, **reservations))
            rules = tmp_path / "rules.yaml"
            rules.write_text(files["prometheus_rules"].content)
            done = run(program, "check", "rules", str(rules))
            assert done.returncode == 0, done.stdout + done.stderr

    @pytest.mark.parametrize("reserve_at", ["boot", "runtime"])
    def test_ansible_accepts_the_playbook(self, tmp_path: Path, reserve_at: str) -> None:
        program = needs("ansible-playbook")
        _, files = rendered(request_of("postgresql", reserve_at=reserve_at))
        path = tmp_path / "playbook.yaml"
        path.write_text(files["ansible_playbook"].content)
        done = run(program, "--syntax-check", "-i", "db-7,", str(path))
        assert done.returncode == 0, done.stdout + done.stderr

    def test_terraform_reads_the_block(self, tmp_path: Path) -> None:
        program = needs("terraform")
        _, files = rendered(request_of("postgresql", kubernetes=True, provider="gke"))
        (tmp_path / "main.tf").write_text(files["terraform_gke"].content)
        done = run(program, "fmt", "-check", "-diff", str(tmp_path))
        assert done.returncode == 0, done.stdout + done.stderr

    def test_java_takes_the_options(self, tmp_path: Path) -> None:
        program = needs("java")
        _, files = rendered(request_of("jvm"))
        options = tmp_path / "jvm.options"
        options.write_text(files["jvm_options"].content.replace("4g", "64m"))
        done = run(program, f"@{options}", "-XX:+PrintFlagsFinal", "-version")
        assert done.returncode == 0, done.stderr
        assert re.search(r"bool UseLargePages\s+= (true|false)\s.*command line", done.stdout)
        assert re.search(r"LargePageSizeInBytes\s+= 2097152\s.*command line", done.stdout)

    def test_mariadbd_takes_the_option_file(self, tmp_path: Path) -> None:
        program = needs("mariadbd")
        _, files = rendered(request_of("mariadb"))
        option_file = tmp_path / "my.cnf"
        option_file.write_text(files["mariadb_cnf"].content)
        option_file.chmod(0o644)
        done = run(program, f"--defaults-file={option_file}", "--help", "--verbose", "--user=nobody")
        assert done.returncode == 0, done.stderr[-2000:]
        assert re.search(r"^large-pages\s+TRUE$", done.stdout, re.M)

    def test_postgres_takes_the_settings(self) -> None:
        binaries = programs_dir()
        if not (binaries / "postgres").exists():
            pytest.skip("the embedded PostgreSQL's programs are not where its wheel puts them")
        found, files = rendered(request_of("postgresql"))
        # Not below tmp_path: each pytest that starts closes that folder to other users, and root may not run postgres.
        with tempfile.TemporaryDirectory(prefix="hugeplan-conf-") as folder:
            data = Path(folder)
            version = run(str(binaries / "postgres"), "--version").stdout.split()[-1].split(".")[0]
            (data / "PG_VERSION").write_text(version)
            (data / "postgresql.conf").write_text(
                "shared_buffers = 4GB\nmax_connections = 100\n" + files["postgresql_conf"].content
            )
            prefix: list[str] = []
            if os.geteuid() == 0:
                run("chown", "-R", "nobody", str(data))
                prefix = [needs("setpriv"), "--reuid=nobody", "--clear-groups"]
            done = run(*prefix, str(binaries / "postgres"), "-D", str(data), "-C", "huge_pages")
        assert done.stdout.strip() == "on", done.stderr
        assert found.instances[0].page_bytes is not None


class TestDocuments:
    def test_grafana_reads_json(self) -> None:
        _, files = rendered(request_of("postgresql"))
        dashboard = json.loads(files["grafana_dashboard"].content)
        assert {panel["type"] for panel in dashboard["panels"]} == {"timeseries"}

    def test_cloud_config_is_cloud_config(self) -> None:
        _, files = rendered(request_of("postgresql"))
        text = files["cloud_config"].content
        assert text.startswith("#cloud-config\n")
        assert set(yaml.safe_load(text)) == {"write_files", "runcmd", "power_state"}
