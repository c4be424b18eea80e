// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
)

var errNoType = errors.New("aggregate: no type is given to Reader")

// address is the object of a request, with the region that the request selects by name, annotation or
// resourceVersion.
type address struct {
	name    string // without a region
	region  *region.Key
	version version // of the object to change
	given   bool    // version is set
}

// addressOf reads the address from name and, if o is not nil, from o, the object of a write.
func (r *resource) addressOf(name string, o *unstructured.Unstructured) (address, error) {
	a := address{name: name}
	note := func(k region.Key) error {
		if a.region != nil && *a.region != k {
			return apierrors.NewBadRequest(fmt.Sprintf("%s is addressed to region %s and to region %s", a.name, *a.region, k))
		}
		a.region = &k
		return nil
	}
	if plain, k, ok := splitName(name); ok {
		a.name = plain
		_ = note(k) // no error: it is the first region
	}
	if o == nil {
		return a, nil
	}
	if plain, k, ok := splitName(o.GetName()); ok && plain != "" {
		if err := note(k); err != nil {
			return a, err
		}
	}
	if text, ok := o.GetAnnotations()[RegionAnnotation]; ok {
		k, err := region.ParseKey(text)
		if err != nil {
			return a, apierrors.NewBadRequest(fmt.Sprintf("annotation %s: %v", RegionAnnotation, err))
		}
		if err := note(k); err != nil {
			return a, err
		}
	}
	return a, r.note(&a, o.GetResourceVersion())
}

// note adds the resourceVersion of a write to a.
func (r *resource) note(a *address, rv string) error {
	if rv == "" {
		return nil
	}
	v, err := decodeVersion(r.api.opts.Keys, rv)
	switch {
	case errors.Is(err, errForeign):
		return r.conflict(a.name, fmt.Sprintf("its resourceVersion is not valid here (%v); read it again", err))
	case err != nil:
		return apierrors.NewBadRequest(fmt.Sprintf("resourceVersion is not valid: %v", err))
	case v.origin < 0:
		return apierrors.NewBadRequest("resourceVersion is that of a list, not of an object")
	}
	a.version, a.given = v, true
	return nil
}

func (r *resource) conflict(name, why string) error {
	return apierrors.NewConflict(r.gvr.GroupResource(), name, errors.New(why))
}

// own returns the version of a's object in the region of s, or "" if the request has no version.
func (r *resource) own(a address, s *source) (string, error) {
	if !a.given {
		return "", nil
	}
	if a.version.at[a.version.origin].id != s.id {
		return "", r.conflict(a.name, fmt.Sprintf("its resourceVersion is of another region than %s, or the region moved; read it again", s.region))
	}
	return a.version.own, nil
}

// sources returns the sources that may have the object of a. If a names a region, it returns the source of this
// region, even if lists show another region of the same cluster.
func (r *resource) sources(a address) []source {
	return r.api.sources(query{namespace: r.namespace, types: []gvr{r.gvr}, only: a.region}, r.api.set.Members())
}

// locate returns the source that a selects, and all sources that may have the object. If a selects no region, the
// first result is the only source, or nil if there are several. The error is NotFound only if the region of a is known
// not to exist.
func (r *resource) locate(ctx context.Context, a address) (*source, []source, error) {
	sources := r.sources(a)
	for i := range sources {
		s := &sources[i]
		if a.region != nil && s.region == *a.region || a.region == nil && a.given && a.version.at[a.version.origin].id == s.id {
			return s, sources, nil
		}
	}
	switch {
	case len(r.api.set.Members()) == 0:
		return nil, nil, apierrors.NewServiceUnavailable("no regions are known here")
	case a.region != nil:
		if finder, ok := r.api.set.(finder); ok && finder.find(ctx, *a.region) != nil {
			return nil, nil, apierrors.NewServiceUnavailable(fmt.Sprintf("whether there is a region %s cannot be learned now", *a.region))
		}
		if sources = r.sources(a); len(sources) > 0 {
			return &sources[0], sources, nil
		}
		return nil, nil, apierrors.NewNotFound(r.gvr.GroupResource(), fmt.Sprintf("%s (no region %s is known)", a.name, *a.region))
	case a.given:
		return nil, nil, r.conflict(a.name, "the region of its resourceVersion left or moved; read it again")
	case len(sources) == 1:
		return &sources[0], sources, nil
	}
	return nil, sources, nil
}

