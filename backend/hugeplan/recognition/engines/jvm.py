"""Java virtual machines: their options from the command line and from the variables that JVMs and images read.

A JVM is taken for a database only where it is one of the known data stores, or where it asks for large pages itself;
any other Java program is a workload like every other pod.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from functools import lru_cache

from hugeplan.formats.command_line import words_of
from hugeplan.formats.jvm_options import option_of
from hugeplan.planner.demand import ENGINES
from hugeplan.recognition.base import ContainerEngine, ContainerView, Reading

#: Read by the JVM itself, weakest first; then those that images of data stores hand to it.
_OF_JVM = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_OF_IMAGES = (
    "JAVA_OPTS", "JAVA_OPTIONS", "JVM_OPTS", "KAFKA_HEAP_OPTS", "KAFKA_OPTS", "ES_JAVA_OPTS", "OPENSEARCH_JAVA_OPTS",
    "JVM_EXTRA_OPTS", "SOLR_OPTS", "SOLR_JAVA_MEM", "HBASE_OPTS", "CATALINA_OPTS", "LS_JAVA_OPTS", "HEAP_OPTS",
    "STRIMZI_JAVA_OPTS", "SERVER_JVMFLAGS", "ZK_SERVER_HEAP", "PULSAR_MEM", "NEO4J_server_jvm_additional",
)  # fmt: skip
LARGE_PAGES_OPTION = "-XX:+UseLargePages"
#: Linux takes no longer variable (MAX_ARG_STRLEN, include/uapi/linux/binfmts.h).
_MOST_TEXT = 131_071
_MOST_OPTIONS = 1_000
#: Two names of one flag: the last of both wins.
_SAME = {"MaxHeapSize": "Xmx", "InitialHeapSize": "Xms"}
_CASSANDRA = {"MAX_HEAP_SIZE": "Xmx", "HEAP_NEWSIZE": "Xmn"}


def options_of(words: Iterable[str]) -> dict[str, str]:
    """JVM options as the planner's engine takes them: ``-Xmx8g`` -> ``Xmx: 8g``, ``-XX:+UseZGC`` -> ``UseZGC: on``."""
    known = {spec.name.lower(): spec.name for spec in ENGINES["jvm"].settings}
    settings: dict[str, str] = {}
    for word in words:
        option = option_of(word)
        value = None if option is None else option.setting
        if option is None or value is None:
            continue
        name = _SAME.get(option.name, option.name)
        for spelled in (name, f"-{name}", f"-XX:{name}", f"XX:{name}"):
            if spelled.lower() in known:
                settings[known[spelled.lower()]] = value
                break
        else:
            settings[name] = value
    return settings


def split_options(text: str) -> list[str]:
    """The words of a variable; a text with an open quote is split at its spaces."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


@lru_cache(maxsize=256)
def _options_in(text: str) -> Mapping[str, str] | None:
    """The options of a variable, which many containers may take from one place; None where no JVM has so many."""
    found = options_of(split_options(text)) if len(text) <= _MOST_TEXT else {}
    return found if len(text) <= _MOST_TEXT and len(found) <= _MOST_OPTIONS else None


def from_environment(environment: Mapping[str, str | None]) -> tuple[dict[str, str], list[str]]:
    """Options of every variable that a JVM or an image reads, and the variables whose value is elsewhere."""
    settings: dict[str, str] = {}
    unknown = []
    for name in (*_OF_IMAGES, *_OF_JVM):
        if name not in environment:
            continue
        value = environment[name]
        if value is None:
            unknown.append(f"{name}: its value comes from an object that the input does not hold")
        elif name in {"PULSAR_MEM", "SOLR_JAVA_MEM"} or "-" in value:
            options = _options_in(value)
            settings |= options or {}
            unknown += [f"{name}: no JVM takes so many options"] if options is None else []
    for name, option in _CASSANDRA.items():
        value = environment.get(name)
        if value:
            settings |= options_of([f"-{option}{value}"])
    return settings, unknown


def read(container: ContainerView) -> Reading:
    """The command line goes before variables."""
    variables, unknown = from_environment(container.environment)
    options = options_of(words_of(container.words))
    found = Reading.of("environment", variables, unknown=tuple(unknown))
    return Reading.of("arguments", options).over(found)


def asks_for_large_pages(container: ContainerView) -> bool:
    """Whether the options say ``-XX:+UseLargePages``."""
    words = [*words_of(container.words), *(value for value in container.environment.values() if value)]
    return any(LARGE_PAGES_OPTION in word for word in words)


ENGINE = ContainerEngine(
    engine="jvm",
    programs=frozenset({"kafka_run.sh", "elasticsearch", "cassandra", "opensearch", "kafka-server-start.sh"}),
    images=frozenset(
        {
            "kafka", "cp-kafka", "cp-server", "elasticsearch", "opensearch", "cassandra", "dse-server",
            "cass-management-api", "solr", "hbase", "neo4j", "ignite", "hazelcast", "pulsar", "zookeeper", "druid",
            "trino", "presto",
        }
    ),
    read=read,
    version_of_image=lambda _: None,  # the tag says the data store's version, not the JVM's
    main_setting="Xmx",
)  # fmt: skip
