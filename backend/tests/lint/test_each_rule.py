"""Rules that no file of the corpus breaks, each with the smallest file that does, and what the fix makes of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from hugeplan.lint import Context, Source, lint


@dataclass(frozen=True)
class Case:
    """A file, the rules that it breaks, words of the messages and fixes, and of the fixed text."""

    name: str
    text: str
    rules: frozenset[str]
    says: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    context: Context = field(default_factory=Context)


def case(
    name: str, text: str, *rules: str, says: tuple[str, ...] = (), fixed: tuple[str, ...] = (),
    context: Context | None = None,
) -> Case:  # fmt: skip
    return Case(name, text, frozenset(rules), says, fixed, context or Context())


BOTTLEROCKET = (
    case(
        "a size with another unit and a count that is a number",
        '[settings.kernel.hugepages.static."2MB"]\ncount = 512\n',
        "bottlerocket-size", "bottlerocket-count",
        fixed=('static."2Mi"]', 'count = "512"'),
    ),
    case(
        "a size that nobody has, and a count in words",
        '[settings.kernel.hugepages.static."7Mi"]\ncount = "many"\n',
        "bottlerocket-size", "bottlerocket-count",
        says=("Use one of 2Mi, 1Gi.", '"200", a string of digits'),
    ),
    case(
        "a sysctl that is a number",
        '[settings.kernel.sysctl]\n"vm/nr_hugepages" = 512\n',
        "bottlerocket-sysctl-value",
        fixed=('"vm/nr_hugepages" = "512"',),
    ),
    case(
        "both ways to the same pool",
        '[settings.kernel.hugepages.static."2Mi"]\ncount = "512"\n'
        '[settings.kernel.sysctl]\n"vm.nr_hugepages" = "512"\n',
        "bottlerocket-sysctl",
    ),
    case(
        "boot parameters whose sizes and counts cannot be paired",
        '[settings.boot.kernel-parameters]\nhugepagesz = ["2M", "1G"]\nhugepages = ["512"]\n',
        "bottlerocket-boot-order",
        says=('static."SIZE"] count = "PAGES" per size',),
    ),
    case(
        "pages that the kubelet compares with nothing",
        "[settings.kubernetes]\nmemory-manager-policy = \"Static\"\n"
        '[settings.kubernetes.memory-manager-reserved-memory.0]\nenabled = true\nhugepages-2Mi = "1Gi"\n',
        "kubelet-reserved-memory-pages",
    ),
    case(
        "an entry that is switched off",
        "[settings.kubernetes]\nmemory-manager-policy = \"Static\"\n"
        '[settings.kubernetes.memory-manager-reserved-memory.0]\nenabled = false\nhugepages-2Mi = "1Gi"\n',
    ),
)  # fmt: skip

OVERLAY = """\
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: pages}
spec:
  requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
  capacity: {hugepages-2Mi: 2Gi}
"""
FEATURE = """\
apiVersion: nfd.k8s-sigs.io/v1alpha1
kind: NodeFeatureRule
metadata: {name: pages}
spec:
  rules:
    - name: pages
      matchFeatures:
        - feature: memory.hugepages
          matchExpressions:
            hugepages-2Mi: {op: Gt, value: ["0"]}
"""
MACHINE = """\
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 60-pages}
spec:
  kernelArguments: [default_hugepagesz=1G, hugepagesz=1G, hugepages=4]
"""
TUNED = """\
apiVersion: tuned.openshift.io/v1
kind: Tuned
metadata: {name: pages}
spec:
  profile:
    - name: pages
      data: |
        [main]
        summary=pages
        [vm]
        transparent_hugepages=off
        [sysctl]
        vm.swappiness=1
"""
GKE = """\
linuxConfig:
  hugepageConfig:
    hugepage_size2m: 512
