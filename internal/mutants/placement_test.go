// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var placementMutants = []mutant{
	{
		"a placement is written over the version that was read", "the write has neither UID nor resourceVersion",
		"reconcile.go", `	change["uid"], change["resourceVersion"] = obj.GetUID(), obj.GetResourceVersion()` + "\n", "", "TestStatesAreComparedAndSwapped",
	},
	{
		"clusters, objects and policies that are not known decide nothing", "they do",
		"reconcile.go", "if !known || k.objects.Err() != nil || c.policyCache.Err() != nil {", "if !known {", "TestNotKnownIsNotAbsent",
	},
	{
		"policies that are not known decide nothing", "they count as none",
		"reconcile.go", "if !known || k.objects.Err() != nil || c.policyCache.Err() != nil {", "if !known || k.objects.Err() != nil {", "TestNotKnownIsNotAbsent",
	},
	{
		"objects that refer to others and are not known keep these where they are", "they count as none",
		"reconcile.go", "f.occupied, f.fresh = f.before.clusters, c.fresh(k)", "f.occupied, f.fresh = f.before.clusters, true", "TestNotKnownIsNotAbsent|TestDependents",
	},
	{
		"Secrets stay while the Ingresses are not known", "they leave",
		"reconcile.go", "		return to.String() == secrets\n", "		return to.String() == services\n", "TestSecretsOfIngressesThatAreNotKnown",
	},
	{
		"an Ingress follows the workloads behind its Services", "it follows none",
		"index.go", "	if resource == ingresses {\n", "	if resource == ingresses && namespace == \"\" {\n", "TestIngressesAndNetworkPolicies",
	},
	{
		"a Secret follows the Ingresses that refer to it", "it follows only workloads",
		"index.go", "	if resource == (schema.GroupResource{Resource: secrets}) {\n", "	if resource == (schema.GroupResource{Resource: services}) {\n", "TestIngressesAndNetworkPolicies",
	},
	{
		"a NetworkPolicy follows the workloads whose pods it selects", "it follows none",
		"index.go", "	case resource == networkPolicies:\n", "	case resource == networkPolicies && obj == nil:\n", "TestIngressesAndNetworkPolicies",
	},
	{
		"a change of a Service reconciles the Ingresses to it", "they wait for their own change",
		"controller.go", "		for _, ingress := range c.index.ingressesTo(key) {\n", "		for _, ingress := range c.index.ingressesTo(types.NamespacedName{}) {\n", "TestIngressesAndNetworkPolicies",
	},
	{
		"a label of another client stays", "it is taken over",
		"decide.go", "return labeled && !slices.Contains(f.before.clusters, cluster)", "return labeled && cluster == \"\"", "TestWhatIsSomebodyElsesStays",
	},
	{
		"shards and their copies are not placed", "they are",
		"reconcile.go", "if label == syncerv1alpha1.ClusterLabel || label == v1alpha1.ParentLabel ||", "if label == \"\" && v1alpha1.ParentLabel == \"\" ||", "TestACopyOfAShardIsNoShard|TestWhatIsSomebodyElsesStays",
	},
	{
		"a dependent that is to go lingers", "it goes at once",
		"reconcile.go", "		return rest > 0\n", "		return rest < 0\n", "TestDependents|TestDrainDoesNotDip",
	},
	{
		"an object whose policy is gone stays where it is", "it goes",
		"decide.go", "		wanted = f.before.stays() // an object whose policy was deleted stays in its clusters\n", "		wanted = nil // an object whose policy was deleted stays in its clusters\n", "TestWithoutAPolicyAllStays",
	},
	{
		"if no cluster can be chosen, all stays where it is", "it goes",
		"state.go", "	if len(wanted) == 0 && !none {\n", "	if len(wanted) == 0 && !none && present == nil {\n", "TestDecide",
	},
	{
		"a cluster that is left keeps its name until its shard is gone", "its name goes at once",
		"state.go", "		if held(c) {\n", "		if held(c) && c == \"\" {\n", "TestDrainDoesNotDip|TestStates",
	},
	{
		"a draining cluster is not chosen", "it is",
		"choose.go", "if c.State == splitter.Draining || holds", "if holds", "TestChoose",
	},
	{
		"a cluster that keeps its objects is not chosen again", "it is chosen",
		"choose.go", "holds && !is ||", "holds && !is && c.Name == \"\" ||", "TestChoose",
	},
	{
		"clusters that have an object keep it while they can", "all are ranked anew",
		"selection.go", "return o.present && !o.avoided })\n	s.fill(func(o *candidate) bool { return o.present })", "return !o.present })", "TestChoose|TestChooseDoesNotShuffle",
	},
	{
		"a status reaches only the policy that was read", "the write names no UID",
		"status.go", "	desired.SetUID(obj.GetUID())\n", "", "TestAStatusReachesOnlyThePolicyItIsFor",
	},
	{
		"the end of the last reference leaves no annotation", "an empty one stays",
		"state.go", "	if s.by == v1alpha1.PlacedByReference && len(s.clusters) == 0 {", "	if false {", "TestDependents",
	},
	{
		"a policy reports only what belongs to its own workloads", "it reports what belongs to those of any policy",
		"index.go", "			if w.by == placedBy(policy) {\n", "			if w.by != \"\" {\n", "TestUndividedObjectsAreReported",
	},
	{
		"objects that cannot be read are not reported as placed", "they are",
		"undivided.go", "if err := cache.Err(); err != nil && !apierrors.IsNotFound(err) {", "if err := cache.Err(); err != nil && apierrors.IsGone(err) {", "TestUndividedObjectsThatCannotBeRead",
	},
	{
		"an object that a client has given to a cluster is not reported", "it is",
		"undivided.go", "ok && !foreign(obj, true) && ", "ok && ", "TestObjectsThatAreNotListed",
	},
}
