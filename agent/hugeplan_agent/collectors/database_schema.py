"""The schema of one entry of the section ``databases``."""

from __future__ import annotations

from hugeplan_agent.schema import (
    BYTES,
    KNOWN_BYTES,
    LIMITED,
    MOMENT,
    NUMA_ID,
    NUMBER,
    PAGE_BYTES,
    PID,
    TICKS,
    UNIT_REF,
    about,
    array,
    number,
    optional,
    record,
)

_FRACTION = number()
MAX_USER_ID = 2**32 - 2

DATABASE = about(
    record(
        {
            "key": about(
                {"type": "string", "minLength": 1, "maxLength": 512},
                "The same as long as the instance keeps its unit and data folder or port",
            ),
            "instance_id": about(
                {"type": ["string", "null"], "maxLength": 64},
                "Checksum of its data folder, which tells servers of one unit and port apart; paths stay on the node",
            ),
            "engine": {
                "enum": [
                    "postgresql",
                    "mysql",
                    "mariadb",
                    "oracle",
                    "db2",
                    "jvm",
                    "redis",
                    "mongodb",
                    "sap_hana",
                    "sql_server",
                ]
            },
            "engine_source": {"enum": ["executable", "command_name", "command_line", None]},
            "product": about(
                {"type": ["string", "null"], "maxLength": 64},
                "What runs on the engine where the command line tells: kafka, cassandra, elasticsearch, valkey, ...",
            ),
            "version": {"type": ["string", "null"], "maxLength": 64},
            "version_source": about({"type": ["string", "null"], "maxLength": 64}, "PG_VERSION, executable path, ..."),
            "main_pid": PID,
            "start_time_ticks": TICKS,
            "owner_uid": about(
                {"type": ["integer", "null"], "minimum": 0, "maximum": MAX_USER_ID},
                "Effective user id of its main process, the real one where that is root's, as the node numbers"
                " users, in a container too; a number alone. null: unknown, as where the agent itself runs in a user"
                " namespace",
            ),
            "process_count": NUMBER,
            "client_count": about(NUMBER, "Server processes that serve a client now; null for engines with threads"),
            "unit": UNIT_REF,
            "port": NUMBER,
            "settings": about(
                {
                    "type": "object",
                    "maxProperties": 256,
                    "additionalProperties": record(
                        {
                            "value": {"type": "string", "maxLength": 256},
                            "source": about(
                                {"type": "string", "maxLength": 64}, "command line, environment, a file's name, maps"
                            ),
                        },
                        required=("value", "source"),
                    ),
                },
                "Settings by the engine's own names, as written there; whitelisted names only. A setting that"
                " no readable source names is absent: the engine's default, or set at run time",
            ),
            "settings_complete": about(
                {"type": ["boolean", "null"]},
                "false: a configuration file could not be read, so settings may be missing or overruled; "
                "null: the engine's files are not known",
            ),
            "settings_note": {"type": ["string", "null"], "maxLength": 1000},
            "segments": about(
                array(
                    record(
                        {
                            "bytes": BYTES,
                            "backing": about(
                                {"enum": ["hugetlb", "base_pages", "thp", None]},
                                "thp: base pages of which some are huge now",
                            ),
                            "page_bytes": optional(PAGE_BYTES),
                            "kind": {"enum": ["anonymous_shared", "sysv", "posix_shm", "file", "private", None]},
                        },
                        required=("bytes", "backing"),
                    ),
                    64,
                ),
                "Its large shared mappings and, for engines that use private ones, its buffer pool, the largest first;"
                " of more than 64 the pool pages of the others come last, as one for each page size",
            ),
            "huge_pages_status": about(
                {"enum": ["on", "off", "partial", None]},
                "on: its shared segment (or heap) lies on hugetlb pages; off: on base pages; partial: some on"
                " each. Read from mappings, no login",
            ),
            "huge_pages_status_source": {"enum": ["maps", "status", None]},
            "memory": record(
                {
                    "source": {"enum": ["pss", "rss"]},
                    "private_bytes": about(
                        BYTES, "Anonymous memory of all its processes on base pages and THP, without the segment"
                    ),
                    "shared_bytes": about(BYTES, "Its segment as far as it lies on base pages and is touched"),
                    "file_bytes": BYTES,
                    "hugetlb_bytes": about(BYTES, "Touched huge pages"),
                    "page_tables_bytes": BYTES,
                    "swap_bytes": BYTES,
                }
            ),
            "counters": about(
                record(
                    {
                        "counted_at": MOMENT,
                        "status": about({"type": "string", "maxLength": 64}, "ok, or why figures are missing"),
                        "reason": {"type": ["string", "null"], "maxLength": 200},
                        "event_set": {"type": ["string", "null"], "maxLength": 64},
                        "walk_cycles_are": about(
                            {"enum": ["active", "pending", "stall", None]}, "active and pending are upper bounds"
                        ),
                        "seconds": _FRACTION,
                        "running_fraction": about(_FRACTION, "Below 1 the counts are scaled: events took turns"),
                        "overhead_fraction": about(_FRACTION, "What counting cost of the counted time, estimated"),
                        "user_walk_fraction": _FRACTION,
                        "kernel_walk_fraction": _FRACTION,
                        "walk_fraction": about(_FRACTION, "Of the server's cycles, those with a page walk in progress"),
                        "cycles": TICKS,
                        "instructions": TICKS,
                        "data_walks": TICKS,
                        "instruction_walks": TICKS,
                        "walk_cycles": TICKS,
                        "l2_hits": TICKS,
                    },
                    required=("counted_at", "status"),
                ),
                "What its processor counted of it when it was counted last, in all its processes; absent: never."
                " Not yet seen on hardware",
            ),
            "memlock_limit_bytes": BYTES,
            "memlock_limited": LIMITED,
            "hugetlb_limits": about(
                optional(
                    array(
                        record(
                            {
                                "page_bytes": PAGE_BYTES,
                                "counter": {"enum": ["usage", "reservation"]},
                                "limit_bytes": KNOWN_BYTES,
                                "usage_bytes": about(
                                    BYTES, "What is charged to the same counter of the same cgroup now"
                                ),
                                "cgroup_path": {"type": "string", "maxLength": 4096},
                            },
                            required=("page_bytes", "counter", "limit_bytes", "cgroup_path"),
                        ),
                        64,
                    )
                ),
                "Of each page size and counter the limit that acts: the one with the least room on the way "
                "from its cgroup to the root. Empty: unlimited; null: unknown",
            ),
            "allowed_numa_nodes": about(
                optional(array(NUMA_ID, 1024)),
                "The NUMA nodes that it may allocate from: of its cpuset's those that its largest mapping is bound to,"
                " as far as /proc/PID/numa_maps could be read; null: unknown",
            ),
        },
        required=("key", "engine", "main_pid"),
    ),
    "One database server (one instance: a postmaster with its backends, a mysqld, a JVM) that runs on the node",
)
