// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prometheus pins Prometheus, which the suite observability runs. It is a module of its own,
// because Prometheus needs other versions of Kubernetes' packages than the parent module pins.
package prometheus
