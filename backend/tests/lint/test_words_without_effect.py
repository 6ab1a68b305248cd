"""Lines that a program refuses or passes over say so; lines that a later one replaces are not judged."""

from __future__ import annotations

import pytest

from hugeplan.lint import Context, Problem, Source, lint

UNIT = (
    "[Unit]\nDescription=pages\n[Service]\nType=oneshot\nExecStart={command}\n[Install]\nWantedBy=multi-user.target\n"
)
SYSCTL = UNIT.format(command="/sbin/sysctl -w vm.nr_hugepages=8")
QUOTA = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: q}}\nspec:\n  hard:\n    {line}\n"
SHELL = '/bin/sh -c "echo {} > /sys/kernel/mm/{}"'


def problems(name: str, text: str) -> dict[str, Problem]:
    (report,) = lint([Source(name, text)], Context())
    assert report.unreadable is None
    return {problem.rule.id: problem for problem in report.problems}


def fixed(name: str, text: str) -> str:
    (report,) = lint([Source(name, text)], Context())
    return report.fixed_text or text


@pytest.mark.parametrize(
    ("name", "text", "rule", "consequence", "result"),
    [
        ("a.service", UNIT.format(command=SHELL.format("off", "transparent_hugepage/enabled")), "unit-thp-word",
         "refuses off", "echo never >"),
        ("a.service", UNIT.format(command=SHELL.format("on", "transparent_hugepage/enabled")), "unit-thp-word",
         "refuses on", "echo always >"),
        ("a.service", UNIT.format(command=SHELL.format("deferr", "transparent_hugepage/defrag")), "unit-thp-word",
         "refuses deferr", "echo defer >"),
        ("a.service", UNIT.format(command=SHELL.format("never", "redhat_transparent_hugepage/enabled")),
         "unit-no-such-path", "There is no", "mm/transparent_hugepage/enabled"),
        ("a.service", SYSCTL.replace("[Unit]", "[unit]"),
         "unit-section-name", "ignores all lines", "[Unit]"),
        ("a.service", SYSCTL.replace("[Service]", "[SERVICE]"),
         "unit-section-name", "ignores all lines", "[Service]"),
        ("a.service", SYSCTL.replace("multi-user", "multiuser"),
         "unit-no-such-target", "nothing starts the unit", "WantedBy=multi-user.target"),
        ("a.service", SYSCTL.replace("multi-user.target", "sysinit.targets"),
         "unit-no-such-target", "nothing starts the unit", "WantedBy=sysinit.target"),
        ("a.service", SYSCTL.replace("=oneshot", "=one-shot"),
         "unit-type", "ignored", "Type=oneshot"),
        ("r.conf", "maxmemory 4gb\ndisable-thp yess\n", "redis-thp-value", "does not start", "disable-thp yes"),
        ("r.conf", "maxmemory 4gb\ndisable_thp no\n", "redis-unknown-setting", "does not start", "disable-thp yes"),
        ("q.yaml", QUOTA.format(line="requests.hugepages-2MB: 4Gi"), "resource-name", "limits nothing",
         "requests.hugepages-2Mi: 4Gi"),
        ("q.yaml", QUOTA.format(line='requests.hugepages-1Gi: "2"'), "resource-not-whole-pages", "less than a page",
         '"2"'),
        ("aks.json", '{"transparentHugePageEnabled": "madvise", "transparentHugePageDefrag": "deferr"}',
         "aks-thp-word", "refuses deferr", '"transparentHugePageDefrag": "defer"'),
        ("aks.json", '{"linuxOSConfig": {"transparentHugePageEnabled": "off"}}', "aks-thp-word", "refuses off",
         '"transparentHugePageEnabled": "never"'),
        ("b.toml", '[settings.kernel.hugepages."1Gi"]\ncount = "2"\n', "bottlerocket-not-static", "nothing is reserved",
         '[settings.kernel.hugepages.static."1Gi"]'),
        ("j.options", "-Xlp\n-Xmx4g\n-XX:+UseLargePages\n", "jvm-two-products", "HotSpot does not start", "-Xlp"),
        ("j.options", "-Xlp:objectheap:pagesize=1g\n-Xmx4g\n-XX:+UseG1GC\n", "jvm-two-products",
         "HotSpot does not start", "-Xlp"),
    ],
)  # fmt: skip
def test_it_says_its_consequence(name: str, text: str, rule: str, consequence: str, result: str) -> None:
    found = problems(name, text)
    assert rule in found, sorted(found)
    assert consequence in found[rule].message
    assert result in fixed(name, text)
    # What --fix writes is right by the same rule.
    if found[rule].edits:
        assert rule not in problems(name, fixed(name, text))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.service", UNIT.format(command=SHELL.format("never", "transparent_hugepage/enabled"))),
        ("a.service", UNIT.format(command=SHELL.format("defer+madvise", "transparent_hugepage/defrag"))),
        ("a.service", UNIT.format(command=SHELL.format("$MODE", "transparent_hugepage/enabled"))),
        ("a.service", SYSCTL.replace("multi-user", "databases")),
        ("q.yaml", QUOTA.format(line="requests.hugepages-1Gi: 2Gi")),
        ("q.yaml", QUOTA.format(line="hugepages-2Mi: 4Gi")),
        ("aks.json", '{"transparentHugePageEnabled": "madvise", "transparentHugePageDefrag": "defer+madvise"}'),
        ("j.options", "-Xlp\n-Xmx4g\n"),
    ],
)
def test_what_is_right_is_not_a_problem(name: str, text: str) -> None:
    assert {rule: found.message for rule, found in problems(name, text).items()} == {}


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ("skip-large-pages\nloose-large_pages=ON\n", 0),
        ("large_pages=OFF\nlarge_pages=ON\n", 0),
        ("large_pages=ON\nskip-large-pages\n", 1),
        ("skip-large-pages\ndisable-large-pages\n", 1),
        ("skip-large-pages\nlarge_pages=OFF\n", 1),
    ],
)
def test_only_the_last_switch_of_large_pages_counts(lines: str, wrong: int) -> None:
    text = f"[mysqld]\ninnodb_buffer_pool_size=8G\n{lines}"
    (report,) = lint([Source("my.cnf", text)], Context())
    assert len([p for p in report.problems if p.rule.id == "mycnf-large-pages-off"]) == wrong
    does = [effect for reading in report.readings for effect in reading.effects]
    assert any(("uses base pages" if wrong else "asks for huge pages") in effect for effect in does)
    assert "asks for huge pages" in str(lint([Source("my.cnf", report.fixed_text or text)], Context())[0].readings)


@pytest.mark.parametrize(("requested", "written"), [("8Gi", "8400Mi"), ("9Gi", "9Gi")])
def test_a_request_without_a_limit_has_one_fix(requested: str, written: str) -> None:
    """8400Mi and 8Gi were both advised for one line."""
    text = (
        "apiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nmetadata: {name: c}\nspec:\n  instances: 3\n"
        '  postgresql: {parameters: {shared_buffers: 8GB, huge_pages: "on"}}\n'
        f"  resources: {{requests: {{memory: 4Gi, hugepages-2Mi: {requested}}}, limits: {{memory: 4Gi}}}}\n"
    )
    (report,) = lint([Source("c.yaml", text)], Context())
    (fix,) = [p.fix for p in report.problems if "hugepages-2Mi" in p.fix]
    assert f"hugepages-2Mi: {written}" in fix
