// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syncer holds the suite of package syncer on real control planes: an upstream without controllers, as the
// multi-region proposal has it, and a downstream that runs workloads.
package syncer
