// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Kind is the kind of server that is tested.
type Kind int

const (
	// Real is a kube-apiserver.
	Real Kind = iota
	// Memory is a regiontest.Server.
	Memory
)

// testCase is one entry of the list.
type testCase struct {
	Name   string // unique, without spaces
	Covers string // the tested behavior, in one line
	Run    func(e *env)
}

// difference is one fact for which the server in memory deviates from a real one.
type difference struct {
	name, Fact string
	Memory     any // the behavior of the server in memory
	Reason     string
}

// cases returns all cases except those that need the server to forget its history (see compactions). Each uses its own
// namespace and API group, so that all can run in parallel on one server.
func cases() []testCase {
	var all []testCase
	for _, group := range [][]testCase{
		creation(), updates(), deletion(), statuses(), generations(), patches(), applies(), managers(), definitions(), schemas(), rules(),
		lists(), pages(), watches(), watchLists(), forms(), namespaceCases(), builtins(), users(), discoveries(), dryRuns(),
	} {
		all = append(all, group...)
	}
	return all
}

// Run runs the cases as parallel subtests against the server of config. The user of config must be an administrator.
// Run also fails t if differences.go declares a difference in a fact that no case asserts.
func Run(t *testing.T, config *rest.Config, kind Kind) {
	var mu sync.Mutex
	used := map[string]bool{}
	t.Run("cases", func(t *testing.T) {
		for _, c := range cases() {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				runCase(t, c, config, kind, nil, func(fact string) {
					mu.Lock()
					defer mu.Unlock()
					used[c.Name+"/"+fact] = true
				})
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, d := range differences() {
		if !used[d.name+"/"+d.Fact] {
			t.Errorf("declared difference %s, %q: no case states that fact", d.name, d.Fact)
		}
	}
}

// RunCompactions runs, one at a time, the cases in which the server forgets its history. compact makes the server
// forget its history of changes, as a compaction of etcd does, and returns when that is done.
func RunCompactions(t *testing.T, config *rest.Config, kind Kind, compact func(ctx context.Context) error) {
	for _, c := range compactions() {
		t.Run(c.Name, func(t *testing.T) { runCase(t, c, config, kind, compact, func(string) {}) })
	}
}

// compactor makes the server forget its history.
type compactor func(ctx context.Context) error

func runCase(t *testing.T, c testCase, config *rest.Config, kind Kind, compact compactor, differs func(fact string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c.Run(newEnv(ctx, t, c.Name, config, kind, compact, differs))
}
