"""Any program as the subject: metrics, flags, and what wrong input is told."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from argparse import Namespace
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hugeplan.cli import main, trial, trial_shape
from hugeplan.measuring.pools import CannotReserveError, reserved
from hugeplan.measuring.program import Launch, Metric, ProgramSubject, java_flags
from hugeplan.measuring.trial import EQUAL, ArmError, TrialError
from hugeplan.planner.model import MIB, NodeSample

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
PYTHON = (sys.executable, "-S", "-c")


def one_batch(tmp_path: Path, code: str, metric: Metric | None = None, arm: str = EQUAL, **launch: object) -> float:
    # Long enough to be looked at: a trial refuses what ended before.
    made = Launch(command=(*PYTHON, f"import time; time.sleep(0.1); {code}"), **launch)  # type: ignore[arg-type]
    subject = ProgramSubject({EQUAL: Launch(command=("true",)), arm: made}, tmp_path, metric)
    with subject.sides(arm, swapped=False) as (_, other):
        return other.batch().rate


def test_wall_time_without_a_metric(tmp_path: Path) -> None:
    assert one_batch(tmp_path, "import time; time.sleep(0.2)") < 5.0


def test_the_last_number_that_the_program_prints(tmp_path: Path) -> None:
    metric = Metric(pattern=re.compile(r"score: ([\d.,]+)"))
    assert one_batch(tmp_path, "print('score: 7'); print('score: 1,234.5')", metric) == 1234.5
    lower = Metric(pattern=re.compile(r"([\d.]+) ms"), lower_is_better=True)
    assert one_batch(tmp_path, "print('4 ms')", lower) == 0.25


@pytest.mark.parametrize("printed", ["", "score: 0", "score: ,"])
def test_output_without_a_number_is_an_error(printed: str, tmp_path: Path) -> None:
    with pytest.raises(TrialError, match="--metric"):
        one_batch(tmp_path, f"print({printed!r})", Metric(pattern=re.compile(r"score: ([\d.,]+)")))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("printed", ["inf", "1e308", "1e-320", "5e-324"])
def test_a_number_that_no_document_takes_is_a_sentence(printed: str, lower: bool, tmp_path: Path) -> None:
    """What it had measured until then was lost to an internal error, at the end of all minutes."""
    metric = Metric(pattern=re.compile(r"(\S+)"), lower_is_better=lower)
    with pytest.raises(ArmError, match="cannot be compared"):
        one_batch(tmp_path, f"print({printed!r})", metric, arm="huge")


def test_a_failing_program_says_why(tmp_path: Path) -> None:
    with pytest.raises(TrialError, match="status 3: no such heap"):
        one_batch(tmp_path, "print('no such heap'); raise SystemExit(3)")
    with pytest.raises(ArmError) as found:
        one_batch(tmp_path, "print('no such heap'); raise SystemExit(3)", arm="huge")
    assert str(found.value).endswith("status 3"), "all who read the document read that"
    assert found.value.__notes__ == ["no such heap"]
    with pytest.raises(TrialError, match="No such file"):
        subject = ProgramSubject({EQUAL: Launch(command=("/no/such/program",))}, tmp_path)
        with subject.sides(EQUAL, swapped=False) as (base, _):
            base.batch()


def test_environment_and_the_thp_switch_reach_the_program(tmp_path: Path) -> None:
    """THP_enabled of /proc/self/status is what prctl(PR_SET_THP_DISABLE) changes."""
    metric = Metric(pattern=re.compile(r"THP_enabled:\s+(\d)"), lower_is_better=False)
    code = "import os; assert os.environ['A'] == 'b'; print(open('/proc/self/status').read())"
    code += "; import time; time.sleep(0.2)"
    assert one_batch(tmp_path, code, metric, environment={"A": "b"}) == 1.0
    with pytest.raises(TrialError, match="'0'"):
        one_batch(tmp_path, code, metric, environment={"A": "b"}, thp=False)


OWN, POOL, STAY = "x = bytearray({} << 20)", "y = mmap.mmap(-1, {} << 20, flags=0x40022)", "time.sleep(0.4)"
"""Memory of its own, and of the pool's 2M pages (MAP_HUGETLB)."""
OF_POOL = "MiB on pages of 2 MiB of the"


