// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wholetest

import (
	"syscall"
	"time"
)

// processCPU returns the CPU time that this process has used.
func processCPU() (time.Duration, error) {
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0, err
	}
	var creation, exit, kernel, user syscall.Filetime
	err = syscall.GetProcessTimes(self, &creation, &exit, &kernel, &user)
	return ticks(kernel) + ticks(user), err
}

// ticks converts a duration that Windows counts in units of 100 ns.
func ticks(f syscall.Filetime) time.Duration {
	return time.Duration(int64(f.HighDateTime)<<32|int64(f.LowDateTime)) * 100
}
