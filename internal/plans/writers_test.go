// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

// field is a field of a resource. Its path is as shorten returns it.
type field struct{ resource, path string }

// Pseudo-fields for the creation and deletion of objects.
const (
	created = "(created)"
	deleted = "(deleted)"
)

// writer is a loop, and the manager by which it owns a field; manager is empty for (deleted).
type writer struct{ loop, manager string }

// writers records which loops write which fields. It is safe for concurrent use.
type writers struct {
	mu     sync.Mutex
	of     map[field]map[writer]bool
	shared map[field]bool // several loops, or several of one kind, wrote the field of one object
	by     map[fieldInRun]string
	writes int
	wrong  []string
}

// fieldInRun is a field of one object in one run.
type fieldInRun struct {
	run, server, namespace, name string
	field
}

func newWriters() *writers {
	return &writers{of: map[field]map[writer]bool{}, shared: map[field]bool{}, by: map[fieldInRun]string{}}
}

// record returns a scenario whose writes are recorded.
func (w *writers) record(s perturb.Scenario, name string) perturb.Scenario {
	always := s.Always
	s.Always = func(ctx context.Context, write perturb.Write, access perturb.Access) error {
		if !strings.HasPrefix(write.Loop, clusterOf) {
			w.note(name, write, loopOfCaller())
		}
		if always == nil {
			return nil
		}
		return always(ctx, write, access)
	}
	return s
}

// note records one write. loop is "" for a late request of another loop, which is not recorded.
func (w *writers) note(run string, write perturb.Write, loop string) {
	if loop == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	if write.Verb != "delete" && write.FieldManager == "" {
		w.wrong = append(w.wrong, fmt.Sprintf("%s by %s names no field manager", write.Point, loop))
	}
	manager := shortenName(write.FieldManager, "-")
	for _, path := range written(write) {
		f := field{write.Resource, shorten(path)}
		if f.path == "" {
			continue
		}
		if w.of[f] == nil {
			w.of[f] = map[writer]bool{}
		}
		w.of[f][writer{loop, manager}] = true
		at := fieldInRun{run, write.Server, write.Namespace, write.Name, field{write.Resource, path}}
		one := write.Loop + " " + loop
		if other, ok := w.by[at]; ok && other != one {
			w.shared[f] = true
		}
		w.by[at] = one
	}
}

// written returns the fields of a write: the fields that its manager owns afterwards, and the
// fields that any manager owned before and that have no owner afterwards. It includes the fields of
// the manager that the write did not change, since no two loops should share a manager and a field.
func written(w perturb.Write) []string {
	switch {
	case w.Verb == "delete":
		return []string{deleted}
	case w.After == nil:
		return nil // removing the last finalizer deleted the object
	}
	paths := owned(w.After, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == w.FieldManager && e.Subresource == w.Subresource
	})
	every := func(metav1.ManagedFieldsEntry) bool { return true }
	after := owned(w.After, every)
	for path := range owned(w.Before, every) {
		if !after[path] {
			paths[path] = true
		}
	}
	if w.Before == nil {
		paths[created] = true
	}
	return slices.Sorted(maps.Keys(paths))
}

// owned returns the paths of all fields in the managedFields of an object. It uses only the entries
// for which of returns true. The object may be nil.
func owned(o *unstructured.Unstructured, of func(metav1.ManagedFieldsEntry) bool) map[string]bool {
	all := map[string]bool{}
	if o == nil {
		return all
	}
	for _, entry := range o.GetManagedFields() {
		if of(entry) && entry.FieldsV1 != nil {
			for _, path := range pathsOf(entry.FieldsV1.GetRawBytes()) {
				all[path] = true
			}
		}
	}
	return all
}

// A program has several loops. The goroutine that waits for a response shows which loop sent the
// request.

const module = "github.com/atoll-dev/atoll/"

var (
	method = regexp.MustCompile(`^(\w+(?:/\w+)*)\.\(\*(\w+)\)`)
	parts  = regexp.MustCompile(`^fanout\.[a-z]`) // types that are parts of a Coordinator

	// workers maps types to the loops for which they work.
	workers = map[string]string{
		"account.keeper": "account.Controller", "account.task": "account.Replicator",
		"syncer/targets.engaged": "syncer/targets.Controller",
		"syncer/targets.Agent":   "syncer.Syncer", // an Agent runs a Syncer
	}
)

// loopOfCaller returns the type of the calling loop, or "" if no loop is calling.
func loopOfCaller() string {
	pcs := make([]uintptr, 200)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	loop := ""
	for {
		frame, more := frames.Next()
		if name, ok := strings.CutPrefix(frame.Function, module); ok {
			found := method.FindStringSubmatch(name)
			if found != nil && !strings.HasPrefix(name, "internal/") && !strings.HasPrefix(name, "region.") && !strings.HasPrefix(name, "region/regiontest") {
				loop = found[1] + "." + found[2] // the last match is the outermost
			}
		}
		if !more {
			if parts.MatchString(loop) {
				return "fanout.Coordinator"
			}
			return cmp.Or(workers[loop], loop)
		}
	}
}

// TestWriters runs each scenario without faults, and compares the writers of each field with the
// table of fields_test.go. With ATOLL_PLANS it also runs that many plans of each scenario. Each
// field must have one writer, or a row in turns that describes how several loops take turns.
func TestWriters(t *testing.T) {
	if testing.Short() {
		t.Skip("TestPlans runs the same loops; this test without -short judges their writes")
	}
	w := newWriters()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			scenario := w.record(s.scenario(), s.name)
			short := scenario
			short.Rest, short.Holds = 10*time.Minute, nil // TestPlans checks the end state
			perturb.Settle(t, 1, 1, func(uint64) perturb.Scenario { return short })
			if os.Getenv("ATOLL_PLANS") != "" {
				n, _ := size(t, s.sample, s.full, s.pairs)
				perturb.Find(t, scenario, perturb.Options{Plans: n, Only: tested})
			}
		})
	}
	for name, scenario := range alone {
		t.Run(name, func(t *testing.T) {
			perturb.Settle(t, 1, 1, func(uint64) perturb.Scenario { return w.record(scenario(), name) })
		})
	}
	require.Empty(t, w.wrong)
	wrong := w.judge(fields, turns)
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
	w.page(t)
}