def looked_at(tmp_path: Path, arm: str, code: str, **launch: object) -> str | None:
    """What is said of a run that may take 16 pages of 2M, which are there for it."""
    if os.geteuid() != 0:
        pytest.skip("reserving 2M huge pages needs root")
    try:
        with reserved(2 * MIB, 16):
            one_batch(tmp_path, f"import mmap, os, time; {code}", arm=arm, **launch)
    except CannotReserveError as problem:
        pytest.skip(f"SKIP: {problem}")
    except (ArmError, TrialError) as problem:
        return str(problem)
    return None


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (STAY, "0 B on pages of 2 MiB of the"),
        (f"{OWN.format(30)}; {POOL.format(2)}; {STAY}", f"2 {OF_POOL}"),
        (f"{POOL.format(20)}; {STAY}; {OWN.format(80)}; {STAY}", f"20 {OF_POOL}"),
        (f"{POOL.format(20)}; {STAY}", None),
        (f"{POOL.format(20)}; {STAY}; y.close(); {STAY}", None),
        (f"{POOL.format(20)} if os.fork() == 0 else os.wait(); {STAY}", None),
    ],
)
def test_a_run_shows_the_pages_that_it_is_compared_for(code: str, said: str | None, tmp_path: Path) -> None:
    """4K pages were compared with 4K pages, and the result said how much 2M pages gain."""
    found = looked_at(tmp_path, "2M", code, page_bytes=2 * MIB)
    assert found is None if said is None else said in str(found)


def test_a_heap_is_on_its_pages_and_base_pages_are_none(tmp_path: Path) -> None:
    code = f"{POOL.format(20)}; {STAY}"
    assert "its heap being 21 MiB" in str(looked_at(tmp_path, "2M", code, page_bytes=2 * MIB, heap_bytes=21 * MIB))
    assert "on base pages has 20 MiB on huge pages" in str(looked_at(tmp_path, EQUAL, code, thp=False))
    assert looked_at(tmp_path, "huge", code) is None
    assert "0 B on pages of 1 GiB" in str(looked_at(tmp_path, "1G", code, page_bytes=1 << 30))
    for is_base in (True, False):
        assert "is not known" in str(Launch(command=("true",)).why_not([], is_base=is_base))


@pytest.mark.skipif("[never]" in THP.read_text(encoding="ascii"), reason="SKIP: no transparent huge pages here")
def test_transparent_huge_pages_are_looked_for(tmp_path: Path) -> None:
    glibc = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    code = f"import time; {OWN.format(40)}; {STAY}"
    assert one_batch(tmp_path, code, arm="thp", environment=glibc) > 0
    with pytest.raises(ArmError, match="has 0 B on huge pages of the 4"):
        one_batch(tmp_path, code, arm="thp", environment=glibc, thp=False)


def test_java_flags_differ_by_page_size_alone() -> None:
    flags = {arm: java_flags(arm) for arm in (EQUAL, "thp", "2M", "1G")}
    assert len(set(flags.values())) == 4
    assert all("-XX:-Use" not in flags[arm] for arm in ("thp", "2M", "1G"))  # JDK 17 would use no huge page
    assert "-XX:LargePageSizeInBytes=1g" in flags["1G"]


MAIN = """public class Main { public static void main(String[] a) throws Exception {
    byte[][] x = new byte[300][]; for (int i = 0; i < 300; i++) x[i] = new byte[100_000]; Thread.sleep(700); } }"""


def test_a_document_has_no_words_of_a_command_that_may_be_secrets(tmp_path: Path) -> None:
    common = {"pages": 0, "metric": None, "lower_is_better": False, "runs": 2}
    base = "PW=s3cret A='s3 cret' /bin/python3 -ps3cret --pw s3cret p.py pg://u:s3cret@h --pw=s3cret"
    java = ["java", "-Xmx1g", "-XX:+UseZGC", "-Dpw=s3cret", "-XX:OnError=s3cret", "-jar", "a.jar", "s3cret"]
    for prepared, shown in (
        (trial._command(Namespace(base=base, huge=None, **common), ("thp",)), "PW=... A=... /bin/python3 ... p.py ..."),
        (trial._jvm(Namespace(command_line=java, **common), ()), "java -Xmx1g -XX:+UseZGC ... -jar a.jar ..."),
    ):
        about = prepared(tmp_path, print)[1](datetime.now(UTC), 1)
        assert about.shape.base_command == shown


