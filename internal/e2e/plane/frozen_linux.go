// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// frozen waits until a process that was told to stop has: its threads run on for a moment
// after the signal was sent. What the process ends with is left to who waits for that.
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
