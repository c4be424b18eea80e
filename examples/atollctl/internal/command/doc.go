// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of atollctl.
//
// Each run is one operation or one reading of the peers. A run that is killed
// leaves nothing that the next run of a changing command, or "wal recover", with
// the same log does not finish. Secrets are never printed.
package command
