// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Tie lets the reference implementation order equal claims as Divide does.
var Tie = tie

// Record returns the annotation of a parent in which its Kind keeps facts about the shards.
func Record(kind Kind, parent *unstructured.Unstructured, shards []Shard) map[string]string {
	return kind.(recording).record(parent, shards)
}

// Indexes returns the indexes in a list of a Job's status.
func Indexes(text string) (all []int64) {
	for _, s := range readIndexes(text, span{0, 1 << 30}) {
		for i := s.first; i <= s.last; i++ {
			all = append(all, i)
		}
	}
	return all
}

func indexesFrom(all []int64) indexList {
	var spans []span
	for _, i := range all {
		spans = append(spans, span{i, i})
	}
	return union(spans)
}

// IndexText returns some indexes in the form of a list in a Job's status.
func IndexText(all []int64) string { return indexesFrom(all).String() }

// IndexesWithout returns the indexes of a that are not in b, in the form of a list in a Job's status.
func IndexesWithout(a, b []int64) string { return indexesFrom(a).without(indexesFrom(b)).String() }
