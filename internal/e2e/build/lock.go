// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockPoll is how often a waiting process asks for the lock again: flock
// cannot be waited for and abandoned when a context ends.
const lockPoll = 100 * time.Millisecond

// lock takes the exclusive lock on a file, which the kernel gives back when the
// process ends in whatever way. It calls waiting once if another process has it.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock file: %w", err)
	}
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for first := true; ; first = false {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = file.Close() }, nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			_ = file.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		case first:
			waiting()
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, fmt.Errorf("waiting for the lock on %s: %w", path, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}
