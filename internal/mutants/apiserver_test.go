// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var apiserverMutants = []mutant{
	{
		"a right over all regions is a right in every region", "one region is enough",
		"review_merge.go",
		`"allowed": len(granted) > 0 && len(refused) == 0`, `"allowed": len(granted) > 0`, "TestReviewsAreMerged",
	},
	{
		"a right is not known while a region that may refuse it is silent", "the other regions decide",
		"review_merge.go",
		"	case len(silent) > 0:\n		return nil, unknown(silent)\n	case len(granted) == 0:", "	case len(granted) == 0:", "TestReviewsAreMerged",
	},
	{
		"a qualified name is a question to its region", "all regions are asked about it",
		"review.go",
		"if at != k.String() {", `if at == "" {`, "TestReviews",
	},
	{
		"a region that is away keeps its types in discovery", "they are missing",
		"discovery.go",
		"served[i] = h.known.get(k)", "_ = h.known.get(k)", "TestDiscovery",
	},
	{
		"an object in protobuf with unknown fields is refused", "the fields are lost",
		"body.go",
		"if !bytes.Equal(text, again.Bytes()) {", "if false {", "TestProtobufThatIsRefused",
	},
}

var coordinatedMutants = []mutant{
	{
		"an outcome that is not known is a 504", "it is a conflict",
		"failure.go",
		"return &apiserver.FanoutError{Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout, Doubt: true,", "return &apiserver.FanoutError{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Doubt: true,", "TestInDoubt",
	},
	{
		"a removal of one version removes no other version", "the version is not passed on",
		"coordinated.go",
		"	case !exact:\n", "	case true:\n", "TestRivals|TestPreconditions",
	},
	{
		"an update replaces the revision that was read", "it replaces any revision",
		"coordinated.go",
		"fanout.AddOptions{UID: base.GetUID(), Revision: w.revision(kind, base)}", "fanout.AddOptions{UID: base.GetUID()}", "TestRivals|TestPreconditions",
	},
	{
		"each peer that has a primary of the name counts", "the last one that was read counts",
		"coordinated.go",
		"found.Homes = append(found.Homes, peer)", "found.Homes = []region.PeerName{peer}", "TestARestoredRegionHasARemovedObject|TestARestoredRegionHasAnOlderHome",
	},
}
