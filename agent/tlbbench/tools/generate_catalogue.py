#!/usr/bin/env python3
"""Make src/machine/catalogue_data.inc, tlbbench's table of known processors.

Its source is backend/hugeplan/hardware/tlb_catalogue.json.

The JSON file is the one home of these facts; C and Python read the same ones. With --check nothing is written and the
exit status is 1 when the committed table is stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[2] / "backend" / "hugeplan" / "hardware" / "tlb_catalogue.json"
TARGET = HERE.parent / "src" / "machine" / "catalogue_data.inc"

KINDS = {"data": "TLB_DATA", "instr": "TLB_INSTRUCTION", "unified": "TLB_UNIFIED"}
# A data structure that serves only loads or only stores is a kind of its own in the document.
ACCESS_KINDS = {"load": "TLB_LOAD", "store": "TLB_STORE"}
CONFIDENCES = {
    "high": "CONFIDENCE_HIGH",
    "medium": "CONFIDENCE_MEDIUM",
    "low": "CONFIDENCE_LOW",
    "none": "CONFIDENCE_LOW",
}


def text(value: str | None) -> str:
    """C string literal, or NULL. The catalogue is ASCII, so JSON's escapes are C's."""
    if value is None:
        return "NULL"
    assert value.isascii(), value
    return json.dumps(value)


def ways(value: int | str | None) -> str:
    if value is None:
        return "TLB_WAYS_UNKNOWN"
    return "TLB_WAYS_FULL" if value == "full" else str(value)


def structure(level: dict[str, Any]) -> str:
    kind = ACCESS_KINDS.get(level["access"], KINDS[level["kind"]])
    pages = ", ".join(f"UINT64_C({size})" for size in level["page_bytes"])
    return (
        f"    {{{level['level']}, {kind}, {{{pages}}}, {len(level['page_bytes'])}, {level['entries']}, "
        f'{ways(level["ways"])}, {level.get("ways_max") or 0}, {text(level["note"])}, ""}},'
    )


def match(entry: dict[str, Any]) -> str:
    """Initialisers of the identification: x86 signature, Arm MIDR or POWER PVR."""
    found = entry["match"]
    if "cpuid" in found:
        cpuid = found["cpuid"]
        return (
            f".vendor = {text(cpuid['vendor'])}, .family = {cpuid['family']}, .ids = {{{numbers(cpuid['models'])}}}, "
            f".id_count = {len(cpuid['models'])}, .stepping_min = {cpuid['stepping_min']}, "
            f".stepping_max = {cpuid['stepping_max']}"
        )
    if "midr" in found:
        midr = found["midr"]
        return (
            f".midr_implementer = {midr['implementer']}, .ids = {{{numbers(midr['parts'])}}}, "
            f".id_count = {len(midr['parts'])}"
        )
    versions = found["pvr"]["versions"]
    return f".is_power = true, .ids = {{{numbers(versions)}}}, .id_count = {len(versions)}"


def numbers(values: list[int]) -> str:
    return ", ".join(str(value) for value in values)


def render(catalogue: dict[str, Any]) -> str:
    lines = [
        "/* Made by tools/generate_catalogue.py from backend/hugeplan/hardware/tlb_catalogue.json. Do not edit. */",
        "",
    ]
    names = []
    for entry in catalogue["entries"]:
        name = "structures_" + entry["id"].replace("-", "_")
        names.append(name if entry["levels"] else None)
        if entry["levels"]:
            lines += [f"static const struct tlb_structure {name}[] = {{"]
            lines += [structure(level) for level in entry["levels"]]
            lines += ["};", ""]
    lines.append("static const struct catalogue_entry catalogue[] = {")
    for entry, name in zip(catalogue["entries"], names, strict=True):
        lines += [
            f"    {{.id = {text(entry['id'])}, .uarch = {text(entry['uarch'])}, "
            f".products = {text(', '.join(entry['products']) or None)},",
            f"     {match(entry)},",
            f"     .structures = {name or 'NULL'}, .structure_count = {len(entry['levels'])},",
            f"     .confidence = {CONFIDENCES[entry['confidence']]}}},",
        ]
    lines += ["};", ""]
    return "\n".join(lines)


def main() -> int:
    made = render(json.loads(SOURCE.read_text(encoding="ascii")))
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text(encoding="ascii") != made:
            print(f"{TARGET.name} is stale: run agent/tlbbench/tools/generate_catalogue.py", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(made, encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
