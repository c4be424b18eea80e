// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"maps"
	"slices"
	"strings"
)

// labelSets keeps equal sets of labels once, because many objects have the same labels. It is not safe for concurrent
// use.
type labelSets map[string]map[string]string

// maxLabelSets is the number of sets that a labelSets keeps.
const maxLabelSets = 1024

// intern returns a set that is equal to labels. Afterwards the caller must change neither of the two.
func (s labelSets) intern(labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		text.WriteString(key)
		text.WriteByte(0)
		text.WriteString(labels[key])
		text.WriteByte(0)
	}
	kept, ok := s[text.String()]
	if ok {
		return kept
	}
	if len(s) >= maxLabelSets {
		clear(s)
	}
	s[text.String()] = labels
	return labels
}
