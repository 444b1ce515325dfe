// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "router/http/server.h"  // IWYU pragma: export
