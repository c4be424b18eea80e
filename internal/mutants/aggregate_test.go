// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var aggregateMutants = []mutant{
	{
		"tokens are authentic", "the signature is compared with itself",
		"token.go",
		"subtle.ConstantTimeCompare(key.sum(nil, signed), mac) == 1", "subtle.ConstantTimeCompare(mac, mac) == 1", "TestTokensAreAuthentic",
	},
	{
		"tokens of every key are accepted", "only the first key is tried",
		"token.go",
		"for _, key := range k.all() {", "for _, key := range k.all()[:1] {", "TestRollingRestarts",
	},
	{
		"a token keeps the seed of its fingerprints when the keys rotate", "the seed of the new key is taken",
		"token.go",
		"if seed == 0 || seed == key.seed {", "if true {", "TestRollingRestarts",
	},
	{
		"a token of another version of Atoll leads to a new list", "it is malformed",
		"token.go",
		"	case data[0] != kind:\n		return nil, 0, errForeign\n", "	case data[0] != kind:\n		return nil, 0, errMalformed\n", "TestTokensOfOtherVersions",
	},
	{
		"a continue token is good for its own list only", "the query in the token is not compared",
		"list.go",
		"c.query != l.q.hash()", "c.query == [8]byte{}", "TestContinueTokensThatAreRefused",
	},
	{
		"all pages are at the versions of the first", "later pages are read at the newest version",
		"list.go",
		"opts.ResourceVersion, opts.ResourceVersionMatch = c.sources[c.next].rv, metav1.ResourceVersionMatchExact", "opts.ResourceVersion = \"\"", "TestPagesAreOneList",
	},
	{
		"a list needs as many regions as the policy requires", "the policy is not asked",
		"list.go",
		"!policy.met(outcomes) ||", "policy.quorum < 0 ||", "TestPolicies",
	},
	{
		"an empty list needs a region that listed nothing", "one region that answered suffices",
		"list.go",
		"|| !listed {", "|| !listed && len(l.sources) == 0 {", "TestAnEmptyListMeansEmpty",
	},
	{
		"a failure on the way to a region is not the region's answer", "it is taken for one",
		"outcome.go",
		"!errors.As(err, &way) && ", "(errors.As(err, &way) || true) && ", "TestOnlyARegionsAnswerIsNotFound|TestStateOfAFailureOnTheWay",
	},
	{
		"an error is passed on only if all regions return it", "the first region's error is passed on",
		"outcome.go",
		"i > 0 && status.Code != common.Code", "i < 0", "TestPartialErrorsAreWhatAllSay",
	},
	{
		"errors name no peer", "the error of the peer is in the text",
		"outcome.go",
		`return fmt.Sprintf("region %s: %s", o.Region, o.State)`, `return fmt.Sprintf("region %s: %v", o.Region, o.Err)`, "TestRegionsOfARouter",
	},
	{
		"one cluster that serves two regions is asked once", "each region asks it",
		"api.go",
		"if taken[key] {", "if false {", "TestRegionsOfARouter",
	},
	{
		"the watch of a region begins before its list", "the list comes first",
		"feed.go",
		`	w, err := f.watch(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := f.list(ctx, at); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
`, `	if err := f.list(ctx, at); err != nil {
		return nil, err
	}
	return f.watch(ctx, at)
`, "TestRestoredAtAnyRequest",
	},
	{
		"an interrupted watch compares the next list with the objects that it delivered", "it continues without a list",
		"feed.go",
		"	if err := f.list(ctx, at); err != nil {\n		w.stop()", "	if f.at == at && !f.unknown {\n		return w, nil\n	}\n	if err := f.list(ctx, at); err != nil {\n		w.stop()", "TestRestoredAtAnyRequest",
	},
	{
		"a watch that resumes compares the list with the objects delivered before", "the fingerprint of the delivered objects is not compared",
		"feed.go",
		"f.stamp != 0 && f.stamp != was.stamp()", "f.stamp == 1", "TestRestoredAtAnyRequest",
	},
	{
		"a region that was restored to before the last event is not waited for", "its versions are waited for",
		"feed.go",
		"return comparable && ok && n < m", "return comparable && ok && n > m+1<<40", "TestRestoredAndNotAsFar",
	},
	{
		"an interrupted repair continues, and ends in one state", "the target changes only once nothing is missing",
		"feed.go",
		"f.at = at // if only", "defer func() {\n\t\t\tif len(f.ledger.missing()) == 0 {\n\t\t\t\tf.at = at\n\t\t\t}\n\t\t}() // if only", "TestARepairIsGoneOnWith",
	},
	{
		"a version in the middle of a repair resumes nothing", "such a version is issued",
		"feed.go",
		"n.own, n.stamp = n.object.rv, c.entry.print\n", "n.at, n.own, n.stamp = f.at, n.object.rv, 0\n", "TestResumeInTheMiddleOfARepair",
	},
	{
		"a repaired object has a resourceVersion of its own, though its number recurs after a restore", "the number decides",
		"feed.go",
		"n.own, n.stamp = n.object.rv, c.entry.print\n", "n.own, n.stamp = n.object.rv, 0*c.entry.print\n", "TestARepairedObjectHasAnotherResourceVersion",
	},
	{
		"a watch does not resume in the middle of a repair", "the missing version is accepted",
		"stream.go",
		`p.rv == "" || `, "", "TestResumeInTheMiddleOfARepair",
	},
	{
		"content is compared, not versions alone", "only versions are compared",
		"ledger.go",
		"before.rv == now.rv && before.print == now.print", "before.rv == now.rv", "TestLedger",
	},
	{
		"an object in another's place is another object", "UIDs are not compared",
		"ledger.go",
		"case before.uid != now.uid:", "case before.uid != before.uid:", "TestLedger",
	},
	{
		"a deletion ends the object that was delivered, not another of its name", "UIDs are not compared",
		"ledger.go",
		"if !ok || before.uid != o.uid {", "if !ok {", "TestLedger",
	},
	{
		"an object that a list lacks is deleted", "no list deletes",
		"ledger.go",
		"if e.pass != l.pass {", "if e.pass > l.pass {", "TestModel|TestLedger|TestRestoredAtAnyRequest",
	},
	{
		"the objects of a region that leaves are deleted", "they are not",
		"stream.go",
		"range f.ledger.all() {", "range f.ledger.all()[:0] {", "TestRegionsJoinAndLeaveWithoutCuttingTheStream",
	},
	{
		"the initial events end once every region has delivered its objects", "one region suffices",
		"stream.go",
		"!s.policy.initial().met(outcomes) {", "!BestEffort().met(outcomes) {", "TestAnInformerSeesNoFalseDeletion",
	},
	{
		"an informer needs the regions that have delivered", "one region suffices",
		"policy.go",
		"if !ok && p.delivered.has(p.query, k) {", "if !ok && k == (region.Key{}) {", "TestAnInformerStartsWithoutARegion|TestDelivered",
	},
	{
		"no bookmark comes before the initial events have ended", "bookmarks come at any time",
		"stream.go",
		"s.positionChanged && !s.initial && ", "s.positionChanged && ", "TestNoBookmarkInTheMiddleOfTheInitialEvents",
	},
	{
		"each bookmark has a kind", "bookmarks come before the kind is known",
		"stream.go",
		"!s.initial && !s.kind.Empty() && ", "!s.initial && ", "TestNoBookmarkOfNoKind",
	},
	{
		"a consumer that takes nothing loses the watch", "its patience is 1000 times longer",
		"stream.go",
		"time.NewTimer(s.api.opts.Patience)", "time.NewTimer(1000 * s.api.opts.Patience)", "TestASlowConsumerLosesTheWatchInAnOrderlyWay",
	},
	{
		"watches are shared within one identity", "all callers share",
		"sharing.go",
		"cacheKey{o.Identity, ", "cacheKey{\"\", ", "TestOtherIdentitiesShareNothing",
	},
	{
		"a watch follows a shared one only if its own request is accepted", "the answer is ignored",
		"follow.go",
		"	if err != nil {\n		return true, err\n	}\n	rv, stamp", "	if err != nil {\n		now = \"0\"\n	}\n	rv, stamp", "TestASharedWatchNeedsTheRightToRead",
	},
	{
		"a revoked right ends the events of a shared watch", "the region is asked, and its answer ignored",
		"watchcache.go",
		"			c.refused = true\n", "			c.refused = false\n", "TestASharedWatchNeedsTheRightToRead",
	},
	{
		"shared initial events are as new as the request", "any state will do",
		"watchcache.go",
		"	if !current {\n", "	if c.at == \"\" {\n", "TestSharedInitialEventsAreFresh",
	},
	{
		"a version within a repair has no place in the history", "it has",
		"history.go",
		"		case n.object != nil:\n			after = \"\"\n", "", "TestHistoryFindsAVersion",
	},
	{
		"a stamp finds the state that has it", "the version decides",
		"history.go",
		"n.at != \"\" && n.stamp == stamp {", "n.at != \"\" {", "TestHistoryFindsTheStateOfAConsumer",
	},
	{
		"a cache has no more bytes than the limit", "it has",
		"watchcache.go",
		"c.used.Add(c.bytes-before) <= c.limit", "c.used.Add(c.bytes-before) <= c.limit<<20", "TestAWatchContinuesWithoutItsCache",
	},
	{
		"a part of the shared initial events is not the cache's state", "it counts as no state",
		"follow.go",
		"	f.unknown, f.at = true, \"\" // until", "	f.at = \"\" // until", "TestARegionLeavesDuringSharedInitialEvents",
	},
	{
		"a consumer of a shared watch whose region moves gets the difference", "it has to list",
		"follow.go",
		"if l := f.cache.ledger(f.next); l != nil {", "if l := f.cache.ledger(f.next); l != nil && f.api == nil {", "TestASharedRegionMoves",
	},
	{
		"a region that returns is asked at once", "the recovery is not listened to",
		"feed.go",
		"	case <-recovered:\n		return true\n", "", "TestARecoveredRegionIsNotWaitedFor",
	},
	{
		"a request to a region that went away is sent again when it returns", "the recovery does not cancel it",
		"attempt.go",
		"		case <-recovered:\n			cancel(errRecovered)\n", "", "TestARegionThatReturnsDeliversWithinTheProbeInterval",
	},
	{
		"a region that is frozen is not asked again and again", "its state is not consulted",
		"list.go",
		"			err := s.unreachable()\n", "			var err error\n", "TestAFrozenRegionCostsAListLittle",
	},
	{
		"an answer has no more bytes than the limit", "the limit is a million times higher",
		"budget.go",
		"case h.used+size > h.limit:", "case h.used+size > h.limit<<20:", "TestAHostileAnswerIsGivenUp|TestLargeObjectsAreReadInSmallerPages",
	},
	{
		"a page that waits to be passed on counts towards the budget", "pages read ahead do not count",
		"list.go",
		"if err == nil && l.readAhead {", "if err == nil {", "TestABudgetIsShared",
	},
	{
		"the region's annotation is never stored", "it is not removed from writes",
		"object.go",
		"delete(annotations, RegionAnnotation)", "", "TestWritesGoToTheObjectsOwnRegion",
	},
	{
		"a version of another region is a conflict", "only versions of no region are",
		"write.go",
		"if a.version.at[a.version.origin].id != s.id {", "if a.version.origin < 0 {", "TestWritesGoToTheObjectsOwnRegion|TestNamesInSeveralRegions",
	},
	{
		"a name that several regions have is a conflict", "only the first region is written to",
		"write.go",
		"if len(all) > 1 {", "if len(all) > 1<<20 {", "TestNamesInSeveralRegions",
	},
	{
		"a write by name alone needs an answer of all regions", "the policy is not asked",
		"write.go",
		"!policy.met(outcomes) || len(all) == 0 && !All().met(outcomes)", "len(all) == 0 && !All().met(outcomes)", "TestNamesInSeveralRegions",
	},
	{
		"a table has the columns of all regions on each page", "the continue token does not keep them",
		"list.go",
		"l.cursor.columns = l.encoder.unite(l.first)", "l.encoder.unite(l.first)", "TestTablesOfDifferentColumnsAreUnited",
	},
	{
		"a list as JSON holds the next page of one region only within the budget", "the page that is read ahead does not count",
		"budget.go",
		"	if !a.account.tryAcquire(reserve) {\n		return nil\n	}\n	return &hold{account: a.account, limit: a.opts.MaxAnswer, taken: reserve}", "	return &hold{account: a.account, limit: a.opts.MaxAnswer}", "TestTheNextPageCountsTowardsTheBudget",
	},
}
