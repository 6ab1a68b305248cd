/** Where a term is explained at length. `url` is missing for pages of the project's own documentation. */
interface TermSource {
  text: string;
  url?: string;
}

interface Entry {
  /** The term as a heading. */
  title: string;
  /** One or two sentences. */
  text: string;
  source: TermSource;
}

const KERNEL = "https://docs.kernel.org";
const KUBERNETES = "https://kubernetes.io/docs";
const HUGETLB = {
  text: "Linux kernel, HugeTLB Pages",
  url: `${KERNEL}/admin-guide/mm/hugetlbpage.html`,
};
const PAGE_TABLES = { text: "Linux kernel, Page Tables", url: `${KERNEL}/mm/page_tables.html` };
const MEMINFO = { text: "Linux kernel, /proc/meminfo", url: `${KERNEL}/filesystems/proc.html#meminfo` };
const RESERVE = {
  text: "Kubernetes, Reserve Compute Resources for System Daemons",
  url: `${KUBERNETES}/tasks/administer-cluster/reserve-compute-resources/`,
};
const PLANNING = { text: "hugeplan, docs/planning.md" };
const METHOD = { text: "hugeplan, docs/method.md" };
const MODEL = { text: "hugeplan, docs/model.md" };

/** What the dashboard's terms mean. Each is one or two sentences with a source; `Term` shows them beside the word. */
export const GLOSSARY = {
  "active-connections": {
    title: "Active at once",
    text: "Connections that run statements at the same time. Each builds page tables for what it touches, and with more of them than cores their entries leave the TLB sooner.",
    source: PLANNING,
  },
  allocatable: {
    title: "Allocatable",
    text: "What the scheduler may give to pods: the node's capacity without kube-reserved, system-reserved, the hard eviction threshold and all huge pages.",
    source: RESERVE,
  },
  backtest: {
    title: "Inside the predicted range",
    text: "The model predicts a published result from its processor, footprint and access, without having been fitted to it. Inside means that the published figure lies in the predicted range; within a point, that run-to-run scatter and rounding may explain the rest; unexplained means that it is above what address translation alone can give.",
    source: MODEL,
  },
  "cache-pressure": {
    title: "Cache pressure",
    text: "Other data that a program reads between two uses of the same page. It evicts page table entries from the processor's caches, so that a page walk waits for memory.",
    source: METHOD,
  },
  confidence: {
    title: "How sure",
    text: "High where this node's curves, its effective page size, the working set and the operation's cost are known and the range is narrow; low without curves or effective page size, or where the range is too wide to decide by. Page counts follow exact rules and do not depend on it.",
    source: MODEL,
  },
  connections: {
    title: "Connections",
    text: "The most connections that are open at once. Each takes private memory, and in engines with one process for each connection also page tables of its own.",
    source: PLANNING,
  },
  "container-limit": {
    title: "Huge page limit of a container",
    text: "The hugetlb control group limits how many bytes of each page size a container may use. A limit on usage below the segment ends the process on a later page fault; a limit on reservations below it makes the mapping fail at once.",
    source: {
      text: "Linux kernel, Control Group v2, HugeTLB",
      url: `${KERNEL}/admin-guide/cgroup-v2.html#hugetlb`,
    },
  },
  "effective-page-size": {
    title: "Effective page size",
    text: "How much memory one TLB entry covers in a guest. Where the hypervisor backs a huge page with smaller pages, it is their size: page walks get shorter, but the TLB reaches no further.",
    source: METHOD,
  },
  eviction: {
    title: "Eviction threshold",
    text: "When less memory than this is available, the kubelet ends pods. It is kept free and is not allocatable.",
    source: {
      text: "Kubernetes, Node-pressure Eviction",
      url: `${KUBERNETES}/concepts/scheduling-eviction/node-pressure-eviction/`,
    },
  },
  "free-margin": {
    title: "Keep free",
    text: "Memory that the plan leaves free. Where nothing is given it is 1 % of MemTotal.",
    source: PLANNING,
  },
  gain: {
    title: "Gain",
    text: "What huge pages save of the time that an operation spends on address translation, as throughput. It is a range, because the workload's access and the machine's caches are known only within bounds.",
    source: MODEL,
  },
  "huge-page-pool": {
    title: "Huge page pool",
    text: "Memory set aside in huge pages of one size on one NUMA node (nr_hugepages). Only programs that ask for huge pages can use it; to everybody else it is gone, whether used or not.",
    source: HUGETLB,
  },
  idle: {
    title: "Idle",
    text: "Pool pages that are free and not reserved by a mapping: HugePages_Free without HugePages_Rsvd. Nobody uses them, and nothing else can.",
    source: HUGETLB,
  },
  interval: {
    title: "Win, tie and interval",
    text: "The interval spans the 10th to the 90th percentile of the repeated measurements. One side wins only where its interval lies below every other; overlapping intervals are a tie.",
    source: METHOD,
  },
  knee: {
    title: "Knee",
    text: "The smallest buffer pool that reaches a given share of the best measured throughput. Beyond it, more memory buys little.",
    source: MODEL,
  },
  "kube-reserved": {
    title: "kube-reserved",
    text: "Memory set aside for the kubelet and the container runtime. Cloud providers compute it from the node's size.",
    source: RESERVE,
  },
  "max-pods": {
    title: "Max pods",
    text: "How many pods the kubelet admits. On EKS kube-reserved is computed from it.",
    source: RESERVE,
  },
  "numa-node": {
    title: "NUMA node",
    text: "Processors with the memory that is near to them. Each has pools of its own, and free memory on one does not help what is bound to another.",
    source: { text: "Linux kernel, What is NUMA?", url: `${KERNEL}/mm/numa.html` },
  },
  "operational-cost": {
    title: "Operational cost",
    text: "A small deduction from the score for what has to be operated: 0.1 for a pool, 0.6 for gigantic pages and for any size but 2M. It is smaller than any real difference, so it decides ties only.",
    source: { text: "hugeplan, docs/adr/0013-page-sizes-are-scored-in-points.md" },
  },
  "operations-per-core": {
    title: "Operations per second per busy core",
    text: "Throughput at base pages, divided by the cores that were busy. From it the plan knows what an operation costs, so that saved nanoseconds become a share of it.",
    source: MODEL,
  },
  "page-cache": {
    title: "Page cache",
    text: "File contents that the kernel keeps in memory. It can be dropped when memory is short; a database that relies on it then reads from disk.",
    source: MEMINFO,
  },
  "page-size": {
    title: "Page size",
    text: "Automatic weighs every huge page size that the node has, and base pages. A fixed size is planned even where another would score higher.",
    source: PLANNING,
  },
  "page-tables": {
    title: "Page tables",
    text: "Where the processor looks up which memory stands behind an address: 8 bytes per page, in each process of its own. Huge pages need far fewer of them.",
    source: PAGE_TABLES,
  },
  "page-walk": {
    title: "Page walk",
    text: "What the processor does when the TLB has no entry for an address: it reads the page tables level by level. A huge page saves at least one level.",
    source: PAGE_TABLES,
  },
  "plan-in-force": {
    title: "Plan in force",
    text: "The pools that a node is meant to have. Each report is compared with it: as planned, too few pages (short), too many, or drifted to other sizes or NUMA nodes.",
    source: { text: "hugeplan, docs/applying.md" },
  },
  "pool-range": {
    title: "Range of the buffer pool",
    text: "With a smallest and a largest size the planner chooses the size in between where one more GiB is worth less than the memory that it takes from others.",
    source: PLANNING,
  },
  "requested-at-boot": {
    title: "Requested at boot",
    text: "Pages that the kernel command line reserves before anything else runs (hugepages=). Memory is not yet fragmented then, so that 1G pages can be had.",
    source: HUGETLB,
  },
  "reserve-at": {
    title: "When pages are reserved",
    text: "At boot memory is not yet fragmented and every size can be had. At run time the kernel may give fewer pages than asked for, 1G pages most of all.",
    source: HUGETLB,
  },
  risk: {
    title: "Risk",
    text: "The probability that other workloads need more ordinary memory than pools and everything else leave them, from their measured history. It is a range where the history is short or their correlation is unknown.",
    source: PLANNING,
  },
  "row-width": {
    title: "Row width",
    text: "Bytes of an average row. It decides how many rows lie on a page, and so how many places one operation touches.",
    source: MODEL,
  },
  "scattered-lines": {
    title: "Scattered hot lines",
    text: "Few frequently used cache lines, each in another page. Processors have fewer TLB entries for large pages than for small ones, so such a working set may run out of the large ones first.",
    source: METHOD,
  },
  score: {
    title: "Score",
    text: "What decides between page sizes: 1 is one per cent of the database's throughput times its weight, or one per cent of the node's memory. The highest sum over all databases wins.",
    source: PLANNING,
  },
  slack: {
    title: "Slack",
    text: "Pages added to a pool beyond what the rules count, against a start that fails by a page: 1 % of the demand, and at least two pages of up to 32 MiB.",
    source: PLANNING,
  },
  source: {
    title: "Source of a value",
    text: "Measured on this node, read from the processor (CPUID) or a catalogue, given in the scenario, computed by an exact rule, or assumed. Only an assumed value is a guess, and it says so.",
    source: METHOD,
  },
  surplus: {
    title: "Surplus",
    text: "Pages that the kernel allocated beyond nr_hugepages on demand, up to nr_overcommit_hugepages. They go back when they are freed.",
    source: HUGETLB,
  },
  "system-reserved": {
    title: "system-reserved",
    text: "Memory set aside for what runs on the node outside of pods and databases.",
    source: RESERVE,
  },
  thp: {
    title: "Transparent huge pages (THP)",
    text: "The kernel backs ordinary memory with huge pages by itself where it finds free ones. Nothing is reserved, and nothing is promised.",
    source: {
      text: "Linux kernel, Transparent Hugepage Support",
      url: `${KERNEL}/admin-guide/mm/transhuge.html`,
    },
  },
  tlb: {
    title: "TLB",
    text: "The translation lookaside buffer: the processor's small cache of address translations, one entry per page. An access that it does not cover waits for a page walk.",
    source: PAGE_TABLES,
  },
  "tlb-reach": {
    title: "TLB reach",
    text: "How much memory the TLB covers with all entries in use: entries times effective page size. A working set beyond it pays page walks.",
    source: METHOD,
  },
  "working-set": {
    title: "Working set",
    text: "The part of the data that is read again and again. The TLB and the caches have to cover it, however large the buffer pool is.",
    source: MODEL,
  },
  workload: {
    title: "Workload",
    text: "Any other user of ordinary memory on the node: a pod, a service, or the page cache that a database relies on. Scenario files call them tenants.",
    source: PLANNING,
  },
} as const satisfies Record<string, Entry>;

export type TermName = keyof typeof GLOSSARY;
