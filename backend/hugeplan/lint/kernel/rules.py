"""The kernel's rules for huge page words, each with the function of mm/hugetlb.c (or other file) that has it."""

from __future__ import annotations

from typing import Final

from hugeplan.lint.model import attention, wrong

_SETUP: Final = "mm/hugetlb.c hugepages_setup()"
_DOC: Final = "Documentation/admin-guide/mm/hugetlbpage.rst"
_IN_ORDER: Final = "Write default_hugepagesz= first and once, then each hugepagesz= followed by one hugepages=."

COUNT_TWICE: Final = wrong(
    "cmdline-count-twice",
    "Between two hugepages= there must be a hugepagesz=; the kernel ignores the second.",
    _SETUP,
    _IN_ORDER,
)
COUNT_WITHOUT_SIZE: Final = wrong(
    "cmdline-count-without-size",
    "A hugepages= that follows a size which the kernel refused is ignored with it.",
    _SETUP,
    _IN_ORDER,
)
COUNT_INVALID: Final = wrong(
    "cmdline-count-invalid",
    "hugepages= takes one count, or node:count pairs of online NUMA nodes separated by commas; anything else sets 0.",
    _SETUP,
    "Write one number of pages, or node:count pairs of online NUMA nodes such as 0:512,1:512.",
)
COUNT_CUT: Final = wrong(
    "cmdline-count-not-a-number",
    "hugepages= takes a number of pages: the kernel reads the leading digits and drops the rest.",
    _SETUP,
    "Write the number of pages, such as hugepages=512.",
)
NODE_TWICE: Final = wrong(
    "cmdline-node-twice", "A NUMA node occurs once in hugepages=: the last count of a node replaces the others.", _SETUP
)
COUNT_FIRST: Final = attention(
    "cmdline-count-first",
    "A hugepages= in front of its hugepagesz= counts pages of the default size: it is right by luck.",
    _SETUP + "; " + _DOC,
)
COUNT_OVERRULED: Final = wrong(
    "cmdline-order",
    "A hugepages= before any hugepagesz= counts pages of the default size, and it overrides a later count for it.",
    "mm/hugetlb.c hugetlb_init(); " + _DOC,
    _IN_ORDER,
)
LEADING_COUNT: Final = wrong(
    "cmdline-count-before-size",
    "Each hugepages= must follow its hugepagesz=; one that comes first counts pages of the default size.",
    _SETUP + "; " + _DOC,
)
SIZE_TWICE: Final = wrong(
    "cmdline-size-twice",
    "A size may be given once with hugepagesz=.",
    "mm/hugetlb.c hugepagesz_setup()",
    _IN_ORDER,
)
DEFAULT_TWICE: Final = wrong(
    "cmdline-default-twice",
    "default_hugepagesz= may be given once; the kernel ignores later ones.",
    "mm/hugetlb.c default_hugepagesz_setup()",
    _IN_ORDER,
)
SIZE_UNSUPPORTED: Final = wrong(
    "cmdline-size-unsupported",
    "hugepagesz= takes a size that the processor has, with a K, M or G behind the number.",
    "arch_hugetlb_valid_size() of the architecture; " + _DOC,
    "Use one of {sizes}.",
)
SIZE_ALONE: Final = attention(
    "cmdline-size-without-count",
    "hugepagesz= alone reserves nothing: the hugepages= behind it does.",
    _DOC,
)
WRONG_TARGET: Final = wrong(
    "cmdline-count-of-another-size",
    "A hugepages= belongs to the size that the kernel accepted last, which need not be the size written before it.",
    "mm/hugetlb.c parsed_hstate, hugetlb_add_hstate()",
    _IN_ORDER,
)
AFTER_DASHES: Final = wrong(
    "cmdline-after-dashes",
    "Words behind -- are for init: the kernel does not read them.",
    "kernel/params.c parse_args()",
    "Move it in front of --.",
)
TOO_MANY: Final = wrong(
    "cmdline-too-many-words",
    "Linux 6.15 and later keep 2 x HUGE_MAX_HSTATE + 1 huge page words, five on x86-64, and drop the rest.",
    "mm/hugetlb.c hugetlb_add_param(), HUGE_MAX_CMDLINE_ARGS",
    _IN_ORDER,
)
NO_VALUE: Final = wrong(
    "cmdline-no-value",
    "A parameter and its value are one word: name=value without blanks.",
    "kernel/params.c next_arg()",
    "Write {name}=VALUE as one word, without blanks.",
)
CMA: Final = wrong(
    "cmdline-cma-skips-boot",
    "With hugetlb_cma= the kernel skips the boot-time reservation of gigantic pages; they come from CMA at run time.",
    "mm/hugetlb.c hugetlb_hstate_alloc_pages(): hugetlb_cma is enabled, skip boot time allocation",
    "Leave out hugetlb_cma=, or leave out this count and ask for the pages at run time.",
)
GIGANTIC_LATE: Final = wrong(
    "cmdline-gigantic-needs-size",
    "Before Linux 5.8 gigantic pages are reserved at boot only by a hugepages= behind their own hugepagesz=.",
    "mm/hugetlb.c (4.19) hugetlb_nrpages_setup(): gigantic pages come from the boot memory allocator",
    _IN_ORDER,
)
UNKNOWN_WORD: Final = wrong(
    "cmdline-unknown-word",
    "The kernel passes words it does not know to init without an effect on memory.",
    "Documentation/admin-guide/kernel-parameters.txt; init/main.c unknown_bootoption()",
)
SYSCTL_WORD: Final = wrong(
    "cmdline-sysctl-word",
    "A sysctl on the command line is written sysctl.NAME=VALUE (Linux 5.8 and "
    "later); without the prefix it is ignored.",
    "Documentation/admin-guide/kernel-parameters.txt sysctl.*=",
)
THP_VALUE: Final = wrong(
    "cmdline-thp-value",
    "transparent_hugepage= takes always, madvise or never.",
    "Documentation/admin-guide/mm/transhuge.rst",
)
HVO_VALUE: Final = wrong(
    "cmdline-hvo-value",
    "hugetlb_free_vmemmap= takes on or off.",
    "Documentation/admin-guide/kernel-parameters.txt hugetlb_free_vmemmap=",
)
TOO_MUCH: Final = wrong(
    "cmdline-more-than-memory",
    "Pools larger than memory are granted in part, and what is granted leaves nothing for the system.",
    _DOC,
)
NODES_BEFORE_516: Final = wrong(
    "cmdline-nodes-need-5.16",
    "node:count pairs need Linux 5.16; older kernels read the digits before the first colon as the count.",
    'mm/hugetlb.c (5.15) hugepages_setup(): sscanf(s, "%lu")',
    "Write counts per node to /sys/devices/system/node/node*/hugepages in an early unit instead.",
)
REPLACED: Final = attention(
    "cmdline-variable-replaced",
    "A later assignment to the same variable replaces the earlier one.",
    "GRUB manual, Simple configuration: the file is a shell script",
)
CMA_NODES_BEFORE_516: Final = wrong(
    "cmdline-cma-nodes-need-5.16",
    "hugetlb_cma= takes sizes per NUMA node since Linux 5.16; older kernels read one size and stop at the first colon.",
    "mm/hugetlb.c (5.15) cmdline_parse_hugetlb_cma(): memparse()",
)
CMA_ONLY_ALONE: Final = attention(
    "cmdline-cma-only-alone",
    "hugetlb_cma_only= acts only with hugetlb_cma=.",
    "Documentation/admin-guide/kernel-parameters.txt hugetlb_cma_only=",
)
THP_TWICE: Final = attention(
    "cmdline-thp-twice",
    "The last transparent_hugepage= wins.",
    "mm/huge_memory.c setup_transparent_hugepage()",
)
