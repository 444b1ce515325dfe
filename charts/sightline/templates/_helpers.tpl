{{/* SPDX-License-Identifier: Apache-2.0
Copyright The Sightline Authors */}}

{{- define "sightline.fullname" -}}
{{- $name := default "operator" .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "sightline.selectorLabels" -}}
app.kubernetes.io/name: sightline-operator
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "sightline.ownLabels" -}}
{{ include "sightline.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "sightline.labels" -}}
{{ include "sightline.ownLabels" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sightline.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "sightline.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* An image's name: of a dict with image and tag, which counts where the image has none. */}}
{{- define "sightline.image" -}}
{{- $image := .image -}}
{{- with $image.registry }}{{ . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default .tag $image.tag }}{{ end -}}
{{- end -}}

{{/* "true" or empty: whether an object of a kind that may be missing is wanted. Of a dict with
wanted (auto, true, false), api (such as monitoring.coreos.com/v1/PodMonitor) and root. */}}
{{- define "sightline.wanted" -}}
{{- if eq (toString .wanted) "auto" -}}
{{- if .root.Capabilities.APIVersions.Has .api }}true{{ end -}}
{{- else if eq (toString .wanted) "true" -}}
true
{{- end -}}
{{- end -}}

{{/* What schemas cannot say. The message begins with the value's path. */}}
{{- define "sightline.validate" -}}
{{- $budget := .Values.podDisruptionBudget -}}
{{- include "sightline.validateLabels" . -}}
{{- if .Values.leaderElection.enabled -}}
{{- include "sightline.validateLease" .Values.leaderElection -}}
{{- end -}}
{{- if and .Values.leaderElection.enabled (not .Values.leaderElection.leaseName) -}}
{{- fail "leaderElection.leaseName: give the Lease a name" -}}
{{- end -}}
{{- if and (not .Values.leaderElection.enabled) (gt (int .Values.replicaCount) 1) -}}
{{- fail "replicaCount: without leaderElection.enabled only one operator may run" -}}
{{- end -}}
{{- if $budget.enabled -}}
{{- $min := toString $budget.minAvailable -}}
{{- $max := toString $budget.maxUnavailable -}}
{{- if and (eq $min "") (eq $max "") -}}
{{- fail "podDisruptionBudget.maxUnavailable: give this or minAvailable" -}}
{{- end -}}
{{- if and (ne $min "") (ne $max "") -}}
{{- fail "podDisruptionBudget.minAvailable: give this or maxUnavailable, not both" -}}
{{- end -}}
{{- if and (regexMatch "^[0-9]+$" $min) (ge (int $min) (int .Values.replicaCount)) -}}
{{- fail "podDisruptionBudget.minAvailable: must be less than replicaCount, or no node could be drained" -}}
{{- end -}}
{{- if eq $min "100%" -}}
{{- fail "podDisruptionBudget.minAvailable: with 100% no node could be drained" -}}
{{- end -}}
{{- end -}}
{{- $known := include "sightline.alertNames" . | fromYamlArray -}}
{{- range $index, $name := .Values.alerts.disabled -}}
{{- if not (has $name $known) -}}
{{- fail (printf "alerts.disabled[%d]: there is no alert %s. Known alerts: %s" $index $name (join ", " $known)) -}}
{{- end -}}
{{- end -}}
{{- $thresholds := .Files.Get "alert-thresholds.yaml" | fromYaml -}}
{{- range $name, $value := .Values.alerts.thresholds -}}
{{- if not (hasKey $thresholds $name) -}}
{{- fail (printf "alerts.thresholds.%s: there is no such threshold. Known thresholds: %s" $name (keys $thresholds | sortAlpha | join ", ")) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Milliseconds of 15s, 500ms, 2m or 1h. */}}
{{- define "sightline.milliseconds" -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- mul (regexFind "^[0-9]+" . | int64) (get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) $unit) -}}
{{- end -}}

{{/* Labels by which pods are selected, or what is installed is told apart, are nobody else's to set. */}}
{{- define "sightline.validateLabels" -}}
{{- $own := include "sightline.ownLabels" . | fromYaml -}}
{{- $more := dict "commonLabels" .Values.commonLabels "podLabels" .Values.podLabels "dashboards.labels" .Values.dashboards.labels "alerts.labels" .Values.alerts.labels "metrics.podMonitor.labels" .Values.metrics.podMonitor.labels -}}
{{- range $place, $labels := $more -}}
{{- range $name, $value := $labels -}}
{{- if hasKey $own $name -}}
{{- fail (printf "%s: the chart sets the label %s itself. Leave it out" $place $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The order without which a leader would lose its Lease between two renewals. */}}
{{- define "sightline.validateLease" -}}
{{- $lease := include "sightline.milliseconds" .leaseDuration | int64 -}}
{{- $renew := include "sightline.milliseconds" .renewDeadline | int64 -}}
{{- $retry := include "sightline.milliseconds" .retryPeriod | int64 -}}
{{- if or (le $lease $renew) (lt $lease 1000) -}}
{{- fail "leaderElection.leaseDuration: must be longer than renewDeadline, and at least 1s" -}}
{{- end -}}
{{- if le (mul 10 $renew) (mul 12 $retry) -}}
{{- fail "leaderElection.renewDeadline: must be longer than 1.2 times retryPeriod" -}}
{{- end -}}
{{- end -}}

{{/* Names of all alerts, as YAML. */}}
{{- define "sightline.alertNames" -}}
{{- $names := list -}}
{{- range $path, $bytes := .Files.Glob "alerts/*.yaml" -}}
{{- range (fromYaml (toString $bytes)).groups -}}
{{- range .rules }}{{ $names = append $names .alert }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $names | sortAlpha | toYaml -}}
{{- end -}}

{{/* Flags by which an operator and its check find what they look after. */}}
{{- define "sightline.placeArgs" -}}
{{- range .Values.watchNamespaces }}
- --watch-namespace={{ . }}
{{- end }}
{{- if .Values.leaderElection.enabled }}
- --lease-name={{ .Values.leaderElection.leaseName }}
{{- else }}
- --leader-elect=false
{{- end }}
{{- end -}}

{{/* What Pod Security calls restricted. */}}
{{- define "sightline.podSecurity" -}}
runAsNonRoot: true
{{- with .Values.runAsUser }}
runAsUser: {{ int64 . }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}
{{- define "sightline.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}
