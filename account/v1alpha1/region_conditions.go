// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// RegionConditionType is the type of a condition of a Region.
type RegionConditionType string

// RegionConditionReason is why such a condition has its status.
type RegionConditionReason string

const (
	// RegionConditionReady says whether the tenant can use the region.
	//
	// True: it is served and answers (reason Available).
	// False: it is known not to (Unavailable).
	// Unknown: it was not observed yet, or nothing was heard of it (Pending).
	RegionConditionReady RegionConditionType = "Ready"
)

const (
	// RegionReasonAvailable: the region is served and answers.
	RegionReasonAvailable RegionConditionReason = "Available"
	// RegionReasonUnavailable: the region is not served at the moment.
	RegionReasonUnavailable RegionConditionReason = "Unavailable"
	// RegionReasonPending: nothing was observed yet.
	RegionReasonPending RegionConditionReason = "Pending"
)
