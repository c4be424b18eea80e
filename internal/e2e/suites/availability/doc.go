// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package availability runs the example examples/availability on real API servers, with the controllers of Kubernetes in
// the clusters. The example counts replicas and pods, and fails if a count is outside its limits.
package availability
