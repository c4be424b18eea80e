// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var schemaMutants = []mutant{
	{
		"the smaller of two upper bounds holds", "the greater does",
		"value.go", "if x := value(v.s); x != nil && (out == nil || *x < *out) {", "if x := value(v.s); x != nil && (out == nil || *x > *out) {", "TestNegotiate",
	},
	{
		"the greater of two lower bounds holds", "the smaller does",
		"value.go", "if x := value(v.s); x != nil && (out == nil || *x > *out) {", "if x := value(v.s); x != nil && (out == nil || *x < *out) {", "TestResultIsAcceptedByEverySide|TestAcceptsIsCertain|TestLossesAreComplete",
	},
	{
		"bounds that no value meets are a conflict", "they are accepted",
		"value.go", "func over(low, high *int64) bool { return low != nil && high != nil && *low > *high }", "func over(low, high *int64) bool { return low != nil && high != nil && *low > *high+1000 }", "TestNegotiate",
	},
	{
		"a value of an enumeration is in all of them", "one side's are enough",
		"enum.go", "|| !all(views, func(v view) bool { return accepts(value, v.s) }) {", "{", "TestNegotiate|TestResultIsAcceptedByEverySide|TestAcceptsIsCertain|TestLossesAreComplete",
	},
	{
		"enumerations without a common value are a conflict", "they are accepted",
		"enum.go", "	if len(out.Enum) == 0 {\n", "	if len(out.Enum) < 0 {\n", "TestNegotiate",
	},
	{
		"a field that one side drops is not in the result", "it is",
		"object.go", "			f.absent = true\n", "", "TestNegotiate|TestCompare",
	},
	{
		"a field that one side requires is required", "it is optional",
		"object.go", "	if demanded || f.required {\n", "	if demanded {\n", "TestNegotiate|TestResultIsAcceptedByEverySide|TestAcceptsIsCertain|TestLossesAreComplete",
	},
	{
		"a required field that cannot be set is a conflict", "it is left out",
		"object.go", "	if f.demanded {\n", "	if f.demanded && out == nil {\n", "TestNegotiate|TestConflictOfARequiredField",
	},
	{
		"different defaults of a field are none", "one of them counts",
		"object.go", "demanded := f.demanded || len(f.defaults) > 1", "demanded := f.demanded", "TestNegotiate",
	},
	{
		"the patterns of all sides hold", "the first one does",
		"value.go", "		more.add(apiextensionsv1.JSONSchemaProps{Pattern: p})\n", "", "TestNegotiate",
	},
	{
		"the rules of all sides hold", "those of the first one do",
		"rule.go", "if other, ok := found[k]; !ok || canonical(rule) < canonical(other) {", "if other, ok := found[k]; i == 0 && (!ok || canonical(rule) < canonical(other)) {", "TestNegotiate",
	},
	{
		"a field that no side can set stays declared if a rule is about it", "it goes",
		"object.go", "if !ok || !v.refers.mayName(name) {", "if !ok || !v.refers.mayName(name) || kept == nil {", "TestNegotiate|TestResultIsAcceptedByEverySide",
	},
	{
		"values that one side excludes by \"not\" are refused", "it is accepted",
		"junctor.go", "	out.Not = not.first(more).Not\n", "	not.first(more)\n", "TestNegotiate",
	},
	{
		"a subset is not called equal", "it is",
		"compare.go", "	case isA && isB:\n", "	case isA:\n", "TestCompare|TestAccepts",
	},
	{
		"a default that rules of the other side may count is not harmless", "it is",
		"compare.go", "	return !slices.ContainsFunc(added(result, inner), rules.mayName)\n", "	return rules != nil\n", "TestCompare|TestResultIsAcceptedByEverySide|TestAcceptsIsCertain|TestLossesAreComplete",
	},
	{
		"a required field that the other side fills in is not lost", "it is",
		"loss.go", "		return ok && hasDefault(&property)\n", "		return ok && property.Default == nil\n", "TestLosses|TestLossesAreComplete",
	},
}
