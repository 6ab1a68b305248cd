"""The schema of one entry of the section ``units``."""

from __future__ import annotations

from hugeplan_agent.schema import BYTES, LIMITED, NUMBER, TEXT, UNIT_REF, about, array, number, record, ref

UNIT = about(
    record(
        {
            "key": ref("unit_key"),
            "kind": {"enum": ["pod", "container", "systemd_service", "systemd_scope", "cgroup", "process_group"]},
            "name": about(
                {"type": "string", "minLength": 1, "maxLength": 253},
                "Of a pod without a name its uid: `pod UID`, or `pod? UID` where the API server is asked for names",
            ),
            "parent": UNIT_REF,
            "cgroup_path": about(
                {"type": ["string", "null"], "maxLength": 4096}, "Below the root of the memory controller's tree"
            ),
            "pod": {
                "type": ["object", "null"],
                "properties": {
                    "uid": TEXT,
                    "namespace": TEXT,
                    "name": TEXT,
                    "qos_class": {"enum": ["Guaranteed", "Burstable", "BestEffort", None]},
                },
            },
            "container": {"type": ["object", "null"], "properties": {"id": TEXT, "name": TEXT, "runtime": TEXT}},
            "process_count": NUMBER,
            "memory": ref("unit_memory"),
            "databases": about(
                array({"type": "string", "minLength": 1, "maxLength": 512}, 256), "Keys of the databases that run in it"
            ),
        },
        required=("key", "kind", "name", "parent", "memory"),
    ),
    "One unit of work: a pod, container, systemd unit, other cgroup, or group of processes "
    "outside of them. Units whose parent is null share no process and no cgroup, so their memory "
    "may be added up; a child is part of its parent",
)

UNIT_KEY = about(
    {"type": "string", "minLength": 1, "maxLength": 512},
    "Names one unit of work; the same as long as it lives, over samples and restarts of the agent",
)

UNIT_MEMORY = record(
    {
        "source": about(
            {"enum": ["cgroup_v2", "cgroup_v1", "pss", "rss"]},
            "Where anon, shmem and file come from. pss: shares of its processes; rss: shared pages count "
            "once per process, so the sum is an upper bound",
        ),
        "anon_bytes": BYTES,
        "shmem_bytes": about(
            BYTES, "Shared memory and tmpfs on ordinary pages. A cgroup is charged for what it touched first"
        ),
        "file_bytes": about(BYTES, "Page cache without shmem (cgroup), or mapped files (pss, rss)"),
        "usage_bytes": about(
            BYTES, "memory.current, memory.usage_in_bytes; no hugetlb pages but where the kernel is told to charge them"
        ),
        "working_set_bytes": about(BYTES, "usage less inactive file pages, as the kubelet counts it"),
        "limit_bytes": about(
            BYTES,
            "The limit that acts. Unknown where a cgroup of version 2 has a larger one than what is above it, and is no"
            " container: programs differ in which of the two they take for theirs",
        ),
        "limited": LIMITED,
        "swap_bytes": BYTES,
        "kernel_bytes": about(BYTES, "Kernel memory charged to the cgroup, page tables included"),
        "page_tables_bytes": BYTES,
        "anon_huge_bytes": BYTES,
        "hugetlb_bytes": about(
            BYTES,
            "Huge pages in use: of the hugetlb controller, else the largest sharing plus private ones of its processes",
        ),
        "hugetlb_charged_bytes": about(
            BYTES,
            "The part of usage_bytes that is huge pages (memory_hugetlb_accounting); null where the "
            "kernel does not say",
        ),
        "pss_bytes": about(BYTES, "Sum over its processes; null when one of them is not readable"),
        "pss_age_seconds": about(number(), "Age of the oldest share in pss_bytes"),
        "rss_bytes": about(BYTES, "Sum over its processes; shared pages count once per process"),
    },
    required=("source",),
)
