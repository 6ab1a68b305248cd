/**
 * The commands that connect machines. None holds a token: each asks for it without echo and passes it by a file or a
 * pipe, so that it is in no shell history and in no list of processes.
 */

/** `read` without echo, in a subshell that forgets the variable. */
const ASK = "read -rsp 'Token: ' token";
const INTO_A_FILE = `(umask 077 && ${ASK} && printf '%s\\n' "$token" > hugeplan.enrolment)`;

/** One machine with the package: the enrolment token becomes the machine's own, and the service stays over reboots. */
export function hostCommand(origin: string): string {
  return [
    INTO_A_FILE,
    `echo HUGEPLAN_AGENT_SERVER=${origin} | sudo tee /etc/hugeplan/agent.env`,
    `sudo hugeplan-agent enrol --server ${origin} --enrolment-token-file hugeplan.enrolment`,
    "rm hugeplan.enrolment",
    "sudo systemctl enable --now hugeplan-agent.service hugeplan-agent-measure.timer",
  ].join(" && ");
}

/** One machine without the package, for as long as the shell lives. */
export function shellCommand(origin: string): string {
  return [
    INTO_A_FILE,
    `hugeplan-agent enrol --server ${origin} --enrolment-token-file hugeplan.enrolment --token-file hugeplan.token`,
    "rm hugeplan.enrolment",
    `hugeplan-agent run --server ${origin} --token-file hugeplan.token --measure quick`,
  ].join(" && ");
}

/** All nodes of a cluster: a secret from standard input, and the DaemonSet with this server's address. */
export function kubernetesCommand(origin: string): string {
  return [
    "kubectl create namespace hugeplan --dry-run=client -o yaml | kubectl apply -f -",
    `(${ASK} && printf '%s' "$token" | kubectl -n hugeplan create secret generic hugeplan-enrolment --from-file=token=/dev/stdin)`,
    `sed 's#http://hugeplan.hugeplan.svc:8000#${origin}#' agent/deploy/daemonset.yaml | kubectl apply -f -`,
  ].join(" && ");
}

/** What the import reads of a cluster, without an agent. */
export const KUBECTL_DUMP = "kubectl get nodes,pods,pvc,configmaps -A -o json > cluster.json";

/** A database's pages without any node. */
export const SIZE_BY_HAND = "hugeplan size postgresql --set shared_buffers=8GB --set max_connections=300";
