// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/requestinfo"
	"github.com/atoll-dev/atoll/region"
)

// target is the resource or object that a request to all regions names.
type target struct {
	requestinfo.Info
	plain  string      // the name without the region
	region *region.Key // the region in the name; nil: none
}

// targetOf parses the path of r after the prefix for all regions. The error is a BadRequest.
func targetOf(r *http.Request, rest string) (target, error) {
	info, err := requestinfo.Parse(r.Method, "/"+rest, r.URL.RawQuery)
	t := target{Info: info, plain: info.Name}
	switch {
	case err != nil:
		return t, bad("path: %v", err)
	case !info.IsResource:
		return t, nil
	case strings.Contains("/"+rest, "//"):
		return t, bad("path: it has an empty segment") // an empty namespace would mean all namespaces
	}
	if parts := strings.Split(rest, "/"); parts[0] == "api" && parts[2] == "watch" || parts[0] == "apis" && parts[3] == "watch" {
		return t, bad("path: /watch/ is not served; use the parameter watch")
	}
	if plain, at, qualified := strings.Cut(info.Name, "@"); qualified {
		k, err := region.ParseKey(at)
		if err != nil || plain == "" {
			return t, bad("path: %q is no name; want NAME@REGION", info.Name)
		}
		t.plain, t.region = plain, &k
	}
	for _, part := range []string{t.Group, t.Version, t.Resource, t.Namespace, t.plain, t.Subresource} {
		if wrong := content.IsPathSegmentName(part); len(wrong) > 0 {
			return t, bad("path: %q %s", part, wrong[0])
		}
	}
	if t.isNamespace() {
		t.Namespace = ""
	}
	return t, nil
}

func bad(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

func (t target) isNamespace() bool { return t.Group == "" && t.Resource == "namespaces" }

func (t target) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: t.Group, Version: t.Version, Resource: t.Resource}
}

// streams reports whether the answer is a stream of the object's own region, rather than an object.
func (t target) streams() bool {
	return t.Verb == "proxy" || t.Subresource != "" && t.IsLongRunning()
}

// sub returns the subresource as an argument for the dynamic client.
func (t target) sub() []string {
	if t.Subresource == "" {
		return nil
	}
	return []string{t.Subresource}
}
