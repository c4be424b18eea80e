// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// A joint runs the write of an object of a registered kind: it asks the regions as the caller, and then runs the
// operation of the Fanout.
type joint struct {
	fanout Fanout
	router *router.Router
	routes []router.Route
	id     router.Identity
	kind   Kind
}

// writesJointly returns the registered kind of a write to the given regions. The regions may have types of different
// names for one common type.
func (h *Handler) writesJointly(t target, regions ...region.Key) (Kind, bool) {
	written := slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, t.Verb)
	if h.opts.Fanout == nil || !t.IsResource || !written || t.Subresource != "" {
		return Kind{}, false
	}
	for _, k := range regions {
		if k == (region.Key{}) {
			return h.opts.Fanout.Kind(t.gvr().GroupResource())
		}
		regional, ok := h.opts.Map(t.gvr(), k)
		if !ok {
			continue
		}
		if kind, ok := h.opts.Fanout.Kind(regional.GroupResource()); ok {
			return kind, true
		}
	}
	return Kind{}, false
}

// regional returns the handler of a request that is not to all regions.
func (h *Handler) regional(r *http.Request) http.Handler {
	k, t, ok := one(r)
	if !ok {
		return h.single
	}
	kind, ok := h.writesJointly(t, region.Key{})
	if !ok {
		return h.single
	}
	return h.protect(func(w http.ResponseWriter, r *http.Request, id router.Identity) error {
		return h.together(w, r, id, t, kind, &k)
	})
}

// one parses the path of a request to one region.
func one(r *http.Request) (region.Key, target, bool) {
	parts := strings.SplitN(r.URL.Path, "/", 4)
	if len(parts) < 4 || parts[1] != "regions" && parts[1] != "clusters" {
		return region.Key{}, target{}, false
	}
	k, err := region.ParseKey(parts[2])
	if err != nil {
		return k, target{}, false
	}
	t, err := targetOf(r, parts[3])
	return k, t, err == nil && t.region == nil
}

// together serves a write of a registered kind. at is the region of the request; nil stands for all regions.
func (h *Handler) together(w http.ResponseWriter, r *http.Request, id router.Identity, t target, kind Kind, at *region.Key) error {
	gr := t.gvr().GroupResource()
	switch {
	case t.Verb == "deletecollection":
		return apierrors.NewMethodNotSupported(gr, "deletecollection: "+gr.String()+" are removed from all regions together, one by one")
	case t.Verb == "create" && t.Name != "":
		return apierrors.NewMethodNotSupported(gr, "create of a named object")
	case t.Version != kind.Resource.Version:
		return bad("path: %s are written in version %s", gr, kind.Resource.Version)
	}
	ctx, cancel, err := deadline(r)
	if err != nil {
		return err
	}
	defer cancel()
	q := request{Request: r.WithContext(ctx), target: t}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return bodyError(err)
	}
	if q.media() == runtime.ContentTypeProtobuf && t.Verb != "patch" && len(body) > 0 {
		if body, err = fromProtobuf(body); err != nil {
			return err
		}
		q.Header = q.Header.Clone()
		q.Header.Set("Content-Type", runtime.ContentTypeJSON)
	}
	j := &joint{fanout: h.opts.Fanout, router: h.routes, id: id, kind: kind}
	if at != nil {
		q.client, err = j.inOne(ctx, *at)
	} else if q.client, err = h.inAll(ctx, j, t); err == nil {
		body, err = j.address(&q, body)
	}
	if err != nil {
		return err
	}
	q.Body = io.NopCloser(bytes.NewReader(body))
	return q.write(w)
}

// deadline applies the parameter timeout, as an API server does.
func deadline(r *http.Request) (context.Context, context.CancelFunc, error) {
	text := r.URL.Query().Get("timeout")
	if text == "" {
		return r.Context(), func() {}, nil
	}
	limit, err := time.ParseDuration(text)
	if err != nil || limit <= 0 {
		return nil, nil, bad("query: timeout is %q; want a positive duration such as 30s", text)
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	return ctx, cancel, nil
}

// inOne returns the client for a write to region k.
func (j *joint) inOne(ctx context.Context, k region.Key) (dynamic.Interface, error) {
	route, err := j.router.Lookup(ctx, k)
	switch {
	case errors.Is(err, region.ErrUnknownRegion):
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "regions"}, k.String())
	case err != nil:
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("region %s: it cannot be found now", k))
	}
	j.routes = j.router.Routes()
	if !slices.ContainsFunc(j.routes, func(r router.Route) bool { return r.Region == k }) {
		j.routes = append(slices.Clone(j.routes), route) // Routes lacks k, for example if k has just left
	}
	client, err := j.router.Client(k, j.id)
	if err != nil {
		return nil, apierrors.NewForbidden(j.kind.Resource.GroupResource(), "", fmt.Errorf("region %s: the identity is refused", k))
	}
	return jointClient{client.Dynamic(), j, route}, nil
}

