"""``hugeplan plan`` over one node: a scenario file, or this machine with a few options."""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from hugeplan.artifacts import refused, render, withheld
from hugeplan.artifacts.bundle import bundle
from hugeplan.cli import EXIT_WRONG_INPUT, InputError, status_of_plans
from hugeplan.cli.bundle_files import write_bundle, write_none
from hugeplan.cli.files import read_run
from hugeplan.cli.node_now import boot_counts
from hugeplan.cli.plan_answer import plan_answer
from hugeplan.cli.plan_basis import basis_document, basis_lines
from hugeplan.cli.plan_text import plan_text
from hugeplan.cli.running_server import Basis, Choice, Described, basis_of_running, over_running
from hugeplan.cli.this_node import observe
from hugeplan.documents.plans import SCHEMA_VERSION
from hugeplan.planner.demand import ENGINES, DemandContext, engine_named
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import DatabaseInstance, HardwareFacts, Plan, PlanRequest, State, Tenant
from hugeplan.planner.observation.databases import as_it_runs
from hugeplan.planner.plan import plan
from hugeplan.planner.printable import one_line
from hugeplan.planner.units import parse_whole_number
from hugeplan.proof import Observation
from hugeplan.proof.checks.machine import later_counts
from hugeplan.scenario_file import ScenarioFileError, line_of, load, to_request
from hugeplan.scenario_file.quantities import parse_page_choice, parse_quantity

_INSTANCE_KEYS: Final = ("name", "version", "connections", "numa_node", "page_size", "runs_as")
_CHOICE_KEYS: Final = ("port", "pid", "data_directory", "server")
_WORKLOAD: Final = re.compile(r"^(?P<name>[^:]+):\s*(?P<size>[^x]+?)\s*(?:x\s*(?P<count>\d+))?$")


