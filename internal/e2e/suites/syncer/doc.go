// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syncer tests package syncer on real control planes: an upstream without controllers, as
// in the multi-region proposal, and a downstream that runs workloads.
package syncer
