// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var accountMutants = []mutant{
	{
		"a Role is deleted by the UID that was read", "the deletion has no precondition",
		"access.go", "metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(obj.GetUID())}}", "metav1.DeleteOptions{}", "TestWhatWasReplacedIsNotDeleted",
	},
	{
		"a Role of another client is left alone", "it is found without labels, and taken over",
		"access.go", "labels.SelectorFromSet(w.GetLabels()).String()", "labels.Everything().String()", "TestForeignRoleIsLeftAloneAndNamed",
	},
	{
		"a namespace is deleted by the UID that was read", "the deletion has no precondition",
		"namespace.go", "metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}", "metav1.DeleteOptions{GracePeriodSeconds: new(int64(len(uid) - len(uid)))}", "TestWhatWasReplacedIsNotDeleted",
	},
	{
		"a namespace of another client outlives the Account", "it is deleted too",
		"namespace.go", "if !ours(ns) {", "if ours(ns) && false {", "TestForeignNamespaceIsUsedAndNeverDeleted",
	},
	{
		"a late release leaves the next Account its namespace", "it is not asked whether there is one",
		"namespace.go", "replaced || err != nil {", "false {\n		_ = replaced", "TestReleasedAfterTheNextAdd",
	},
	{
		"an Account that went meanwhile leaves no namespace behind", "the created namespace stays",
		"kind.go", "		return ns.undo(ctx, c)\n", "		return nil\n", "TestActivatedAfterRemoval|TestUndoLeavesTheNextAccountItsNamespace",
	},
	{
		"a status is written over the version that was read", "it has no resourceVersion",
		"status.go", "desired.SetResourceVersion(account.GetResourceVersion())", "desired.SetResourceVersion(\"\")", "TestAStatusReachesOnlyTheAccountItIsFor",
	},
	{
		"a conflict of a status is tried again", "it is taken for success",
		"status.go", "		if !apierrors.IsConflict(err) {\n			return err\n		}", "		if err != nil && !apierrors.IsConflict(err) {\n			return err\n		}\n		if err != nil || account != nil {\n			return nil\n		}", "TestAStatusReachesOnlyTheAccountItIsFor",
	},
	{
		"the status of a central object is written over the version that was read", "it has no resourceVersion",
		"report.go", "apply.SetResourceVersion(object.GetResourceVersion())", "apply.SetResourceVersion(\"\")", "TestAStatusReachesOnlyTheAccountItIsFor",
	},
	{
		"our finalizer is removed from the version that was read", "the write has neither UID nor resourceVersion",
		"release.go", `		"uid": t.object.GetUID(), "resourceVersion": t.object.GetResourceVersion(), "finalizers": finalizers,`, `		"finalizers": finalizers,`, "TestFinalizersOfOthersStay",
	},
	{
		"finalizers of others stay", "all are removed",
		"release.go", "func(f string) bool { return f == Finalizer })\n	if len", "func(string) bool { return true })\n	if len", "TestFinalizersOfOthersStay",
	},
	{
		"our finalizer is written before anything of the object is in a peer", "it is not written",
		"replicate.go", "	if p.finalize {", "	if false {", "TestTheFinalizerComesFirst",
	},
	{
		"a central object goes once every peer has confirmed that nothing is left", "peers are not asked",
		"release.go", "return t.confirmed(ctx)", "return true, nil", "TestEveryPeerConfirmsLive",
	},
	{
		"a peer that fails has not confirmed an absence", "its error counts as NotFound",
		"release.go", "			case err != nil:\n				return false, err\n			}\n			return obj", "			case err != nil:\n				return false, nil\n			}\n			return obj", "TestEveryPeerConfirmsLive",
	},
	{
		"a type that is not served in a peer is not an absent object", "any 404 is an absence",
		"release.go", "case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err):", "case apierrors.IsNotFound(err):", "TestEveryPeerConfirmsLive",
	},
	{
		"an add is undone if its central object went meanwhile", "it stays",
		"replicate.go", "return errors.Join(err, t.takeBack(ctx))", "return err", "TestAnAddWhoseOriginGoesIsUndone",
	},
	{
		"an object that was deleted and created again is another one", "its UID is not compared before an add is kept",
		"release.go", "case err == nil && now.GetUID() == t.object.GetUID():", "case err == nil && now != nil:", "TestAnAddWhoseOriginGoesIsUndone",
	},
	{
		"a removal names the UID of the home that was read", "it names none",
		"release.go", "removal := fanout.RemoveOptions{UID: home.copy.UID}", "removal := fanout.RemoveOptions{}", "TestARemovalIsForTheHomeThatWasRead",
	},
	{
		"more deletions at once than the limit are held", "they are not counted",
		"hold.go", "t.replicator.opts.RemovalCap.Exceeded(deleted, total) {", "t.replicator.opts.RemovalCap.Exceeded(0*deleted, total) {", "TestTheDeletionOfAllCentralAccountsIsHeld",
	},
	{
		"deletions that are held stay held when others are released", "they are counted again",
		"hold.go", "	case recorded.Reason == holdTooMany:\n", "	case recorded.Reason == holdTooMany && false:\n", "TestAHeldDeletionStaysHeld",
	},
	{
		"a deletion waits while a peer is unreachable", "it continues",
		"hold.go", "if away := unreachable(t.observed); len(away) > 0 {", "if away := unreachable(nil); len(away) > 0 {", "TestTheDeletionOfACentralAccountIsHeldWhileAPeerIsSilent",
	},
	{
		"a stale cache of the central plane decides nothing", "it does",
		"replicate.go", "if r.postpone(key) {", "if false {", "TestAPlaneThatWasNotReadLacksNothing",
	},
	{
		"an object that the wrong cluster lacks was not removed", "its answers count",
		"members.go", "cmp.Or(m.copies.Err(), m.sets.Err(), m.unrecognized())", "cmp.Or(m.copies.Err(), m.sets.Err())", "TestAReplicatorBesideAWrongCluster",
	},
	{
		"a peer is asked for every object only while it answers", "the health of its connection is not consulted",
		"members.go", "h.State == region.Unhealthy {", "h.State == region.Unhealthy && false {", "TestReplicatorWithASilentPeer|TestAPeerThatHangsDelaysNobody",
	},
	{
		"a quarantined peer grants nothing", "its Roles are repaired",
		"controller.go", "if p.quarantined() {", "if false {", "TestControllerWithdrawsInQuarantine",
	},
	{
		"nothing is made for an Account that is gone", "the cache is believed",
		"controller.go", "if account, err = current(ctx, p.conn, account); err != nil || account == nil {", "if err != nil {", "TestControllerMakesNothingForAnAccountThatIsGone",
	},
	{
		"a replica works on its own shard only", "it works on all Accounts",
		"controller.go", `if !loop.OwnsKey(p.opts.Shard, string(p.conn.Peer())+"/"+name) {`, "if false {", "TestControllerOfAShard",
	},
	{
		"the regions of a directory that has not reported are not taken back", "they count as none",
		"catalog.go", `!loop.OwnsKey(c.opts.Shard, "Catalog/"+name) || !c.known.Load()`, `!loop.OwnsKey(c.opts.Shard, "Catalog/"+name)`, "TestCatalogWaitsForTheDirectory",
	},
	{
		"all pages of a list are gathered", "the continue token is ignored",
		"gather.go", `list.Continue = page.GetContinue(); list.Continue == "" {`, `list.Continue = page.GetContinue(); list.Continue != "-" {`, "TestGatherReadsAllPages",
	},
	{
		"a failure of a peer is not an empty answer", "its error is ignored",
		"gather.go", "		if err != nil {\n			return nil, err\n		}\n		for i", "		if err != nil {\n			return nil, nil\n		}\n		for i", "TestGatherTellsWhatIsMissing",
	},
	{
		"the regions of which nothing was learned are named", "they are left out",
		"gather.go", "g.Unanswered = append(g.Unanswered, p.Regions...)", "_ = p.Regions", "TestGatherTellsWhatIsMissing",
	},
	{
		"a peer that does not answer is unknown, not missing", "its cached state counts",
		"presence.go", "	case s.err != nil:\n		return v1alpha1.AccountReasonNoAnswer, brief(s.err.Error())\n", "", "TestJudge",
	},
	{
		"an operation that failed is tried again after a pause", "it is tried at once",
		"replicate.go", "		t.failed = true\n", "", "TestReplicatorPausesAfterAnAbortedAdd",
	},
	{
		"an add that comes to nothing is tried again after pauses that grow", "each pause is two seconds",
		"replicator.go", "length = min(max(2*was.length, settle), slowest)", "length = settle", "TestReplicatorPausesAfterAnAbortedAdd",
	},
	{
		"a changed Account does not wait for the pause after the add of another content", "it does",
		"replicate.go", "err != nil || p.of != \"\" && p.of != digest", "err != nil", "TestReplicatorPausesAfterAnAbortedAdd",
	},
}
