// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var syncerMutants = []mutant{
	{
		"a downstream object is deleted by the UID that was read", "the deletion has no precondition",
		"remove.go", "m.down.remove(ctx, d)", "m.down.removeIf(ctx, d, metav1.Preconditions{})", "TestDeletionMeansOneObject|TestReplacedObject",
	},
	{
		"an object is deleted upstream by the UID and resourceVersion that were read", "the deletion names the UID alone",
		"follow.go", "uid, version := o.u.GetUID(), o.u.GetResourceVersion()\n	err = m.up.removeIf(ctx, o.u, metav1.Preconditions{UID: &uid, ResourceVersion: &version})", "err = m.up.removeIf(ctx, o.u, metav1.Preconditions{UID: new(o.u.GetUID())})", "TestAnUpstreamDeletionMeetsAChange",
	},
	{
		"an object that was brought up is deleted by the UID that was read", "the deletion has no precondition",
		"upsync.go", "s.up.remove(ctx, o.raised)", "s.up.removeIf(ctx, o.raised, metav1.Preconditions{})", "TestAnObjectThatReplacedOneThatWasBroughtUpStays",
	},
	{
		"a type that is not served downstream is not an absent object", "any 404 is an absence",
		"remove.go", "	case isAbsent(err):\n	case err != nil:", "	case apierrors.IsNotFound(err):\n	case err != nil:", "TestATypeThatIsNotServedDownstreamLetsNothingGo",
	},
	{
		"nothing is deleted because another cluster answers upstream", "its UID is not compared",
		"remove.go", "sameCluster(uid, s.upstreamUID, err)", "sameCluster(uid, uid, err)", "TestAnotherClusterAnswers",
	},
	{
		"nothing is deleted upstream because another cluster answers downstream", "its UID is not compared",
		"remove.go", "sameCluster(uid, known, err)", "sameCluster(uid, cmp.Or(uid, known), err)", "TestDeletedDownstream|TestUpsyncDeletesWithCare",
	},
	{
		"finalizers of others stay", "they are removed with ours",
		"finalizer.go", "return name == f.syncer.finalizer })", "return name != \"\" })", "TestFinalizersOfOthers",
	},
	{
		"finalizers are written over the version that was read", "the write has no resourceVersion",
		"finalizer.go", `map[string]any{"resourceVersion": u.GetResourceVersion(), "finalizers": finalizers})`, `map[string]any{"finalizers": finalizers})`, "TestFinalizersThatOthersAddMeanwhileStay",
	},
	{
		"our finalizer is removed from the version that was read", "the write has no resourceVersion",
		"finalizer.go", `	fields := map[string]any{"resourceVersion": u.GetResourceVersion(), "finalizers": rest}`, `	fields := map[string]any{"finalizers": rest}`, "TestFinalizersThatOthersAddMeanwhileStay",
	},
	{
		"our finalizer is written before anything is made downstream", "it is not written",
		"reconcile.go", "shows, err := r.finalizers.add(ctx, o.u)", "shows, err := created{}, error(nil)", "TestMissedDeletes|TestObjectWaitsForItsCopy",
	},
	{
		"a downstream object that lost its label is deleted before its origin goes", "the origin goes at once",
		"remove.go", "			again, err := m.remove(ctx, o.ref, present)\n			return max(again, shortRetry), err\n", "", "TestCopyWithoutItsLabel",
	},
	{
		"all pages of objects that left are read", "the continue token is ignored",
		"client.go", `opts.Continue = page.Continue; opts.Continue == "" {`, `opts.Continue = page.Continue; opts.Continue != "-" {`, "TestObjectsThatLeftAreFoundOnAllPages",
	},
	{
		"Detach lets the objects of all pages go", "the continue token is ignored",
		"client.go", `opts.Continue = page.Continue; opts.Continue == "" {`, `opts.Continue = page.Continue; opts.Continue != "-" {`, "TestDetachReadsAllPages",
	},
	{
		"a namespace with objects of others on a later page stays", "the continue token is ignored",
		"client.go", `opts.Continue = page.Continue; opts.Continue == "" {`, `opts.Continue = page.Continue; opts.Continue != "-" {`, "TestObjectsOfOthersAreFoundOnAllPages",
	},
	{
		"a namespace that was made anew is not ended", "the live one is not compared",
		"namespace_end.go", "case live == nil || live.UID != u.GetUID() || live.DeletionTimestamp == nil:", "case live == nil:", "TestANamespaceThatWasCreatedAgainIsNotEnded",
	},
	{
		"more deletions at once than the limit are held", "they are not counted",
		"valve.go", "if v.shut || n > v.cap.Objects && float64(n) > v.cap.Share*float64(v.total) {", "if v.shut && n < 0 {", "TestValve",
	},
	{
		"a downstream object is deleted only if its origin is known to be withdrawn", "a missing origin suffices",
		"evidence.go", `if m.withdrawn.has(of, from.evidence(d)) {`, `if m.withdrawn.has(of, from.evidence(d)) || of.Name != "" {`, "TestUpstreamRestored",
	},
	{
		"an object of another client is not overwritten by a create", "the create is an apply",
		"create.go", "	want.SetResourceVersion(neverVersion)\n", "", "TestForeignObjectsStayAsTheyAre|TestCollision",
	},
	{
		"an update reaches only the object that was read", "it names no UID",
		"spec.go", "	want.SetUID(o.d.GetUID())\n", "", "TestAnUpdateReachesOnlyTheObjectItIsFor",
	},
	{
		"a status is written over the version that was read", "the write has no resourceVersion",
		"status.go", "		plan.want.SetResourceVersion(version) // in the", "		// in the", "TestAStatusReachesOnlyTheObjectItIsFor",
	},
	{
		"a status of an earlier spec stays downstream", "it is brought up",
		"generation.go", "	case has && observed < d.GetGeneration():\n", "	case has && observed < d.GetGeneration() && u == nil:\n", "TestStatusOfAnEarlierSpecStaysDown",
	},
	{
		"a status that the upstream refuses is not written again at once", "it is",
		"status.go", "cmp.Or(rejected, ", "cmp.Or(0*rejected, ", "TestRefusedStatus|TestRefusedStatusUpstream",
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
		"after a lost lease, objects that moved away are deleted before others are created", "others are created at once",
		"plan.go", "	case returning:\n", "	case returning && want == nil:\n", "TestWhatMovedAwayGoesFirst",
	},
	{
		"namespaces of a cluster itself are not synced", "they are",
		"refused.go", "	if ns := reserved(key.Namespace, place.Namespace); ns != \"\" {", "	if ns := reserved(); ns != \"\" {", "TestReservedNamespaces",
	},
	{
		"credentials stay in their cluster", "they are synced",
		"refused.go", `if why := isCredential(r.kind.GroupKind(), obj); why != "" {`, `if why := isCredential(r.kind.GroupKind(), obj); why == "-" {`, "TestCredentialsStay",
	},
	{
		"an object is ours if our manager wrote the marks", "the label is enough",
		"provenance.go", "label == owner && loop.Applied(obj, manager, \"metadata\", \"labels\", ownerLabel)", "label == owner", "TestMarksThatAnotherClientWrote",
	},
	{
		"an object that another client changes again and again is left alone in the end", "it is overwritten without end",
		"fight.go", "return len(f.times[cause]) < limit.Times })", "return len(f.times[cause]) >= 0 })", "TestFight",
	},
	{
		"a place that another client's object has is tried ever less often", "it is tried every minute",
		"blocked.go", "backoff.After(at.tries, retryBlocked", "backoff.After(min(at.tries, 1), retryBlocked", "TestAForeignObjectCostsLittle|TestAForeignObjectThatCannotBeWatched",
	},
	{
		"changes during a stale cache are handled when it is fresh", "they are forgotten",
		"missed.go", "		m.queued[queued] = true\n", "", "TestLeftWhileACopyWasNotFresh",
	},
	{
		"a stale cache decides nothing", "it does",
		"controller.go", "mayDecide, missed := c.mayDecide, &c.missed", "mayDecide, missed := c.syncer.lease.err, &c.missed", "TestLeftWhileACopyWasNotFresh|TestNotKnownIsNotAbsent|TestMuchWhileACopyWasNotFresh",
	},
	{
		"an origin that is deleted during a reconcile counts as withdrawn", "the reconcile forgets that",
		"withdrawn.go", "; ok && added <= at {", "; ok && added <= max(at, w.clock) {", "TestAnOriginThatGoesDuringAPass",
	},
	{
		"a copy that was taken over has its marks from the syncer", "only applied fields count",
		"provenance.go", "!loop.Wrote(obj, manager, \"metadata\", \"annotations\", annotation)", "!loop.Applied(obj, manager, \"metadata\", \"annotations\", annotation)", "TestACopyThatWasTakenOverKeepsItsMarks",
	},
	{
		"the replicas of an autoscaled object belong to the autoscaler", "they belong to the upstream",
		"spec.go", "r.owner == autoscaled && s.syncer.autoscalers.has(scaleTarget{s.kind.GroupKind(), key})", "r.owner == autoscaled && key.Name == \"\"", "TestAutoscaledReplicas",
	},
	{
		"while the autoscalers are not known, replicas that another client set stay", "no object counts as autoscaled",
		"autoscaler.go", "c.kind.Refused == \"\" && c.caches.staleErr() != nil })", "c == nil })", "TestAutoscaledReplicas",
	},
	{
		"an autoscaler that works downstream owns its replicas", "the upstream lost it, so they are overwritten",
		"autoscaler.go", "	case autoscaler.downstream:\n", "	case autoscaler.downstream:\n		return nil\n	case autoscaler.key.Name == \"\":\n", "TestAutoscalerThatTheUpstreamLost",
	},
	{
		"while discovery of autoscalers fails, replicas stay", "they are overwritten",
		"autoscaler.go", "		has = has || unknown\n", "		_ = unknown\n", "TestAutoscalersThatAreNotDiscovered",
	},
	{
		"when a side stops serving autoscalers, the targets are dropped", "they stay",
		"autoscaler.go", "	if before == c {\n", "	if before == c || c == nil {\n", "TestAutoscalersAreNoLongerServed",
	},
	{
		"a refused autoscaler owns no replicas", "it does",
		"autoscaler.go", "err != nil || reason != \"\" {\n", "err != nil {\n		_ = reason\n", "TestRefusedAutoscaler",
	},
	{
		"Diff knows the autoscalers before their targets", "it does not",
		"diff.go", "		defer shadow.readAutoscalers(ctx, types)()\n", "", "TestDiffOfAutoscaledReplicas",
	},
	{
		"a change of an autoscaler reconciles its target", "the target waits for its own change",
		"reconcile.go", "	now.autoscaled = up != \"\" && r.rules.scalable()", "	now.autoscaled = up == \"\" && r.rules.scalable()", "TestAutoscaledReplicas",
	},
	{
		"the replicas of other objects belong to the upstream", "a client that changes them keeps them",
		"spec.go", "r.owner == autoscaled && s.syncer.autoscalers.has(scaleTarget{s.kind.GroupKind(), key})", "r.owner == autoscaled", "TestAutoscaledReplicas|TestFight",
	},
}
