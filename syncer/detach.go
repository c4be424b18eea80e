// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/logging"
)

// Detach lets all objects upstream go: it removes the finalizer of this target from each object that has it, of every type of
// Options.Types that the upstream serves, also of those that are refused (see ReasonNotPermitted): an earlier release may
// have synced them. It is an error if not all that it serves is known. A type that is refused and may not be listed is
// skipped and logged, since a syncer needs no rights on it. Copies stay downstream as they are. It blocks until it is done;
// it can be repeated. Nothing must sync for this target meanwhile.
func (s *Syncer) Detach(ctx context.Context) error {
	if s.up == nil {
		return errNotMade
	}
	up, err := served(s.up.Discovery())
	if err != nil {
		return wrap("detach", err)
	}
	done := map[schema.GroupResource]bool{}
	if s.opts.NamespaceSync.enabled() {
		if err := (&lane{syncer: s, kind: kind{GVR: namespaces, Kind: "Namespace"}}).letAllGo(ctx); err != nil {
			return wrap("detach namespaces", err)
		}
		done[namespaces.GroupResource()] = true
	}
	for _, gvr := range up.order {
		if done[gvr.GroupResource()] || !hasAll(up.resources[gvr].Verbs, verbsUp) || !s.opts.Types(gvr.GroupResource()) {
			continue
		}
		done[gvr.GroupResource()] = true
		l := &lane{syncer: s, kind: kind{GVR: gvr, Kind: up.resources[gvr].Kind}}
		err := l.letAllGo(ctx)
		if apierrors.IsForbidden(err) && s.opts.refusesType(gvr.GroupResource()) != "" {
			logging.From(ctx).Info("Objects of a type that is refused cannot be listed, and may still have the finalizer",
				"resource", gvr.GroupResource().String(), "finalizer", s.finalizer, "reason", err.Error())
			continue
		}
		if err != nil {
			return wrap("detach "+gvr.GroupResource().String(), err)
		}
	}
	if len(up.failed) > 0 {
		return fmt.Errorf("detach: discovery of groups failed, whose objects may still be held: %s", strings.Join(slices.Sorted(maps.Keys(up.failed)), ", "))
	}
	return nil
}

// letAllGo removes our finalizer from all objects of a type.
func (l *lane) letAllGo(ctx context.Context) error {
	opts := metav1.ListOptions{Limit: 500}
	for {
		page, err := l.upPage(ctx, opts)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if u := &page.Items[i]; slices.Contains(u.Finalizers, l.syncer.finalizer) {
				if err := errors.Join(l.clearCondition(ctx, u), l.dropFinalizer(ctx, u)); err != nil {
					return err
				}
			}
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return nil
		}
	}
}

// upPage lists metadata of upstream objects.
func (l *lane) upPage(ctx context.Context, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return l.syncer.up.Metadata().Resource(l.kind.GVR).List(ctx, opts)
}
