{{/* SPDX-License-Identifier: Apache-2.0
Copyright The Sightline Authors */}}

{{/* What the operator may do where it looks after objects. It lists and
watches Secrets by name and version alone, which needs the right to all of them, and reads its own
and those that objects name. */}}
{{- define "sightline.rules" -}}
- apiGroups: [sightline.dev]
  resources: [multimodalrouters]
  verbs: [get, list, watch]
- apiGroups: [sightline.dev]
  resources: [multimodalrouters/status, multimodalrouterpools/status]
  verbs: [get, patch]
# Owner references that hold up the owner's deletion.
- apiGroups: [sightline.dev]
  resources: [multimodalrouters/finalizers]
  verbs: [update]
- apiGroups: [sightline.dev]
  resources: [multimodalrouterpools]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [deployments, statefulsets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [configmaps, services, serviceaccounts]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
# The readiness gate of workers.
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [monitoring.coreos.com]
  resources: [podmonitors]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* The Lease by which one of several operators acts, in the operator's own namespace. */}}
{{- define "sightline.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
{{- end -}}
