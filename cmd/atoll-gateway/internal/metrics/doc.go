// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics has the gateway's metrics for Prometheus.
//
// No label has a value that a caller chooses: a region that the gateway does not serve counts as "unknown".
package metrics