// finder is a Set that can look up regions that it does not list.
type finder interface {
	// find asks whether region k exists. It returns an error if the answer cannot be learned. It may block until
	// ctx ends.
	find(ctx context.Context, k region.Key) error
}

// found is an object that probe found.
type found struct {
	source *source
	object *unstructured.Unstructured
}

// probe reads the named object from all sources in parallel. It returns the objects found and the outcome of each
// source.
func (r *resource) probe(ctx context.Context, name string, sources []source, opts metav1.GetOptions, sub []string) ([]found, []Outcome) {
	objects := make([]*unstructured.Unstructured, len(sources))
	outcomes := make([]Outcome, len(sources))
	var wg sync.WaitGroup
	for i := range sources {
		wg.Go(func() {
			s, began := &sources[i], time.Now()
			var o *unstructured.Unstructured
			err := s.unreachable()
			if err == nil {
				o, err = r.api.getOnce(ctx, s, name, opts, sub)
			}
			outcomes[i] = Outcome{Region: s.region, State: stateOf(err), Err: err, Elapsed: time.Since(began)}
			switch {
			case err == nil:
				objects[i], outcomes[i].Items = o, 1
			case outcomes[i].State == NotServed:
				outcomes[i].State, outcomes[i].Err = Empty, nil
			}
		})
	}
	wg.Wait()
	var all []found
	for i, o := range objects {
		if o != nil {
			all = append(all, found{&sources[i], o})
		}
	}
	return all, outcomes
}

// unique returns the only object with this name in all regions, or nil if no region has such an object. A region that
// did not answer may have an object with this name. So unique returns an object only if the regions that policy
// requires have answered, and nil only if all regions have answered.
func (r *resource) unique(ctx context.Context, op, name string, sources []source, policy Policy, opts metav1.GetOptions, sub []string) (*found, error) {
	all, outcomes := r.probe(ctx, name, sources, opts, sub)
	r.api.report(ctx, outcomes)
	if len(all) > 1 {
		regions := make([]string, len(all))
		for i, f := range all {
			regions[i] = name + nameSeparator + f.source.region.String()
		}
		return nil, r.conflict(name, "several regions have an object with this name: select one, by its name or by the annotation "+RegionAnnotation+": "+strings.Join(regions, ", "))
	}
	if !policy.met(outcomes) || len(all) == 0 && !All().met(outcomes) {
		return nil, &PartialError{Op: fmt.Sprintf("%s %s %s", op, r.gvr.GroupResource(), name), Outcomes: outcomes, policy: policy}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return &all[0], nil
}

// target returns the source to which a write to an existing object is sent.
func (r *resource) target(ctx context.Context, op string, a address) (*source, error) {
	s, sources, err := r.locate(ctx, a)
	if s != nil || err != nil {
		return s, err
	}
	f, err := r.unique(ctx, op, a.name, sources, All(), metav1.GetOptions{}, nil)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, apierrors.NewNotFound(r.gvr.GroupResource(), a.name)
	}
	return f.source, nil
}

// answer converts a region's result for the caller.
func (r *resource) answer(s *source, o *unstructured.Unstructured, err error) (*unstructured.Unstructured, error) {
	if err != nil {
		return nil, wrap(s.region, err)
	}
	return o, r.api.outwardWithVersion(s, o)
}

