// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package ending

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Context returns a context that is cancelled by the first SIGINT, SIGTERM or SIGHUP. The second
// signal kills the process. If SIGHUP was ignored at the start, as under nohup, SIGHUP stays ignored.
func Context(parent context.Context) context.Context {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(parent, signals...)
	context.AfterFunc(ctx, stop)
	return ctx
}
