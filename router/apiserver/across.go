// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// acrossGroup and acrossVersion are the API group and version whose resources are several types together, such as
// configmaps.v1,couchdbs.v1.loodse: see the package's documentation.
const (
	acrossGroup   = "across.atoll.dev"
	acrossVersion = "v1"
)

// catalog is the resource that stands for Options.Catalog.
const catalog = "catalog"

// maxAcross bounds the types of one request: each is a list or a watch in every region.
const maxAcross = 32

// typesOf returns the types that t names: one, or those of a resource across types.
func (h *Handler) typesOf(t target) ([]schema.GroupVersionResource, error) {
	switch {
	case t.Group != acrossGroup:
		return []schema.GroupVersionResource{t.gvr()}, nil
	case t.Version != acrossVersion:
		return nil, apierrors.NewNotFound(t.gvr().GroupResource(), t.Version)
	case t.Verb != "list" && t.Verb != "watch":
		return nil, apierrors.NewMethodNotSupported(t.gvr().GroupResource(), t.Verb)
	case t.Resource != catalog:
		return parseTypes(t.Resource)
	case len(h.opts.Catalog) == 0:
		return nil, apierrors.NewNotFound(t.gvr().GroupResource(), "")
	default:
		return h.opts.Catalog, nil
	}
}

// parseTypes parses types that are separated by commas. The error is a BadRequest.
func parseTypes(text string) (all []schema.GroupVersionResource, err error) {
	parts := strings.Split(text, ",")
	if len(parts) > maxAcross {
		return nil, bad("path: %d types; at most %d can be read together", len(parts), maxAcross)
	}
	for _, part := range parts {
		gvr, err := parseType(part)
		if err != nil {
			return nil, bad("path: %v", err)
		}
		if slices.Contains(all, gvr) {
			return nil, bad("path: the type %q is named twice", part)
		}
		all = append(all, gvr)
	}
	return all, nil
}

// parseType parses RESOURCE.VERSION.GROUP. The core group is empty, and the dot before it may be left out.
func parseType(text string) (schema.GroupVersionResource, error) {
	parts := strings.SplitN(text, ".", 3)
	if len(parts) < 2 || parts[0] == "" || parts[1] == "" {
		return schema.GroupVersionResource{}, fmt.Errorf("%q is no type; want RESOURCE.VERSION.GROUP, such as deployments.v1.apps", text)
	}
	gvr := schema.GroupVersionResource{Version: parts[1], Resource: parts[0]}
	if len(parts) == 3 {
		gvr.Group = parts[2]
	}
	return gvr, checkType(gvr)
}

// checkType returns an error if gvr cannot be read together with other types.
func checkType(gvr schema.GroupVersionResource) error {
	if gvr.Resource == "" || gvr.Version == "" {
		return fmt.Errorf("%v has no resource or no version", gvr)
	}
	for _, part := range []string{gvr.Group, gvr.Version, gvr.Resource} {
		if wrong := content.IsPathSegmentName(part); len(wrong) > 0 {
			return fmt.Errorf("%q %s", part, wrong[0])
		}
	}
	if gvr.Group == acrossGroup {
		return fmt.Errorf("%q stands for types and is none", gvr.Group)
	}
	return nil
}

func checkCatalog(types []schema.GroupVersionResource) error {
	if len(types) > maxAcross {
		return fmt.Errorf("apiserver: Options.Catalog has %d types; want at most %d", len(types), maxAcross)
	}
	for i, gvr := range types {
		if err := checkType(gvr); err != nil {
			return fmt.Errorf("apiserver: Options.Catalog[%d]: %w", i, err)
		}
		if slices.Contains(types[:i], gvr) {
			return fmt.Errorf("apiserver: Options.Catalog[%d]: %v is there twice", i, gvr)
		}
	}
	return nil
}
