// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var regionMutants = []mutant{
	{
		"kept credentials are used for the same cluster only", "they are used for any cluster of the name",
		"keepfile.go", ` && p.UID != "" && p.UID == before.UID`, "", "TestKeptPeers",
	},
	{
		"a peer whose credentials are withheld gets no kept ones", "it gets them",
		"keepfile.go", "p.Credentials.err != nil && !p.Credentials.withheld", "p.Credentials.err != nil", "TestKeptPeers",
	},
	{
		"only credentials that a kubeconfig expresses are kept", "others are kept as far as it does",
		"keepfile.go", "err != nil || back.fingerprint != c.fingerprint", `err != nil || back.fingerprint == ""`, "TestCredentialsThatCannotBeKept",
	},
	{
		"new credentials that reach another cluster are refused", "the UIDs of the clusters are not compared",
		"uid.go", "if known := *c.uid.Load(); known != uid {", "if known := *c.uid.Load(); known == \"\" {", "TestRotateRefuses|TestNothingIsSentToAnotherCluster",
	},
	{
		"new credentials are used once their cluster was identified", "they are used at once",
		"conn.go", "	if _, err := c.identify(ctx, next); err != nil {\n		return false, err\n	}\n", "", "TestRotateRefuses|TestRotationWithoutTheRightToReadTheIdentity",
	},
	{
		"nothing is sent before the cluster that a Peer names was seen", "requests are sent at once",
		"uid.go", "if !c.pinned || g.uid.Load() != nil {", "if !c.pinned || g != nil {", "TestNothingIsSentToAnotherCluster",
	},
	{
		"one cluster under two names counts once", "each name is healthy",
		"probe.go", "first != conn.Peer() {", "first == \"\" {", "TestOneClusterUnderTwoNames",
	},
	{
		"a redirect is not followed", "it is passed on",
		"transport.go", "if err == nil && isRedirect(resp) {", "if err == nil && isRedirect(resp) && resp.StatusCode == 0 {", "TestRedirectIsRefused",
	},
	{
		"a peer that left its ring gets no requests", "it does",
		"transport.go", "	if c.retired.Load() {\n		discard(req)", "	if c.retired.Load() && rt == nil {\n		discard(req)", "TestConnOfAPeerThatLeft",
	},
	{
		"a caller's request has a token of its own", "the peer's credentials are used",
		"transport.go", "	return t.conn.send(g, asCaller, req)\n}\n\n// gen", "	return t.conn.send(g, asPeer, req)\n}\n\n// gen", "TestCallerIsNeverThePeer",
	},
	{
		"a request whose body cannot be read again is not repeated", "it is repeated without its body",
		"transport.go", "	if req.GetBody == nil {\n		return nil, false\n	}\n	body, err := req.GetBody()\n	if err != nil {\n		return nil, false\n	}\n", "	if req.GetBody == nil {\n		return req, true\n	}\n	body, err := req.GetBody()\n	if err != nil {\n		return nil, false\n	}\n", "TestBodyThatCannotBeRewoundIsNotSentAgain",
	},
	{
		"a request that was refused once says so no longer when it is repeated", "the attempt keeps its record",
		"transport.go", "			attempt.reset()\n", "", "TestARequestThatIsSentAgainIsTheAttempt",
	},
	{
		"refused requests wait for newer credentials for a bounded time", "they wait ten times as long",
		"transport.go", "g.await(req.Context(), t.conn.opts.Await)", "g.await(req.Context(), 10*t.conn.opts.Await)", "TestAwaitStartsAnewAfterAnAnswer|TestUnauthorizedIsAbsorbedOnce",
	},
	{
		"requests with replaced credentials end after Drain", "they go on",
		"generation.go", "		time.AfterFunc(drain, g.end)\n", "		_ = drain\n", "TestDrain",
	},
	{
		"a request that the transport repeated is marked", "it is not",
		"attempt.go", "			a.repeated.Store(true)\n", "", "TestRepeatedByTheTransport",
	},
	{
		"a probe has a deadline", "it has that of the ring",
		"probe.go", "	ctx, cancel := context.WithTimeout(ctx, p.opts.Timeout)\n	defer cancel()\n	conn := p.member.conn\n	_, err", "	ctx, cancel := context.WithTimeout(ctx, 1000*p.opts.Timeout)\n	defer cancel()\n	conn := p.member.conn\n	_, err", "TestDeadPeerDelaysNobody|TestRingOfServers",
	},
	{
		"a peer goes down after several failures in a row", "one is enough",
		"probe.go", "(certain || p.failures >= p.opts.Failures)", "(certain || p.failures >= 1)", "TestProbesInARow",
	},
	{
		"a peer that fails is probed ever less often", "it is probed as often as at first",
		"probe.go", "backoff.After(failures, o.Interval/10", "backoff.After(min(failures, 1), o.Interval/10", "TestBackoffDoubles",
	},
	{
		"an engagement that ends at once begins again after pauses that grow", "all pauses are as long as the first",
		"engage.go", "wait := delays.Step()", "wait := delays.Duration", "TestEngagePauses",
	},
	{
		"an engagement that lasted counts as a success", "the next pause is as long as after failures",
		"engage.go", "		if time.Since(began) > engageMaxBackoff {\n			delays = fresh\n		}\n", "		_ = began\n", "TestEngagePauses",
	},
	{
		"an engagement that ended begins again after a pause", "the pause is a fiftieth",
		"engage.go", "timer := time.NewTimer(jitter(wait))", "timer := time.NewTimer(jitter(wait) / 50)", "TestEngage",
	},
	{
		"a file that is being written takes no peer away", "a list without peers is one of none",
		"fromfile.go", "if list.Peers == nil {", "if list.Peers == nil && f.path == \"\" {", "TestFromFile",
	},
	{
		"a directory that is empty for a moment takes no peer away", "it is a list of none",
		"fromdir.go", "	if len(peers) == 0 {\n", "	if len(peers) < 0 {\n", "TestFromDir",
	},
	{
		"a kubeconfig runs only programs that Trust.Exec names", "it runs any",
		"kubeconfig.go", "filepath.Clean(command) == command && slices.Contains(t.Exec, command)", "filepath.Clean(command) == command && !slices.Contains(t.Exec, \"\")", "TestParseKubeconfigRefuses|TestTrust",
	},
	{
		"a plugin without a directory is one allowed program", "it is any of several",
		"kubeconfig.go", "			if path != \"\" && path != allowed {\n", "			if path != \"\" && path == allowed {\n", "TestTrust",
	},
	{
		"a kubeconfig names no local file as its token", "it may",
		"kubeconfig.go", `{"tokenFile", u.TokenFile != "",`, `{"tokenFile", false,`, "TestParseKubeconfigRefuses",
	},
	{
		"a reply after the context has ended does not count", "it counts",
		"each.go", "(err == nil || errors.Is(err, context.Canceled)", "(errors.Is(err, context.Canceled)", "TestLateAnswerIsNoAnswer",
	},
	{
		"a peer whose answer is required and that is not configured is an error", "it is left out",
		"each.go", "if _, ok := snapshot.Peer(name); !ok {", "if _, ok := snapshot.Peer(name); !ok && name == \"\" {", "TestEachPolicies",
	},
	{
		"the body of an answer to a probe is bounded", "it is read whole",
		"uid.go", "io.ReadAll(io.LimitReader(resp.Body, maxAnswer))", "io.ReadAll(io.LimitReader(resp.Body, maxAnswer<<20))", "TestAnswersOfPeersAreBounded",
	},
	{
		"a client for servers that are not trusted follows no redirect", "it follows them",
		"untrusted.go", "return http.ErrUseLastResponse", "return nil", "TestUntrustedClientBelievesNothing",
	},
	{
		"a client for servers that are not trusted bounds the header", "net/http's bound applies",
		"untrusted.go", ", MaxResponseHeaderBytes: untrustedHeader,", ", MaxResponseHeaderBytes: untrustedHeader << 8,", "TestUntrustedClientBelievesNothing",
	},
	{
		"a client for servers that are not trusted uses no proxy", "it uses that of the environment",
		"untrusted.go", "		DialContext: dial,", "		Proxy: http.ProxyFromEnvironment, DialContext: dial,", "TestUntrustedClientUsesOnlyTheGivenDialer",
	},
}
