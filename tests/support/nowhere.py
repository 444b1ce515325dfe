# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A kubeconfig of an API server that does not exist, for an operator that starts anyway."""

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: here}}]
clusters: [{name: here, cluster: {server: 'http://127.0.0.1:9'}}]
users: [{name: here, user: {}}]
"""
