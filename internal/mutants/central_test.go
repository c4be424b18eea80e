// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var centralMutants = []mutant{
	{
		"a cluster with a master is no peer", "it is accepted",
		"status.go", "case f.rival(p) != nil, f.master && !f.isSelf(p):", "case f.rival(p) != nil:", "TestMasterIsRefused",
	},
	{
		"a cluster is accepted under one name", "it is accepted under each",
		"status.go", "case f.rival(p) != nil, f.master && !f.isSelf(p):", "case f.master && !f.isSelf(p):", "TestSameCluster|TestSameClusterAtOnce|TestOnePeerPerRegionAndCluster",
	},
	{
		"a cluster is accepted once its types and rights were seen", "it is accepted when it answers",
		"status.go", `case f.uid != "" && f.looked && f.missing == nil:`, `case f.uid != "":`, "TestTypesAndRightsMissing|TestMasterIsRefused",
	},
	{
		"a region is served by one peer", "the younger peer serves it too",
		"status.go", "		if holder := holders[key]; holder != nil {\n", "		if holder := holders[key]; holder != nil && holder == p {\n", "TestRegionServedTwice|TestOnePeerPerRegionAndCluster",
	},
	{
		"regions that cannot be read stay those of their peer", "it serves none",
		"status.go", "	if !f.known {\n		return keysOf(p)\n	}\n", "	if !f.known {\n		return nil\n	}\n", "TestPlaneAway|TestUnreachablePeer|TestHangingPeerDelaysNobody|TestTypesAndRightsMissing",
	},
	{
		"a phase that another client wrote binds no region", "any phase counts",
		"observation.go", "case slices.Contains(loop.StatusManagers(obj, \"phase\"), regionv1alpha1.RegionClaimManager):", "case len(loop.StatusManagers(obj, \"phase\")) > 0 || regionv1alpha1.RegionClaimManager == \"\":", "TestAPhaseThatIsNoArbitersCountsForNothing",
	},
	{
		"a guard's region is not the peer's", "claims that are not committed count",
		"observation.go", "if phase != wanted || !committed || key.Validate() != nil {", "if phase != wanted || !committed && stage == \"-\" || key.Validate() != nil {", "TestBound",
	},
	{
		"the status of a peer that flaps is not written each time", "it is",
		"write.go", "if wait := r.budget.Take(now); wait > 0 {", "if wait := r.budget.Take(now); wait < 0 {", "TestFlappingMakesNoStorm",
	},
	{
		"the first look at a cluster has a deadline", "it waits for ever",
		"inspection.go", "	ctx, cancel := context.WithTimeout(ctx, lookTimeout)\n	defer cancel()\n	if l.uid", "	ctx, cancel := context.WithTimeout(ctx, 1000*lookTimeout)\n	defer cancel()\n	if l.uid", "TestHangingPeerDelaysNobody",
	},
	{
		"a cluster that fails is asked ever less often", "it is asked every 500 milliseconds",
		"peers.go", "			r.failures++\n", "", "TestAClusterThatFailsIsAskedEverLessOften",
	},
	{
		"a master's loops that fail begin again after a pause", "the pause is a fiftieth",
		"master.go", "case <-time.After(jitter(wait)):", "case <-time.After(jitter(wait) / 50):", "TestMasterWhoseLoopsFail",
	},
	{
		"a KubeCarrier that is being deleted runs no loops", "it does",
		"master.go", "if isMaster(carrier) && carrier.GetDeletionTimestamp() == nil {", "if isMaster(carrier) {", "TestAMasterThatIsBeingDeletedRunsNoLoops",
	},
	{
		"a replica writes the Peers of its shard only", "it writes all",
		"peers.go", "if !ok || !p.owns(name) {", "if !ok {", "TestReplicasSharePeers",
	},
	{
		"the status of a Peer is written to no other Peer of its name", "the applied object has no UID",
		"write.go", "	desired.SetUID(p.UID)\n", "", "TestAStatusIsForOnePeer",
	},
}
