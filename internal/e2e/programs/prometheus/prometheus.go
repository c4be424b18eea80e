// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build programs

package prometheus

import _ "github.com/prometheus/prometheus/cmd/prometheus"
