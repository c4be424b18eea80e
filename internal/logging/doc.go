// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logging chooses the logger of a loop: the one of its Options, else the one of the context, else slog.Default.
// A loop is never silent by accident: controller-runtime starts runnables with a context that has no logger, and
// logr.FromContextOrDiscard would then drop every line.
//
// Guaranteed: with no logger configured anywhere, lines go to slog.Default.
//
// Not guaranteed: that a later slog.SetDefault changes the logger of a loop that has started.
package logging
