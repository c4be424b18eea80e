// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var claimMutants = []mutant{
	{
		"a decision is written over the one that was read", "the write has no resourceVersion",
		"record.go", "	lease.SetKind(\"Lease\")\n", "	lease.SetKind(\"Lease\")\n	lease.SetResourceVersion(\"\")\n", "TestDecisionsAreWrittenByCompareAndSwap",
	},
	{
		"a decision is erased by the UID and resourceVersion that were read", "the deletion has no preconditions",
		"record.go", "UID: new(r.last.GetUID()), ResourceVersion: new(r.last.GetResourceVersion()),", "", "TestDecisionsAreWrittenByCompareAndSwap",
	},
	{
		"a decision that another arbiter replaced was not written", "its conflict counts as success",
		"clerk.go", "return reply{outcome: stale}, nil", "return reply{outcome: done}, nil", "TestWhatWasRecorded",
	},
	{
		"a write whose answer was lost is read again", "it counts as applied",
		"clerk.go", "	return reply{outcome: failed}, &region.Error{Region: c.scene.key, Op: \"arbitrate\", Err: err}\n}\n\n// confirm", "	return reply{outcome: done}, nil\n}\n\n// confirm", "TestLostRepliesOfThePlane|TestAMissingNamespaceIsNamed",
	},
	{
		"a type that is not served is not an absent claim", "any 404 is an absence",
		"clerk.go", "return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)", "return apierrors.IsNotFound(err)", "TestConfirm|TestATypeThatIsNotServedIsNoAbsence",
	},
	{
		"a claim under the name of the one that was chosen is another one", "its UID is not compared",
		"clerk.go", "case claim.GetUID() != command.uid, command.verb", "case command.verb", "TestConfirm",
	},
	{
		"a Lease of another client is not touched", "its label is not compared",
		"record.go", "if lease.GetLabels()[DecisionLabel] != decisionValue {", "if lease.GetLabels()[DecisionLabel] == \"-\" {", "TestAForeignLeaseIsNotTouched",
	},
	{
		"the gate of the old holder is closed before the region is handed over", "the region is handed over first",
		"round.go", "		r.step = closeGate\n", "		r.proceed()\n", "TestTheGateIsClosedBeforeTheRegionIsHandedOver",
	},
	{
		"a claim that is gone is read live before its region is handed over", "the cache is believed",
		"round.go", "		r.step = confirmGone\n", "		r.step = closeGate\n", "TestNeverTwoAreBoundWhateverHappens|TestARestoredPeer",
	},
	{
		"a claim that is to hold a region is read live", "the cache is believed",
		"round.go", "	r.step = confirmThere\n}", "	r.step = write\n}", "TestNeverTwoAreBoundWhateverHappens|TestACandidateThatCannotBeReadIsPassedOver",
	},
	{
		"a status reaches only the claim that was read", "the write names no UID",
		"object.go", "	apply.SetUID(obj.GetUID())\n	apply.SetResourceVersion(obj.GetResourceVersion())\n", "", "TestAStatusReachesOnlyTheClaimItIsFor",
	},
	{
		"a claim is deleted only if its ServiceCluster is read as gone", "the cache is believed",
		"report.go", "			case cluster.GetUID() == owner.UID:\n				return nil\n", "			case cluster.GetUID() == \"\":\n				return nil\n", "TestOnlyTheClaimOfAServiceClusterThatIsGoneIsDeleted",
	},
	{
		"a claim is deleted by the UID that was read", "the deletion has no precondition",
		"report.go", "				Preconditions: &metav1.Preconditions{UID: new(at.claim.GetUID())},\n", "", "TestOnlyTheClaimOfAServiceClusterThatIsGoneIsDeleted",
	},
	{
		"without a plane a bid asks the servers for rivals", "an older rival does not stop it",
		"contest.go", "case !biddable(claim), b.view.precedes(b.candidate(at, claim), b.winner) < 0:", "case !biddable(claim):", "TestABidAsksTheServersAndNotItsCopies",
	},
	{
		"a status that is overwritten again and again is corrected ever less often", "it is corrected every second",
		"contradiction.go", "t.pause = min(max(2*t.pause, minPause), maxPause)", "t.pause = min(max(0*t.pause, minPause), maxPause)", "TestCorrectionsPauseEverLonger",
	},
	{
		"a peer that left keeps its regions for Departure", "it loses them at once",
		"scene.go", "v.departed = elapsed(a.missing, d.peer, now, a.opts.Departure, s)", "v.departed = elapsed(a.missing, d.peer, now, 0*a.opts.Departure, s)", "TestAPeerThatLeftLosesItsRegions|TestAPeerThatComesUnderAnotherNameKeepsItsRegions",
	},
	{
		"a replica decides about the regions of its shard only", "it decides about all",
		"work.go", "if !loop.OwnsKey(a.opts.Shard, name) {", "if !loop.OwnsKey(nil, name) {", "TestOnlyTheRegionsOfThisReplica",
	},
	{
		"a decision that could not be read is not reported as none", "it is",
		"work.go", "	if c.unread {\n		return ruling{undecided: noPlane, blind: true}, errors.Join(errs...)\n	}\n", "", "TestWithoutThePlaneNothingChanges|TestAStatusThatIsErasedWhileThePlaneIsAway|TestWhileThePlaneIsAwayWhatIsNoArbitersIsLeft",
	},
	{
		"a region is held by the claim of the decision while its peer is silent", "another peer gets it",
		"decide.go", "if v.left && !v.departed || !v.left && v.holder != fresh {", "if v.left && !v.departed {", "TestDecide|TestNeverTwoAreBoundWhateverHappens",
	},
}
