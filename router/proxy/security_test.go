// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// check is one attack, with the guard that prevents it.
type check struct {
	name    string
	known   string // an advisory, or the rule that the attack breaks
	guard   string // the guard against it
	opts    Options
	try     func(*scene) error // attacks, and returns the damage; nil if the guard prevented it
	without func(*scene)       // disables the guard; nil if it is part of net/http
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

// TestMutants disables the guard against each attack in turn, and checks that the attack then succeeds. If ATOLL_DOCS
// is set, it writes the table of security.md.
func TestMutants(t *testing.T) {
	page := newPage()
	for _, c := range checks {
		found := ""
		if c.without != nil {
			t.Run(c.name, func(t *testing.T) {
				s := newScene(t, c.opts)
				c.without(s)
				err := c.try(s)
				require.Error(t, err, "no test fails without the guard: %s", c.guard)
				found = err.Error()
			})
		}
		page.add(c, found)
	}
	page.write(t)
}
