// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var spliceMutants = []mutant{
	{
		"an answer has a replaced key once", "a second one is accepted",
		"reader.go",
		"if *k&(1<<number) != 0 {", "if false {", "TestRefusedAnswers",
	},
	{
		"an object of a list has the type of the list in its fingerprint", "it has none",
		"reader.go",
		"if o := &l.Objects[i]; !o.typed() && o.cells == nil {", "if o := &l.Objects[i]; false {", "TestObjectsEqualDecodedOnes",
	},
	{
		"a region's own annotation of its region is replaced", "it is kept beside the right one",
		"object.go",
		"	case p.annotation.known():\n		c.replace(p.annotation, `\"`, value, `\"`)\n", "", "TestObjectsEqualDecodedOnes",
	},
	{
		"a fingerprint is that of the text without escapes", "it is that of the escaped text",
		"scanner.go",
		"				content = s.unescape(content)\n", "				_ = s.unescape(content)\n", "TestObjectsEqualDecodedOnes",
	},
}
