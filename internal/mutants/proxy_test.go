// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

// This table leaves out the guards of identities and paths. A test in package proxy disables these
// guards at run time, one at a time.
var proxyMutants = []mutant{
	{
		"a caller who cannot be checked is asked to retry", "the caller is refused",
		"guards.go", "if errors.Is(err, region.ErrUnavailable) {", "if errors.Is(err, region.ErrUnavailable) && id.Flow() == \"\" {", "TestAnUncheckedCallerIsAskedToRetry",
	},
	{
		"a watch ends without an error when the gateway drains", "it is cut short",
		"drain.go", "err = io.EOF", "_ = io.EOF", "TestDraining",
	},
	{
		"a stream whose peer refuses input goes on to the end of its output", "it ends at once",
		"exchange.go", "case x.event.Upgraded:", "case false:", "TestOutputAfterTheInputIsRefused",
	},
	{
		"a request waits for its turn for a bounded time", "it waits for ever",
		"gate.go", "timer := time.NewTimer(g.patience)", "timer := time.NewTimer(1000 * g.patience)", "TestGate|TestRefusalsNameTheBound",
	},
	{
		"requests that may not even wait are refused", "they wait",
		"gate.go", "	if g.waiting.bindingBound(f) != free {\n		g.mu.Unlock()\n		return busy(held)\n	}\n", "", "TestGate|TestSharesOfTheGreedy",
	},
	{
		"callers that wait take turns", "the first caller's requests go first",
		"gate.go", "				behind = append(behind, l)\n", "				behind = append([]*line{l}, behind...)\n				return false\n", "TestLinesTakeTurns",
	},
	{
		"the place of a request that ended while it was let in is given back", "it is lost",
		"gate.go", "		g.busy.give(f)\n		g.admit()\n	default:", "		g.admit()\n	default:", "TestAPlaceThatIsGivenAtTheEndIsGivenBack",
	},
	{
		"a peer that is known to be silent is not asked by each request", "it is",
		"silence.go", "	if now.Sub(s.last[k]) >= retryUnwell {", "	if now.Sub(s.last[k]) >= 0 {", "TestAPeerThatIsKnownToBeSilent",
	},
	{
		"a peer that has answered just now is asked whatever its probes report", "its probes decide",
		"silence.go", "	if now.Sub(h.LastContact) < recentContact {\n		return false\n	}\n", "", "TestAPeerThatIsKnownToBeSilent",
	},
	{
		"a peer has a deadline for its answer", "it has none",
		"progress.go", "byPeer: p.limits.Answer,", "byPeer: 1000 * p.limits.Answer,", "TestPeersThatStall",
	},
	{
		"a client has a deadline for each piece of its body", "it has none",
		"progress.go", "byClient: p.limits.Body,", "byClient: 1000 * p.limits.Body,", "TestBodiesThatStall",
	},
	{
		"a client has a deadline for each piece that it takes", "it has none",
		"progress.go", "byReader: p.limits.Read}", "byReader: 1000 * p.limits.Read}", "TestClientsThatDoNotRead",
	},
	{
		"a stall is answered with its status", "the error of the transport is passed on",
		"progress.go", "	case !p.stalled:\n		return err\n", "	case !p.stalled || err != nil:\n		return err\n", "TestPeersThatStall|TestBodiesThatStall",
	},
	{
		"a body that is not read ends with the exchange", "its connection stays",
		"progress.go", "	if !u.whole && !u.progress.cut() {\n", "	if !u.whole && u.progress.cut() {\n", "TestPeersThatStall|TestAnEarlyAnswer|TestBodiesThatStall|TestStallsOverHTTP2",
	},
}
