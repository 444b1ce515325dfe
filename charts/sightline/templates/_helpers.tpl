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

{{- define "sightline.labels" -}}
{{ include "sightline.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
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
{{- if and .Values.leaderElection.enabled (not .Values.leaderElection.leaseName) -}}
{{- fail "leaderElection.leaseName: an election needs a name of its Lease" -}}
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
{{- fail "podDisruptionBudget.minAvailable: give this or maxUnavailable, the other empty" -}}
{{- end -}}
{{- if and (regexMatch "^[0-9]+$" $min) (ge (int $min) (int .Values.replicaCount)) -}}
{{- fail "podDisruptionBudget.minAvailable: has to be less than replicaCount, or no node could ever be drained" -}}
{{- end -}}
{{- if eq $min "100%" -}}
{{- fail "podDisruptionBudget.minAvailable: with 100% no node could ever be drained" -}}
{{- end -}}
{{- end -}}
{{- $known := include "sightline.alertNames" . | fromYamlArray -}}
{{- range $index, $name := .Values.alerts.disabled -}}
{{- if not (has $name $known) -}}
{{- fail (printf "alerts.disabled[%d]: there is no alert %s; there are %s" $index $name (join ", " $known)) -}}
{{- end -}}
{{- end -}}
{{- $thresholds := .Files.Get "alert-thresholds.yaml" | fromYaml -}}
{{- range $name, $value := .Values.alerts.thresholds -}}
{{- if not (hasKey $thresholds $name) -}}
{{- fail (printf "alerts.thresholds.%s: there is no such threshold; there are %s" $name (keys $thresholds | sortAlpha | join ", ")) -}}
{{- end -}}
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
runAsUser: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}
{{- define "sightline.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}
