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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// askingEvery is how often upstream objects of types that are not synced are listed: they have no watch.
const askingEvery = 10 * time.Minute

// mostAsking bounds how many objects of one type are reported.
const mostAsking = 500

// findAsking looks for objects upstream that are labelled for the target and whose type is not synced, until ctx ends: when
// it begins, when other types are not synced, and every 10 minutes.
func (s *Syncer) findAsking(ctx context.Context) {
	var before map[schema.GroupVersionResource]Reason
	var last time.Time
	for ctx.Err() == nil {
		s.mu.Lock()
		unsynced := maps.Clone(s.unsynced)
		s.mu.Unlock()
		if !maps.Equal(before, unsynced) || time.Since(last) >= askingEvery {
			s.setAsking(ctx, s.listAsking(ctx, unsynced))
			before, last = unsynced, time.Now()
		}
		select {
		case <-time.After(s.opts.Discovery + rand.N(s.opts.Discovery/5+1)):
		case <-ctx.Done():
		}
	}
}

// howToSync says what keeps a type from being synced and what would change that.
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

// listAsking returns the objects that ask to be synced, of each of the types. A type that may not be listed has none.
func (s *Syncer) listAsking(ctx context.Context, unsynced map[schema.GroupVersionResource]Reason) map[schema.GroupVersionResource][]Problem {
	found := map[schema.GroupVersionResource][]Problem{}
	for gvr, reason := range unsynced {
		gr := gvr.GroupResource()
		if howToSync(reason) == "" || !mayAsk(gr) || reason == ReasonExcluded && !s.opts.Report(gr) {
			continue
		}
		asking, err := s.listAskingOf(ctx, gvr)
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

// mayAsk reports whether a label on an object of that type is its author's. Controllers copy those of a Service to its
// endpoints, and tools label a Namespace for what is in it.
func mayAsk(gr schema.GroupResource) bool {
	power := classify(gr).power
	return power != PermitEndpoints && power != PermitNamespaces && gr.Resource != "events"
}

func (s *Syncer) listAskingOf(ctx context.Context, gvr schema.GroupVersionResource) ([]types.NamespacedName, error) {
	keys := map[types.NamespacedName]bool{}
	var all error
	for _, labels := range []string{s.opts.Label + "=" + s.opts.Target, v1alpha1.StateLabelPrefix + s.opts.Target + "=" + v1alpha1.StateSync} {
		page, err := (&lane{syncer: s, kind: kind{GVR: gvr}}).upPage(ctx, metav1.ListOptions{LabelSelector: labels, Limit: mostAsking})
		if apierrors.IsForbidden(err) {
			return nil, err
		}
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		for i := range page.Items {
			// Labels of a workload are on what its controller makes as well.
			if u := &page.Items[i]; metav1.GetControllerOf(u) == nil && u.DeletionTimestamp == nil {
				keys[types.NamespacedName{Namespace: u.Namespace, Name: u.Name}] = true
			}
		}
	}
	sorted := slices.SortedFunc(maps.Keys(keys), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return sorted, all
}

// setAsking records what was found and tells the Observer what has changed.
func (s *Syncer) setAsking(ctx context.Context, found map[schema.GroupVersionResource][]Problem) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	before := s.asking // replaced by this goroutine only
	s.mu.Unlock()
	var events []ProblemEvent
	for gvr, problems := range found {
		for i, p := range problems {
			at := slices.IndexFunc(before[gvr], func(other Problem) bool { return other.Object == p.Object && other.Reason == p.Reason })
			if at >= 0 {
				problems[i].Since = before[gvr][at].Since
				continue
			}
			events = append(events, ProblemEvent{Resource: gvr.GroupResource(), Object: p.Object, Reason: p.Reason, Message: p.Message})
		}
	}
	for gvr, problems := range before {
		for _, p := range problems {
			if !slices.ContainsFunc(found[gvr], func(other Problem) bool { return other.Object == p.Object }) {
				events = append(events, ProblemEvent{Resource: gvr.GroupResource(), Object: p.Object})
			}
		}
	}
	s.mu.Lock()
	s.asking = found
	s.mu.Unlock()
	for _, e := range events {
		s.opts.Observer.problem(ctx, e)
	}
}
