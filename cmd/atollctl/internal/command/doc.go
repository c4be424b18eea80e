// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of atollctl.
//
// A command that changes objects stores its operation in a log. If the process is killed, "wal
// recover" or the next changing command with the same log finishes or undoes the operation. The
// package prints no credentials of a kubeconfig.
package command
