// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Kind says which server is judged.
type Kind int

const (
	// Real is a kube-apiserver.
	Real Kind = iota
	// Memory is a regiontest.Server.
	Memory
)

// Case is one entry of the list.
type Case struct {
	Name   string // unique, without spaces
	Covers string // what it states, in one line
	Run    func(e *Env)
}

// Difference is one fact in which the server in memory deviates from a real one.
type Difference struct {
	Case, Fact string
	Memory     any // what the server in memory does
	Reason     string
}

// Cases returns the whole list. Each case works in a namespace and an API group of its own, so that all can run in
// parallel on one server.
func Cases() []Case {
	var all []Case
	for _, group := range [][]Case{
		creation(), updates(), deletion(), statuses(), generations(), patches(), applies(), managers(), definitions(), schemas(), rules(),
		lists(), pages(), watches(), watchLists(), forms(), namespaceCases(), builtins(), users(), discoveries(), dryRuns(), compactions(),
	} {
		all = append(all, group...)
	}
	return all
}

// compactor is how a test makes the server forget its history; nil where it cannot.
type compactor func(ctx context.Context) error

// Run runs all cases as parallel subtests against the server that config reaches, with the rights of an administrator.
func Run(t *testing.T, config *rest.Config, kind Kind) { RunCompacting(t, config, kind, nil) }

// RunCompacting is Run with a function that makes the server forget its history of changes, as a compaction of etcd
// does. The cases that need it run after the others; without it they are skipped.
func RunCompacting(t *testing.T, config *rest.Config, kind Kind, compact func(ctx context.Context) error) {
	var mu sync.Mutex
	used := map[string]bool{}
	t.Run("cases", func(t *testing.T) {
		for _, c := range Cases() {
			if c.alone() {
				continue
			}
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				runCase(t, c, config, kind, nil, func(fact string) { mu.Lock(); used[c.Name+"/"+fact] = true; mu.Unlock() })
			})
		}
	})
	t.Run("alone", func(t *testing.T) {
		for _, c := range Cases() {
			if !c.alone() {
				continue
			}
			t.Run(c.Name, func(t *testing.T) {
				if compact == nil {
					t.Skip("this server offers no way to forget its history")
				}
				runCase(t, c, config, kind, compact, func(fact string) { used[c.Name+"/"+fact] = true })
			})
		}
	})
	if kind == Memory && !t.Failed() {
		for _, d := range Differences() {
			if !used[d.Case+"/"+d.Fact] {
				t.Errorf("declared difference %s, %q: no case states that fact", d.Case, d.Fact)
			}
		}
	}
}

// alone says that c disturbs the cases that run beside it.
func (c Case) alone() bool { return strings.HasPrefix(c.Name, "compaction-") }

func runCase(t *testing.T, c Case, config *rest.Config, kind Kind, compact compactor, differs func(string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.Run(newEnv(ctx, t, c.Name, config, kind, compact, differs))
}
