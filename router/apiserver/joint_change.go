// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
)

// change is an update, a patch or an apply.
type change struct {
	verb    string
	name    string
	applies bool   // it may create the object
	manager string // of an apply
	dry     []string
	only    bool // the caller asked for a dry run
	write   func(in dynamic.ResourceInterface, how manner) (*unstructured.Unstructured, error)
}

// manner is how a change is sent to a region.
type manner struct {
	dry     []string
	version string // unless empty, only the object of this resourceVersion is changed
	force   bool   // an apply takes fields from other managers
}

// changes is how often a change is computed, as in an API server, if other writes come first.
const changes = 5

// change computes the result of c by a dry run and writes it: by an operation of the Fanout if the content changes, and
// otherwise as the caller in the region alone.
func (r jointResource) change(ctx context.Context, c change) (*unstructured.Unstructured, error) {
	for range changes {
		found, err := r.joint.fanout.Find(ctx, r.joint.kind, r.key(c.name))
		if err != nil {
			return nil, r.joint.failed("changed", c.name, err)
		}
		o, again, err := r.changeOnce(ctx, c, found)
		if !again {
			return o, err
		}
	}
	return nil, apierrors.NewConflict(r.joint.kind.Resource.GroupResource(), c.name, errors.New("it was changed by other writes again and again; read it again"))
}

// changeOnce returns again if another write came first.
func (r jointResource) changeOnce(ctx context.Context, c change, found Found) (o *unstructured.Unstructured, again bool, err error) {
	in, base := r.source(c, found)
	if base == nil && c.applies {
		o, err = r.applyNew(ctx, c)
		return o, false, err
	}
	how, result, err := r.try(c, in)
	switch {
	case err != nil:
		return nil, false, in.refused(c.name, err)
	case base == nil, result.GetResourceVersion() != base.GetResourceVersion():
		return nil, true, nil
	}
	shared, err := in.judge(c, found, base, result)
	switch {
	case err != nil:
		return nil, false, err
	case c.only && shared:
		return result, false, r.allowed(ctx, c.verb, c.name, in.at.Region)
	case c.only:
		return result, false, nil
	case !shared:
		how.dry, how.version = nil, base.GetResourceVersion()
		o, err := c.write(in.ResourceInterface, how)
		switch {
		case apierrors.IsConflict(err):
			return nil, true, nil
		case err == nil && in.at.Region != r.at.Region:
			return r.present(ctx, o), false, nil
		}
		return o, false, in.refused(c.name, err)
	}
	if err := r.allowed(ctx, c.verb, c.name, in.at.Region); err != nil {
		return nil, false, err
	}
	if err := r.joint.fanout.Update(ctx, r.joint.kind, result, base); err != nil {
		return nil, false, r.joint.failed("changed", c.name, err)
	}
	in.own(ctx, result)
	return r.present(ctx, result), false, nil
}

// try computes the result of c by a dry run. The Fanout owns the fields that it changed for others, so an apply that
// conflicts with the Fanout alone takes these fields.
func (r jointResource) try(c change, in jointResource) (manner, *unstructured.Unstructured, error) {
	how := manner{dry: c.dry}
	result, err := c.write(in.ResourceInterface, how)
	if c.applies && conflictsWith(err, r.joint.kind.Manager) {
		how.force = true
		result, err = c.write(in.ResourceInterface, how)
	}
	return how, result, err
}

// conflictsWith reports whether err is a conflict of an apply with the fields of one manager alone.
func conflictsWith(err error, manager string) bool {
	status, ok := statusOf(err)
	if !ok || status.Details == nil || len(status.Details.Causes) == 0 {
		return false
	}
	return !slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type != metav1.CauseTypeFieldManagerConflict || !strings.HasPrefix(c.Message, fmt.Sprintf("conflict with %q", manager))
	})
}

// source returns where the result of c is computed, and the object there. The result of an apply depends on the
// managers of fields, which only the home of an object that exists everywhere records.
func (r jointResource) source(c change, found Found) (jointResource, *unstructured.Unstructured) {
	here := found.Objects[r.at.Peer]
	k, ok := r.joint.regionOf(found.Home)
	if !c.applies || here == nil || !r.joint.kind.Everywhere || !ok || found.Home == r.at.Peer {
		return r, here
	}
	home, err := r.in(k)
	if err != nil {
		return r, here
	}
	return home, found.Objects[found.Home]
}

// applyNew creates an object by an apply.
func (r jointResource) applyNew(ctx context.Context, c change) (*unstructured.Unstructured, error) {
	made, _, err := r.tryEverywhere(ctx, c.name, func(in dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return c.write(in, manner{dry: c.dry})
	})
	if err == nil {
		err = r.creatable(made)
	}
	if err != nil || c.only {
		return made, err
	}
	return r.add(ctx, made, c.manager)
}

// judge reports whether the change from base to result is of content that the peers share. The error means that the
// change is not allowed.
func (r jointResource) judge(c change, found Found, base, result *unstructured.Unstructured) (shared bool, err error) {
	k := r.joint.kind
	was, is := k.Claims(base), k.Claims(result)
	for _, path := range slices.Sorted(maps.Keys(union(was, is))) {
		if !reflect.DeepEqual(was[path], is[path]) {
			return false, r.invalid(c.name, path, "only the gateway writes it; leave it as it was read")
		}
	}
	if !k.Claimed(base) {
		return false, nil // the Fanout does not know the object: a person applied it in this region
	}
	if !k.Everywhere {
		return false, r.atHome(c.name, found)
	}
	old, err := k.Content(base)
	if err != nil {
		return false, err
	}
	now, err := k.Content(result)
	switch {
	case err != nil:
		return false, err
	case reflect.DeepEqual(old, now):
		return false, nil
	case !slices.Equal(base.GetFinalizers(), result.GetFinalizers()):
		return false, r.invalid(c.name, "metadata.finalizers", "it is of one region: change it in a request of its own")
	case !reflect.DeepEqual(base.GetOwnerReferences(), result.GetOwnerReferences()):
		return false, r.invalid(c.name, "metadata.ownerReferences", "it is of one region: change it in a request of its own")
	}
	return true, nil
}

// atHome returns a 409 unless this region has the object that exists once.
func (r jointResource) atHome(name string, found Found) error {
	if found.Home == r.at.Peer {
		return nil
	}
	where := "which region has the object is not known now"
	if found.Home != "" {
		where = "the object is in " + r.joint.name(found.Home)
	}
	return apierrors.NewConflict(r.joint.kind.Resource.GroupResource(), name, fmt.Errorf("region %s holds only the name: %s", r.at.Region, where))
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return all
}

// in returns the resource in region k.
func (r jointResource) in(k region.Key) (jointResource, error) {
	client, err := r.joint.router.Client(k, r.joint.id)
	if err != nil {
		return r, err
	}
	other := r
	other.at.Region, other.at.Peer = k, r.joint.peer(k)
	other.resource = client.Dynamic().Resource(r.joint.kind.Resource)
	return other.Namespace(r.namespace).(jointResource), nil
}
