{{/* The decision service: names, labels and headgate.yaml. */}}

{{/* Not empty if the release has a sidecar. A release may have the decision service alone. */}}
{{- define "headgate.hasSidecar" -}}
{{- $values := .Values -}}
{{- if or (not $values.server.enabled) $values.deployment.enabled $values.fairShare.enabled $values.rules $values.config }}true{{ end -}}
{{- end -}}

{{- define "headgate.serverName" -}}
{{- include "headgate.fullname" . | trunc 56 | trimSuffix "-" }}-server
{{- end -}}

{{/* Labels that select the pods of the decision service. They differ from those of pods with a sidecar. */}}
{{- define "headgate.serverSelectorLabels" -}}
app.kubernetes.io/name: {{ include "headgate.name" . | trunc 56 | trimSuffix "-" }}-server
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "headgate.serverLabels" -}}
{{ include "headgate.serverSelectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* headgate.yaml of the decision service: the chart's values, merged over .Values.server.config. */}}
{{- define "headgate.serverConfig" -}}
{{- $server := .Values.server -}}
{{- $health := $server.healthAddress -}}
{{- if contains ":" $health }}{{ $health = printf "[%s]" $health }}{{ end -}}
{{- $own := dict
  "version" 1
  "max_memory" $server.maxMemory
  "shutdown_timeout" (printf "%ds" (int $server.shutdownSeconds))
  "server" (dict
    "grpc" (dict "address" (printf ":%d" (int $server.ports.grpc)))
    "http" (dict "address" (printf ":%d" (int $server.ports.http))))
  "admin" (dict
    "listen" (printf "127.0.0.1:%d" (int $server.ports.admin))
    "health" (printf "%s:%d" $health (int $server.ports.health)))
-}}
{{- if not (or $server.config.domains $server.config.rules) -}}
{{- fail "server.config.domains is missing: set the limits of the decision service, in domains or in rules" -}}
{{- end -}}
{{- mustMergeOverwrite (deepCopy $server.config) $own | toYaml -}}
{{- end -}}
