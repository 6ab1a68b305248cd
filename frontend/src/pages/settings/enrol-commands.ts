/**
 * The commands that connect machines. None holds a token: each asks for it without echo and passes it by a file or a
 * pipe, so that it is in no shell history and in no list of processes.
 */

/** `read` without echo, in a subshell that forgets the variable. */
const ASK = "read -rsp 'Token: ' token";

/** One machine: the enrolment token is exchanged for the machine's own, then the agent runs with that. */
export function hostCommand(origin: string): string {
  return [
    `(umask 077 && ${ASK} && printf '%s\\n' "$token" > hugeplan.enrolment)`,
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
