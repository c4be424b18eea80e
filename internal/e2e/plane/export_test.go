// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

// PIDs returns the process IDs of a plane.
func (p *Plane) PIDs() []int {
	var pids []int
	for _, process := range p.processes {
		pids = append(pids, process.pid)
	}
	return pids
}

// Address returns the address on which the API server listens.
func (p *Plane) Address() string { return p.port.address() }
