// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var splitterMutants = []mutant{
	{
		"a shard is deleted by the UID that was read", "the deletion has no precondition",
		"reconcile.go", "		Preconditions: &metav1.Preconditions{UID: new(obj.GetUID())}, Prop", "		Prop", "TestAShardThatWasReplacedStays",
	},
	{
		"a shard is written over the version that was read", "the write has no resourceVersion",
		"reconcile.go", "		desired.SetResourceVersion(current.GetResourceVersion()) // the next", "		// the next", "TestAFinalizerDoesNotComeBack",
	},
	{
		"an object of another client does not become a shard", "the create is an apply",
		"reconcile.go", "	desired.SetResourceVersion(\"1\")\n", "", "TestNobodyElsesObjectBecomesAShard",
	},
	{
		"a parent has its finalizer before it has shards", "shards are made first",
		"reconcile.go", "	case !finalized(parent):\n", "	case !finalized(parent) && parent == nil:\n", "TestShardsGoWithTheirParent|TestTheDemo",
	},
	{
		"a parent goes when a live list has no shard of it", "the cache is believed",
		"reconcile.go", "	if left > 0 {\n", "	if left > time.Hour {\n", "TestAParentWaitsForShardsWithoutMarks",
	},
	{
		"a type that is not served is not an absent parent", "any 404 is an absence",
		"reconcile.go", "	case !apierrors.IsNotFound(err) || apierrors.IsUnexpectedServerError(err): // an unserved type does not prove absence\n		return fmt.Errorf(\"read parent", "	case !apierrors.IsNotFound(err):\n		return fmt.Errorf(\"read parent", "TestShardsWhoseParentIsNotServedStay",
	},
	{
		"a stale cache decides nothing", "it does",
		"reconcile.go", "	if k.objects.Err() != nil {\n		if _", "	if k.objects.Err() != nil && k == nil {\n		if _", "TestNothingIsWrittenFromAnOldCopy|TestARestartWritesNothing|TestAStaleCacheWritesNothing",
	},
	{
		"a cluster that falls silent keeps its replicas for the grace period", "it loses them at once",
		"readiness.go", "if rest := h.since.Add(r.periods.Grace).Sub(now); rest > 0 {", "if rest := h.since.Add(r.periods.Grace).Sub(now); rest > 0 && !h.was {", "TestASilentClusterKeepsWhatItHasForAWhile|TestStates",
	},
	{
		"a cluster that returns gets replicas after the rejoin period", "it gets them at once",
		"readiness.go", "h.rejoins && wait(h.since.Add(r.periods.Rejoin)):", "h.rejoins && wait(now):", "TestStates",
	},
	{
		"a cluster whose heartbeat stands still is not ready", "the last state counts",
		"clusters.go", `if b.said != "" && now.Sub(b.seen) >= heartbeatTimeout {`, `if b.said != "" && now.Sub(b.seen) >= 1000*heartbeatTimeout {`, "TestSyncTargets",
	},
	{
		"nothing is decided before the cache shows the last write", "it is",
		"reconcile.go", "	case unseen > 0:\n		return unseen, nil // a plan", "	case unseen < 0:\n		return unseen, nil // a plan", "TestNothingIsTakenTwice|TestNothingIsWrittenFromAnOldCopy",
	},
	{
		"a write that the server never saw is made again", "its event is waited for",
		"writes.go", "			if !what.shownBy(live) {\n				delete(all, key)\n				continue\n			}\n", "			_ = live\n", "TestWhatIsLostIsWrittenAgain",
	},
	{
		"the finalizer of a syncer stays on a shard while its cluster is known", "it is removed at once",
		"finalizer.go", "!bornWith(shard, cluster) || !s.readiness.gone(cluster)", "!bornWith(shard, cluster)", "TestShardsAreMadeWithAFinalizer|TestAFinalizerDoesNotComeBack|TestAShardOfNoClusterGoes",
	},
	{
		"a shard is no parent", "it is divided too",
		"shard.go", "if label == v1alpha1.ParentLabel || label == v1alpha1.ClusterDaemonSetLabel || label == s.opts.Label ||", "if label == s.opts.Label && label == \"\" ||", "TestOneShardToACluster|TestTheDemo|TestACopyOfAShardIsNoShard",
	},
	{
		"a Conflict at one shard ends the reconcile", "the other shards are written by the same plan",
		"reconcile.go", "			return 0, joined(append(errs, err))\n", "			errs = append(errs, err)\n", "TestAConflictEndsThePass",
	},
	{
		"a shard that waits is paused", "it rolls with the parent's strategy",
		"kind_deployment_rollout.go", "spec[\"paused\"], step.Surge = true,", "spec[\"paused\"], step.Surge = false,", "TestRolloutSharesTheBudget|TestRolloutCountsUnavailableReplicas",
	},
	{
		"a user who pauses a parent stops its rollout", "it goes on",
		"kind_deployment_rollout.go", "\tif paused, _ := spec[\"paused\"].(bool); paused { // by the parent\n", "\tif paused, _ := spec[\"paused\"].(bool); paused && shard == nil { // by the parent\n", "TestRolloutOfAPausedParent",
	},
	{
		"the write that undoes an edit of a template is a rollout", "it is not",
		"kind_deployment_rollout.go", "\tif !contains(template(shard), template(parent)) {\n", "\tif hash == \"\" {\n", "TestRolloutOfChangedTemplates",
	},
	{
		"a field that is gone from the template begins a rollout", "it does not",
		"kind_deployment_rollout.go", "return written == hash ||", "return written != \"\" ||", "TestRolloutOfChangedTemplates",
	},
	{
		"a spec that another mode has written may replace pods", "it may not",
		"kind_deployment_rollout.go", "|| !paced && c.Unobserved &&", "|| !paced && c.Name == \"\" &&", "TestRolloutAfterAnotherMode",
	},
	{
		"pods that a cluster may still create count", "they do not",
		"kind_deployment_rollout.go", "	if prior != \"\" {\n", "	if prior != \"\" && c.Outdated {\n", "TestScalingRemembersWhatItTookBack",
	},
	{
		"the bounds of earlier specs stay until the spec changes", "until the next write",
		"kind_deployment_rollout.go", "		p := c.PriorTo(step)\n", "		var p rollout.Prior\n", "TestScalingRemembersWhatItTookBack",
	},
	{
		"a shard has its annotation until its rollout is complete", "until its spec has the template",
		"kind_deployment_rollout.go", " || marked && !complete ||", " || marked && !complete && c.Name == \"\" ||", "TestRolloutSharesTheBudget|TestRolloutOfAPausedParent|TestRolloutOfAnUnobservedTemplate",
	},
	{
		"a part of a disruption budget is raised after others are lower", "at once",
		"allowance.go", "		if c.present && lowering {\n", "		if c.present && lowering && len(all) < 0 {\n", "TestEvictionsStayWithinTheBudget|TestASmallDisruptionBudgetFollowsDrains",
	},
	{
		"a cluster must observe its part of a disruption budget before others get more", "the written part counts",
		"allowance.go", "(!c.settled || c.allowed > wanted[i])", "c.allowed > wanted[i]", "TestEvictionsStayWithinTheBudget|TestAllowances",
	},
	{
		"missing replicas count in all clusters", "only in their own",
		"allowance.go", "min(shares[i], max(level, c.missing))", "min(shares[i], max(total, c.missing))", "TestEvictionsStayWithinTheBudget|TestUnavailableReplicasUseUpADisruptionBudget",
	},
	{
		"clusters with cordoned nodes take turns", "the first always has the part",
		"allowance.go", "first := int(turn % count * (n % count) % count)", "first := int(0 * turn)", "TestTurns|TestDrainsEnd",
	},
	{
		"a small disruption budget stays where it is without need", "the largest cluster gets it",
		"allowance.go", "cmp.Compare(min(1, all[b].allowed), min(1, all[a].allowed))", "0", "TestAllowances",
	},
	{
		"replicas without a place use up the disruption budget", "they do not",
		"disruption.go", "return allowed(budget, desired) - unplaced, all", "return allowed(budget, desired) - 0*unplaced, all", "TestUnavailableReplicasUseUpADisruptionBudget",
	},
	{
		"a disruption budget without workloads is left alone", "it gets a finalizer",
		"follower.go", "known && len(workloads) == 0\n", "known && len(workloads) < 0\n", "TestDisruptionBudget",
	},
	{
		"a follower waits for the workloads", "it decides without them",
		"follower.go", "		if other.objects.Err() != nil {\n			return nil, false\n		}\n", "", "TestFollowersWaitForWorkloads",
	},
	{
		"the ordinals of a cluster are never given to another one", "those of a cluster without replicas are",
		"ordinals.go", "if _, ok := o.ranges[cluster]; !ok && len(", "if _, ok := o.ranges[cluster]; ok && len(", "TestOrdinalsAreUniqueAndStay",
	},
	{
		"a shard keeps its ordinals without the record of its parent", "the record decides",
		"ordinals.go", "		own, ok := readSpans(s.annotations()[v1alpha1.OrdinalsAnnotation])[s.Cluster]\n", "		own, ok := span{}, false\n", "TestOrdinalsAreUniqueAndStay",
	},
	{
		"a cluster has no more replicas than ordinals", "it has as many as it has room for",
		"ordinals.go", "if n, ok := limits[s.Name]; ok && (", "if n, ok := limits[s.Name]; ok && n < 0 && (", "TestOrdinalsAreUniqueAndStay",
	},
	{
		"a parent has the record of its ordinals before the shards", "shards are made first",
		"reconcile.go", "loop.Differs(parent, marked, Manager) && k.records()", "loop.Differs(parent, marked, Manager) && k.records() && len(mine) == len(want)", "TestOrdinalsAreRecordedFirst",
	},
	{
		"an index is not given to another cluster before its pods have stopped", "it is as soon as its shard is deleted",
		"kind_job_indexes.go", "if s.Object != nil && (!s.Lost || s.exists()", "if s.Object != nil && (s.exists()", "TestIndexesAreDivided",
	},
	{
		"a Job with divided indexes is complete if each index has completed", "if as many as it has",
		"kind_job_status.go", "len(gaps(completions, indexes)) > 0", "len(gaps(completions, indexes)) > 99", "TestFoldOfIndexes",
	},
	{
		"an index that a cluster reports is one of the Job's", "it is that of the shard",
		"index_list.go", "text(s.Object, \"completedIndexes\"), local).shift(own.first)", "text(s.Object, \"completedIndexes\"), local).shift(0)", "TestFoldOfIndexes",
	},
	{
		"a Job with a success policy is not divided", "it is",
		"kind_job_indexes.go", "	case policy:\n", "	case policy && divides:\n", "TestIndexesThatAreNotDivided",
	},
}
