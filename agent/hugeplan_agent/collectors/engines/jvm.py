"""Java virtual machines: the heap and what else the flags say; flags come from the command line and variables."""

from __future__ import annotations

import re

from hugeplan_agent.collectors.engines import versions
from hugeplan_agent.collectors.engines.base import Engine, Facts, Server, Settings

HEAP_OTHERWISE = frozenset(
    [
        "AggressiveHeap",
        "DefaultMaxRAMFraction",
        "ErgoHeapSizeLimit",
        "HeapBaseMinAddress",
        "InitialRAMFraction",
        "MaxRAMFraction",
        "MinRAMFraction",
        "ObjectAlignmentInBytes",
    ]
)
"""Without Xmx they change the heap in a way that plans do not count."""
FLAGS = HEAP_OTHERWISE | frozenset(
    [
        "AlwaysPreTouch",
        "CompressedClassSpaceSize",
        "G1HeapRegionSize",
        "InitialHeapSize",
        "InitialRAMPercentage",
        "LargePageSizeInBytes",
        "MaxDirectMemorySize",
        "MaxHeapSize",
        "MaxMetaspaceSize",
        "MaxNewSize",
        "MaxRAM",
        "MaxRAMPercentage",
        "MetaspaceSize",
        "MinHeapSize",
        "MinRAMPercentage",
        "NewSize",
        "ReservedCodeCacheSize",
        "SoftMaxHeapSize",
        "UseCompressedOops",
        "UseContainerSupport",
        "UseEpsilonGC",
        "UseG1GC",
        "UseHugeTLBFS",
        "UseLargePages",
        "UseNUMA",
        "UseParallelGC",
        "UseSHM",
        "UseSerialGC",
        "UseShenandoahGC",
        "UseTransparentHugePages",
        "UseZGC",
        "ZGenerational",
        "ZUncommit",
    ]
)
SHORT = ("Xmx", "Xms", "Xmn", "Xss")
VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""The first two are read before the command line, the last one after it."""

PRODUCTS = (
    (re.compile(r"^kafka\.Kafka$"), "kafka"),
    (re.compile(r"org\.apache\.cassandra\.service\."), "cassandra"),
    (re.compile(r"^org\.elasticsearch\.|^org\.elasticsearch\.server/"), "elasticsearch"),
    (re.compile(r"^org\.opensearch\."), "opensearch"),
    (re.compile(r"^org\.apache\.zookeeper\."), "zookeeper"),
    (re.compile(r"^org\.apache\.hadoop\.hbase\."), "hbase"),
    (re.compile(r"^org\.apache\.solr\.|^start\.jar$"), "solr"),
    (re.compile(r"^org\.apache\.spark\."), "spark"),
    (re.compile(r"^org\.apache\.flink\."), "flink"),
    (re.compile(r"^org\.neo4j\."), "neo4j"),
    (re.compile(r"^io\.trino\."), "trino"),
    (re.compile(r"^org\.apache\.pulsar\."), "pulsar"),
)


def read_flag(word: str) -> tuple[str, str] | None:
    """``-Xmx8g``, ``-XX:+UseLargePages`` or ``-XX:MaxHeapSize=8g`` as a setting; None for anything else."""
    word = re.sub(r"^-(m[sx])(?=\d)", r"-X\1", word)  # which the launcher takes too
    for name in SHORT:
        if word.startswith(f"-{name}") and word[1 + len(name) :][:1].isdigit():
            return name, word[1 + len(name) :]
    if word.startswith("-XX:"):
        body = word[4:]
        if body[:1] in "+-" and body[1:] in FLAGS:
            return body[1:], "true" if body[0] == "+" else "false"
        name, equals, value = body.partition("=")
        if equals and name in FLAGS:
            return name, value
    return None


def product_of(arguments: list[str]) -> str | None:
    """A known server by its main class. No other argument is read."""
    for word in arguments:
        name = word.rpartition("/")[2] if word.endswith(".jar") else word
        for pattern, product in PRODUCTS:
            if not word.startswith("-") and pattern.search(name):
                return product
    return None


def version_of(executable: str | None) -> tuple[str | None, str | None]:
    """A version in the executable's path, such as /usr/lib/jvm/java-21-openjdk-amd64/bin/java."""
    match = re.search(r"(?:java|jdk|jre|temurin|corretto|zulu)[a-z-]{0,64}[-/]?(\d+(?:\.\d+){0,3})", executable or "")
    return (match[1], "executable path") if match else (None, None)


def describe(server: Server) -> Facts:
    settings = Settings(FLAGS | set(SHORT), complete=True)
    variables = server.environment(VARIABLES)
    words_of = (
        ("JAVA_TOOL_OPTIONS", variables.get("JAVA_TOOL_OPTIONS", "").split()),
        ("JDK_JAVA_OPTIONS", variables.get("JDK_JAVA_OPTIONS", "").split()),
        ("command line", server.arguments[1:]),
        ("_JAVA_OPTIONS", variables.get("_JAVA_OPTIONS", "").split()),
    )
    for source, words in words_of:
        for word in words:
            flag = read_flag(word)
            if flag:
                settings.put(*flag, source)
    odd = [] if {"Xmx", "MaxHeapSize"} & settings.found.keys() else sorted(HEAP_OTHERWISE & settings.found.keys())
    if odd:
        settings.missing(f"what {' and '.join(odd)} make of its heap is not counted: give it -Xmx")
    if server.hides_environment():
        settings.missing("this user may not read its environment")
    if any(word.startswith(("@", "-XX:Flags=", "-XX:VMOptionsFile=")) for _, words in words_of for word in words):
        settings.missing("it reads flags from a file")
    # The name of its folder says the series, or what an administrator called it; the runtime's own file is exact.
    version, source_of_version = versions.first(versions.of_release_file(server), version_of(server.executable))
    return Facts(settings, version=version, version_source=source_of_version, product=product_of(server.arguments[1:]))


ENGINE = Engine("jvm", frozenset({"java"}), describe, starts_others=True)
