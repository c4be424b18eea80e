// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// These limit the texts about failures. API servers limit their warnings to 4 KiB too, because proxies limit
// headers.
const (
	maxFailures = 20
	maxTexts    = 4 << 10 // bytes of all texts together
	maxMessage  = 256     // bytes of a region's own message
)

// failuresOf returns the texts of the failed outcomes, without duplicates: a list of several types may fail several
// times in one region.
func failuresOf(outcomes []Outcome) []string {
	var texts []string
	for _, o := range outcomes {
		if o.Err == nil {
			continue
		}
		if text := o.text(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// shorten keeps the first failures and replaces the others by their number.
func shorten(failures []string) []string {
	size := 0
	for i, f := range failures {
		if size += len(f); i == maxFailures || size > maxTexts {
			return append(slices.Clone(failures[:i]), fmt.Sprintf("%d more regions failed", len(failures)-i))
		}
	}
	return failures
}

// printable truncates message and replaces characters that a header cannot hold.
func printable(message string) string {
	var short strings.Builder
	for _, r := range message {
		if short.Len() >= maxMessage {
			return short.String() + "..."
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		short.WriteRune(r)
	}
	return short.String()
}
