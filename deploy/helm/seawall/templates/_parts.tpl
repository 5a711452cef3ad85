{{- define "seawall.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains .Chart.Name $name) }}{{ $name = printf "%s-%s" $name .Chart.Name }}{{ end -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "seawall.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "seawall.labels" -}}
{{ include "seawall.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The service account of a role: agent, reader, auditor. Called with (list . "agent"). */}}
{{- define "seawall.account" -}}
{{- $root := index . 0 -}}{{- $role := index . 1 -}}
{{- $said := index $root.Values.serviceAccounts $role -}}
{{- default (ternary (printf "%s-%s" (include "seawall.name" $root) $role) "default" $said.create) $said.name -}}
{{- end }}

{{- define "seawall.podMeta" -}}
{{- $root := index . 0 -}}{{- $component := index . 1 -}}
labels:
  {{- include "seawall.selector" $root | nindent 2 }}
  app.kubernetes.io/component: {{ $component }}
  {{- with $root.Values.podLabels }}{{ toYaml . | nindent 2 }}{{ end }}
annotations:
  seawall/settings: {{ $root.Values.settings | sha256sum }}
  {{- with $root.Values.podAnnotations }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}

{{/* Nothing that a container could do to its host, and nothing of its own file system that it could change. */}}
{{- define "seawall.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "seawall.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "seawall.env" -}}
env:
  - {name: SEAWALL_SETTINGS, value: /etc/seawall/seawall.toml}
  {{- with .Values.env }}{{ toYaml . | nindent 2 }}{{ end }}
{{- with .Values.secretEnv }}
envFrom:
  {{- range . }}
  - secretRef: {name: {{ . }}}
  {{- end }}
{{- end }}
{{- end }}

{{- define "seawall.mounts" -}}
- {name: settings, mountPath: /etc/seawall, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- range .Values.files }}
- {name: {{ .name }}, mountPath: {{ .path }}, readOnly: true}
{{- end }}
{{- end }}

{{- define "seawall.volumes" -}}
- name: settings
  configMap: {name: {{ include "seawall.name" . }}-settings}
{{- range .Values.files }}
- name: {{ .name }}
  {{- if .secret }}
  secret: {secretName: {{ .secret }}}
  {{- else }}
  configMap: {name: {{ .configMap }}}
  {{- end }}
{{- end }}
{{- end }}

{{- define "seawall.placed" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "seawall.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "seawall.probes" -}}
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  initialDelaySeconds: 60
  periodSeconds: 30
  timeoutSeconds: 5
  failureThreshold: 5
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 15
  timeoutSeconds: 5
{{- end }}

{{/* The agent's container. In a broker's own pod its volumes are the broker's. */}}
{{- define "seawall.agent" -}}
{{- $isSidecar := eq .Values.agent.mode "sidecar" -}}
name: seawall-agent
image: "{{ .Values.image.repository }}:{{ .Values.image.slimTag }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
args:
  - agent
  {{- range .Values.agent.logDirs }}
  - --log-dir={{ . }}
  {{- end }}
  - --state-dir=/var/lib/seawall/agent
  - --listen=0.0.0.0:9317
  {{- if .Values.agent.observeOnly }}
  - --observe-only
  {{- end }}
{{ include "seawall.env" . }}
ports:
  - {name: metrics, containerPort: 9317}
{{ include "seawall.probes" . }}
securityContext:
  {{- include "seawall.containerSecurity" . | nindent 2 }}
  runAsNonRoot: true
  runAsUser: {{ .Values.agent.runAsUser }}
resources: {{- toYaml .Values.agent.resources | nindent 2 }}
volumeMounts:
  {{- if $isSidecar }}
  - {name: seawall-settings, mountPath: /etc/seawall, readOnly: true}
  - {name: seawall-tmp, mountPath: /tmp}
  - {name: seawall-state, mountPath: /var/lib/seawall}
  {{- range $at, $dir := .Values.agent.logDirs }}
  - {name: {{ index $.Values.agent.logVolumes $at }}, mountPath: {{ $dir }}, readOnly: true}
  {{- end }}
  {{- range .Values.files }}
  - {name: {{ .name }}, mountPath: {{ .path }}, readOnly: true}
  {{- end }}
  {{- else }}
  {{- include "seawall.mounts" . | nindent 2 }}
  - {name: state, mountPath: /var/lib/seawall}
  {{- range $at, $dir := .Values.agent.logDirs }}
  - {name: logs-{{ $at }}, mountPath: {{ $dir }}, readOnly: true}
  {{- end }}
  {{- end }}
{{- end }}
