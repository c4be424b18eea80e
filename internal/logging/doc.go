// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logging chooses the logger of a loop: the logger of its Options, else the logger of the
// context, else slog.Default. So a loop is never silent by accident: controller-runtime starts
// runnables with a context without a logger, and logr.FromContextOrDiscard would then drop every
// line.
//
// Guaranteed: if no logger is configured, lines go to slog.Default.
//
// Not guaranteed: that a later slog.SetDefault changes the logger of a running loop.
package logging
