{{- define "hugeplan.name" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "hugeplan.labels" -}}
app.kubernetes.io/name: hugeplan
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "hugeplan.selector" -}}
app.kubernetes.io/name: hugeplan
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "hugeplan.image" -}}
{{- with .root.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ default .root.Chart.AppVersion .image.tag }}
{{- end -}}
{{- end }}

{{- define "hugeplan.hardened" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* No engine gives a user other than root a capability: the pod starts as root and gives up the rest at once. */}}
{{- define "hugeplan.asAgent" -}}
{{- if .Values.agent.countWalks.enabled -}}
setpriv, --reuid=10002, --regid=10002, --clear-groups, --inh-caps=+perfmon, --ambient-caps=+perfmon, "--bounding-set=-all,+perfmon", --, {{ end -}}
{{- end }}

{{- define "hugeplan.bundled" -}}
{{- if and .Values.database.bundled.enabled (not .Values.database.external.existingSecret) }}yes{{ end -}}
{{- end }}

{{- define "hugeplan.ownerSecret" -}}
{{- coalesce .Values.database.external.ownerSecret .Values.database.external.existingSecret .Values.database.bundled.existingSecret (printf "%s-postgres" (include "hugeplan.name" .)) -}}
{{- end }}

{{- /* The bundled database's own role of the service: where the secrets are named, it has one of its own or none. */}}
{{- define "hugeplan.serviceSecret" -}}
{{- if include "hugeplan.bundled" . }}
{{- $made := ternary "" (printf "%s-service" (include "hugeplan.name" .)) (ne .Values.database.bundled.existingSecret "") }}
{{- default $made .Values.database.bundled.existingServiceSecret -}}
{{- end -}}
{{- end }}

{{- define "hugeplan.databaseSecret" -}}
{{- coalesce .Values.database.external.existingSecret (include "hugeplan.serviceSecret" .) (include "hugeplan.ownerSecret" .) -}}
{{- end }}

{{- define "hugeplan.enrolmentSecret" -}}
{{- default (printf "%s-enrolment" (include "hugeplan.name" .)) .Values.enrolment.existingSecret -}}
{{- end }}

{{- define "hugeplan.databaseKey" -}}
{{- if .Values.database.external.existingSecret }}{{ .Values.database.external.key }}{{ else }}url{{ end -}}
{{- end }}

{{- define "hugeplan.ownerSecrets" -}}
- name: owner
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ include "hugeplan.ownerSecret" . }}
          items: [{key: {{ include "hugeplan.databaseKey" . }}, path: hugeplan_database_url}]
{{- end }}

{{- define "hugeplan.serverSecrets" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ include "hugeplan.databaseSecret" . }}
          items: [{key: {{ include "hugeplan.databaseKey" . }}, path: hugeplan_database_url}]
      - secret:
          name: {{ include "hugeplan.enrolmentSecret" . }}
          items: [{key: {{ .Values.enrolment.key }}, path: hugeplan_bootstrap_enrolment_token}]
{{- end }}

{{- define "hugeplan.serverEnv" -}}
# Files, not variables: a process's environment shows in more places than a file that its user alone reads.
- name: HUGEPLAN_SECRETS_DIR
  value: /run/secrets/hugeplan
{{- if .Values.monitoring.serviceMonitor.enabled }}
- name: HUGEPLAN_METRICS_PUBLIC
  value: "true"
{{- end }}
{{- range $name, $value := .Values.server.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "hugeplan.runbook" -}}
{{- $page := printf "runbooks.md#%s" (lower .alert) -}}
{{- with .root.Values.monitoring.prometheusRule.runbookBaseUrl -}}
runbook_url: {{ printf "%s/%s" (trimSuffix "/" .) $page | quote }}
{{- else -}}
runbook: {{ printf "docs/%s" $page | quote }}
{{- end -}}
{{- end }}