"""
CLUSTER = (
    case("an overlay that is right", OVERLAY),
    case(
        "an overlay of memory without requirements",
        "kind: NodeOverlay\nspec:\n  capacity:\n    memory: 64Gi\n    hugepages-2Mi: 2Gi\n",
        "overlay-standard-resource", "overlay-requirements",
    ),
    case("a feature rule that is right", FEATURE),
    case(
        "a feature that does not exist",
        FEATURE.replace("memory.hugepages", "memory.hugepage"),
        "nfd-feature-name",
        fixed=("feature: memory.hugepages",),
    ),
    case(
        "an operator in capitals",
        FEATURE.replace("op: Gt", "op: GT"),
        "nfd-operator",
        fixed=("op: Gt",),
    ),
    case(
        "an operator that nobody knows",
        FEATURE.replace("op: Gt", "op: Above"),
        "nfd-operator",
        says=("Write Gt.",),
    ),
    case(
        "a resource of another spelling in a group of matchers",
        FEATURE.replace("matchFeatures:", "matchAny:\n      - matchFeatures:")
        .replace("        - feature", "          - feature").replace("          matchE", "            matchE")
        .replace("            hugepages-2Mi", "              hugepages-2MB"),
        "resource-name",
        fixed=("hugepages-2Mi",),
    ),
    case("kernel arguments that are right", MACHINE),
    case(
        "kernel arguments with a size that is the default already",
        MACHINE.replace("hugepagesz=1G, hugepages=4", "hugepages=4, hugepagesz=1G"),
        "cmdline-size-twice",
    ),
    case("a word of THP that the kernel does not have", TUNED, "tuned-thp-value", says=("'off' is not a value",)),
    case("a system configuration that is right", GKE),
    case(
        "keys of other spellings",
        "linuxConfig:\n  hugepagesConfig:\n    hugepages_2m: 512\n",
        "gke-key",
        fixed=("hugepageConfig:", "hugepage_size2m: 512"),
    ),
    case("a key of no size", "linuxConfig:\n  hugepageConfig:\n    size: 512\n", "gke-key", says=("hugepage_size2m",)),
    case("a count in quotes", GKE.replace("512", '"512"'), "gke-count", fixed=("hugepage_size2m: 512",)),
    case("a count of nothing", GKE.replace("512", "0"), "gke-count", says=("Write a number from 1.",)),
    case(
        "more than GKE gives",
        GKE,
        "gke-cap",
        context=Context(mem_total_bytes=2 * 10**9 // 2),
    ),
    case(
        "a mode that AKS refuses",
        "transparentHugePageEnabled: off\ntransparentHugePageDefrag: sometimes\n",
        "aks-thp-word",
        says=("Write never.",),
    ),
    case(
        "a field that AKS does not have",
        "linuxOSConfig:\n  transparentHugePageEnabled: madvise\n  sysctls:\n    vmNrHugepages: 512\n",
        "aks-no-huge-pages",
    ),
)  # fmt: skip

JVM = (
    case(
        "ZGC on a short pool",
        "java -XX:+UseLargePages -XX:+UseZGC -Xmx1g -jar a.jar\n",
        says=("base pages with a warning where none is free; with too few ZGC does not start, or lowers",),
    ),
    case(
        "both kinds of huge pages",
        "java -XX:+UseLargePages -XX:+UseTransparentHugePages -jar a.jar\n",
        "jvm-both-kinds",
        fixed=("java -XX:+UseLargePages  -jar a.jar",),  # no -XX:-: JDK 17 would use no huge page at all
    ),
    case(
        "both kinds, one of them named twice",
        "java -XX:-UseTransparentHugePages -XX:+UseTransparentHugePages -XX:+UseLargePages -jar a.jar\n",
        "jvm-both-kinds",
        fixed=("java   -XX:+UseLargePages -jar a.jar",),
    ),
    case(
        "transparent pages off by name, which on JDK 17 ends those of the pool",
        "java -XX:+UseLargePages -XX:-UseTransparentHugePages -jar a.jar\n",
        "jvm-kind-switched-off",
        says=("JDK 21 and earlier", "use no huge page", "Which release runs is not known here."),
        fixed=("java -XX:+UseLargePages  -jar a.jar",),
    ),
    case(
        "transparent pages on and off again",
        "java -XX:+UseLargePages -XX:+UseTransparentHugePages -XX:-UseTransparentHugePages -jar a.jar\n",
        "jvm-kind-switched-off",
        fixed=("java -XX:+UseLargePages   -jar a.jar",),
    ),
    *(
        case(
            f"{kind} off by name",
            f"java -XX:+UseLargePages -XX:-{kind} -jar a.jar\n",
            "jvm-kind-switched-off", "jvm-flag-removed",
            fixed=("java -XX:+UseLargePages  -jar a.jar",),
        )
        for kind in ("UseSHM", "UseHugeTLBFS")
    ),
    case("transparent pages off where none are asked for", "java -XX:-UseTransparentHugePages -jar a.jar\n"),
    case(
        "the kind that is named goes, and with it what is harmless beside it alone",
        "java -XX:+UseLargePages -XX:-UseTransparentHugePages -XX:+UseHugeTLBFS -jar a.jar\n",
        "jvm-flag-removed",
        fixed=("java -XX:+UseLargePages   -jar a.jar",),
    ),
    case(
        "explicit pages off, transparent ones on",
        "java -XX:-UseLargePages -XX:+UseTransparentHugePages -jar a.jar\n",
        "jvm-large-pages-off",
        fixed=("java  -XX:+UseTransparentHugePages",),
    ),
    case(
        "a flag that later releases do not have",
        "java -XX:+UseHugeTLBFS -jar a.jar\n",
        "jvm-flag-removed",
        says=("JDK 23 and later", "Write -XX:+UseLargePages."),
        fixed=("java -XX:+UseLargePages -jar a.jar",),  # by itself it asks JDK 17 for the pool's pages
    ),
    case("two collectors", "java -XX:+UseG1GC -XX:+UseZGC -jar a.jar\n", "jvm-two-collectors"),
    case("a collector that is switched off again", "java -XX:+UseG1GC -XX:-UseG1GC -XX:+UseZGC -jar a.jar\n"),
    case(
        "a switch without its sign",
        "java -XX:UseLargePages=true -jar a.jar\n",
        "jvm-flag-spelling",
        fixed=("-XX:+UseLargePages",),
    ),
    case(
        "the last of two switches",
        "java -XX:+UseLargePages -XX:-UseLargePages -jar a.jar\n",
        "jvm-switched-off",
        fixed=("java -XX:+UseLargePages -XX:+UseLargePages",),
    ),
    case(
        "a page size with a unit that is none",
        "java -XX:+UseLargePages -XX:LargePageSizeInBytes=2MB -jar a.jar\n",
        "jvm-size-value",
        fixed=("-XX:LargePageSizeInBytes=2m",),
    ),
    case(
        "a page size in words",
        "java -XX:+UseLargePages -XX:LargePageSizeInBytes=huge -jar a.jar\n",
        "jvm-size-value",
        says=("Write 2m or 1g.",),
    ),
    case(
        "a page size of another machine",
        "java -XX:+UseLargePages -XX:LargePageSizeInBytes=64m -jar a.jar\n",
        "jvm-page-size",
        says=("Use one of 2m, 1g, or leave it out.",),
    ),
    case(
        "a switch with a sign and a value",
        "java -XX:+UseLargePages=true -XX:+UseG1GC=true -XX:-AlwaysPreTouch=true -jar a.jar\n",
        "jvm-flag-spelling",
        says=("the JVM does not start with both", "Write -XX:+UseLargePages.", "Write one of them."),
        fixed=("java -XX:+UseLargePages -XX:+UseG1GC -XX:-AlwaysPreTouch=true -jar a.jar",),
    ),
    case(
        "a page size of nothing",
        "java -XX:LargePageSizeInBytes=0 -jar a.jar\n",
        "jvm-page-size",
        says=("JDK 25 does not start with it",),
    ),
    case(
        "a page size without the switch",
        "java -XX:LargePageSizeInBytes=2m -jar a.jar\n",
        "jvm-size-without-switch",
        fixed=("-XX:+UseLargePages -XX:LargePageSizeInBytes=2m",),
    ),
    case("a heap with a unit that is none", "java -Xmx8gb -jar a.jar\n", "jvm-size-value", fixed=("-Xmx8g ",)),
    case("a heap in words", "java -Xmxlarge -jar a.jar\n", "jvm-size-value", says=("Write -Xmx8g.",)),
)  # fmt: skip

PROFILE = """\
apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {name: pages}
spec:
  cpu: {isolated: "2-7", reserved: "0-1"}
  nodeSelector: {node-role.kubernetes.io/worker: ""}
  hugepages:
    defaultHugepagesSize: "2M"
    pages:
      - {size: "2M", count: 512, node: 0}