@pytest.mark.parametrize("own", [[], ["-XX:+UseLargePages"], ["@flags"], ["-XX:-UseLargePages"], ["-XX:+UseZGC"]])
@pytest.mark.parametrize(
    "java", sorted({p.resolve() for p in Path("/usr/lib/jvm").glob("*/bin/java")}), ids=lambda path: path.parts[-3]
)
def test_a_real_jvm_is_on_the_pages_of_its_side(
    java: Path, own: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every release, with flags of the user's that a plan writes: in a file, and on the command line."""
    if not (java.parent / "javac").exists() or os.geteuid() != 0:
        pytest.skip("needs root and a JDK")
    (tmp_path / "Main.java").write_text(MAIN, encoding="ascii")
    subprocess.run([java.parent / "javac", "Main.java"], cwd=tmp_path, check=True)
    (tmp_path / "flags").write_text("-XX:+UseLargePages -XX:LargePageSizeInBytes=2m -XX:+AlwaysPreTouch", "ascii")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_JAVA_OPTIONS", "-XX:-UseLargePages")
    launches = dict[str, Launch]()
    monkeypatch.setattr(trial, "_program_trial", lambda _, made, *__: launches.update(made))
    words = [str(java), "-Xmx64m", *own, "Main"]
    trial._jvm(Namespace(command_line=words, pages=0), ("2M", "thp"))
    subject = ProgramSubject(launches, tmp_path)
    for arm in launches:
        is_shared = arm == "thp" and own == ["-XX:+UseZGC"]  # its heap, which is then on base pages
        with subject.sides(arm, swapped=False) as (base, other):
            base.batch()
            with pytest.raises(ArmError, match="on huge pages of the") if is_shared else nullcontext():
                other.batch()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["command", "--base", ""], "--base '': give a program"),
        (["command", "--base", "A=b"], "give a program"),
        (["command", "--base", "'x"], "--base"),
        (["command", "--base", "x", "--metric", "("], "--metric ("),
        (["command", "--base", "x", "--metric", "score"], "give one group"),
        (["command", "--base", "x", "--page-sizes", "3M"], "--page-sizes 3M"),
        (["command", "--base", "x", "--page-sizes", "2M"], "--pages N"),
        (["command", "--base", "x", "--runs", "0"], "--runs 0: give 1 to 200"),
        (["command", "--base", "x", "--minutes", "0"], "--minutes 0"),
        (["jvm", "--", "java", "-version"], "-Xmx"),
        (["jvm", "--", "java", "-Xmx1g", "-XX:-UseTransparentHugePages"], "-XX:-UseTransparentHugePages: leave it out"),
        (["jvm", "--", "java", "-Xmx1g", "-XX:+UseSHM"], "leave it out"),
        (["postgresql", "--bin-dir", "/no/such/folder"], "/no/such/folder"),
        (["postgresql", "--clients", "0"], "--clients 0: give 1 to 1000"),
        (["postgresql", "--row-bytes", "0"], "--row-bytes 0"),
        (["postgresql", "--data-gib", "0"], "--data-gib 0"),
        (["postgresql", "--set", "shared_buffers=1GB"], "the trial sets shared_buffers itself"),
        (["postgresql", "--set", "work_mem"], "give NAME=VALUE"),
        (["postgresql", "--schema", "x.sql"], "needs --script"),
        (["postgresql", "--from", "/no/such/plan.json"], "/no/such/plan.json"),
        (["postgresql", "--instance", "no-such-server"], "--instance no-such-server"),
    ],
)
def test_wrong_input_is_one_line_and_starts_nothing(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_shape, "observe", lambda: (None, NodeSample(databases=())))  # whatever runs here
    kind, *rest = words
    assert main(["trial", kind, "--work-dir", str(tmp_path / "work"), *rest]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "work").exists()


def test_heaps_say_how_many_pages() -> None:
    from hugeplan.cli.trial import _java_pages  # noqa: PLC0415

    assert _java_pages(["-Xmx1g", "-Xmx512m", "-jar", "a.jar"], 2 << 20) in range(256, 500)
