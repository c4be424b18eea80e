// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// reviewTime is how long a region may take to answer a review.
const reviewTime = 5 * time.Second

// merging returns how the answers of the regions to a review become one. It returns nil if the resource is not one by which
// callers ask about themselves.
func merging(resource schema.GroupVersionResource) func([]reviewed) (map[string]any, error) {
	switch resource {
	case reviews:
		return accessIn
	case schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectrulesreviews"}:
		return rulesIn
	case schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}:
		return subjectIn
	default:
		return nil
	}
}

// review asks the regions, as the caller, what the caller asks about itself, and answers for all of them.
func (h *Handler) review(w http.ResponseWriter, q request, members []aggregate.Member, merge func([]reviewed) (map[string]any, error)) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxBody))
	if err != nil {
		return bodyError(err)
	}
	review, err := q.object(body)
	if err != nil {
		return err
	}
	if len(members) == 0 {
		return apierrors.NewServiceUnavailable("no regions are known")
	}
	ctx, cancel := context.WithTimeout(q.Context(), reviewTime)
	defer cancel()
	answers := make([]reviewed, len(members))
	each(len(members), func(i int) {
		m := members[i]
		answers[i].region = m.Region
		asked, ok := h.reviewIn(review, m.Region)
		if !ok {
			return
		}
		answer, err := m.Client.Resource(q.gvr()).Create(ctx, asked, metav1.CreateOptions{})
		answers[i].err = err
		if err == nil {
			answers[i].status, _, _ = unstructured.NestedMap(answer.Object, "status")
		}
	})
	status, err := merge(answers)
	if err != nil {
		return err
	}
	review.Object["status"] = status
	return answer(w, http.StatusCreated, review)
}

// reviewIn returns the review for region k: about the region's own type, and about the object's name without the region.
// It returns false if the review is not about region k: the region lacks the type, or the name is one of another region.
func (h *Handler) reviewIn(review *unstructured.Unstructured, k region.Key) (*unstructured.Unstructured, bool) {
	spec, _, _ := unstructured.NestedMap(review.Object, "spec")
	attributes, ok, _ := unstructured.NestedMap(spec, "resourceAttributes")
	if !ok {
		return review, true
	}
	attributes = maps.Clone(attributes)
	text := func(field string) string { s, _ := attributes[field].(string); return s }
	regional, ok := h.opts.Map(schema.GroupVersionResource{Group: text("group"), Version: text("version"), Resource: text("resource")}, k)
	if !ok {
		return nil, false
	}
	for field, value := range map[string]string{"group": regional.Group, "version": regional.Version, "resource": regional.Resource} {
		if value != text(field) {
			attributes[field] = value
		}
	}
	if plain, at, qualified := strings.Cut(text("name"), "@"); qualified {
		if at != k.String() {
			return nil, false
		}
		attributes["name"] = plain
	}
	asked := review.DeepCopy()
	asked.Object["spec"] = map[string]any{"resourceAttributes": attributes}
	return asked, true
}