// Get reads an object. A plain name must be unique. Otherwise the error is a Conflict that names the regions that
// have such an object.
func (r *resource) Get(ctx context.Context, name string, opts metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	a, err := r.addressOf(name, nil)
	if err != nil {
		return nil, err
	}
	at, err := r.api.starts(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	s, sources, err := r.locate(ctx, a)
	if err != nil {
		return nil, err
	}
	if s != nil {
		if i, ok := find(at.at, s.id); ok {
			opts.ResourceVersion = at.at[i].rv
		} else if opts.ResourceVersion != "0" {
			opts.ResourceVersion = ""
		}
		o, err := r.api.getOnce(ctx, s, a.name, opts, sub)
		return r.answer(s, o, err)
	}
	if opts.ResourceVersion != "0" {
		opts.ResourceVersion = ""
	}
	f, err := r.unique(ctx, "get", a.name, sources, policyOf(ctx), opts, sub)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, apierrors.NewNotFound(r.gvr.GroupResource(), a.name)
	}
	return r.answer(f.source, f.object, nil)
}

// Create creates the object in the region that the object names. It need not name a region if there is only one.
func (r *resource) Create(ctx context.Context, o *unstructured.Unstructured, opts metav1.CreateOptions, sub ...string) (*unstructured.Unstructured, error) {
	if o == nil {
		return nil, errObjectNil
	}
	if o.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	a, err := r.addressOf(o.GetName(), o)
	if err != nil {
		return nil, err
	}
	s, sources, err := r.locate(ctx, a)
	if err == nil && s == nil {
		err = r.homeless(a.name, sources)
	}
	if err != nil {
		return nil, err
	}
	o, err = s.client.Create(ctx, inward(s, o), opts, sub...)
	return r.answer(s, o, err)
}

var errObjectNil = apierrors.NewBadRequest("the object is nil")

// homeless returns the error for a new object that does not name a region.
func (r *resource) homeless(name string, sources []source) error {
	if len(sources) == 0 {
		return apierrors.NewServiceUnavailable("no regions are known here")
	}
	var known []string
	for _, s := range sources[:min(len(sources), 10)] {
		known = append(known, s.region.String())
	}
	return r.conflict(name, fmt.Sprintf("it names no region: set the annotation %s to one of %d, such as %s", RegionAnnotation, len(sources), strings.Join(known, ", ")))
}

// Update updates the object in its own region.
func (r *resource) Update(ctx context.Context, o *unstructured.Unstructured, opts metav1.UpdateOptions, sub ...string) (*unstructured.Unstructured, error) {
	if o == nil {
		return nil, errObjectNil
	}
	s, own, err := r.existing(ctx, "update", o.GetName(), o)
	if err != nil {
		return nil, err
	}
	o = inward(s, o)
	o.SetResourceVersion(own)
	o, err = s.client.Update(ctx, o, opts, sub...)
	return r.answer(s, o, err)
}

// UpdateStatus updates the status of the object in its own region.
func (r *resource) UpdateStatus(ctx context.Context, o *unstructured.Unstructured, opts metav1.UpdateOptions) (*unstructured.Unstructured, error) {
	return r.Update(ctx, o, opts, "status")
}

// existing returns the source for a write to an existing object, and the object's version in that source.
func (r *resource) existing(ctx context.Context, op, name string, o *unstructured.Unstructured) (*source, string, error) {
	a, err := r.addressOf(name, o)
	if err != nil {
		return nil, "", err
	}
	s, err := r.target(ctx, op, a)
	if err != nil {
		return nil, "", err
	}
	own, err := r.own(a, s)
	return s, own, err
}

