// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import "time"

// HealthState is what is believed of a peer.
type HealthState int

const (
	// Unknown means not probed yet, or too few probes to say.
	Unknown HealthState = iota
	// Healthy means that it answers.
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

// Health is what the last probes found.
type Health struct {
	State       HealthState
	Since       time.Time // of State
	Probed      time.Time // when the last probe that has ended began; zero: never
	LastContact time.Time // when it last answered anything; zero: never
	Generation  uint64    // of the credentials
	Err         error     // why it is not Healthy
	Identity    error     // why it is not known which cluster answers, such as ErrIdentityUnknown; nil: it is, or not asked yet
	Rotation    error     // why newer credentials that the Source has are not in use; nil if they are
}

// probesCount is how long the last probe counts. After that, as when a Ring has ended, only a request can tell.
const probesCount = time.Minute

// Unreachable reports whether it is no use to wait for the peer now: it is Unhealthy, has answered nothing since the last
// probe began, not even with an error, and that was less than a minute ago.
func (h Health) Unreachable() bool {
	return h.State == Unhealthy && h.LastContact.Before(h.Probed) && time.Since(h.Probed) < probesCount
}
