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

	// replica and home, unless nil, are the object that the caller read and the one to which the change is sent.
	replica, home *unstructured.Unstructured
	kind          *Kind
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

// changeOnce makes one attempt at the change c. If another write came first, again is true: try once more with the
// present object.
func (r jointResource) changeOnce(ctx context.Context, c change, found Found) (o *unstructured.Unstructured, again bool, err error) {
	base := found.Objects[r.at.Peer]
	atHome := base == nil || !r.joint.kind.Everywhere || !r.joint.kind.Claimed(base) || found.home() == r.at.Peer
	if err := r.decided(c.name, found, atHome); err != nil {
		return nil, false, err
	}
	switch {
	case base == nil && c.applies:
		o, err = r.applyNew(ctx, c)
		return o, false, err
	case !atHome && c.applies:
		return r.changeAtHome(ctx, c, found, base) // only the home records who manages a field
	}
	how, result, err := r.try(c, manner{dry: c.dry})
	switch {
	case err != nil && (atHome || !apierrors.IsInvalid(err)):
		return nil, false, r.refused(c.name, err)
	case err != nil:
		return r.changeAtHome(ctx, c, found, base) // a replica refuses other contents
	case base == nil, result.GetResourceVersion() != base.GetResourceVersion():
		return nil, true, nil
	}
	return r.write(ctx, c, found, atHome, how, result)
}

// decided returns an error if it is not known which object a change is for. atHome is set if this region decides the
// content of its object.
func (r jointResource) decided(name string, found Found, atHome bool) error {
	there, home := found.Objects[r.at.Peer] != nil, found.home()
	switch {
	case len(found.Homes) > 1 && (r.joint.kind.Everywhere || !slices.Contains(found.Homes, r.at.Peer)):
		return r.joint.twice(name, found)
	case !there && slices.Contains(found.Silent, r.at.Peer), !atHome && home == "" && len(found.Silent) > 0:
		return r.joint.silent(name+" was not written", found.Silent)
	case !atHome && home == "":
		return apierrors.NewConflict(r.joint.kind.Resource.GroupResource(), name, errors.New("another operation holds the name; try again when that has ended"))
	default:
		return nil
	}
}

// write writes result, which a dry run of c in this region has computed; how is the way in which the dry run was sent.
// atHome is set if this region decides the content. If another write came first, again is true.
func (r jointResource) write(ctx context.Context, c change, found Found, atHome bool, how manner, result *unstructured.Unstructured) (o *unstructured.Unstructured, again bool, err error) {
	base := found.Objects[r.at.Peer]
	shared, err := r.judge(c, found, base, result)
	switch {
	case err != nil:
		return nil, false, err
	case shared && !atHome:
		return r.changeAtHome(ctx, c, found, base)
	case shared:
		return r.share(ctx, c, r, base, result)
	case c.only:
		return result, false, nil
	}
	how.dry, how.version = nil, base.GetResourceVersion()
	o, err = c.write(r.ResourceInterface, how)
	if apierrors.IsConflict(err) {
		return nil, true, nil
	}
	return o, false, r.refused(c.name, err)
}

// changeAtHome computes the result of c from the home of an object that exists everywhere. base is the replica of this
// region, which the caller may have read.
func (r jointResource) changeAtHome(ctx context.Context, c change, found Found, base *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
	at := found.home()
	k, ok := r.joint.regionOf(at)
	if !ok {
		return nil, false, r.joint.silent(c.name+" was not written: its home cannot be asked", []region.PeerName{at})
	}
	home, err := r.in(k)
	if err != nil {
		return nil, false, r.refused(c.name, err)
	}
	there := found.Objects[at]
	_, result, err := home.try(c, manner{dry: c.dry, replica: base, home: there, kind: &r.joint.kind})
	if err != nil {
		return nil, false, home.refused(c.name, err)
	}
	if result.GetResourceVersion() != there.GetResourceVersion() {
		return nil, true, nil
	}
	shared, err := home.judge(c, found, there, result)
	switch {
	case err != nil:
		return nil, false, err
	case !shared && c.only:
		return result, false, nil
	case !shared: // the peers have this content already
		home.own(ctx, result, true)
		r.own(ctx, result, false)
		return r.present(ctx, result), false, nil
	}
	return r.share(ctx, c, home, there, result)
}

// share brings the result, which was computed in a region from base, into all peers. It returns the object for the
// caller. The bool, whether to try once more, is always false: the Fanout itself decides between rival writes.
func (r jointResource) share(ctx context.Context, c change, in jointResource, base, result *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
	if err := r.allowed(ctx, c.verb, c.name, in.at.Region); err != nil || c.only {
		return result, false, err
	}
	if err := r.joint.fanout.Update(ctx, r.joint.kind, result, base); err != nil {
		return nil, false, r.joint.failed("changed", c.name, err)
	}
	in.own(ctx, result, true)
	if in.at.Region != r.at.Region {
		r.own(ctx, result, false)
	}
	return r.present(ctx, result), false, nil
}

// try computes the result of c by a dry run. The Fanout owns the fields that it changed for others, so an apply that
// conflicts with the Fanout alone takes these fields.
func (r jointResource) try(c change, how manner) (manner, *unstructured.Unstructured, error) {
	result, err := c.write(r.ResourceInterface, how)
	if c.applies && conflictsWith(err, r.joint.kind.Manager) {
		how.force = true
		result, err = c.write(r.ResourceInterface, how)
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

// applyNew creates an object by an apply.
func (r jointResource) applyNew(ctx context.Context, c change) (*unstructured.Unstructured, error) {
	made, _, err := r.tryEverywhere(c.name, func(in dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
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
	if slices.Contains(found.Homes, r.at.Peer) {
		return nil
	}
	where := "which region has the object is not known now"
	if home := found.home(); home != "" {
		where = "the object is in " + r.joint.name(home)
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
