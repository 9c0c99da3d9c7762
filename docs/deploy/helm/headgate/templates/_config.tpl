{{/* headgate.yaml: the chart's values, merged over the further settings in .Values.config. */}}
{{- define "headgate.config" -}}
{{- $ports := .Values.headgate.ports -}}
{{- $health := .Values.headgate.healthAddress -}}
{{- if contains ":" $health }}{{ $health = printf "[%s]" $health }}{{ end -}}
{{- $proxy := dict
  "listen" (printf ":%d" (int $ports.proxy))
  "upstream" (printf "%s://127.0.0.1:%d" .Values.app.protocol (int .Values.app.port))
-}}
{{- $own := dict
  "version" 1
  "max_memory" .Values.headgate.maxMemory
  "shutdown_timeout" (printf "%ds" (int .Values.headgate.shutdownSeconds))
  "rules" .Values.rules
  "proxy" $proxy
  "admin" (dict
    "listen" (printf "127.0.0.1:%d" (int $ports.admin))
    "health" (printf "%s:%d" $health (int $ports.health)))
-}}
{{- if .Values.fairShare.enabled -}}
{{- $_ := set $own "fair_share" (include "headgate.fairShare" . | fromYaml) -}}
{{- end -}}
{{- mustMergeOverwrite (deepCopy .Values.config) $own | toYaml -}}
{{- end -}}

{{/* The section fair_share of headgate.yaml. */}}
{{- define "headgate.fairShare" -}}
{{- with .Values.fairShare -}}
client: {{ .client | quote }}
anonymous: {{ .anonymous | quote }}
capacity: {{ required "fairShare.capacity is missing: set the capacity of a replica per cycle, for example --set fairShare.capacity=400" .capacity | int64 }}
cycle: {{ .cycle }}
reservation: {{ .reservation }}
division: {{ .division }}
reclaim: {{ .reclaim }}
{{- with .match }}
match: {{ toJson . }}
{{- end }}
{{- with .exempt }}
exempt: {{ toJson . }}
{{- end }}
{{- if .trustedNames }}
trusted_names: true
{{- end }}
{{- with .weights }}
weights:
  {{- range $client, $weight := . }}
  {{ $client | quote }}: {{ int64 $weight }}
  {{- end }}
{{- end }}
new_clients_per_cycle: {{ int64 .newClientsPerCycle }}
forget_after: {{ int64 .forgetAfter }}
max_clients: {{ int64 .maxClients }}
{{- with .cost }}
cost: {{ kindIs "string" . | ternary . (int64 .) }}
{{- end }}
{{- with .maxCost }}
max_cost: {{ int64 . }}
{{- end }}
{{- with .countOnce }}
count_once: {{ . }}
{{- end }}
mode: {{ .mode }}
{{- end -}}
{{- end -}}
