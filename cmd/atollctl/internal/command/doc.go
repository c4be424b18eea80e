// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of atollctl.
//
// Each run is one operation or one reading of the peers. If a run is killed, the next run of a
// changing command with the same log, or "wal recover", finishes its operation. Secrets are never
// printed.
package command
