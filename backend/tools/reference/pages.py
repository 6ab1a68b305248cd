"""The pages of the reference as Markdown, and what of them the product carries: a table for ``hugeplan explain`` and a
page that the service answers, so that a link leads to the words of its own version."""

from __future__ import annotations

import html
import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from tools.reference import lists
from tools.reference.findings import Explanation, findings, rules
from tools.reference.source import ANYTHING, STAND_INS

_GENERATED = "This page is generated from the code by `make schemas`; a test fails when it is stale."
_FINDINGS = f"""\
# Findings

What a check may say, by its name: what it asks, each answer with what to do, and the evidence that it shows. A word in
capitals stands for what is put in, with an example beneath; `{ANYTHING}` for words that a run makes. `hugeplan explain
NAME` prints one; a finding of the interface links to its own.
{_GENERATED}
"""
_RULES = f"""\
# Rules of the linter

Each rule of [`hugeplan lint`](linter.md) by its name: the rule, how bad it is to break it, the fix, and where the rule
is written down. A word in capitals stands for what is put in, with an example beneath; `{ANYTHING}` for words of the
file. `hugeplan explain NAME` prints one. {_GENERATED}
"""
_ARTIFACTS = f"""\
# Files of a plan

Each kind of file that [applies a plan](applying.md). `hugeplan artifacts plan.json` writes them, each with its commands
to install, verify and roll back. {_GENERATED}
"""
_METRICS = f"""\
# Metrics

What a process of the service tells Prometheus at `/metrics`; counters end with `_total` there. Every process tells the
same `hugeplan_fleet_*`: take their max, not their sum. {_GENERATED}
"""
_WEBHOOKS = f"""\
# Events and webhooks

An event is a change. `GET /api/v1/events` sends them as they happen, `GET /api/v1/events/history` lists past ones, and
`POST /api/v1/webhooks` has them sent: one POST per event, its JSON as the body (`format: slack`: its text), with the
header `Hugeplan-Signature: t=SECONDS,v1=HEX`, where HEX is the HMAC-SHA256 with the webhook's secret over the seconds,
a full stop and the body. An attempt that fails is repeated with growing pauses for a day. {_GENERATED}
"""
_CSV = f"""\
# CSV

Lists of the API as CSV: the same conditions as the list beside it, and every row unless `limit` or `cursor` asks for a
page. An empty cell is unknown. A list is joined by `; `, an object is `key=value`. Text that a spreadsheet would take
for a formula begins with `'`. {_GENERATED}
"""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [head, ["---"] * len(head), *rows]
    return (
        "\n".join("| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in row) + " |" for row in cells) + "\n"
    )


def _say(one: Explanation) -> str:
    parts = [f"## {one.name}\n", *(textwrap.fill(_plain(text), 120) + "\n" for text in one.asks)]
    if one.source:
        state, _, fix = one.says[0]
        parts.append(_table(("severity", "what to do", "source"), [(state, _plain(fix), _plain(one.source))]))
        return "\n".join([*parts, *_examples(one)])
    evidence = f" Evidence: {', '.join(one.evidence)}." if one.evidence else ""
    parts.append(textwrap.fill(f"In: {', '.join(one.places)}.{evidence}", 120) + "\n")
    parts.append(_table(("state", "answer", "what to do"), [(s, _plain(t), _plain(f)) for s, t, f in one.says]))
    return "\n".join([*parts, *_examples(one)])


def _examples(one: Explanation) -> list[str]:
    """One line with an example of each word in capitals that the answers have."""
    said = " ".join(text for _, title, fix in one.says for text in (title, fix))
    used = [f"{word} {value}" for word, value in STAND_INS.items() if re.search(rf"(?<![-\w]){word}\b", said)]
    return [f"For example: {', '.join(used)}.\n"] if used else []


def _plain(text: str) -> str:
    """What Markdown would take for markup, as it is: paths with stars, names in angle brackets."""
    return re.sub(r"(?<!\\)([*<>\[\]])", r"\\\1", text) if "`" not in text else text


def findings_page() -> str:
    """docs/reference-findings.md."""
    return "\n".join([_wrapped(_FINDINGS), *map(_say, findings())])


def rules_page() -> str:
    """docs/reference-lint.md."""
    return "\n".join([_wrapped(_RULES), *map(_say, rules())])


def artifacts_page() -> str:
    """docs/reference-artifacts.md."""
    parts = [_wrapped(_ARTIFACTS)]
    for one in lists.files():
        parts.append(f"## {one.kind}\n\n{textwrap.fill(_plain(one.does), 120)}\n")
        rows = (
            ("goes to", _plain(one.path)), ("restart", one.restart), ("not when", _plain(one.avoid)),
            ("recommended for", one.platforms),
        )  # fmt: skip
        lines = (textwrap.fill(f"* {name}: {text}", 120, subsequent_indent="  ") for name, text in rows if text)
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def metrics_page() -> str:
    """docs/reference-metrics.md."""
    rows = [(f"`{name}`", kind, labels, text) for name, kind, labels, text in lists.metrics()]
    return _wrapped(_METRICS) + "\n" + _table(("metric", "type", "labels", "meaning"), rows)


def webhooks_page() -> str:
    """docs/reference-webhooks.md."""
    kinds = _table(("kind", "when"), [(f"`{kind}`", text) for kind, text in lists.events()])
    fields = [
        (f"`{name}`", "one of the above" if name == "kind" else kind) for name, kind in lists.fields("FleetEvent")
    ]
    return "\n".join([_wrapped(_WEBHOOKS), "## Kinds\n", kinds, "## Fields\n", _table(("field", "type"), fields)])


def csv_page() -> str:
    """docs/reference-csv.md."""
    parts = [_wrapped(_CSV)]
    for path, text, columns in lists.tables():
        rows = [
            (f"`{name}`", "see [events](reference-webhooks.md)" if name == "kind" else kind) for name, kind in columns
        ]
        parts += [f"## {path}\n", text.replace("``", "`") + "\n", _table(("column", "type"), rows)]
    return "\n".join(parts)


def explanations() -> str:
    """What ``hugeplan explain`` reads: every finding and every rule by name."""
    return json.dumps({one.name: asdict(one) for one in [*findings(), *rules()]}, ensure_ascii=False, indent=1) + "\n"


def findings_html() -> str:
    """What the service answers at /api/docs/findings.html."""
    head = '<meta charset="utf-8"><title>hugeplan: findings</title><link rel="stylesheet" href="/api/docs/docs.css">'
    parts = [f'<!doctype html><html lang="en"><head>{head}</head><body><main>', "<h1>Findings and rules</h1>"]
    for one in [*findings(), *rules()]:
        parts.append(f'<h2 id="{one.name}">{one.name}</h2>')
        parts += [f"<p>{html.escape(text)}</p>" for text in one.asks]
        if one.source:
            parts.append(f"<p>Source: {html.escape(one.source)}</p>")
        if one.evidence:
            parts.append(f"<p>Evidence: {html.escape(', '.join(one.evidence))}</p>")
        rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in one.says)
        parts.append(f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>")
    return "\n".join([*parts, "</main></body></html>"]) + "\n"


def _wrapped(text: str) -> str:
    """A header with its paragraphs filled to the width of the documentation."""
    return "\n\n".join(textwrap.fill(part, 120) for part in text.strip().split("\n\n")) + "\n"
