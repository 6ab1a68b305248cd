/** What was done, in words, by the operation that the audit log names. */
const ACTIONS: Readonly<Record<string, string>> = {
  enrolment_approvals_create: "Allowed a machine to enrol again",
  enrolment_requests_decide: "Decided a machine's request to enrol",
  enrolments_create: "Enrolled a machine",
  fleet_plan_rows_decide: "Decided plans of a fleet plan",
  fleet_plan_rows_open: "Kept the plan of a fleet plan's node",
  fleet_plans_cancel: "Cancelled a fleet plan",
  fleet_plans_create: "Started a fleet plan",
  imports_kubernetes: "Read a cluster",
  imports_scenarios: "Imported scenarios of a cluster",
  login_links_create: "Made a login link",
  node_labels_replace: "Changed a node's labels",
  node_plan_in_force_delete: "Ended a node's plan in force",
  node_plan_in_force_replace: "Set a node's plan in force",
  nodes_delete: "Removed a node",
  oidc_login: "Signed in with single sign-on",
  own_token_rotate: "Renewed its own token",
  plan_verification_create: "Verified a plan",
  plans_approve: "Approved a plan",
  plans_create: "Kept a plan",
  plans_delete: "Deleted a draft of a plan",
  plans_end_in_force: "Took a plan out of force",
  plans_propose: "Proposed a plan",
  plans_put_in_force: "Put a plan in force",
  plans_withdraw: "Took a proposal or an approval back",
  runs_delete: "Deleted a run",
  runs_mark: "Marked a run",
  scenario_plans_create: "Kept the plan of a scenario",
  scenarios_create: "Saved a scenario",
  scenarios_delete: "Deleted a scenario",
  scenarios_import: "Imported a scenario",
  scenarios_replace: "Changed a scenario",
  session_create: "Signed in",
  session_delete: "Signed out",
  sessions_end: "Ended a browser's session",
  tokens_create: "Created a token",
  tokens_revoke: "Revoked a token",
  tokens_rotate: "Renewed a token",
  trials_create: "Stored a trial",
  webhooks_create: "Added a webhook",
  webhooks_delete: "Deleted a webhook",
};

/** "Revoked a token" for `tokens_revoke`; an operation of another version keeps its own name. */
export function actionWords(action: string): string {
  return ACTIONS[action] ?? action;
}

/** Every action in the order of its words, as the choices of a filter. */
export const ACTION_CHOICES = Object.entries(ACTIONS)
  .map(([value, label]) => ({ value, label }))
  .sort((a, b) => a.label.localeCompare(b.label, "en"));
