{{- define "postern.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "postern.selector" -}}
app.kubernetes.io/name: postern
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "postern.labels" -}}
{{ include "postern.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: {{ .Values.roles }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "postern.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag }}{{ end }}
{{- end }}

{{/* The settings of a node: what the chart knows, and over it .Values.settings. */}}
{{- define "postern.settings" -}}
{{- $edge := ne .Values.roles "core" -}}
{{- $core := ne .Values.roles "edge" -}}
{{- if and $edge (not .Values.tls.secret) (not .Values.mqtt.plain) }}
{{- fail "devices need an address: set tls.secret, or mqtt.plain behind a load balancer that has TLS" }}
{{- end }}
{{- if and .Values.tls.https (not .Values.tls.secret) }}
{{- fail "tls.https needs tls.secret" }}
{{- end }}
{{- if and $core (not .Values.files.claim) (not (dig "bucket" "url" "" .Values.settings)) }}
{{- fail "uploaded files need a place that all nodes share: set files.claim or settings.bucket" }}
{{- end }}
{{- if and (not (dig "mqtt" "brokers" "" .Values.settings)) (not (and $edge .Values.tls.secret .Values.baseURL)) }}
{{- fail "enrolling devices get addresses of the broker: set settings.mqtt.brokers, or tls.secret with baseURL" }}
{{- end }}
{{- $s := dict "listen" ":8080" "roles" .Values.roles "data" "/var/lib/postern/data" "log_level" "info" }}
{{- $_ := set $s "database_file" "/run/secrets/postern/database" }}
{{- $_ := set $s "keys_file" "/run/secrets/postern/keys.json" }}
{{- with .Values.baseURL }}{{ $_ := set $s "base_url" . }}{{ end }}
{{- if .Values.files.claim }}{{ $_ := set $s "objects" "/var/lib/postern/objects" }}{{ end }}
{{- if .Values.trustedProxies }}{{ $_ := set $s "proxies" (dict "trusted" .Values.trustedProxies) }}{{ end }}
{{- if .Values.admin.secret }}{{ $_ := set $s "admin" (dict "listen" ":9464" "token_file" "/run/secrets/postern/admin-token") }}{{ end }}
{{- $mqtt := dict "listen" "" }}
{{- if .Values.mqtt.plain }}{{ $mqtt = dict "listen" ":1883" "plain" true }}{{ end }}
{{- if .Values.tls.secret }}
{{- $tls := dict "cert" "/run/secrets/postern/tls.crt" "key" "/run/secrets/postern/tls.key" }}
{{- if .Values.tls.https }}{{ $_ := set $tls "listen" ":8443" }}{{ end }}
{{- $_ := set $s "tls" $tls }}
{{- $_ := set $mqtt "tls_listen" ":8883" }}
{{- end }}
{{- $_ := set $s "mqtt" $mqtt }}
{{- toYaml (mergeOverwrite $s (deepCopy .Values.settings)) }}
{{- end }}
