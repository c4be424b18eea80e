// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// RegionConditionType is the type of a condition of a Region.
type RegionConditionType string

// RegionConditionReason is the reason of a condition's status.
type RegionConditionReason string

const (
	// RegionConditionReady reports whether the tenant can use the region.
	//
	//   - True: it is served and reachable (reason Available).
	//   - False: it is not served (Unavailable). A Catalog never sets this: it
	//     deletes the Region instead.
	//   - Unknown: it was not observed yet, or is unreachable (Pending).
	RegionConditionReady RegionConditionType = "Ready"
)

const (
	// RegionReasonAvailable: the region is served and reachable.
	RegionReasonAvailable RegionConditionReason = "Available"
	// RegionReasonUnavailable: the region is not served. A Catalog never sets it.
	RegionReasonUnavailable RegionConditionReason = "Unavailable"
	// RegionReasonPending: the region's peer is unreachable, or was not observed yet.
	RegionReasonPending RegionConditionReason = "Pending"
)
