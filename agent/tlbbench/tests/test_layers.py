# SPDX-License-Identifier: Apache-2.0
"""tests/check_layers.py finds what it is for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import suite

# Lines of the source, and of what counts page walks of running programs (docs/adr/0050).
MOST_LINES, MOST_COUNTER_LINES = 17_000, 1_300

KNEE = {"timing/knee.h": "int knee(void);\n", "timing/knee.c": '#include "timing/knee.h"\n\nint knee(void)\n{\n}\n'}


def check(files: dict[str, str]) -> str:
    """The lines that the check prints for a tree of these files; "" when it finds nothing."""
    with suite.temporary() as directory:
        for name, text in files.items():
            path = Path(directory) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(suite.TESTS / "check_layers.py"), directory],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == (1 if done.stdout else 0), done.stderr
    return done.stdout


def these_sources_keep_the_layers() -> None:
    done = subprocess.run([sys.executable, str(suite.TESTS / "check_layers.py")], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b""), done.stdout.decode()


def an_allowed_tree_passes() -> None:
    assert check({**KNEE, "geometry/ways.c": '#include "timing/knee.h"\n'}) == ""


def an_inner_layer_that_looks_out_is_found() -> None:
    assert "timing comes before cli" in check({**KNEE, "cli/options.h": "", "timing/a.c": '#include "cli/options.h"\n'})


def a_ring_of_includes_is_found() -> None:
    assert "modules use each other" in check(
        {"timing/a.h": '#include "timing/b.h"\n', "timing/b.h": '#include "timing/a.h"\n'}
    )


def a_ring_of_calls_behind_one_header_is_found() -> None:
    """Two files that call each other, both declared in a third one's header."""
    files = {
        "timing/steps.h": "int a(void);\nint b(void);\n",
        "timing/a.c": '#include "timing/steps.h"\n\nint a(void)\n{\n    return b();\n}\n',
        "timing/b.c": '#include "timing/steps.h"\n\nint b(void)\n{\n    return a();\n}\n',
    }
    assert "timing/a -> timing/b -> timing/a" in check(files)
    files["timing/b.c"] = '#include "timing/steps.h"\n\n/* not a() */\nint b(void)\n{\n    return 0;\n}\n'
    assert check(files) == ""


def an_include_that_another_brings_is_found() -> None:
    sweep = {"timing/sweep.h": '#include "timing/knee.h"\n\n#include <math.h>\n'}
    for again in ('#include "timing/knee.h"\n', "#include <math.h>\n", '#include "timing/sweep.h"\n'):
        ways = {"geometry/ways.c": '#include "timing/sweep.h"\n' + again}
        assert "which another of its includes brings" in check({**KNEE, **sweep, **ways})
    assert check({**KNEE, **sweep, "geometry/ways.c": '#include "timing/sweep.h"\n#include <stdio.h>\n'}) == ""


def a_file_outside_the_layers_is_found() -> None:
    assert "lies in no layer" in check({**KNEE, "helpers.c": ""})
    assert "no C file found" in check({})


def count_lines(source: Path) -> tuple[int, int]:
    """Lines of all C files but the catalogue's data; of `counters`, and of everything else."""
    counters = others = 0
    for path in source.rglob("*.[ch]"):
        name, lines = path.relative_to(source), path.read_text(encoding="utf-8").count("\n")
        if name.parts[0] == "counters" or name.stem in ("counters", "witness"):
            counters += lines
        else:
            others += lines
    return counters, others


def the_source_keeps_its_lines() -> None:
    counters, others = count_lines(suite.HOME / "src")
    assert others <= MOST_LINES, f"{others} lines without counters, at most {MOST_LINES}"
    assert counters <= MOST_COUNTER_LINES, f"{counters} lines of counters, at most {MOST_COUNTER_LINES}"


def lines_are_counted_apart() -> None:
    with suite.temporary() as directory:
        for name, lines in {"base/a.c": 3, "counters/b.h": 5, "cli/counters.c": 7, "machine/data.inc": 11}.items():
            path = Path(directory) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n" * lines, encoding="utf-8")
        assert count_lines(Path(directory)) == (12, 3)


if __name__ == "__main__":
    suite.main(
        "layers",
        [
            ("these sources keep the layers", these_sources_keep_the_layers),
            ("an allowed tree passes", an_allowed_tree_passes),
            ("an inner layer that looks out is found", an_inner_layer_that_looks_out_is_found),
            ("a ring of includes is found", a_ring_of_includes_is_found),
            ("a ring of calls behind one header is found", a_ring_of_calls_behind_one_header_is_found),
            ("an include that another one brings is found", an_include_that_another_brings_is_found),
            ("a file outside the layers is found", a_file_outside_the_layers_is_found),
            ("the source keeps its lines", the_source_keeps_its_lines),
            ("lines are counted apart", lines_are_counted_apart),
        ],
    )
