"""Text that looks like a number, a boolean or a time stays text for every reader of YAML, 1.1 or 1.2."""

from __future__ import annotations

import pickle
import random
import re
from dataclasses import replace

import pytest
import yaml
from artifacts.samples import in_stateful_set, instance, loaded, rendered, request_of

from hugeplan.artifacts.base import yaml_text
from hugeplan.planner.model import GIB
from hugeplan.scenarios.work import write_yaml

#: What is no text where it is written plain: the core schema of YAML 1.2.2 (section 10.3.2), then the types of YAML 1.1
#: (yaml.org/type), which Go's reader of Kubernetes follows for booleans.
CORE = re.compile(
    r"null|Null|NULL|~|true|True|TRUE|false|False|FALSE|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN|"
)
OLD = re.compile(
    r"y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF|[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+"
    r"|[-+]?([0-9][0-9_]*)?\.[0-9.]*([eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*|[-+]?[0-9][0-9_]*"
    r"|[-+]?0x[0-9a-fA-F_]+|[0-9]{4}-[0-9]{2}-[0-9]{2}|<<|="
)
WORDS = (
    "1e3", "1E3", "-1e5", "12e03", "1.5e3", "+1.e2", "y", "Y", "n", "N", "no", "NO", "Off", "0o17", "0O17", "017",
    "0x1F", "0b11", "1:30", "1:30:00", "~", "null", "Null", "2026-01-01", "2026-01-01T00:00:00Z", "1_000", ".5", "5.",
    ".inf", "-.INF", ".nan", "+1", "<<", "=", "", " ", "true", "1", "1.0", "e3", "1e", "x1e3", "db-7",
    "yes-1", "1.2.3.4",
)  # fmt: skip


def words() -> list[str]:
    rng = random.Random(7)
    return [*WORDS, *("".join(rng.choices("0123456789eEoOxXbB_.:+-ynYN~", k=rng.randrange(1, 6))) for _ in range(5000))]


def test_text_stays_text() -> None:
    found = words()
    document = yaml_text((), {"names": found, "keys": dict.fromkeys(found, 1)})
    assert loaded(document) == [{"names": found, "keys": dict.fromkeys(found, 1)}]
    plain = [
        token.value
        for token in yaml.scan(document, Loader=yaml.SafeLoader)
        if isinstance(token, yaml.ScalarToken) and token.plain and token.value not in {"names", "keys", "1"}
    ]
    assert [word for word in plain if CORE.fullmatch(word) or OLD.fullmatch(word)] == []
    assert {"db-7", "yes-1", "x1e3"} <= set(plain), "what nobody takes for anything else needs no quotes"


@pytest.mark.parametrize("name", ["1e3", "y", "0o17", "no", "1234"])
def test_names_in_files(name: str) -> None:
    base = in_stateful_set(request_of("postgresql", name=name, kubernetes=True, kube_reserved_bytes=GIB))
    request = replace(base, databases=(instance("postgresql", name, stateful_set=f"{name}/{name}", container=name),))
    _, files = rendered(request)
    plain = 0
    for file in files.values():
        if file.media_type != "application/yaml":
            continue
        for token in yaml.scan(file.content.replace("!unsafe", ""), Loader=yaml.SafeLoader):
            if isinstance(token, yaml.ScalarToken) and token.value == name:
                assert not token.plain, (file.kind, name)
                plain += 1
    assert plain >= 3 - name.isdecimal()  # a number is no host of a playbook


def test_a_scenario_is_written_so_too() -> None:
    text = write_yaml(pickle.dumps({"node": {"name": "1e3", "memory": "64GiB"}, "databases": [{"name": "y"}]})).decode()
    assert "name: '1e3'" in text
    assert "- name: 'y'" in text
    assert "memory: 64GiB" in text
