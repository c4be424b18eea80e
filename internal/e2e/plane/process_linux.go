// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import "syscall"

// attributes returns the attributes that put a process into its own group, out of reach of a
// terminal's interrupt, and end it together with the process that started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
