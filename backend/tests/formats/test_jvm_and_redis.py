"""JVM options and redis.conf have one reader each: recognition and the linter say the same of one text."""

from __future__ import annotations

import pytest

from hugeplan.formats.jvm_options import option_of
from hugeplan.formats.redis_conf import directives
from hugeplan.lint.kinds import redis_conf as redis_linter
from hugeplan.lint.model import Context, Source
from hugeplan.recognition.config_files import redis_conf
from hugeplan.recognition.engines.jvm import options_of


@pytest.mark.parametrize(
    ("word", "name", "setting"),
    [
        ("-Xmx8g", "Xmx", "8g"),
        ("-Xmn1g", "Xmn", "1g"),
        ("-XX:+UseLargePages", "UseLargePages", "on"),
        ("-XX:-UseLargePages", "UseLargePages", "off"),
        ("-XX:LargePageSizeInBytes=2m", "LargePageSizeInBytes", "2m"),
        ("-XX:+LargePageSizeInBytes=2m", "LargePageSizeInBytes", None),
        ("-XX:UseLargePages", "UseLargePages", None),
    ],
)
def test_an_option_of_a_jvm(word: str, name: str, setting: str | None) -> None:
    option = option_of(word)
    assert option is not None
    assert (option.name, option.setting) == (name, setting)
    assert options_of([word]) == ({} if setting is None else {name: setting})


@pytest.mark.parametrize(
    ("words", "settings"),
    [  # the MaxHeapSize and InitialHeapSize that JVMs 17 and 25 print with them
        ("-Xmx1g -XX:MaxHeapSize=2g", {"Xmx": "2g"}),
        ("-XX:MaxHeapSize=2g -Xmx1g", {"Xmx": "1g"}),
        ("-Xms1g -XX:InitialHeapSize=2g", {"Xms": "2g"}),
    ],
)
def test_of_two_names_of_one_flag_the_last_wins(words: str, settings: dict[str, str]) -> None:
    assert options_of(words.split()) == settings


@pytest.mark.parametrize("word", ["-jar", "Xmx8g", "-XX:", "--Xmx8g", "-XX:+Use LargePages", ""])
def test_another_word_is_no_option(word: str) -> None:
    assert option_of(word) is None


@pytest.mark.parametrize(
    ("line", "problems"),
    [
        ("disable-thp no", 1),
        ("Disable-THP no", 1),
        ("DISABLE-THP YES", 0),
        ('disable-thp "yes"', 0),
        ("# disable-thp no", 0),
        ("Use-Huge-Pages yes", 1),
    ],
)
def test_a_directive_of_redis_in_any_case(line: str, problems: int) -> None:
    text = f"maxmemory 8gb\r\n{line}\n"
    reading = redis_linter.read(Source("redis.conf", text), Context())
    assert len(reading.problems) == problems
    read = redis_conf(text)
    assert read["maxmemory"] == "8gb"
    for found in directives(text):
        assert text[found.start : found.end].strip() == found.text
        assert read[found.name] == found.value
