// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// errLeft means that a removal is committed but not complete, because something delays it. This is a success: the
// client gets the code 202 with this text.
var errLeft = errors.New("the removal is committed and waits")

// Delete removes an object. The region first deletes it in a dry run, with the caller's preconditions. With a
// subresource, it is the region's own write.
func (r jointResource) Delete(ctx context.Context, name string, opts metav1.DeleteOptions, sub ...string) error {
	if len(sub) > 0 {
		return r.ResourceInterface.Delete(ctx, name, opts, sub...)
	}
	dry, only, err := onlyDry(opts.DryRun)
	if err != nil {
		return err
	}
	if err := deletable(opts); err != nil {
		return err
	}
	for range changes {
		found, err := r.joint.fanout.Find(ctx, r.joint.kind, r.key(name))
		if err != nil {
			return r.joint.failed("deleted", name, err)
		}
		base := found.Objects[r.at.Peer]
		tried := opts
		tried.DryRun = dry
		if base != nil {
			tried.Preconditions = exactly(opts.Preconditions, base.GetUID(), base.GetResourceVersion())
		}
		err = r.ResourceInterface.Delete(ctx, name, tried)
		if apierrors.IsConflict(err) && base != nil && meets(opts.Preconditions, base) || err == nil && base == nil {
			continue // another write came first
		}
		if err != nil {
			return r.refused(name, err)
		}
		if !r.joint.kind.Claimed(base) {
			opts.Preconditions = tried.Preconditions
			return r.refused(name, r.ResourceInterface.Delete(ctx, name, opts))
		}
		if err := r.removable(ctx, name, found); err != nil || only {
			return err
		}
		exact := opts.Preconditions != nil && opts.Preconditions.ResourceVersion != nil
		left, err := r.joint.fanout.Remove(ctx, r.joint.kind, base, exact)
		if err == nil && left {
			return errLeft
		}
		return r.joint.failed("deleted", name, err)
	}
	return apierrors.NewConflict(r.joint.kind.Resource.GroupResource(), name, errors.New("it was changed by other writes again and again; read it again"))
}

// removable returns an error if the caller may not remove the object, or if it is not the only one of its name.
func (r jointResource) removable(ctx context.Context, name string, found Found) error {
	var err error
	if r.joint.kind.Everywhere {
		err = r.allowed(ctx, "delete", name, r.at.Region)
	} else {
		err = r.atHome(name, found)
	}
	if err == nil && len(found.Homes) > 1 {
		err = r.joint.twice(name, found)
	}
	return err
}

// deletable returns an error if the options ask for something that a Fanout does not do.
func deletable(opts metav1.DeleteOptions) error {
	switch {
	case opts.PropagationPolicy != nil && *opts.PropagationPolicy != metav1.DeletePropagationBackground:
		return bad("propagationPolicy: %s is not supported; want Background", *opts.PropagationPolicy)
	case opts.OrphanDependents != nil && *opts.OrphanDependents: //nolint:staticcheck // old clients send it
		return bad("orphanDependents: it is not supported")
	case opts.IgnoreStoreReadErrorWithClusterBreakingPotential != nil && *opts.IgnoreStoreReadErrorWithClusterBreakingPotential:
		return bad("ignoreStoreReadErrorWithClusterBreakingPotential: it is not supported")
	}
	return nil
}

// exactly returns the caller's preconditions. If the caller did not set the UID or the resourceVersion, the result
// has the one of the object that was read.
func exactly(given *metav1.Preconditions, uid types.UID, version string) *metav1.Preconditions {
	p := metav1.Preconditions{UID: &uid, ResourceVersion: &version}
	if given != nil && given.UID != nil {
		p.UID = given.UID
	}
	if given != nil && given.ResourceVersion != nil {
		p.ResourceVersion = given.ResourceVersion
	}
	return &p
}

// meets reports whether the object o meets the caller's preconditions.
func meets(given *metav1.Preconditions, o *unstructured.Unstructured) bool {
	return given == nil ||
		(given.UID == nil || *given.UID == o.GetUID()) &&
			(given.ResourceVersion == nil || *given.ResourceVersion == o.GetResourceVersion())
}
