// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Tie lets the reference implementation order equal claims as Divide does.
var Tie = tie

// Record returns the annotation of a parent in which its Kind keeps facts about the shards.
func Record(kind Kind, parent *unstructured.Unstructured, shards []Shard) (name, value string) {
	return kind.(recording).record(parent, shards)
}
