"""``hugeplan plan``: a plan from a scenario file, for this machine, or for a whole inventory.

What each source needs is imported once the source is known: a cluster's answer waits for no scenario file's types.
"""

from __future__ import annotations

import argparse
from typing import Final

from hugeplan.cli import InputError
from hugeplan.cli.files import decode_text, read_bytes
from hugeplan.inventory.kubernetes.documents import looks_like_kubernetes
from hugeplan.planner.demand import ENGINES
from hugeplan.planner.model import GIB

EPILOG: Final = """\
examples:
  hugeplan plan scenario.yaml
  hugeplan plan scenario.yaml --json
  kubectl get nodes,pods,pvc,configmaps -A -o json | hugeplan plan -
  hugeplan plan --prometheus http://prometheus.example:9090
  hugeplan plan --node this
  hugeplan plan --node this --postgresql shared_buffers=8GB,max_connections=200 --workload "app:6GiB x 4"
  hugeplan plan --node this --postgresql port=5433,shared_buffers=8GB

--node this starts from what runs on this machine. Without a database it plans those that run, with the settings that
could be read. A --workload with the name of a workload that runs replaces it; others are added.
An engine's option takes its settings; name, version, connections, numa_node and page_size describe the instance.
Whatever it does not name (version, connections, every other setting) is taken from the server that runs here. Where
several run, choose with port=5433, pid=812 or data_directory=/srv/pg; server=new describes one that does not run yet.

exit status: 0 the plan fits, 1 failed, 2 wrong input, 4 the plan does not fit, 5 a finding says wrong,
6 whether it fits is not known. Where several are true, 4 counts before 5, and 5 before 6, over all nodes.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``plan``."""
    parser.add_argument(
        "scenario", nargs="?", help="a scenario (YAML or JSON) or Kubernetes objects; - reads standard input"
    )
    parser.add_argument("--prometheus", metavar="URL", help="plan every node that a Prometheus server knows")
    parser.add_argument("--verbose", action="store_true", help="the whole ledger, every page size, check and file")
    parser.add_argument("--node", metavar="this", help="this: plan for the machine the command runs on")
    parser.add_argument("--tlbbench", metavar="FILE", help="a tlbbench document measured on the node")
    parser.add_argument(
        "--workload",
        "--tenant",
        dest="workloads",
        action="append",
        default=[],
        metavar="NAME:SIZE[ x COUNT]",
        help="another workload; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print the plan and its files as one JSON object")
    parser.add_argument("--artifacts", metavar="DIR", help="write the plan's files into this folder")
    parser.add_argument(
        "--force", action="store_true", help="write the files of a plan that does not fit, each with a warning"
    )
    engines = parser.add_argument_group("databases on --node this, may be repeated")
    for name, engine in ENGINES.items():
        size = f"={engine.format_size(8 * GIB)}" if engine.pool_setting else ""
        text = f"{engine.title}, such as {engine.sized_by[0]}{size}. {engine.summary}"
        engines.add_argument(
            f"--{name}",
            dest=f"engine_{name}",
            action="append",
            default=[],
            metavar="SETTING=VALUE,...",
            help=text.replace("%", "%%"),
        )


def run(arguments: argparse.Namespace) -> int:
    """Print the plan; the caller prints PlannerErrors and InputErrors as one line."""
    if arguments.prometheus is not None:
        _refuse_beside(arguments, "--prometheus")
        from hugeplan.cli.plan_inventory import plan_prometheus  # noqa: PLC0415 - see the module's docstring

        return plan_prometheus(arguments)
    text = None
    if arguments.scenario is not None:
        data = read_bytes(arguments.scenario)
        if looks_like_kubernetes(data):
            _refuse_beside(arguments, "Kubernetes objects")
            from hugeplan.cli.plan_inventory import plan_kubernetes  # noqa: PLC0415 - see the module's docstring

            return plan_kubernetes(data, arguments.scenario, arguments)
        text = decode_text(data, arguments.scenario)
    from hugeplan.cli.plan_scenario import plan_scenario  # noqa: PLC0415 - see the module's docstring

    return plan_scenario(arguments, text)


def _refuse_beside(arguments: argparse.Namespace, source: str) -> None:
    """Nodes, databases and workloads come from the source alone."""
    engines = any(getattr(arguments, f"engine_{name}") for name in ENGINES)
    scenario = arguments.prometheus is not None and arguments.scenario is not None
    if scenario or arguments.node is not None or arguments.tlbbench is not None or arguments.workloads or engines:
        raise InputError(f"give {source} alone: nodes, databases and workloads come from there")
