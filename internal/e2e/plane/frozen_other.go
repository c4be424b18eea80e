// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package plane

// frozen does nothing where no such wait is to be had.
func (p *process) frozen() error { return nil }
