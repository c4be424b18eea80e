// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package ending

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Context returns a context that ends with the first SIGINT, SIGTERM or SIGHUP. The second one ends the process at once. A
// program that was started with SIGHUP ignored, as nohup does, outlives its terminal.
func Context(parent context.Context) context.Context {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(parent, signals...)
	context.AfterFunc(ctx, stop)
	return ctx
}
