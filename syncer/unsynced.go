// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// listUnsyncedEvery is how often upstream objects of types that are not synced are listed. They have no watch.
const listUnsyncedEvery = 10 * time.Minute

// mostAsking bounds how many objects of one type are listed for each of the two labels that select objects.
const mostAsking = 500

// unsyncedObjects finds upstream objects that are labelled for the target and whose type is not synced.
type unsyncedObjects struct {
	syncer *Syncer

	mu    sync.Mutex
	found map[schema.GroupVersionResource][]Problem
}

// run lists the labelled objects of types that are not synced, until ctx ends: at the start, when the set of these
// types changes, and every listUnsyncedEvery.
func (u *unsyncedObjects) run(ctx context.Context) {
	s := u.syncer
	var before map[schema.GroupVersionResource]Reason
	var last time.Time
	for ctx.Err() == nil {
		s.mu.Lock()
		unsynced := maps.Clone(s.unsynced)
		s.mu.Unlock()
		if !maps.Equal(before, unsynced) || time.Since(last) >= listUnsyncedEvery {
			u.set(ctx, u.list(ctx, unsynced))
			before, last = unsynced, time.Now()
		}
		select {
		case <-time.After(s.opts.Discovery + rand.N(s.opts.Discovery/5+1)):
		case <-ctx.Done():
		}
	}
}

// howToSync returns the message about a type that is not synced for that reason, with the remedy. It returns "" if
// such a type is not reported.
func howToSync(reason Reason) string {
	switch reason {
	case ReasonExcluded:
		return "objects of this type are not synced: the program leaves the type out: add it to Options.Types"
	case ReasonNotServedDownstream:
		return "objects of this type are not synced: the downstream does not serve it, or not with create, delete, get, list, patch and watch: define it there"
	case ReasonScope:
		return "objects of this type are not synced: it is namespaced on one side only: define it alike"
	}
	return ""
}

// list returns the labelled objects of each of the types, as problems. It skips a type that may not be listed.
func (u *unsyncedObjects) list(ctx context.Context, unsynced map[schema.GroupVersionResource]Reason) map[schema.GroupVersionResource][]Problem {
	s := u.syncer
	found := map[schema.GroupVersionResource][]Problem{}
	for gvr, reason := range unsynced {
		gr := gvr.GroupResource()
		if howToSync(reason) == "" || !labelledByAuthor(gr) || reason == ReasonExcluded && !s.opts.Report(gr) {
			continue
		}
		asking, err := u.listOf(ctx, gvr)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err):
			logging.From(ctx).Info("Objects of a type that is not synced are not known", "resource", gr.String(), "reason", err.Error())
		}
		for _, key := range asking {
			found[gvr] = append(found[gvr], Problem{Object: key, Reason: reason, Message: howToSync(reason), Since: time.Now()})
		}
	}
	return found
}

// labelledByAuthor reports whether the author of an object of this type sets its labels. Controllers copy the labels
// of a Service to its endpoints, and tools label a Namespace for the objects in it. Events do not count either.
func labelledByAuthor(gr schema.GroupResource) bool {
	power := classify(gr).power
	return power != PermitEndpoints && power != PermitNamespaces && gr.Resource != "events"
}

func (u *unsyncedObjects) listOf(ctx context.Context, gvr schema.GroupVersionResource) ([]types.NamespacedName, error) {
	s := u.syncer
	keys := map[types.NamespacedName]bool{}
	var all error
	for _, labels := range []string{s.opts.Label + "=" + s.opts.Target, v1alpha1.StateLabelPrefix + s.opts.Target + "=" + v1alpha1.StateSync} {
		page, err := client{api: s.up, gvr: gvr}.page(ctx, "", metav1.ListOptions{LabelSelector: labels, Limit: mostAsking})
		if apierrors.IsForbidden(err) {
			return nil, err
		}
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		for i := range page.Items {
			// Controllers copy the labels of a workload to the objects that they create.
			if obj := &page.Items[i]; metav1.GetControllerOf(obj) == nil && obj.DeletionTimestamp == nil {
				keys[types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}] = true
			}
		}
	}
	sorted := slices.SortedFunc(maps.Keys(keys), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return sorted, all
}

// of returns the objects of one type that the last list found.
func (u *unsyncedObjects) of(gvr schema.GroupVersionResource) []Problem {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.found[gvr])
}

// set records the objects that were found, and reports the changes to the Observer.
func (u *unsyncedObjects) set(ctx context.Context, found map[schema.GroupVersionResource][]Problem) {
	if ctx.Err() != nil {
		return
	}
	var events []ProblemEvent
	u.mu.Lock()
	for gvr, problems := range found {
		for i, p := range problems {
			at := slices.IndexFunc(u.found[gvr], func(other Problem) bool { return other.Object == p.Object && other.Reason == p.Reason })
			if at >= 0 {
				problems[i].Since = u.found[gvr][at].Since
				continue
			}
			events = append(events, ProblemEvent{Resource: gvr.GroupResource(), Object: p.Object, Reason: p.Reason, Message: p.Message})
		}
	}
	for gvr, problems := range u.found {
		for _, p := range problems {
			if !slices.ContainsFunc(found[gvr], func(other Problem) bool { return other.Object == p.Object }) {
				events = append(events, ProblemEvent{Resource: gvr.GroupResource(), Object: p.Object})
			}
		}
	}
	u.found = found
	u.mu.Unlock()
	for _, e := range events {
		u.syncer.opts.Observer.problem(ctx, e)
	}
}
