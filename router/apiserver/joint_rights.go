// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// asking is how many regions are asked at once for one request.
const asking = 16

// each calls do with 0 to n-1, for several at once, and waits for all.
func each(n int, do func(i int)) {
	places := make(chan struct{}, asking)
	var wg sync.WaitGroup
	for i := range n {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			do(i)
		})
	}
	wg.Wait()
}

// tryEverywhere creates an object by a dry run: in this region and, if it exists everywhere, in all regions. made is
// the result of this region. taken is this region's refusal because the name is taken; only an API server that allows
// the object otherwise refuses it for that.
func (r jointResource) tryEverywhere(name string, create func(dynamic.ResourceInterface) (*unstructured.Unstructured, error)) (made *unstructured.Unstructured, taken, err error) {
	here := func() (err error) {
		made, err = create(r.ResourceInterface)
		if apierrors.IsAlreadyExists(err) {
			taken = r.refused(name, err)
			return nil
		}
		return err
	}
	if !r.joint.kind.Everywhere {
		return made, taken, r.refused(name, here())
	}
	err = r.everyRegion(func(in jointResource) error {
		if in.at.Region == r.at.Region {
			return here()
		}
		_, err := create(in.ResourceInterface)
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}, name)
	return made, taken, err
}

// allowed asks the regions other than k whether the caller may write the object, if it exists everywhere.
func (r jointResource) allowed(ctx context.Context, verb, name string, k region.Key) error {
	if !r.joint.kind.Everywhere {
		return nil
	}
	return r.everyRegion(func(in jointResource) error {
		if in.at.Region == k {
			return nil
		}
		return in.review(ctx, verb, name)
	}, name)
}

var reviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}

// review asks the region whether the caller may write the object there.
func (r jointResource) review(ctx context.Context, verb, name string) error {
	client, err := r.joint.router.Client(r.at.Region, r.joint.id)
	if err != nil {
		return err
	}
	resource := r.joint.kind.Resource
	answer, err := client.Dynamic().Resource(reviews).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": reviews.GroupVersion().String(), "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]any{
			"verb": verb, "group": resource.Group, "version": resource.Version, "resource": resource.Resource,
			"namespace": r.namespace, "name": name,
		}},
	}}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		return apierrors.NewServiceUnavailable("it does not report the caller's rights: " + err.Error())
	}
	if err != nil {
		return err
	}
	if ok, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed"); !ok {
		return apierrors.NewForbidden(resource.GroupResource(), name, fmt.Errorf("the caller cannot %s it there, and it exists in every region", verb))
	}
	return nil
}

// everyRegion calls ask for each region, for several at once, and waits for all. A refusal of a region comes before the
// silence of others.
func (r jointResource) everyRegion(ask func(jointResource) error, name string) error {
	errs := make([]error, len(r.joint.routes))
	each(len(errs), func(i int) {
		in, err := r.in(r.joint.routes[i].Region)
		if err == nil {
			err = ask(in)
		}
		errs[i] = err
	})
	return r.joint.refusals(name, r.joint.routes, errs)
}

// refused returns the error of a request to this region.
func (r jointResource) refused(name string, err error) error {
	return r.joint.refusals(name, []router.Route{r.at}, []error{err})
}
