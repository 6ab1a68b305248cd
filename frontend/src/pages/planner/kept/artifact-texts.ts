import type { PlanArtifact } from "@/api/types";

/** Files by the names that their own documentation gives them. What is missing here is named by its kind. */
const TITLES: Readonly<Record<string, string>> = {
  aks_daemonset: "AKS DaemonSet",
  aks_node_config: "AKS node configuration",
  ansible_playbook: "Ansible playbook",
  bottlerocket_settings: "Bottlerocket settings",
  cloud_config: "cloud-config",
  cloudnative_pg: "CloudNativePG",
  crunchy_cluster: "Crunchy PGO",
  db2_settings: "Db2 settings",
  eks_user_data: "EKS user data",
  gke_system_config: "GKE system configuration",
  grafana_dashboard: "Grafana dashboard",
  installer: "hugeplan-file, for the commands",
  jvm_options: "JVM options",
  karpenter_node_overlay: "Karpenter NodeOverlay",
  kubelet_configuration: "KubeletConfiguration",
  limits_d: "limits.d",
  machine_config: "MachineConfig",
  mariadb_cnf: "MariaDB option file",
  mariadb_cnf_snippet: "MariaDB's lines for a file of its own",
  mariadb_operator: "MariaDB operator",
  memlock_dropin: "systemd drop-in (LimitMEMLOCK)",
  my_cnf: "my.cnf",
  my_cnf_snippet: "MySQL's lines for a file of its own",
  node_feature_rule: "NodeFeatureRule",
  numa_script: "NUMA script",
  openshift_tuned: "OpenShift Tuned",
  oracle_parameters: "Oracle parameters",
  percona_postgresql_cluster: "Percona Operator for PostgreSQL",
  performance_profile: "PerformanceProfile",
  postgresql_conf: "postgresql.conf",
  postgresql_conf_snippet: "PostgreSQL's lines for a configuration of its own",
  prometheus_rules: "Prometheus rules",
  redis_conf: "redis.conf",
  redis_conf_snippet: "Redis' lines for a file of its own",
  statefulset_patch: "StatefulSet patch",
  statefulset_snippet: "StatefulSet form with placeholders",
  sysctl: "sysctl",
  systemd_boot: "systemd-boot",
  systemd_unit: "systemd unit",
  terraform_gke: "Terraform for GKE",
  thp_tmpfiles: "tmpfiles.d for THP",
  tmpfiles: "tmpfiles.d",
  tuned_profile: "TuneD profile",
  zalando_postgresql: "Zalando postgresql",
};

/** The longest names first: one kind may begin with another. */
const KINDS = Object.keys(TITLES).sort((a, b) => b.length - a.length);

/** What a file is called on the page. A kind that several databases have ends with the database's name. */
export function kindTitle(kind: string): string {
  const known = KINDS.find(
    (one) => kind === one || (kind.startsWith(one) && !/[a-z0-9]/i.test(kind.charAt(one.length))),
  );
  if (known) {
    const database = kind.slice(known.length + 1);
    return database ? `${TITLES[known]}: ${database}` : (TITLES[known] as string);
  }
  const words = kind.replaceAll(/[_-]/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const TAKES_EFFECT: Record<PlanArtifact["restart"], string> = {
  nothing: "Nothing is restarted.",
  engine: "It takes effect when the database is restarted.",
  kubelet: "It takes effect when the kubelet is restarted.",
  reboot: "It takes effect when the node is rebooted.",
  nodes: "It takes effect when the nodes are replaced.",
};

/** What a file does, and what must be restarted for it. */
export function whatItDoes({ summary, restart }: Pick<PlanArtifact, "summary" | "restart">): string {
  return [summary, TAKES_EFFECT[restart]].filter(Boolean).join(" ");
}