// inAll returns the client for a write to all regions. It converts objects as other requests to all regions do, and
// each regional write is a write of j.
func (h *Handler) inAll(ctx context.Context, j *joint, t target) (dynamic.Interface, error) {
	if t.region != nil {
		if _, err := h.routes.Lookup(ctx, *t.region); err != nil && !errors.Is(err, region.ErrUnknownRegion) {
			return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("whether there is a region %s cannot be learned now", *t.region))
		}
	}
	j.routes = h.routes.Routes()
	set, err := aggregate.Regions(h.routes, j.id, nil)
	if err != nil {
		return nil, err
	}
	members := slices.Clone(set.Members())
	for i, m := range members {
		members[i].Client = jointClient{m.Client, j, router.Route{Region: m.Region, Peer: j.peer(m.Region)}}
	}
	joined, err := aggregate.Fixed(members...)
	if err != nil {
		return nil, err
	}
	api, err := aggregate.New(joined, aggregate.Options{Qualify: true, Map: h.opts.Map, Budget: h.opts.Budget, Keys: h.opts.Keys})
	if err != nil {
		return nil, err
	}
	return api.Dynamic(), nil
}

// address adds the object's region to a write to all regions that names none. It returns the body of the write.
func (j *joint) address(q *request, body []byte) ([]byte, error) {
	switch {
	case q.region != nil, bytes.Contains(body, []byte(aggregate.RegionAnnotation)):
		return body, nil
	case q.Verb == "create":
		return j.assign(q, body)
	case bytes.Contains(body, []byte("resourceVersion")):
		return body, nil // it is of one region
	}
	found, err := j.fanout.Find(q.Context(), j.kind, types.NamespacedName{Namespace: q.Namespace, Name: q.plain})
	if err != nil {
		return nil, j.failed("found", q.plain, err)
	}
	switch {
	case len(found.Homes) > 1:
		return nil, j.twice(q.plain, found)
	case found.home() == "" && len(found.Silent) > 0:
		return nil, j.silent(q.plain+" is not found", found.Silent)
	}
	k, ok := j.regionOf(append([]region.PeerName{found.home()}, slices.Sorted(maps.Keys(found.Objects))...)...)
	if creates := q.media() == string(types.ApplyYAMLPatchType); !ok && (j.kind.Everywhere || !creates) {
		k, ok = j.anywhere() // no region has the object: let one answer that, or answer that the caller may not know
	}
	if ok {
		q.Name, q.region = q.plain+"@"+k.String(), &k
	}
	return body, nil
}

// assign adds a region to a new object that exists everywhere.
func (j *joint) assign(q *request, body []byte) ([]byte, error) {
	o, err := q.object(body)
	if err != nil {
		return nil, err
	}
	k, ok := j.anywhere()
	if !j.kind.Everywhere || !ok || strings.Contains(o.GetName(), "@") {
		return body, nil
	}
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[aggregate.RegionAnnotation] = k.String()
	o.SetAnnotations(annotations)
	return json.Marshal(o)
}

// anywhere returns the first region that is not known to be unreachable.
func (j *joint) anywhere() (region.Key, bool) {
	for _, route := range j.routes {
		if !j.router.Health(route.Region).Unreachable() {
			return route.Region, true
		}
	}
	return region.Key{}, false
}

// regionOf returns the first region of the first of the peers that serves one.
func (j *joint) regionOf(peers ...region.PeerName) (region.Key, bool) {
	for _, peer := range peers {
		i := slices.IndexFunc(j.routes, func(r router.Route) bool { return r.Peer == peer })
		if i >= 0 {
			return j.routes[i].Region, true
		}
	}
	return region.Key{}, false
}

func (j *joint) peer(k region.Key) region.PeerName {
	for _, route := range j.routes {
		if route.Region == k {
			return route.Peer
		}
	}
	return ""
}

func (h *Handler) regions() []region.Key {
	routes := h.routes.Routes()
	keys := make([]region.Key, len(routes))
	for i, route := range routes {
		keys[i] = route.Region
	}
	return keys
}
