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

// field is a field of a resource, shortened as shorten does.
type field struct{ resource, path string }

// Besides fields, it is recorded which loops create and delete objects.
const (
	created = "(created)"
	deleted = "(deleted)"
)

// writer is a loop, and the manager by which it owns a field; manager is empty for (deleted).
type writer struct{ loop, manager string }

// writers record which loops write which fields. They are safe for concurrent use.
type writers struct {
	mu     sync.Mutex
	of     map[field]map[writer]bool
	shared map[field]bool // several loops, or several of one kind, have written the field of one object
	by     map[place]string
	writes int
	wrong  []string
}

// place is a field of one object of one run.
type place struct {
	run, server, namespace, name string
	field
}

func newWriters() *writers {
	return &writers{of: map[field]map[writer]bool{}, shared: map[field]bool{}, by: map[place]string{}}
}

// record has the writes of a scenario recorded.
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

// note records one write. A loop that is "" wrote late: the request of another one was carried out then.
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
		at := place{run, write.Server, write.Namespace, write.Name, field{write.Resource, path}}
		one := write.Loop + " " + loop
		if other, ok := w.by[at]; ok && other != one {
			w.shared[f] = true
		}
		w.by[at] = one
	}
}

// written returns the fields that a write has written: those that its manager owns afterwards, and those that were owned
// before and are gone. A manager's fields that the request left alone count too, since no two loops should share one.
func written(w perturb.Write) []string {
	switch {
	case w.Verb == "delete":
		return []string{deleted}
	case w.After == nil:
		return nil // the last finalizer has gone, and the object with it
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

// owned returns the paths of all fields in some of the managedFields of an object, which may be nil.
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

// A program has several loops: which of them sends a request is known by the goroutine that does, which waits for the answer.

const module = "github.com/atoll-dev/atoll/"

var (
	method = regexp.MustCompile(`^(\w+(?:/\w+)*)\.\(\*(\w+)\)`)

	// workers are types that work for a loop of another name.
	workers = map[string]string{
		"account.keeper": "account.Controller", "account.task": "account.Replicator", "fanout.driver": "fanout.Coordinator",
		"syncer.engaged": "syncer.Targets", "fanout.runner": "fanout.Coordinator",
		"syncer.Agent": "syncer.Syncer", // it runs one
	}
)

// loopOfCaller returns the type of the loop that has called, "" if none has.
func loopOfCaller() string {
	pcs := make([]uintptr, 200)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	loop := ""
	for {
		frame, more := frames.Next()
		if name, ok := strings.CutPrefix(frame.Function, module); ok {
			found := method.FindStringSubmatch(name)
			if found != nil && !strings.HasPrefix(name, "internal/") && !strings.HasPrefix(name, "region.") && !strings.HasPrefix(name, "region/regiontest") {
				loop = found[1] + "." + found[2] // the outermost is the last
			}
		}
		if !more {
			return cmp.Or(workers[loop], loop)
		}
	}
}

// TestWriters runs each scenario undisturbed, and compares who writes which field with the table of fields_test.go; with
// ATOLL_PLANS it runs that many plans of each, too. Each field has one loop that writes it, or a word on how they take turns.
func TestWriters(t *testing.T) {
	w := newWriters()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			scenario := w.record(s.scenario(), s.name)
			short := scenario
			short.Rest, short.Holds = 10*time.Minute, nil // TestPlans judges the end
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
