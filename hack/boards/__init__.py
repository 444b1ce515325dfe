# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The boards that hack/dashboards writes to charts/sightline/dashboards."""

from . import cache, engines, operator, overview, replicas

BOARDS = (overview.BOARD, cache.BOARD, engines.BOARD, replicas.BOARD, operator.BOARD)
