// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package plane

// frozen does nothing: only on Linux does a plane wait for the effect of SIGSTOP.
func (p *process) frozen() error { return nil }
