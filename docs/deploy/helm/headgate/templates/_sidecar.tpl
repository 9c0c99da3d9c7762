{{/*
The sidecar, for the pods of this chart and of other charts. Use it in a dependent chart:

  metadata:
    annotations:
      {{- include "headgate.podAnnotations" .Subcharts.headgate | nindent 8 }}
  spec:
    terminationGracePeriodSeconds: {{ include "headgate.gracePeriod" .Subcharts.headgate }}
    containers:
      {{- include "headgate.sidecar" .Subcharts.headgate | nindent 6 }}
    volumes:
      {{- include "headgate.volume" .Subcharts.headgate | nindent 6 }}
*/}}

{{/*
This is an ordinary container, and not an init container with restartPolicy Always. Such an init
container ends after all other containers: the service would end while requests still arrive.
*/}}
{{- define "headgate.sidecar" -}}
{{- $headgate := .Values.headgate -}}
- name: headgate
  image: {{ include "headgate.image" (dict "repository" $headgate.image.repository "tag" (default .Chart.AppVersion $headgate.image.tag) "digest" $headgate.image.digest) | quote }}
  imagePullPolicy: {{ $headgate.image.pullPolicy }}
  args: [proxy, --config, /etc/headgate/headgate.yaml]
  {{- with $headgate.env }}
  env:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - name: proxy
      containerPort: {{ int $headgate.ports.proxy }}
    - name: health
      containerPort: {{ int $headgate.ports.health }}
  # The limits are generous: an overloaded proxy answers slowly, and a restart would make the overload worse.
  livenessProbe:
    httpGet: {path: /healthz, port: health}
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 6
  readinessProbe:
    httpGet: {path: /readyz, port: health}
    periodSeconds: 5
    timeoutSeconds: 3
    failureThreshold: 3
  {{- if $headgate.preStopSeconds }}
  # The sidecar serves until load balancers have removed the pod.
  lifecycle:
    preStop:
      sleep: {seconds: {{ int $headgate.preStopSeconds }}}
  {{- end }}
  resources:
    {{- toYaml $headgate.resources | nindent 4 }}
  securityContext:
    {{- toYaml $headgate.securityContext | nindent 4 }}
  volumeMounts:
    # This mounts the folder instead of the file (subPath), because only a folder follows changes of the ConfigMap.
    - name: headgate-config
      mountPath: /etc/headgate
      readOnly: true
    {{- with $headgate.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- define "headgate.volume" -}}
- name: headgate-config
  configMap:
    name: {{ include "headgate.fullname" . }}
{{- end -}}

{{/*
A change of the checksum replaces the pods. It does not cover fairShare, rules and config.identity,
because a reload can change these settings.
*/}}
{{- define "headgate.podAnnotations" -}}
checksum/headgate-start: {{ dict "max_memory" .Values.headgate.maxMemory "config" (omit .Values.config "identity") | toJson | sha256sum }}
{{- end -}}

{{/* How long the sidecar runs after the pod's stop signal. The service must run longer. */}}
{{- define "headgate.drainSeconds" -}}
{{- add .Values.headgate.preStopSeconds .Values.headgate.shutdownSeconds -}}
{{- end -}}

{{- define "headgate.gracePeriod" -}}
{{- add (include "headgate.drainSeconds" .) .Values.app.shutdownSeconds -}}
{{- end -}}
