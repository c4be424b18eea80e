// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of atollctl.
//
// Each run executes one operation or reads the peers once. If a run is killed, its operation is
// finished by "wal recover", or by the next run of a changing command, with the same log. Secrets
// are never printed.
package command