def plan_scenario(arguments: argparse.Namespace, text: str | None) -> int:
    """Print the plan of a scenario's text, or of this machine where there is none; the exit status."""
    try:
        request, basis = _request(arguments, text)
    except ScenarioFileError as error:
        for line in str(error).splitlines():
            sys.stderr.write(f"hugeplan plan: {line}\n")
        return EXIT_WRONG_INPUT
    found = _here(request) if text is None else _plan_of_file(arguments.scenario, text, request)
    why_not = refused(found, request) or (None if arguments.force else withheld(found, request))
    artifacts = render(found, request, force=arguments.force)
    if arguments.artifacts is not None and why_not is None:
        write_bundle(bundle(found.node, found.headline, artifacts), Path(arguments.artifacts), "--artifacts")
    elif arguments.artifacts is not None:
        write_none(Path(arguments.artifacts), found.node, why_not or "", "--artifacts")
    if arguments.json:
        document = {
            "schema_version": SCHEMA_VERSION,
            "plan": asdict(found),
            "request": asdict(request),
            "artifacts": [asdict(artifact) for artifact in artifacts],
            "artifacts_withheld": why_not,
            "basis": basis_document(request, found, basis),
        }
        print(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        lines = basis_lines(request, found, basis)
        text_of = plan_text(found, artifacts) if arguments.verbose else plan_answer(found, artifacts, basis=lines)
        sys.stdout.write(text_of if not arguments.verbose else text_of + "\n" + "\n".join(map(one_line, lines)) + "\n")
        if why_not is not None:
            sys.stdout.write("\n" + why_not + "\n")
    return exit_status(found)


def _here(request: PlanRequest) -> Plan:
    """The plan of this node, with what the files that are not hugeplan's own, which its steps put aside, do to it."""
    found, node = plan(request), request.node
    numa_nodes = [{"id": numa.id, "mem_total_bytes": numa.mem_total_bytes} for numa in node.numa]
    inventory = {"architecture": node.arch, "base_page_bytes": node.base_page_bytes,
                 "default_huge_page_bytes": node.default_huge_page_bytes, "numa_nodes": numa_nodes}  # fmt: skip
    others = [one for one in boot_counts("/", inventory) if "hugeplan" not in Path(one[0]).name]
    return replace(found, findings=(*found.findings, *later_counts(found, Observation(inventory, {}, others))))


def exit_status(found: Plan) -> int:
    """The exit status of one plan."""
    return status_of_plans([found.fits], wrong=any(f.state is State.WRONG for f in found.findings))


def _request(arguments: argparse.Namespace, text: str | None) -> tuple[PlanRequest, dict[str, Basis]]:
    databases = _databases(arguments)
    if text is not None:
        if arguments.node is not None or databases or arguments.workloads:
            raise InputError("give a scenario file, or --node this with databases and workloads, not both")
        return _from_file(arguments.scenario, text, arguments.tlbbench), {}
    if arguments.node is None:
        raise InputError("give a scenario file, or --node this")
    if arguments.node != "this":
        raise InputError(f"--node: {arguments.node!r} is not valid; expected this")
    workloads = tuple(parse_workload(text) for text in arguments.workloads)
    node, sample = observe(hardware=None if arguments.tlbbench is None else read_run(arguments.tlbbench, "--tlbbench"))
    context = DemandContext.of_node(node)
    if databases:
        instances, basis = over_running(databases, sample, context)
    else:
        instances = as_it_runs(sample, context)
        basis = basis_of_running(instances, sample)
    return PlanRequest(node=node, tenants=workloads, databases=instances, sample=sample), basis


def _from_file(path: str, text: str, run: str | None) -> PlanRequest:
    document = load(text, path)
    folder = Path() if path == "-" else Path(path).parent
    try:
        request = to_request(document, read_run=lambda name: _run_beside(folder / name))
    except PlannerError as error:
        raise InputError(_with_line(path, text, error)) from error
    if run is not None:
        request = replace(request, node=replace(request.node, hardware=read_run(run, "--tlbbench")))
    return request


def _run_beside(path: Path) -> HardwareFacts:
    if str(path) == "-" or (path.exists() and not path.is_file()):  # whoever wrote it may have named what waits
        raise InputError(f"{path} is not a regular file")
    return read_run(str(path))


def _plan_of_file(path: str, text: str, request: PlanRequest) -> Plan:
    try:
        return plan(request)
    except PlannerError as error:
        raise InputError(str(error) if path == "-" else _with_line(path, text, error)) from error


def _with_line(path: str, text: str, error: PlannerError) -> str:
    line = line_of(error.field, text)
    return f"{path}: {error}" if line is None else f"{path}:{line}: {error}"


def _databases(arguments: argparse.Namespace) -> tuple[Described, ...]:
    return tuple(parse_database(name, text) for name in ENGINES for text in getattr(arguments, f"engine_{name}"))


def parse_database(engine: str, text: str) -> Described:
    """``shared_buffers=8GB,max_connections=200`` as an instance; commas inside quotes belong to the value."""
    option = f"--{engine}"
    settings: dict[str, str] = {}
    for part in re.findall(r"""(?:[^,'"]|'[^']*'|"[^"]*")+""", text):
        name, separator, value = part.partition("=")
        if not separator or not name.strip():
            raise PlannerError(option, part, "SETTING=VALUE, such as shared_buffers=8GB")
        if name.strip() in settings:
            raise PlannerError(f"{option} {name.strip()}", value.strip(), "each setting once")
        settings[name.strip()] = value.strip().strip("'\"")
    own = {key: settings.pop(key) for key in (*_INSTANCE_KEYS, *_CHOICE_KEYS) if key in settings}
    if own.get("server") not in {None, "new"}:
        raise PlannerError(f"{option} server", own["server"], "new, or port=, pid= or data_directory= of one that runs")
    instance = DatabaseInstance(
        name=own.get("name", engine_named(engine).name),
        engine=engine,
        version=own.get("version"),
        settings=settings,
        connections=_count(own.get("connections"), f"{option} connections", 1_000_000),
        numa_node=_count(own.get("numa_node"), f"{option} numa_node", 4095),
        page_bytes=parse_page_choice(own.get("page_size")),
        runs_as=own.get("runs_as"),
    )
    choice = Choice(
        port=_count(own.get("port"), f"{option} port", 65_535),
        pid=_count(own.get("pid"), f"{option} pid", 2**22),
        data_directory=own.get("data_directory"),
        is_new=own.get("server") == "new",
    )
    if choice.is_new and (choice.words or instance.runs_as):
        raise PlannerError(option, text, "server=new, or port=, pid=, data_directory= or runs_as= of one that runs")
    return Described(instance=instance, choice=choice, is_named="name" in own)


def _count(text: str | None, field: str, most: int) -> int | None:
    return None if text is None else parse_whole_number(text, 0, most, field)


def parse_workload(text: str) -> Tenant:
    """``app:6GiB x 4`` as four replicas that request 6 GiB each."""
    found = _WORKLOAD.match(text.strip())
    if found is None:
        raise PlannerError("--workload", text, "NAME:SIZE or NAME:SIZE x COUNT, such as app:6GiB x 4")
    try:
        size = parse_quantity(found["size"])
    except PlannerError as error:
        raise PlannerError("--workload", text, error.expected) from error
    count = parse_whole_number(found["count"] or "1", 0, 10_000, "--workload count")
    return Tenant(name=found["name"].strip(), kind="service", count=count, request_bytes=size, limit_bytes=size)
