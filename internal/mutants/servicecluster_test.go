// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var serviceclusterMutants = []mutant{
	{
		"a cluster is probed only while its region is bound", "the gate is ignored",
		"plan.go", "!leaving(c) && isBound(c)", "!leaving(c)", "TestAServiceClusterBecomesReady|TestALostRegionEndsTheProbes",
	},
	{
		"a ServiceCluster that is being deleted is not probed", "its deletion is ignored",
		"plan.go", "StageConfigured && !leaving(c) && isBound(c)", "StageConfigured && isBound(c)", "TestADeletedServiceClusterIsTerminating",
	},
	{
		"guards and reservations get no status", "they count as ServiceClusters",
		"plan.go", "case \"\", fanoutv1alpha1.StageConfigured, fanoutv1alpha1.StageRemoving:", "case \"\", fanoutv1alpha1.StageReserved, fanoutv1alpha1.StageConfigured, fanoutv1alpha1.StageRemoving:", "TestGuardsAndReservationsAreLeftAlone",
	},
	{
		"the address that a name resolves to is checked", "only the connection is made",
		"addresses.go", "		return p.Check(at.Addr())\n", "		_ = at\n		return nil\n", "TestTheAddressIsCheckedAtTheConnection",
	},
	{
		"an IPv4 address inside an IPv6 address is checked", "only the IPv6 address is",
		"addresses.go", "	return []netip.Addr{a, netip.AddrFrom4([4]byte(b[at : at+4]))}", "	_ = b\n	return []netip.Addr{a}", "TestAddressesRefuseSpecialAddresses|TestAddressesOfAnInstallation",
	},
	{
		"a network that the installation denies stays denied", "Allow wins",
		"addresses.go", "		if in(p.Deny) {", "		if in(p.Deny) && !in(p.Allow) {", "TestAddressesOfAnInstallation",
	},
	{
		"only a version gets into the status", "any text is taken",
		"probe.go", "		if !versionForm.MatchString(field) {", "		if !versionForm.MatchString(field) && field == \"\" {", "TestAnswersThatAreNoVersion",
	},
	{
		"a longer body than the limit is refused", "its beginning is taken",
		"probe.go", "	if len(body) > answerLimit || json", "	if json", "TestAnswersThatAreNoVersion",
	},
	{
		"an address that is refused makes the kubeconfig invalid", "the cluster is unreachable",
		"probe.go", "		if errors.Is(err, ErrAddress) {", "		if errors.Is(err, ErrAddress) && err == nil {", "TestTheDefaultProbeRefusesTheLoopback",
	},
	{
		"a few failures do not make a cluster unreachable", "one is enough",
		"plan.go", "	if !refused && o.last.failures < o.patience &&", "	if !refused && o.last.failures < 1 &&", "TestEveryPlan|TestAnUnreachableClusterIsNotReady",
	},
	{
		"a kubeconfig that is refused counts at once", "it is a failure like others",
		"plan.go", "	if !refused && o.last.failures < o.patience &&", "	if o.last.failures < o.patience &&", "TestEveryPlan",
	},
	{
		"the Arbiter owns the phase while the region is not bound", "both write it",
		"plan.go", "	if isBound(c) {\n		s.ObservedGeneration", "	if c.Generation > 0 {\n		s.ObservedGeneration", "TestEveryPlan",
	},
	{
		"the probes of one account leave room for others", "there is no limit",
		"slots.go", "	if s.used[account] < s.most {", "	if s.used[account] < 1<<30 {", "TestSlotsOfOneAccountDoNotTakeThoseOfAnother|TestDeadClustersOfOneAccountDelayNobody",
	},
	{
		"a slot that was granted to a name that is gone goes on", "it is lost",
		"slots.go", "	if granted {\n		s.give(account)", "	if granted && s.most < 0 {\n		s.give(account)", "TestAGrantedSlotThatIsNotTakenGoesOn|TestNoKeyIsForgottenByTheSlots",
	},
	{
		"a status reaches only the ServiceCluster that was read", "the write has no resourceVersion",
		"work.go", "	desired.SetUID(obj.GetUID())\n", "", "TestAStatusReachesOnlyTheServiceClusterThatWasProbed",
	},
	{
		"a Secret that cannot be read says nothing about the cluster", "the kubeconfig counts as invalid",
		"work.go", "	if failed != nil && !isKubeconfig(failed) {", "	if failed != nil && isKubeconfig(nil) {", "TestASecretThatCannotBeReadSaysNothingAboutTheCluster",
	},
	{
		"two writers of one status write less and less", "the status is replaced at once",
		"repetition.go", "|| r.times < 2 {", "|| r.times < 1<<30 {", "TestAReplacedStatusIsWrittenLessAndLess|TestAnotherWriterIsReplacedLessAndLess",
	},
	{
		"a name that another peer holds is reported as held", "the other peers are not read",
		"controller.go", "			o = held\n", "			o = free\n", "TestAHeldNameIsReported",
	},
	{
		"a guard for this peer does not hold the name against it", "every guard does",
		"controller.go", "other.Spec.Fanout.Claim != nil && region.PeerName(other.Spec.Fanout.Claim.Target) != of.name:", "other.Spec.Fanout.Claim != nil:", "TestANameIsNotFreeWhileAPeerIsUnreachable",
	},
	{
		"ServiceClusters that were applied in several peers have one message", "each one counts only the others",
		"controller.go", "case !ok:\n", "case !ok, p.name == of.name:\n", "TestRivalsHaveOneMessage",
	},
	{
		"a name is not called free while a peer is unreachable", "the unreachable peer is left out",
		"controller.go", "			o = unseen\n", "			o = free\n", "TestANameIsNotFreeWhileAPeerIsUnreachable",
	},
}
