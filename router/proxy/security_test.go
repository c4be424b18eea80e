// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// check is one thing that somebody could try, and what stands against it.
type check struct {
	name    string
	known   string // where it went wrong before, or which rule it breaks
	guard   string // what stands against it
	opts    Options
	try     func(*scene) error // what is wrong; nil if the guard held
	without func(*scene)       // takes the guard away; nil if it is not ours to take
}

var checks = concat(identityChecks, pathChecks, streamChecks, boundChecks, answerChecks)

func concat(lists ...[]check) []check {
	var all []check
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func TestSecurity(t *testing.T) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { require.NoError(t, c.try(newScene(t, c.opts))) })
	}
}

// TestMutants takes away one guard after the other and sees that what it stands against is noticed. With ATOLL_DOCS it
// writes the table of security.md.
func TestMutants(t *testing.T) {
	page := newPage()
	for _, c := range checks {
		found := ""
		if c.without != nil {
			t.Run(c.name, func(t *testing.T) {
				s := newScene(t, c.opts)
				c.without(s)
				err := c.try(s)
				require.Error(t, err, "nobody notices that a guard is gone: %s", c.guard)
				found = err.Error()
			})
		}
		page.add(c, found)
	}
	page.write(t)
}
