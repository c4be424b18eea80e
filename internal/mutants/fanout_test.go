// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var fanoutMutants = []mutant{
	{
		"an entry stores the ring as soon as it is known", "only if it was known when the operation was submitted",
		"runner.go", "			r.journal.Origin = r.executor.clusters.identities.origin()\n", "", "TestAnEntryStoresTheRingThatAnswersLate",
	},
	{
		"a removal in a peer that is being brought back is no plain success", "it is reported as committed",
		"conclude_error.go", "		case result.Reason == protocol.Restored && c.r.machine.Op.Action == protocol.Remove:\n			return c.rejoining(region.PeerName(result.Peer))\n", "", "TestAnOperationSaysThatItsHomeIsBeingBroughtBack",
	},
	{
		"a deletion names the resourceVersion that was read", "it names the UID alone",
		"caller.go", "Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &command.RV},", "Preconditions:     &metav1.Preconditions{UID: &uid},", "TestADeletionHasPreconditions",
	},
	{
		"a deletion names the UID that was read", "it names neither UID nor resourceVersion",
		"caller.go", "Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &command.RV},", "GracePeriodSeconds: new(int64(len(uid) - len(uid))),", "TestADeletionHasPreconditions",
	},
	{
		"a type that is not served is not an absent object", "any 404 is an absence",
		"classify.go", "return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)", "return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) && apierrors.IsNotFound(err)", "TestATypeThatIsNotServedIsNoAbsence",
	},
	{
		"a write whose answer was lost may have had its effect", "it counts as not applied",
		"classify.go", "	case a.code == 0 && a.sent:\n		return protocol.Unknown, protocol.Unavailable\n", "", "TestAnswers",
	},
	{
		"the answer to a repeated write says nothing about the first", "it is believed",
		"classify.go", "	case a.repeated:\n		// The first of the sent requests may have been applied.\n		return protocol.Unknown, protocol.Unavailable\n", "", "TestAnswers",
	},
	{
		"a server error after a write is not a refusal", "it counts as one",
		"classify.go", "	case a.vague():\n		return protocol.Unknown, protocol.Unavailable\n", "", "TestAnswers",
	},
	{
		"all pages of a list are read", "the continue token is ignored",
		"survey.go", `opts.Continue = list.GetContinue(); opts.Continue == "" {`, `opts.Continue = list.GetContinue(); opts.Continue != "-" {`, "TestManyPagesHaveTimeEach",
	},
	{
		"a page that fails is not the end of a list", "the pages before the failure count",
		"survey.go", `		if err != nil {
			return nil, protocol.PeerSet{}, explain(peer, "list "+kind.Resource.Resource, err)
		}
`, `		if err != nil {
			return items, set.view, nil
		}
`, "TestAListThatFailsIsNotEmpty",
	},
	{
		"finalizers of others stay on the object", "they are removed with ours",
		"translate.go", "return f == v1alpha1.PrimaryFinalizer })", "return f != \"\" })", "TestAnAdoptionKeepsTheFinalizersOfOthers",
	},
	{
		"an entry whose reservation may yet appear stays for MaxInFlight", "it is ended at once",
		"attempt.go", "case nothing && idle() > maxInFlight:", "case nothing && idle() >= 0:", "TestFateOf",
	},
	{
		"an entry that came to nothing is not recovered again within MaxInFlight", "it is",
		"recover.go", "&& !(o.nothing && o.idle <= inFlight)", "&& (o.idle >= 0 || inFlight > 0)", "TestDue",
	},
	{
		"an entry that was just recovered rests for a lease", "it is recovered with each operation",
		"recover.go", "o.lapsed && now.After(o.rest)", "o.lapsed", "TestDue",
	},
	{
		"an object without its owner is confirmed live in all peers before it is reported", "the list is believed",
		"orphans.go", "if !n.orphan(ctx, s, peer, m) {", "if false {", "TestAnAuditBesideARemovalFindsNothing",
	},
	{
		"an attempt after giving way has an operation ID of its own", "it has that of the attempt before",
		"submit.go", "			j.Operation.ID = newOperationID(time.Now())\n", "", "TestEachAttemptIsAnOperationOfItsOwn",
	},
	{
		"each request to a peer has a deadline", "it has that of the operation",
		"execute.go", "call, cancel := context.WithTimeout(ctx, limit)", "call, cancel := context.WithTimeout(ctx, 1000*limit)", "TestASilentWriteIsNoFrozenPeer|TestEveryFailureNamesPeerAndCause",
	},
	{
		"a peer that let a call time out is not asked again at once", "it is",
		"reach.go", "	if ago < reserve {\n		return 0\n	}\n", "	if ago < 0 {\n		return 0\n	}\n", "TestHastily",
	},
	{
		"a log that fails is not taken for written", "its error is swallowed",
		"execute.go", "	return logged(err)\n", "	return logged(nil)\n", "TestAFailingLogIsNamed|TestLogInDoubtBeforeTheCommit",
	},
	{
		"the answer of another cluster under a peer's name does not count", "it does",
		"execute.go", "		if err := r.executor.clusters.trust(ctx, conn); err != nil {\n			return untrusted(err), err\n		}\n", "", "TestNothingIsAskedOfAClusterBeforeItIsKnown",
	},
	{
		"a reply is dropped if its peer proves to be the wrong cluster meanwhile", "its identity is checked before the request only",
		"execute.go", "if _, wrong := r.executor.clusters.identities.standing(conn); wrong != nil {", "if wrong := error(nil); wrong != nil {", "TestAClusterThatIsRefutedWhileItAnswers",
	},
	{
		"two names of one cluster are refused", "UIDs of clusters are not compared",
		"clusters.go", "if other, ok := first[o.Value]; ok {", "if other, ok := first[o.Value]; ok && other == o.Peer {", "TestTwoNamesForOneClusterAreRefused",
	},
	{
		"a log of another ring begins nothing", "operations begin in it",
		"submit.go", "if errors.Is(waited, ErrOtherLog) {", "if false {", "TestALogOfAnotherRingIsRefused|TestAnUnsignedLogOfAnotherRingIsRefused",
	},
	{
		"an idempotency key is of one request", "an open operation of another request answers it",
		"idempotency.go", "case k.open && !k.same:", "case k.open && !k.same && k.signed:", "TestKeySteps",
	},
	{
		"an entry of a shared log is left to its coordinator for a lease", "it is taken over at once",
		"shared.go", "return w.still() >= l.opts.LeaseTimeout", "return w.still() >= 0", "TestSharedLogLeavesTheLiving|TestRescueLeavesTheLiving",
	},
	{
		"an entry is taken over only if its version has not changed", "a conflict of the log is swallowed",
		"shared.go", "	case errors.Is(err, wal.ErrStale):\n		return e, errAtWork\n", "	case errors.Is(err, wal.ErrStale):\n		return e, nil\n", "TestAnEntryThatMovedIsNotSeized",
	},
	{
		"a coordinator that waits shows signs of life in a shared log", "it does not",
		"entry.go", "	wg.Go(func() { l.keepAlive(ctx) })\n", "", "TestSharedLogWhileItWaits",
	},
	{
		"a coordinator whose entry another one ended does not call it its own ending", "the outcome in the log is not compared",
		"entry.go", "case ended.ID != e.ID || !bytes.Equal(ended.Outcome, outcome):", "case ended.ID != e.ID && !bytes.Equal(ended.Outcome, outcome):", "TestAnEndOfAnotherCoordinatorIsNotOurs",
	},
	{
		"another coordinator's operation is not aborted unless the caller says so", "it is",
		"abort.go", "		if !opts.Others {\n			return e.operation(), e.foreign(identity", "		if opts.Others && identity == \"\" {\n			return e.operation(), e.foreign(identity", "TestSharedLogAbortOfAnothers",
	},
	{
		"a release is for the object whose UID it names", "any release counts",
		"hold.go", `return uid != "" && uid == string(obj.GetUID())`, `return uid != ""`, "TestAReleaseLetsAHeldRemovalGo|TestTwoCoordinatorsMeetAHeldRemoval",
	},
	{
		"a release that meets a conflict is tried again", "the conflict is swallowed",
		"hold.go", "		if !apierrors.IsConflict(err) {\n			return err\n		}\n", "		if !apierrors.IsConflict(err) {\n			return err\n		}\n		if obj != nil {\n			return nil\n		}\n", "TestAReleaseMeetsAConflict",
	},
	{
		"a release after a conflict is for the object that was released", "the next object of the name is released",
		"hold.go", "		case now.GetUID() != obj.GetUID():\n			return ErrNotHeld\n", "", "TestAReleaseMeetsAConflict",
	},
	{
		"processes that make a ring at once agree on one ID", "each believes its own",
		"peers.go", "		return got.Spec.Ring, nil\n", "		return ring, nil\n", "TestTwoProcessesMakeOneRing",
	},
	{
		"a type that is not served does not leave a namespace empty", "the failure of a list is an empty list",
		"occupants.go", "		if err != nil {\n			return nil, err\n		}\n		for i", "		if err != nil {\n			continue\n		}\n		for i", "TestTheDeletionOfTheTypeIsHeld|TestADeletionIsHeldWhileAPeerIsSilent",
	},
	{
		"a guard carries no payload", "it is born with the object's content",
		"translate.go", "	if o.Guard(protocol.Mode(k.Mode)) {\n		return k.bornGuard(key, o)\n	}\n", "", "TestAGuardCarriesNoPayload",
	},
	{
		"a removal by UID leaves another object of the name alone", "the UID is not passed on",
		"request.go", "UID:         string(req.uid),", "UID:         string(req.uid[:0]),", "TestRemoveByTheUIDOfAnEarlierPrimary",
	},
	{
		"a removal reports another committed object of the name", "it reports nothing",
		"internal/protocol/clear.go", "	if m.Primary.UID != \"\" && s.rivals(o) {", "	if false {", "TestARemovalReportsAnotherObjectOfTheName",
	},
}