// Delete deletes the object in its own region.
func (r *resource) Delete(ctx context.Context, name string, opts metav1.DeleteOptions, sub ...string) error {
	a, err := r.addressOf(name, nil)
	if err != nil {
		return err
	}
	if p := opts.Preconditions; p != nil && p.ResourceVersion != nil {
		if err := r.note(&a, *p.ResourceVersion); err != nil {
			return err
		}
	}
	s, err := r.target(ctx, "delete", a)
	if err != nil {
		return err
	}
	if a.given {
		own, err := r.own(a, s)
		if err != nil {
			return err
		}
		opts.Preconditions = &metav1.Preconditions{UID: opts.Preconditions.UID, ResourceVersion: &own}
	}
	return wrap(s.region, s.client.Delete(ctx, a.name, opts, sub...))
}

// DeleteCollection deletes the selected objects in all regions. The error is a *PartialError if any region failed,
// whatever the policy: the other regions may have deleted their objects.
func (r *resource) DeleteCollection(ctx context.Context, opts metav1.DeleteOptions, which metav1.ListOptions) error {
	q := newQuery(r.namespace, []gvr{r.gvr}, which)
	at, err := r.api.starts(which.ResourceVersion)
	if err != nil {
		return err
	}
	if which.Continue != "" || which.Limit != 0 {
		return apierrors.NewBadRequest("limit and continue are not supported for a deletion over several regions")
	}
	sources := r.api.sources(q, r.api.set.Members())
	outcomes := make([]Outcome, len(sources))
	var wg sync.WaitGroup
	for i := range sources {
		wg.Go(func() {
			s, o := &sources[i], which
			o.LabelSelector, o.FieldSelector, o.ResourceVersion = q.labels, q.fields, ""
			if j, ok := find(at.at, s.id); ok {
				o.ResourceVersion = at.at[j].rv
			}
			err := s.client.DeleteCollection(ctx, opts, o)
			outcomes[i] = Outcome{Region: s.region, State: stateOf(err), Err: err}
		})
	}
	wg.Wait()
	r.api.report(ctx, outcomes)
	if !All().met(outcomes) {
		return &PartialError{Op: q.op("delete all"), Outcomes: outcomes, wrote: true}
	}
	return nil
}

// Patch patches an object in its own region.
func (r *resource) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	p, err := parsePatch(kind, data)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("patch: %v", err))
	}
	a, err := r.addressOf(name, p.object)
	if err != nil {
		return nil, err
	}
	if err := r.note(&a, p.version()); err != nil {
		return nil, err
	}
	s, err := r.target(ctx, "patch", a)
	if kind == types.ApplyYAMLPatchType && apierrors.IsNotFound(err) && a.region == nil && !slices.Contains(sub, "status") {
		err = r.homeless(a.name, r.sources(a)) // an apply would create the object
	}
	if err != nil {
		return nil, err
	}
	own, err := r.own(a, s)
	if err != nil {
		return nil, err
	}
	data, err = p.inward(s, own)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("patch: %v", err))
	}
	o, err := s.client.Patch(ctx, a.name, kind, data, opts, sub...)
	return r.answer(s, o, err)
}

// Apply applies the object in its own region. A new object must name a region if there are several.
func (r *resource) Apply(ctx context.Context, name string, o *unstructured.Unstructured, opts metav1.ApplyOptions, sub ...string) (*unstructured.Unstructured, error) {
	if o == nil {
		return nil, errObjectNil
	}
	s, own, err := r.existing(ctx, "apply", name, o)
	if apierrors.IsNotFound(err) && o.GetAnnotations()[RegionAnnotation] == "" && !strings.Contains(name, nameSeparator) {
		err = r.homeless(name, r.sources(address{}))
	}
	if err != nil {
		return nil, err
	}
	plain, _, _ := splitName(name)
	o = inward(s, o)
	o.SetManagedFields(nil)
	o.SetResourceVersion(own)
	o, err = s.client.Apply(ctx, plain, o, opts, sub...)
	return r.answer(s, o, err)
}

// ApplyStatus applies the status of the object in its own region.
func (r *resource) ApplyStatus(ctx context.Context, name string, o *unstructured.Unstructured, opts metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	return r.Apply(ctx, name, o, opts, "status")
}
