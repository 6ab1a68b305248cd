"""The linter takes time in proportion to its text: lines, words and parts of words of real files, many times over."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hugeplan.lint import Source, lint

CORPUS = Path(__file__).parents[1] / "lint" / "corpus"
SIZES = (4_000, 16_000)
NEGLIGIBLE_SECONDS = 0.05
MOST_GROWTH = 8.0
"""Four times the text: a linear reading takes four times as long, a quadratic one sixteen times."""
TRIES = 4
"""A reading by the square is slow each time; a neighbour on the machine is not."""
MOST_CHARACTERS = 3_000


def one_of_each_name() -> list[Path]:
    """A file of each name: names stand for kinds. Of equal ones the longest, within reason."""
    found: dict[str, Path] = {}
    for path in sorted(CORPUS.rglob("*")):
        if path.is_file() and path.stat().st_size < MOST_CHARACTERS:
            known = found.setdefault(path.name, path)
            if path.stat().st_size > known.stat().st_size:
                found[path.name] = path
    return list(found.values())


def spots(text: str) -> Iterator[tuple[int, int]]:
    """What is repeated: each line of another form, its words, and the parts of words."""
    seen: set[str] = set()
    for line in re.finditer(r"[^\n]+\n?", text):
        form = re.sub(r"\d+", "0", line[0].strip())[:30]
        if not form or form in seen or len(seen) > 6:
            continue
        seen.add(form)
        yield line.span()
        for word in list(re.finditer(r"\S+\s*", line[0]))[:3]:
            yield line.start() + word.start(), line.start() + word.end()
            for part in list(re.finditer(r"[^\s=:,;'\"\[\]{}]+[=:,;]?", word[0]))[:1]:
                yield line.start() + word.start() + part.start(), line.start() + word.start() + part.end()


def seconds(text: str, repeats: int = 1) -> float:
    """The shortest of some readings: what else the machine does only adds."""
    best = float("inf")
    for _ in range(repeats):
        begun = time.process_time()
        lint([Source("a", text)])
        best = min(best, time.process_time() - begun)
    return best


@pytest.mark.parametrize("path", one_of_each_name(), ids=lambda path: path.name)
def test_a_file_takes_time_in_proportion_to_its_text(path: Path) -> None:
    text = path.read_text(errors="replace")
    for start, end in spots(text):
        small, large = (text[:start] + text[start:end] * (size // (end - start)) + text[end:] for size in SIZES)
        if seconds(large) < NEGLIGIBLE_SECONDS:
            continue
        for _ in range(TRIES):
            growth = seconds(large, 3) / seconds(small, 3)
            if growth < MOST_GROWTH:
                break
        assert growth < MOST_GROWTH, f"{text[start:end]!r}: {growth:.1f} times"


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        *[
            ("hugepages=", "1:"),
            ("", "hugepages=8 "),
            ("[mysqld]\n", "large_pages\n"),
            ("-Xmx8g ", "-XX:+UseLargePages "),
        ],
        *[("hugepages=512 hugepagesz=2M ", "\t"), ("[Service]\n", "innodb_buffer_pool_size=1G\n")],
    ],
)
def test_what_took_time_by_the_square_does_no_more(text: str, unit: str) -> None:
    assert seconds(text + unit * (64_000 // len(unit)) + '"', 3) < 1.0


@pytest.mark.parametrize("braces", ["{huge,pages}" * 18, "{huge" + ",pages" * 20_000 + "}"])
def test_alternatives_in_braces_do_not_multiply(braces: str) -> None:
    assert seconds(f"w /sys/kernel/mm/{braces}/nr_hugepages - - - - 4\n") < NEGLIGIBLE_SECONDS


PAGES = "hugepages/hugepages-2048kB/nr_hugepages - - - -"
LINES: dict[str, Callable[[int], str]] = {
    "paths": lambda n: f"w /huge{n} - - - - 1\n",
    "nodes": lambda n: f"w /sys/devices/system/node/node{n}/{PAGES} 1\n",
    "patterns": lambda n: f"w /sys/{{kernel/mm,devices/system/node/node*{n}}}/{PAGES} 1\n",
    "sysctl patterns": lambda n: f"vm.nr_*s{'*' * (n % 9)} = {n}\n",
    "static": lambda n: f'[settings.kernel.hugepages.static."{n}Mi"]\ncount = "{n}"\n',
    "not static": lambda n: f'[settings.kernel.hugepages."{n}Mi"]\ncount = "{n}"\n',
    "static without a count": lambda n: f'[settings.kernel.hugepages.static."{n}Mi"]\n"count" = {n}\n',
}


@pytest.mark.parametrize("what", LINES)
def test_lines_that_all_differ_are_not_compared_with_each_other(what: str) -> None:
    small, large = ("".join(map(LINES[what], range(many))) for many in (1_500, 6_000))
    for _ in range(TRIES):
        growth = seconds(large, 2) / seconds(small, 2)
        if growth < MOST_GROWTH:
            break
    assert growth < MOST_GROWTH, f"{growth:.1f} times"


@pytest.mark.parametrize("braces", ["{" * 40_000, "{a" * 40_000 + "}" * 40_000, "{" + "," * 40_000 + "}"])
def test_braces_without_end_are_read_once(braces: str) -> None:
    assert seconds(f"w /sys/kernel/mm/huge{braces}/nr_hugepages - - - - 4\n", 3) < NEGLIGIBLE_SECONDS


POOL = Source("90.conf", "vm.nr_hugepages = 100\n")


def pods(many: int, words: str = "", image: str = "postgres:17") -> Source:
    text = "kind: Pod\nmetadata: {{name: p{0}}}\nspec:\n  containers:\n  - {{name: c, image: {1}{2}}}\n---\n"
    return Source("pods.yaml", "".join(text.format(number, image, words) for number in range(many)))


def config_maps(many: int, name: str, text: str) -> Source:
    one = f"kind: ConfigMap\nmetadata: {{name: m}}\ndata: {{{name}: {text!r}}}\n---\n".replace("'", '"')
    return Source("maps.yaml", one * many)


BESIDE: dict[str, Callable[[int], list[Source]]] = {
    "pods and ConfigMaps": lambda many: [pods(many), config_maps(many, "postgresql.conf", "huge_pages = off"), POOL],
    "pods with arguments": lambda many: [pods(many, ', args: ["-c", "huge_pages=off"]'), POOL],
}


@pytest.mark.parametrize("what", BESIDE)
def test_objects_do_not_look_at_each_of_the_others(what: str) -> None:
    taken = []
    for many in (100, 400):
        files = BESIDE[what](many)
        best = float("inf")
        for _ in range(2):
            begun = time.process_time()
            assert all(report.readings for report in lint(files))
            best = min(best, time.process_time() - begun)
        taken.append(best)
    assert taken[1] < MOST_GROWTH * taken[0], taken
