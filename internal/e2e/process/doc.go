// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process builds and runs the programs of this project for suites, and reads their logs and health.
package process
