// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// frozen waits until a process that got SIGSTOP has stopped: its threads run on for a moment after
// the signal. WNOWAIT leaves the wait status to the goroutine that waits for the end of the
// process.
func (p *process) frozen() error {
	for {
		err := unix.Waitid(unix.P_PID, p.pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			if err != nil {
				return fmt.Errorf("%s: wait until it is frozen: %w", p.name, err)
			}
			return nil
		}
	}
}
