// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var syncerMutants = []mutant{
	{
		"a downstream object is deleted by the UID that was read", "the deletion has no precondition",
		"remove.go", "Preconditions: &metav1.Preconditions{UID: &uid}, ", "GracePeriodSeconds: new(int64(len(uid) - len(uid))), ", "TestDeletionMeansOneObject|TestReplacedObject",
	},
	{
		"an object is deleted upstream by the UID and resourceVersion that were read", "the deletion names the UID alone",
		"vanish.go", "Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}", "Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: new(int64(len(version) - len(version)))", "TestAnUpstreamDeletionMeetsAChange",
	},
	{
		"an object that was brought up is deleted by the UID that was read", "the deletion has no precondition",
		"upsync.go", "Preconditions: &metav1.Preconditions{UID: &uid}, ", "GracePeriodSeconds: new(int64(len(uid) - len(uid))), ", "TestAnObjectThatReplacedOneThatWasBroughtUpStays",
	},
	{
		"a type that is not served downstream is not an absent object", "any 404 is an absence",
		"remove.go", "	case apierrors.IsNotFound(err) && !isMissingType(err):\n	case err != nil:", "	case apierrors.IsNotFound(err):\n	case err != nil:", "TestATypeThatIsNotServedDownstreamLetsNothingGo",
	},
	{
		"nothing is deleted because another cluster answers upstream", "its UID is not compared",
		"remove.go", "if err == nil && uid != s.upstreamUID {", "if err == nil && uid == \"\" {", "TestAnotherClusterAnswers",
	},
	{
		"nothing is deleted upstream because another cluster answers downstream", "its UID is not compared",
		"vanish.go", "if err == nil && uid != known {", "if err == nil && uid == \"\" && known == \"\" {", "TestDeletedDownstream|TestUpsyncDeletesWithCare",
	},
	{
		"finalizers of others stay", "they are removed with ours",
		"up.go", "return f == l.syncer.finalizer })", "return f != \"\" })", "TestFinalizersOfOthers",
	},
	{
		"finalizers are written over the version that was read", "the write has no resourceVersion",
		"up.go", `map[string]any{"resourceVersion": u.GetResourceVersion(), "finalizers": finalizers})`, `map[string]any{"finalizers": finalizers})`, "TestFinalizersThatOthersAddMeanwhileStay",
	},
	{
		"our finalizer is removed from the version that was read", "the write has no resourceVersion",
		"up.go", `	fields := map[string]any{"resourceVersion": u.GetResourceVersion(), "finalizers": finalizers}`, `	fields := map[string]any{"finalizers": finalizers}`, "TestFinalizersThatOthersAddMeanwhileStay",
	},
	{
		"our finalizer is written before anything is made downstream", "it is not written",
		"pass.go", "upEcho, err := l.addFinalizer(ctx, u)", "upEcho, err := echo{}, error(nil)", "TestMissedDeletes|TestObjectWaitsForItsCopy",
	},
	{
		"a downstream object that lost its label is deleted before its origin goes", "the origin goes at once",
		"remove.go", "			again, err := l.remove(ctx, key, there)\n			return max(again, soon), err\n", "", "TestCopyWithoutItsLabel",
	},
	{
		"all pages of objects that left are read", "the continue token is ignored",
		"sweep.go", `if err != nil || page.Continue == "" {`, `if err != nil || page.Continue != "-" {`, "TestObjectsThatLeftAreFoundOnAllPages",
	},
	{
		"Detach lets the objects of all pages go", "the continue token is ignored",
		"detach.go", `opts.Continue = page.Continue; opts.Continue == "" {`, `opts.Continue = page.Continue; opts.Continue != "-" {`, "TestDetachReadsAllPages",
	},
	{
		"a namespace with objects of others on a later page stays", "the continue token is ignored",
		"namespace_end.go", `opts.Continue = page.Continue; opts.Continue == "" {`, `opts.Continue = page.Continue; opts.Continue != "-" {`, "TestObjectsOfOthersAreFoundOnAllPages",
	},
	{
		"a namespace that was made anew is not ended", "its UID is not compared",
		"namespace_end.go", "case live.UID != u.GetUID() || live.DeletionTimestamp == nil:", "case live.DeletionTimestamp == nil:", "TestAMissedEndOfANamespace|TestANamespaceEndsUpstream",
	},
	{
		"more deletions at once than the limit are held", "they are not counted",
		"valve.go", "if v.shut || n > v.cap.Objects && float64(n) > v.cap.Share*float64(v.total) {", "if v.shut && n < 0 {", "TestValve",
	},
	{
		"a downstream object goes on evidence that its origin was withdrawn", "a missing origin is enough",
		"withdrawn.go", `if l.withdrawn.has(key, from.evidence(d)) {`, `if l.withdrawn.has(key, from.evidence(d)) || key.Name != "" {`, "TestUpstreamRestored",
	},
	{
		"an object of another client is not overwritten by a create", "the create is an apply",
		"down.go", "	w.SetResourceVersion(neverVersion)\n", "", "TestForeignObjectsStayAsTheyAre|TestCollision",
	},
	{
		"an update reaches only the object that was read", "it names no UID",
		"down.go", "		w.SetUID(d.GetUID())\n", "", "TestAnUpdateReachesOnlyTheObjectItIsFor",
	},
	{
		"a status is written over the version that was read", "the write has no resourceVersion",
		"up.go", "		wish.SetResourceVersion(version) // of custom", "		// of custom", "TestAStatusReachesOnlyTheObjectItIsFor",
	},
	{
		"a status of an earlier spec stays downstream", "it is brought up",
		"up.go", "	case has && observed < d.GetGeneration():\n", "	case has && observed < d.GetGeneration() && u == nil:\n", "TestStatusOfAnEarlierSpecStaysDown",
	},
	{
		"a status that the upstream refuses is not written again at once", "it is",
		"up.go", "if wait := m.statusUp.holds(hash, generation); wait > 0 {", "if wait := m.statusUp.holds(hash, generation); wait < 0 {", "TestRefusedStatus|TestRefusedStatusUpstream",
	},
	{
		"a syncer that cannot renew its lease writes nothing", "it goes on",
		"lease.go", "	if l.staleLocked() {\n		return errStale\n	}\n", "", "TestACutOffSyncerStopsWriting",
	},
	{
		"a lease begins when its heartbeat was sent", "it begins when that was answered",
		"lease.go", "l.renewed, l.reported = sent, false", "l.renewed, l.reported = time.Now(), sent.IsZero()", "TestALeaseBeginsWithItsHeartbeat",
	},
	{
		"what moved away is removed before anything is started", "objects are made at once",
		"down.go", "if l.syncer.lease.returning() {", "if l.syncer.lease.returning() && w == nil {", "TestWhatMovedAwayGoesFirst",
	},
	{
		"namespaces of a cluster itself are not synced", "they are",
		"refused.go", "	if ns := reserved(key.Namespace, place.Namespace); ns != \"\" {", "	if ns := reserved(); ns != \"\" {", "TestReservedNamespaces",
	},
	{
		"credentials stay in their cluster", "they are synced",
		"refused.go", `if why := isCredential(l.kind.GroupKind(), obj); why != "" {`, `if why := isCredential(l.kind.GroupKind(), obj); why == "-" {`, "TestCredentialsStay",
	},
	{
		"an object is ours if our manager wrote the marks", "the label is enough",
		"provenance.go", "label == owner && loop.Applied(obj, manager, \"metadata\", \"labels\", ownerLabel)", "label == owner", "TestMarksThatAnotherClientWrote",
	},
	{
		"what another client changes again and again is left at last", "it is overwritten without end",
		"fight.go", "return limit.Times < 0 || len(recent) < limit.Times", "return limit.Times < 0 || len(recent) >= 0", "TestFight",
	},
	{
		"a place that another client's object has is tried ever less often", "it is tried every minute",
		"blocked.go", "retryBlocked<<min(at.tries, 16)", "retryBlocked<<min(0*at.tries, 16)", "TestAForeignObjectCostsLittle|TestAForeignObjectThatCannotBeWatched",
	},
	{
		"what happened while a cache was stale is looked at when it is fresh", "it is forgotten",
		"missed.go", "		m.queued[queued] = true\n", "", "TestLeftWhileACopyWasNotFresh",
	},
	{
		"a stale cache decides nothing", "it does",
		"pass.go", "if err := l.missed.stale(l.queueKey(key), l.mayWork); err != nil {", "if err := l.missed.stale(l.queueKey(key), l.syncer.lease.err); err != nil {", "TestLeftWhileACopyWasNotFresh|TestNotKnownIsNotAbsent|TestMuchWhileACopyWasNotFresh",
	},
	{
		"an origin that goes while a pass has an older state of it is withdrawn", "the pass forgets that",
		"withdrawn.go", "; ok && added <= at {", "; ok && added <= max(at, w.clock) {", "TestAnOriginThatGoesDuringAPass",
	},
	{
		"a copy that was taken over has its marks from the syncer", "only what was applied counts",
		"provenance.go", "!loop.Wrote(obj, manager, \"metadata\", \"annotations\", annotation)", "!loop.Applied(obj, manager, \"metadata\", \"annotations\", annotation)", "TestACopyThatWasTakenOverKeepsItsMarks",
	},
}
