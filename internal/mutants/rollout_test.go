// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var rolloutMutants = []mutant{
	{
		"pods of an unreachable cluster are unavailable", "their last report counts",
		"bounds.go", "\tcase c.Unreachable || c.Unreported:\n", "\tcase c.Unreported:\n", "TestPlan",
	},
	{
		"a cluster may use up its part at any moment", "only unavailable pods count",
		"bounds.go", "\treturn min(c.stays(s.most()), s.least())\n", "\treturn c.stays(s.most())\n", "TestBudgetOverAllClusters",
	},
	{
		"a part that was taken back counts until it is observed", "it does not",
		"bounds.go", "Unavailable: max(c.Unavailable, c.Prior.Unavailable), Surge: max(c.Surge, c.Prior.Surge)}", "Unavailable: c.Unavailable, Surge: c.Surge}", "TestPlan",
	},
	{
		"an earlier spec may still remove pods", "it may not",
		"bounds.go", "max(0, c.Spec+c.Surge-c.Prior.Fewer)", "max(0, c.Spec+c.Surge)", "TestPlan",
	},
	{
		"what earlier specs allowed adds up", "only the last one counts",
		"bounds.go", "max(0, next.most()-c.fewest())", "max(0, next.most()-c.Spec-c.Surge)", "TestPriorTo",
	},
	{
		"a cluster at rest needs no Prior", "it gets one",
		"bounds.go", "atRest {\n", "atRest && c.Spec < 0 {\n", "TestPriorTo",
	},
	{
		"an unobserved spec stays", "it changes",
		"bounds.go", "c.Unreachable || c.Unobserved && !c.Unreported", "c.Unreachable", "TestPlan",
	},
	{
		"of two templates any pod may leave", "pods that are not ready leave first",
		"bounds.go", "\tcase !c.Outdated && !c.Delayed:\n", "\tcase !c.Delayed:\n", "TestPlan",
	},
	{
		"a pod that is ready may stay in place of an available one", "the available one stays",
		"bounds.go", "\tcase !c.Outdated && !c.Delayed:\n", "\tcase !c.Outdated:\n", "TestPlan",
	},
	{
		"surge that may be in use already stays", "it is taken back",
		"rollout.go", "return c.loss(c.withSurge(n)) <= max(0, p.available) })", "return c.loss(c.withSurge(n)) >= 0 })", "TestPlan",
	},
	{
		"pods that were not reported yet may be removed too", "only those of the report",
		"bounds.go", "max(c.Pods, c.now().most())-pods", "c.Pods-pods", "TestPlan",
	},
	{
		"surge counts before it is used", "only the pods count",
		"bounds.go", "\treturn max(c.Pods, c.now().most(), s.most())\n", "\treturn max(c.Pods, s.Replicas)\n", "TestBudgetOverAllClusters",
	},
	{
		"a cluster that never reports can be left", "its replacements wait for it",
		"bounds.go", "	if c.Gone || c.Unreported && c.Want == 0 {\n", "	if c.Gone {\n", "TestPlan",
	},
	{
		"a cluster that is gone does not use up the surge", "its replacements wait for it",
		"bounds.go", "	if c.Gone || c.Unreported", "	if c.Unreported", "TestPlan",
	},
	{
		"replicas leave only within the budget", "they leave at once",
		"rollout.go", "	return c.loss(s) <= max(0, p.available)\n", "	return c.loss(s) >= 0\n", "TestBudgetOverAllClusters",
	},
	{
		"replicas come only within the surge", "they come at once",
		"rollout.go", "return c.gain(c.with(c.Want-n)) <= max(0, p.pods+p.MoveSurge) })", "return c.gain(c.with(c.Want-n)) >= 0 })", "TestBudgetOverAllClusters",
	},
	{
		"unused parts are taken back", "they stay",
		"rollout.go", "\t\ts.Unavailable, unavailable = s.Unavailable-less, unavailable-less\n", "\t\ts.Unavailable, unavailable = s.Unavailable, unavailable-less\n", "TestPlan",
	},
	{
		"a part is spent once", "each cluster gets the rest",
		"start.go", "\t\tp.available -= c.keeps(before) - c.keeps(s)\n", "", "TestBudgetOverAllClusters",
	},
	{
		"surge is spent once", "each cluster gets the rest",
		"start.go", "\t\tp.pods -= c.holds(s) - c.holds(before)\n", "", "TestBudgetOverAllClusters",
	},
	{
		"unavailable pods do not delay their own rollout", "they do",
		"start.go", "\t\t\ts.Unavailable, s.Surge = min(c.unavailable(s), max(1, p.MaxUnavailable)), max(0, c.Pods-n)\n", "", "TestEndsAfterFailures",
	},
	{
		"a cluster that cannot begin does not keep others waiting", "it does",
		"start.go", "\tif p.Clusters > 0 && rolling == 0 &&", "\tif p.Clusters > 0 && rolling < 0 &&", "TestEndsAfterFailures",
	},
	{
		"at most Clusters are in a rollout", "all may be",
		"start.go", "\tif p.Clusters > 0 {\n", "\tif p.Clusters > 1000 {\n", "TestOneClusterAtATime",
	},
	{
		"if the budget is exceeded, no available pod leaves", "one leaves that the cluster might lose anyway",
		"rollout.go", "	if p.available < 0 && (", "	if p.available < -1000 && (", "TestPlan",
	},
}
