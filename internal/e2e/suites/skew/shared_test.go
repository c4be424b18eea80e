// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package skew_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
)

// sharer adds and removes ServiceClusters with either release, with the shared log in a plane. It
// does not recover killed operations: other coordinators settle them after a lease.
type sharer struct {
	*world
	random *rand.Rand
	known  map[string]state
	open   map[string]bool // names of unknown state
	killed int
}

func (s *sharer) work(steps int) {
	for n := range steps {
		if s.t.Failed() {
			return
		}
		name, target := fmt.Sprintf("shared-%d", n), s.core[s.random.IntN(len(s.core))]
		if !s.operate(name, state(target.Name()), s.add(name, target)) {
			return
		}
		if s.known[name] != "" && s.random.IntN(2) == 0 && !s.operate(name, "", s.removal(name)) {
			return
		}
	}
}

// operate runs an operation that may be killed. It returns false if the operation failed.
func (s *sharer) operate(name string, want state, args []string) bool {
	limit := ctltest.Never
	if s.random.IntN(3) == 0 {
		limit = time.Duration(1 + s.random.Int64N(int64(200*time.Millisecond)))
	}
	release := s.either(s.random)
	result, err := release.Sharing(s.core[1], s.core...).Run(s.t.Context(), limit, args...)
	if err == nil && release == s.present && result.Code == ctltest.Input && strings.Contains(result.Output, "wal recover --this-ring") {
		s.t.Logf("signed: %s", result)
		release.Sharing(s.core[1], s.core...).Succeed(s.t, "wal", "recover", "--this-ring")
		result, err = release.Sharing(s.core[1], s.core...).Run(s.t.Context(), ctltest.Never, args...)
	}
	if err != nil {
		s.t.Error(err)
		return false
	}
	if result.Code == ctltest.Killed {
		s.killed++
		s.open[name] = true
		delete(s.known, name)
		return true
	}
	s.known[name] = want
	return assert.Equal(s.t, ctltest.Done, result.Code, "%s", result)
}

// settle recovers the killed operations with either release, and compares the acknowledged
// operations with the objects in the members.
func (s *sharer) settle() {
	s.t.Helper()
	release := s.either(s.random)
	s.settled(release, release.Sharing(s.core[1], s.core...))
	for name, want := range s.known {
		require.Equal(s.t, want, s.clusterAt(name), "%s", name)
	}
	for name := range s.open {
		s.clusterAt(name)
	}
	s.t.Logf("with the shared log: %d names, %d processes killed", len(s.known)+len(s.open), s.killed)
}
