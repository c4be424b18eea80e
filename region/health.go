// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import "time"

// HealthState is the health of a peer according to its probes.
type HealthState int

const (
	// Unknown means that no probe has succeeded yet, and too few have failed for Unhealthy.
	Unknown HealthState = iota
	// Healthy means that the peer is reachable.
	Healthy
	// Unhealthy means that several probes in a row failed.
	Unhealthy
)

// String returns the constant's name.
func (s HealthState) String() string {
	switch s {
	case Healthy:
		return "Healthy"
	case Unhealthy:
		return "Unhealthy"
	default:
		return "Unknown"
	}
}

// Health is the result of the last probes.
type Health struct {
	State       HealthState
	Since       time.Time // start of State
	Probed      time.Time // start of the last completed probe; zero: none
	LastContact time.Time // when the peer last responded at all; zero: never
	Generation  uint64    // of the credentials
	Err         error     // why the peer is not Healthy
	Identity    error     // why the UID of the cluster is not known, such as ErrIdentityUnknown; nil: it is known, or was not read yet
	Issued      time.Time // since when the credential that expires first is valid; zero if not known
	Expires     time.Time // when the credential that expires first does so; zero if not known, as with a credential plugin
	Rotation    error     // why newer credentials of the Source are not in use; nil if they are
}

// probeValidity is how long a probe is valid. After that, for example when the Ring has ended, Unreachable is false.
const probeValidity = time.Minute

// Unreachable reports whether waiting for the peer is useless now: it is Unhealthy, has not responded since the last
// probe began, not even with an error, and that probe began less than a minute ago.
func (h Health) Unreachable() bool {
	return h.State == Unhealthy && h.LastContact.Before(h.Probed) && time.Since(h.Probed) < probeValidity
}
