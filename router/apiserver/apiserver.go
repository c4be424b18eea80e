// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
	"github.com/atoll-dev/atoll/router/proxy"
)

// Options adjust a Handler. The zero value works.
type Options struct {
	// Keys authenticates resourceVersions and continue tokens. All replicas need the same keys. Nil: a random key, so
	// that clients list again when they reach another replica or the process restarts.
	Keys *aggregate.Keyring
	// Map maps a common type to the type of each region. Nil: aggregate.ByProvider for groups that are the name of a
	// provider, such as couchdbs.loodse for couchdbs.eu-west-1.loodse; the same type in all regions otherwise.
	Map aggregate.Mapping
	// Catalog are the types of the address /apis/across.atoll.dev/v1/catalog, at most 32. Nil: that address is not found.
	Catalog []schema.GroupVersionResource
	// Budget limits the bytes of the regions' answers that all callers together hold at one time. Nil: 256 MiB.
	Budget *aggregate.Budget
	// Sharing lets the watches of one caller share one watch of each region. Its Start must run. Callers are the same if
	// router.Identity.Fingerprint is. Nil: each watch watches the regions itself.
	Sharing *aggregate.Sharing
	// Fanout runs the writes of registered kinds, which the regions hold together, to one region and to all regions. Nil:
	// every write is sent to one region.
	Fanout Fanout
	// Observer receives events of lists and watches of all regions. It may be nil.
	Observer *aggregate.Observer
}

// Handler is the http.Handler. It is safe for concurrent use.
type Handler struct {
	routes *router.Router
	single http.Handler // serves one region
	all    http.Handler // serves all regions, with the same checks as for one
	opts   Options
	packs  *sync.Pool // of compressors
	known  catalogue

	// protect returns a handler with the checks of requests to all regions. serve returns an error only if it has not
	// written an answer.
	protect func(serve func(http.ResponseWriter, *http.Request, router.Identity) error) http.Handler
}

// New returns a Handler for the regions of routes. single serves the requests to one region. It also authenticates the
// requests to all regions, and its Limits apply to them. New does no I/O.
func New(routes *router.Router, single *proxy.Proxy, opts Options) (*Handler, error) {
	switch {
	case routes == nil:
		return nil, errors.New("apiserver: the router is nil; make one with router.New")
	case single == nil:
		return nil, errors.New("apiserver: the proxy is nil; make one with proxy.New")
	}
	if err := checkCatalog(opts.Catalog); err != nil {
		return nil, err
	}
	var err error
	if opts.Budget == nil {
		if opts.Budget, err = aggregate.NewBudget(0); err != nil {
			return nil, err
		}
	}
	if opts.Keys == nil {
		opts.Keys = aggregate.RandomKeyring()
	}
	h := &Handler{routes: routes, single: single, opts: opts, packs: packers(), protect: single.Protect}
	if h.opts.Map == nil {
		h.opts.Map = h.byProvider
	}
	h.all = h.protect(h.serve)
	return h, nil
}

// byProvider maps a group that is the name of a provider to the group of region k. It returns false if k belongs to
// another provider.
func (h *Handler) byProvider(common schema.GroupVersionResource, k region.Key) (schema.GroupVersionResource, bool) {
	ofProvider := func(r router.Route) bool { return r.Region.Provider == common.Group }
	if !slices.ContainsFunc(h.routes.Routes(), ofProvider) {
		return common, true
	}
	return aggregate.ByProvider(common.Group)(common, k)
}

// ServeHTTP serves requests to all regions, and passes all other requests to the proxy.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, ok := cutAll(r.URL.Path)
	if !ok {
		h.regional(r).ServeHTTP(w, r)
		return
	}
	t, err := targetOf(r, rest)
	routes := h.routes.Routes()
	switch {
	case err != nil, t.IsResource && !t.streams(), len(routes) == 0:
		h.all.ServeHTTP(w, r)
	case t.IsResource && t.region != nil:
		h.single.ServeHTTP(w, to(r, *t.region, strings.Replace(rest, t.Name, t.plain, 1)))
	case t.IsResource:
		h.all.ServeHTTP(w, r) // refuses it
	case describes(segments(rest)):
		h.protect(func(w http.ResponseWriter, r *http.Request, id router.Identity) error {
			return h.describe(w, r, id, segments(rest))
		}).ServeHTTP(w, r)
	default:
		// Not a resource: the version or a health check. Any region that answers will do.
		i := max(0, slices.IndexFunc(routes, func(at router.Route) bool { return !h.routes.Health(at.Region).Unreachable() }))
		h.single.ServeHTTP(w, to(r, routes[i].Region, rest))
	}
}

// cutAll returns the part of a path after the prefix for all regions.
func cutAll(path string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(path, "/regions/*/"); ok {
		return rest, ok
	}
	return strings.CutPrefix(path, "/clusters/*/")
}

// to returns a copy of r to the given path in one region.
func to(r *http.Request, k region.Key, path string) *http.Request {
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = "/regions/"+k.String()+"/"+path, ""
	return r
}
