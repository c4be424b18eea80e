// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// This table leaves out the guards of identities and paths. A test in package router disables these
// guards at run time, one at a time.
var routerMutants = []mutant{
	{
		"a resourceVersion of the former peer is not used at the new one", "it is passed on",
		"transport.go", "if t.history.foreign(conn, req) {", "if t.history.foreign(conn, req) && t == nil {", "TestClientFollowsItsRegion|TestListBesideAnEndedWatch",
	},
	{
		"a watch that a move ended does not go on at its version", "it does if the path was listed at the new peer",
		"history.go", "	if n := h.ended[path]; n > 0 && isWatch(req) {", "	if n := h.ended[path]; n < 0 && isWatch(req) {", "TestListBesideAnEndedWatch",
	},
	{
		"a watch ends in order when its region moves", "it breaks off",
		"transport.go", "				cancel(errMoved)\n", "				cancel(context.Canceled)\n", "TestClientFollowsItsRegion|TestInformerFollowsARegion",
	},
	{
		"a resolver that does not answer says nothing about a region", "its region is unknown",
		"resolve.go", "unknown := errors.Is(err, region.ErrUnknownRegion)", "unknown := err != nil && !errors.Is(err, errNotMade)", "TestNoAnswerIsNotUnknown",
	},
	{
		"a question to the resolver has a deadline of its own", "it has none",
		"resolve.go", "context.WithTimeout(context.WithoutCancel(ctx), a.opts.Timeout)", "context.WithTimeout(context.WithoutCancel(ctx), 1000*a.opts.Timeout)", "TestAResolverThatHangsHasItsOwnDeadline",
	},
	{
		"a question that failed is not asked again at once", "it is",
		"resolve.go", "m.until = time.Now().Add(min(failurePause, a.opts.Negative))", "m.until = time.Now().Add(0 * min(failurePause, a.opts.Negative))", "TestNoAnswerIsNotUnknown|TestForbiddenIsAnErrorOfItsOwn",
	},
	{
		"one question is asked at a time for a region", "each caller asks",
		"resolve.go", "if f, ok := a.flights[k]; ok {", "if f, ok := a.flights[k]; ok && f.err != nil {", "TestOneQuestionAtATime",
	},
	{
		"the number of remembered unknown names is bounded", "it grows",
		"resolve.go", "if len(a.misses) >= maxMisses {", "if len(a.misses) >= maxMisses<<20 {", "TestAnyNumberOfUnknownNames",
	},
	{
		"a cached route does not lead to another cluster of the peer's name", "UIDs are not compared",
		"table.go", `return ok && c.UID != "" && p.UID != "" && c.UID != p.UID`, `return ok && c.UID == "-" && p.UID != "" && c.UID != p.UID`, "TestARouteToAnotherClusterOfThatName",
	},
	{
		"a region that the directory no longer lists is not served from the cache", "it is",
		"table.go", "if c.Source && snapshot.Generation() > 0 {", "if c.Source && snapshot.Generation() == 0 {", "TestRoutingWithoutTheCentralPlane|TestRoutesBeforeTheFirstSnapshot",
	},
	{
		"no region is unknown before the directory has listed its peers", "it is",
		"router.go", "if t.generation() == 0 {", "if t == nil {", "TestNoRegionIsUnknownBeforeTheFirstSnapshot",
	},
	{
		"a file of routes that does not match its checksum is damaged", "it is believed",
		"cachefile.go", "case file.Sum != sum(file.Routes):", `case file.Sum == "":`, "TestCacheFile",
	},
	{
		"a file of a later version is left as it is", "it is set aside as damaged",
		"cachefile.go", "if errors.Is(err, errLater) {", "if errors.Is(err, errLater) && path == \"\" {", "TestCacheFile",
	},
	{
		"requests of a region wait within its budget", "any number is sent",
		"budget.go", "if b.waiting.Load() > 0 || b.places != nil && !b.places.TryAcquire(1) {", "if b.waiting.Load() > 0 {", "TestTroubleStaysInItsRegion",
	},
	{
		"requests beyond those that may wait are refused", "all wait",
		"budget.go", "b.limits.Waiting >= 0 && n > int64(b.limits.Waiting) {", "b.limits.Waiting >= 0 && n < 0 {", "TestTroubleStaysInItsRegion",
	},
	{
		"open streams of a region are bounded", "they are not",
		"budget.go", "b.limits.Streams >= 0 && n > int64(b.limits.Streams) {", "b.limits.Streams >= 0 && n < 0 {", "TestStreamsTakeNoPlaceAndAreCounted",
	},
	{
		"a place is given back when a response was read", "it is given back when the body is closed",
		"budget.go", "	if err != nil {\n		b.give()\n	}\n", "", "TestPlacesAreGivenBack",
	},
	{
		"a peer that refuses the router's credentials is not the caller's refusal", "its 401 is passed on",
		"transport.go", "	if err := accepted(t.id, resp); err != nil {\n		follow.stop()\n		return nil, err\n	}\n", "", "TestWhoIsRefused|TestRefusedCredentialsOfAClient",
	},
}
