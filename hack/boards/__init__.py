# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The boards of charts/sightline/dashboards, which hack/dashboards writes."""

from . import cache, engines, operator, overview, replicas

BOARDS = (overview.BOARD, cache.BOARD, engines.BOARD, replicas.BOARD, operator.BOARD)
