{{/* The container of the protected service. */}}
{{- define "headgate.app" -}}
{{- $app := .Values.app -}}
- name: {{ $app.name }}
  {{- $_ := required "app.image.repository is missing: set the image of the service, for example --set app.image.repository=kyc" $app.image.repository }}
  image: {{ include "headgate.image" $app.image | quote }}
  imagePullPolicy: {{ $app.image.pullPolicy }}
  {{- range $field := list "command" "args" "env" "envFrom" "resources" "startupProbe" "livenessProbe" "readinessProbe" "securityContext" "volumeMounts" }}
  {{- with index $app $field }}
  {{ $field }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  ports:
    - name: app
      containerPort: {{ int $app.port }}
  {{- $drain := include "headgate.drainSeconds" . | int }}
  {{- if $app.lifecycle }}
  lifecycle:
    {{- toYaml $app.lifecycle | nindent 4 }}
  {{- else if $drain }}
  # Headgate forwards requests to this container until Headgate has drained.
  lifecycle:
    preStop:
      sleep: {seconds: {{ $drain }}}
  {{- end }}
{{- end -}}
