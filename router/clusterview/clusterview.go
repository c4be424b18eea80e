// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/atoll-dev/atoll/internal/apistatus"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/proxy"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Options adjust a Handler. The zero value works.
type Options struct {
	// User returns the user as whom requests for a SyncTarget are sent to the region. Nil: the name atoll:cluster:TARGET
	// in the group atoll:clusters.
	User func(target string) router.User
	// Label is the label whose value is the SyncTarget of an object. Empty: v1alpha1.ClusterLabel.
	Label string
	// Fields returns the fields of a type, such as spec.replicas, that a syncer may write besides the status. Nil: none. It
	// must be pure.
	Fields func(schema.GroupResource) []string
	// Limits bound the use by each caller and region.
	Limits proxy.Limits
}

// Handler is the http.Handler for addresses /synctargets/TARGET/regions/REGION/. It is safe for concurrent use.
type Handler struct {
	routes *router.Router
	opts   Options
	caller *proxy.Proxy // authenticates and limits the callers
	inner  *proxy.Proxy // sends requests as Options.User
	rights *rights
}

// New returns a Handler for the regions of routes. authenticate identifies the callers, as for a proxy.Proxy. New does no
// I/O. It fails if an argument is nil or an option is invalid.
func New(routes *router.Router, authenticate proxy.Authenticator, opts Options) (*Handler, error) {
	if routes == nil {
		return nil, errors.New("clusterview: the router is nil; make one with router.New")
	}
	if opts.Label == "" {
		opts.Label = v1alpha1.ClusterLabel
	}
	if wrong := content.IsLabelKey(opts.Label); len(wrong) > 0 {
		return nil, fmt.Errorf("clusterview: Options.Label is %q: %s", opts.Label, wrong[0])
	}
	if opts.User == nil {
		opts.User = func(target string) router.User {
			return router.User{Name: "atoll:cluster:" + target, Groups: []string{"atoll:clusters"}}
		}
	}
	if opts.Fields == nil {
		opts.Fields = func(schema.GroupResource) []string { return nil }
	}
	h := &Handler{routes: routes, opts: opts, rights: newRights()}
	var err error
	if h.caller, err = proxy.New(routes, authenticate, proxy.Options{Limits: opts.Limits}); err != nil {
		return nil, fmt.Errorf("clusterview: %w", err)
	}
	asUser := func(r *http.Request) (router.Identity, error) {
		at, ok := r.Context().Value(addressKey{}).(address)
		if !ok {
			return router.Identity{}, errors.New("the request is for no SyncTarget")
		}
		return h.identity(at), nil
	}
	if h.inner, err = proxy.New(routes, asUser, proxy.Options{Limits: opts.Limits}); err != nil {
		return nil, fmt.Errorf("clusterview: %w", err)
	}
	return h, nil
}

func (h *Handler) identity(at address) router.Identity {
	return router.Impersonate(h.opts.User(at.target))
}

// address is what the first segments of a path name.
type address struct {
	target string
	region region.Key
}

type addressKey struct{}

// addressOf parses /synctargets/TARGET/regions/REGION/REST.
func addressOf(path string) (at address, rest string, err error) {
	parts := strings.SplitN(path, "/", 6)
	if len(parts) < 6 || parts[0] != "" || parts[1] != "synctargets" || parts[3] != "regions" {
		return at, "", errors.New("it is not /synctargets/NAME/regions/NAME.PROVIDER/ and a path in the region")
	}
	if wrong := validation.IsDNS1123Subdomain(parts[2]); len(wrong) > 0 {
		return at, "", fmt.Errorf("%q is no name of a SyncTarget", parts[2])
	}
	at.target = parts[2]
	if at.region, err = region.ParseKey(parts[4]); err != nil {
		return at, "", fmt.Errorf("%q is no region; want NAME.PROVIDER", parts[4])
	}
	return at, parts[5], nil
}

// ServeHTTP serves a request, and blocks until its answer or watch has ended.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, rest, err := addressOf(r.URL.Path)
	if err != nil {
		apistatus.Refuse(w, apierrors.NewBadRequest("path: "+err.Error()))
		return
	}
	r = r.Clone(context.WithValue(r.Context(), addressKey{}, at))
	r.URL.Path, r.URL.RawPath = "/regions/"+at.region.String()+"/"+rest, ""
	h.caller.Protect(func(w http.ResponseWriter, r *http.Request, id router.Identity) error {
		return h.serve(w, r, id, at, rest)
	}).ServeHTTP(w, r)
}

// plain reports whether a path is no resource of the region and may be read by every syncer.
func plain(rest string) bool {
	parts := strings.Split(rest, "/")
	switch parts[0] {
	case "api":
		return len(parts) <= 2
	case "apis":
		return len(parts) <= 3
	case "openapi":
		return true
	default:
		return len(parts) == 1 && slices.Contains([]string{"version", "healthz", "livez", "readyz"}, parts[0])
	}
}
