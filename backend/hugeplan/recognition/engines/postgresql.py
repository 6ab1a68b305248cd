"""PostgreSQL in a container: ``postgres -c name=value``, mounted postgresql.conf files, image tags."""

from __future__ import annotations

import re

from hugeplan.formats import postgresql_conf
from hugeplan.formats.command_line import expand, words_of
from hugeplan.recognition.base import ContainerEngine, ContainerView, Reading
from hugeplan.recognition.images import Image, leading_version

#: Bitnami's chart has variables for two settings, and one with lines of postgresql.conf.
_BITNAMI = {"POSTGRESQL_MAX_CONNECTIONS": "max_connections", "POSTGRESQL_SHARED_BUFFERS": "shared_buffers"}
_SINGLE_LETTERS = {"-B": "shared_buffers", "-N": "max_connections"}


def read(container: ContainerView) -> Reading:
    """Options go before variables, variables before files, as the server reads them."""
    files: dict[str, str] = {}
    sources: dict[str, str] = {}
    unknown: list[str] = []
    for file in container.files:
        if not re.search(r"\.conf$|postgresql", file.path) or re.search(r"pg_hba|pg_ident|recovery", file.path):
            continue
        settings, includes = postgresql_conf.values_of(file.text)
        files |= settings
        sources |= dict.fromkeys(settings, file.source)
        if includes:
            unknown.append(f"{file.path} includes files that the input does not hold")
    found = Reading(settings=files, sources=sources, unknown=tuple(unknown))
    variables = {
        setting: value for name, setting in _BITNAMI.items() if (value := container.environment.get(name)) is not None
    }
    return _options(container).over(Reading.of("environment", variables)).over(found)


def _options(container: ContainerView) -> Reading:
    settings: dict[str, str] = {}
    unknown: list[str] = []
    words = words_of(container.words)
    for index, word in enumerate(words):
        after = words[index + 1] if index + 1 < len(words) else ""
        if word in {"-c", "--config"} and "=" in after:
            pair = after
        elif word in _SINGLE_LETTERS and after:
            pair = f"{_SINGLE_LETTERS[word]}={after}"
        elif (word.startswith("-c") and "=" in word) or (word.startswith("--") and "=" in word):
            pair = word[2:]
        else:
            continue
        name, _, value = pair.partition("=")
        plain = name.strip().replace("-", "_").lower()
        expanded = expand(value.strip(), container.environment)
        if expanded is None or "$" in expanded:
            unknown.append(f"{plain}: its value comes from a variable that the input does not hold")
        elif plain not in {"config_file", "data_directory", "hba_file", "ident_file"}:
            settings[plain] = expanded.strip("'\"")
    return Reading.of("arguments", settings, unknown=tuple(unknown))


def version_of_image(image: Image) -> str | None:
    """``16.4`` of ``postgres:16.4``; TimescaleDB, PostGIS and pgvector write the major version as ``pg16``."""
    tag = image.tag or ""
    named = re.search(r"pg(\d+)", tag) or re.search(r"(?:spilo|postgresql?|pg)-(\d+)$", image.name)
    if named is not None:
        return named[1]
    return leading_version(re.sub(r"^(ubi\d+|centos\d+|rhel\d+|el\d+)-", "", tag))


ENGINE = ContainerEngine(
    engine="postgresql",
    programs=frozenset({"postgres", "postmaster", "patroni"}),
    images=frozenset(
        {
            "postgres", "postgresql", "postgresql-repmgr", "postgres-ha", "timescaledb", "timescaledb-ha", "postgis",
            "pgvector", "crunchy-postgres", "crunchy-postgres-gis", "crunchy-postgres-ha", "spilo", "spilo-13",
            "spilo-14", "spilo-15", "spilo-16", "spilo-17", "spilo-18", "percona-distribution-postgresql", "patroni",
            "supabase-postgres", "edb-postgres-advanced", "enterprisedb", "pgvecto-rs", "paradedb", "cnpg-postgres",
        }
    ),
    read=read,
    version_of_image=version_of_image,
    main_setting="shared_buffers",
)  # fmt: skip