"""
OBJECTS = (
    case("a profile that is right", PROFILE),
    case(
        "a kernel page that does not exist",
        PROFILE.replace("  hugepages:", "  kernelPageSize: 16k\n  hugepages:"),
        "profile-kernel-page-size",
        says=("Write 4k or 64k.",),
    ),
    case(
        "large kernel pages with the real-time kernel",
        PROFILE.replace("  hugepages:", "  kernelPageSize: 64k\n  realTimeKernel: {enabled: true}\n  hugepages:"),
        "profile-kernel-page-size",
        fixed=("kernelPageSize: 4k",),
    ),
    case(
        "a count in quotes, and one of nothing",
        PROFILE.replace("512", '"512"') + '      - {size: "2M", count: -1, node: 1}\n',
        "profile-count",
        fixed=("count: 512",),
    ),
    case(
        "a size twice, on a node that is not there",
        PROFILE + '      - {size: "2M", count: 4, node: 0}\n      - {size: "1G", count: 1, node: 3}\n',
        "profile-size-twice", "profile-node",
        context=Context(numa_nodes=(0, 1)),
    ),
    case(
        "a profile without what it needs",
        PROFILE.replace("  nodeSelector: {node-role.kubernetes.io/worker: \"\"}\n", ""),
        "profile-field-missing",
        says=("spec.nodeSelector is missing",),
    ),
    case(
        "a gate that is gone and one that is new",
        "kind: KubeletConfiguration\nfeatureGates:\n  HugePages: true\n  HugepageAwareEviction: true\n",
        "kubelet-gate-gone", "kubelet-gate-new",
    ),
    case(
        "a policy that nobody has",
        "kind: KubeletConfiguration\nmemoryManagerPolicy: xyzzy\n",
        "kubelet-policy-value",
        says=("Use one of",),
    ),
    case(
        "a soft threshold without its period",
        "kind: KubeletConfiguration\nevictionSoft:\n  memory.available: 1Gi\n",
        "kubelet-soft-without-grace",
    ),
    case(
        "reserved memory twice, on a node that is not there",
        "kind: KubeletConfiguration\nmemoryManagerPolicy: Static\nkubeReserved: {memory: 924Mi}\n"
        "reservedMemory:\n  - {numaNode: 7, limits: {memory: 512Mi}}\n  - {numaNode: 7, limits: {memory: 512Mi}}\n",
        "kubelet-reserved-memory-node", "kubelet-reserved-memory-twice",
        context=Context(numa_nodes=(0, 1)),
    ),
    case(
        "resources of a type that the memory manager does not take, and of nothing",
        "kind: KubeletConfiguration\nmemoryManagerPolicy: Static\n"
        "reservedMemory:\n  - {numaNode: 0, limits: {memory: 100Mi, cpu: 1}}\n"
        "  - {numaNode: 1, limits: {memory: 0}}\n",
        "kubelet-reserved-memory-type", "kubelet-reserved-memory-zero",
    ),
    case(
        "a kustomization whose patch is no YAML",
        "kind: Kustomization\npatches:\n  - patch: |\n      a: [\n      b\n",
        says=("a patch is not YAML",),
    ),
    case(
        "a volume claim that asks for pages",
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  volumeClaimTemplates:\n"
        "    - metadata: {name: data}\n      spec: {resources: {requests: {storage: 1Gi, hugepages-2Mi: 1Gi}}}\n",
        "claim-asks-for-pages",
    ),
)  # fmt: skip

LINES = (
    case("a limit with a field too few", "* soft memlock\n* hard memlock 1024\n", "limits-fields"),
    case("another item", "* hard memlocked 1024\n", "limits-item", fixed=("* hard memlock 1024",)),
    case("another type", "* firm memlock 1024\n* hard memlock 1024\n", "limits-type", fixed=("* - memlock 1024",)),
    case(
        "a second line for one path",
        "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 4\n"
        "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 8\n",
        "tmpfiles-path-twice",
    ),
    case(
        "the total beside a count per node",
        "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 4\n"
        "w /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages - - - - 4\n",
        "tmpfiles-node-and-total",
    ),
    case(
        "a line with a field too few",
        "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - 4\n",
        "tmpfiles-argument",
        fixed=("nr_hugepages - - - - 4",),
    ),
    case(
        "a path that is no pool's file",
        "w /sys/kernel/mm/hugepages/nr_hugepages - - - - 4\n",
        "tmpfiles-size-directory",
    ),
    case(
        "a mode without a value, and a sysctl without one",
        "w /sys/kernel/mm/transparent_hugepage/enabled - - - -\nw /proc/sys/vm/nr_hugepages - - - -\n",
        "tmpfiles-argument",
        says=("The line has no value",),
    ),
    case(
        "a folder that the kernel does not have",
        "w /sys/kernel/mm/transparent_hugepages/enabled - - - - never\n",
        "tmpfiles-no-such-path",
        fixed=("/sys/kernel/mm/transparent_hugepage/enabled",),
    ),
    case(
        "settings in sections of others",
        "[main]\nsummary=pages\nhugepages=4\n[vm]\nvm.nr_hugepages=4\ntransparent_hugepages=madvise\n"
        "[bootloader]\ncmdline_pages=+transparent_hugepage=never\n",
        "tuned-section", "tuned-thp-ignored",
    ),
    case(
        "a target that does not exist, and a type in capitals",
        "[Unit]\nDescription=pages\n[Service]\nType=OneShot\n"
        "ExecStart=/bin/sh -c 'echo 4 > /sys/kernel/mm/hugepages/hugepages-2M/nr_hugepages'\n"
        "[Install]\nWantedBy=multiuser.target\n",
        "unit-no-such-target", "unit-type", "unit-size-directory",
        fixed=("WantedBy=multi-user.target", "Type=oneshot", "hugepages-2048kB"),
    ),
    case(
        "a unit that ends without saying so",
        "[Service]\nExecStart=/bin/sh -c 'echo 4 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages'\n",
        "unit-not-oneshot",
        fixed=("Type=oneshot\nRemainAfterExit=yes\n",),
    ),
    case(
        "a path of Red Hat's, and one that nobody has",
        "[Service]\nType=oneshot\n"
        "ExecStart=/bin/sh -c 'echo never > /sys/kernel/mm/redhat_transparent_hugepage/enabled'\n"
        "ExecStart=/bin/sh -c 'echo 4 > /proc/sys/vm/nr_hugepages_of_mine'\n",
        "unit-no-such-path",
        fixed=("/sys/kernel/mm/transparent_hugepage/enabled",),
    ),
    case(
        "a GRUB variable that is assigned again",
        'GRUB_CMDLINE_LINUX="hugepagesz=2M hugepages=512"\nGRUB_CMDLINE_LINUX="quiet"\n',
        "cmdline-variable-replaced",
    ),
)  # fmt: skip


@pytest.mark.parametrize("one", [*BOTTLEROCKET, *CLUSTER, *JVM, *OBJECTS, *LINES], ids=lambda one: one.name)
def test_a_file_breaks_exactly_these_rules(one: Case) -> None:
    (report,) = lint([Source("file", one.text)], one.context)
    assert report.unreadable is None
    assert {problem.rule.id for problem in report.problems} == one.rules
    said = " ".join(
        [*(f"{p.message} {p.fix}" for p in report.problems), *(e for r in report.readings for e in r.effects)]
    )
    for words in one.says:
        assert words in said
    for words in one.fixed:
        assert words in (report.fixed_text or "")
    for problem in report.problems:
        assert 0 <= problem.position <= len(one.text)


@pytest.mark.parametrize(
    "text",
    [
        'CMD ["java", "-XX:+UseLargePages", "-XX:+UseTransparentHugePages", "-jar", "a.jar"]\n',
        "-XX:+UseLargePages\n17-:-XX:+UseTransparentHugePages\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: a\n    image: a\n"
        "    args:\n    - -XX:+UseLargePages\n    - -XX:+UseTransparentHugePages\n",
    ],
)
def test_a_flag_that_is_a_whole_element_is_left_to_a_person(text: str) -> None:
    """Without it an empty word is left, with which no JVM starts."""
    (report,) = lint([Source("file", text)])
    (problem,) = (p for p in report.problems if p.rule.id == "jvm-both-kinds")
    assert problem.fix == "Leave it out."
    assert "TransparentHugePages" in (report.fixed_text or text)


def test_what_is_no_toml_is_said_to_be_none() -> None:
    (report,) = lint([Source("file", "[settings.kernel]\nhugepages = \n")])
    assert report.unreadable is not None
    assert report.unreadable.startswith("not TOML")
