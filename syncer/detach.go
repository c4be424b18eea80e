// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/region"
)

// Detach does the work of Syncer.Detach without a Syncer, for example for a cluster that is gone. It needs only the
// upstream, and no permit for the types that opts select. It returns an error if up is nil or an option is invalid.
func Detach(ctx context.Context, up region.API, opts Options) error {
	if argument.Missing(up) {
		return errNoUpstream
	}
	s, err := newSyncer(up, up, opts)
	if err != nil {
		return err
	}
	return s.Detach(ctx)
}

// Detach removes the finalizer of this target and the condition of Options.Conditions from the upstream objects that
// have them. It covers every type of Options.Types that the upstream serves, including refused types (see
// ReasonNotPermitted), since an earlier release may have synced them. With Options.NamespaceSync it covers namespaces
// too. Downstream objects stay as they are.
//
// It returns an error if discovery of a group fails. A refused type that may not be listed is skipped and logged,
// since a syncer needs no rights on it. Detach blocks until it is done and can be repeated. No Syncer may run for this
// target meanwhile.
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
		if err := newRemovals(newSyncedType(s, namespaceQueue, kind{GVR: namespaces, Kind: "Namespace"})).releaseAll(ctx); err != nil {
			return wrap("detach namespaces", err)
		}
		done[namespaces.GroupResource()] = true
	}
	for _, gvr := range up.order {
		if done[gvr.GroupResource()] || !hasAll(up.resources[gvr].Verbs, verbsUp) || !s.opts.Types(gvr.GroupResource()) {
			continue
		}
		done[gvr.GroupResource()] = true
		r := newSyncedType(s, gvr.GroupResource().String(), kind{GVR: gvr, Kind: up.resources[gvr].Kind})
		err := newRemovals(r).releaseAll(ctx)
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
		return fmt.Errorf("detach: discovery of these groups failed, so that their objects may still have the finalizer: %s", strings.Join(slices.Sorted(maps.Keys(up.failed)), ", "))
	}
	return nil
}
