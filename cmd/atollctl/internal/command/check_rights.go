// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region"
)

// parallelReviews is how many requests one check sends to a peer at once.
const parallelReviews = 8

var accessReviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}

// access is a verb on a resource, or on the object with the name.
type access struct {
	verb     string
	resource schema.GroupResource // with the subresource, as in a role
	name     string
}

// leastAccess returns the rights that "atollctl rbac" prints.
func leastAccess() []access {
	var all []access
	for _, rule := range rights.Coordinate().Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all = append(all, access{verb, schema.GroupResource{Group: group, Resource: resource}, name})
					}
				}
			}
		}
	}
	return all
}

// observeRights returns those of the least rights that the peer's user lacks.
func observeRights(ctx context.Context, c *region.Conn) ([]access, error) {
	all := leastAccess()
	allowed := make([]bool, len(all))
	err := inParallel(len(all), func(i int) (err error) {
		allowed[i], err = review(ctx, c, all[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	var missing []access
	for i, a := range all {
		if !allowed[i] {
			missing = append(missing, a)
		}
	}
	return missing, nil
}

// inParallel calls f with each number below n, at most parallelReviews calls at a time, and returns
// the first error.
func inParallel(n int, f func(int) error) error {
	var group errgroup.Group
	group.SetLimit(parallelReviews)
	for i := range n {
		group.Go(func() error { return f(i) })
	}
	return group.Wait()
}

// review asks the API server whether it would allow a request. Each authenticated user may ask.
func review(ctx context.Context, c *region.Conn, a access) (bool, error) {
	resource, subresource, _ := strings.Cut(a.resource.Resource, "/")
	ask := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": accessReviews.GroupVersion().String(), "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]any{
			"verb": a.verb, "group": a.resource.Group, "resource": resource, "subresource": subresource, "name": a.name,
		}},
	}}
	answer, err := c.Dynamic().Resource(accessReviews).Create(ctx, ask, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	allowed, _, err := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed, err
}

func judgeRights(missing []access, err error, c commands) finding {
	if err != nil {
		return unknown(checkRights, err)
	}
	if len(missing) == 0 {
		return passed(checkRights, "the user has all rights that %q prints", c.program+" rbac")
	}
	var resources []string
	verbs := map[string][]string{}
	for _, a := range missing {
		resource := a.resource.String()
		if a.name != "" {
			resource += " " + a.name
		}
		if verbs[resource] == nil {
			resources = append(resources, resource)
		}
		verbs[resource] = append(verbs[resource], a.verb)
	}
	for i, resource := range resources {
		resources[i] = strings.Join(verbs[resource], ", ") + " of " + resource
	}
	return failed(checkRights, c.rbac(), "the user lacks %s: as an administrator of the peer, apply the role and bind it to the user", strings.Join(resources, "; "))
}
