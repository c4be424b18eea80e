// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var clusterviewMutants = []mutant{
	{
		"a syncer needs the right to its SyncTarget", "an authenticated caller is enough",
		"serve.go",
		"if err := h.may(r.Context(), id, at); err != nil {", "if err := h.may(r.Context(), id, at); false {", "TestRights|TestPaths",
	},
	{
		"a granted right is one to a SyncTarget", "it is one to all",
		"rights.go",
		"g := grant{id.Fingerprint(), at}", "g := grant{id.Fingerprint(), address{region: at.region}}", "TestPaths",
	},
	{
		"a selector that is passed on selects one cluster", "it selects several",
		"placement.go",
		"r.Values().Len() == 1 && r.Values().Has(want)", "r.Values().Has(want)", "TestImpliedSelectorsSelectPlacedObjects",
	},
	{
		"a selector that is passed on selects the own cluster", "it selects any cluster",
		"placement.go",
		"r.Values().Len() == 1 && r.Values().Has(want)", "r.Values().Len() == 1 && want != \"\"", "TestImpliedSelectorsSelectPlacedObjects",
	},
	{
		"a watch without such a selector is refused", "it is passed on",
		"serve.go",
		"	case q.implied(selector):\n", "	case q.implied(selector), q.Verb == \"watch\":\n", "TestWatch",
	},
	{
		"a selector is given once", "the region may read another one",
		"serve.go",
		"if len(query[key]) > 1 {", "if false {", "TestPaths",
	},
	{
		"an object of another cluster is not found", "it is served",
		"read.go",
		"case !q.has(o):", "case false:", "TestReads",
	},
	{
		"a list has only objects of the cluster", "it has all",
		"read.go",
		"if o := &list.Items[i]; q.has(o) {\n			placed = append(placed, o.Object)", "if o := &list.Items[i]; o != nil {\n			placed = append(placed, o.Object)", "TestReads",
	},
	{
		"a list of metadata has only objects of the cluster", "it has all",
		"read.go",
		"if o := &list.Items[i]; q.has(o) {\n				placed = append(placed, o)", "if o := &list.Items[i]; o != nil {\n				placed = append(placed, o)", "TestReads",
	},
	{
		"a write changes no field of others", "it changes all",
		"write.go",
		"field != \"\" {", "false && field != \"\" {", "TestWrites",
	},
	{
		"a write is for the object that was judged", "it is for any object of the name",
		"write.go",
		"		meta[key] = present\n", "		_ = present\n", "TestObjectMovesAfterTheJudgement",
	},
	{
		"a dry run is judged too", "its answer shows what it would do",
		"write.go",
		"if len(q.query[\"dryRun\"]) > 0 {", "if false {", "TestDryRun",
	},
	{
		"only the own SyncTarget is served", "all are",
		"serve.go",
		"if q.Name != q.target || !reads", "if !reads", "TestPaths|TestWritesOfSyncTargets",
	},
	{
		"a watch ends after a while", "it lasts as long as the client wants",
		"serve.go",
		"|| seconds > longest {", "|| false {", "TestWatchesEnd",
	},
}
