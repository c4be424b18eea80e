// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// aggregatedType is the content type of aggregated discovery (KEP-3352), which has all groups, versions and resources.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// catalogue is what the regions have last served, for regions that do not answer now. It is safe for concurrent use.
type catalogue struct {
	mu    sync.Mutex
	types map[region.Key][]discoveryv2.APIGroupDiscovery
}

func (c *catalogue) put(k region.Key, groups []discoveryv2.APIGroupDiscovery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.types == nil {
		c.types = map[region.Key][]discoveryv2.APIGroupDiscovery{}
	}
	c.types[k] = groups
}

// keep forgets all regions but those of members.
func (c *catalogue) keep(members []aggregate.Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.types, func(k region.Key, _ []discoveryv2.APIGroupDiscovery) bool {
		return !slices.ContainsFunc(members, func(m aggregate.Member) bool { return m.Region == k })
	})
}

// get returns the groups of region k; nil if they are not known. They are not marked as stale, because clients ignore
// stale ones.
func (c *catalogue) get(k region.Key) []discoveryv2.APIGroupDiscovery {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.types[k]
}

// segments divides a path.
func segments(rest string) []string { return strings.Split(strings.TrimSuffix(rest, "/"), "/") }

// describes reports whether a path is one of discovery or OpenAPI v3.
func describes(path []string) bool {
	return path[0] == "api" && len(path) <= 2 || path[0] == "apis" && len(path) <= 3 || path[0] == "openapi" && len(path) >= 2 && path[1] == "v3"
}

// describe serves the types of all regions: discovery and OpenAPI v3.
func (h *Handler) describe(w http.ResponseWriter, r *http.Request, id router.Identity, path []string) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return apierrors.NewMethodNotSupported(schema.GroupResource{}, strings.ToLower(r.Method))
	}
	if path[0] == "openapi" {
		return h.openAPI(w, r, id, path)
	}
	return h.discover(w, r, id, path)
}

// discover serves the groups, versions and resources of all regions.
func (h *Handler) discover(w http.ResponseWriter, r *http.Request, id router.Identity, path []string) error {
	groups, missing, err := h.groups(r.Context(), id)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		addWarning(w, "types of regions that do not answer are missing, or as last known: "+strings.Join(missing, ", "))
	}
	core := slices.DeleteFunc(slices.Clone(groups), func(g discoveryv2.APIGroupDiscovery) bool { return (g.Name == "") != (path[0] == "api") })
	list := discoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}, Items: core}
	w.Header().Add("Vary", "Accept")
	if len(path) == 1 && acceptsAggregated(r) {
		w.Header().Set("Content-Type", aggregatedType)
		_ = json.NewEncoder(w).Encode(list)
		return nil
	}
	document := plain(list, path)
	if document == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, strings.Join(path, "/"))
	}
	return answer(w, http.StatusOK, document)
}

// acceptsAggregated reports whether the client accepts aggregated discovery, which is then preferred as by a
// kube-apiserver.
func acceptsAggregated(r *http.Request) bool {
	for accepted := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		media, params, err := mime.ParseMediaType(accepted)
		if err == nil && media == "application/json" && params["g"] == discoveryv2.GroupName && params["v"] == "v2" && params["as"] == "APIGroupDiscoveryList" {
			return true
		}
	}
	return false
}

// plain returns the document of a path as clients without aggregated discovery know it; nil if no document has this path.
func plain(list discoveryv2.APIGroupDiscoveryList, path []string) any {
	all, resources, _ := discovery.SplitGroupsAndResources(list)
	switch {
	case path[0] == "api" && len(path) == 1:
		versions := metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}}
		for _, g := range list.Items {
			for _, v := range g.Versions {
				versions.Versions = append(versions.Versions, v.Version)
			}
		}
		return versions
	case len(path) == 1:
		all.TypeMeta = metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}
		return all
	case path[0] == "apis" && len(path) == 2:
		i := slices.IndexFunc(all.Groups, func(g metav1.APIGroup) bool { return g.Name == path[1] })
		if i < 0 {
			return nil
		}
		all.Groups[i].TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		return all.Groups[i]
	default:
		gv := schema.GroupVersion{Version: path[len(path)-1]}
		if path[0] == "apis" {
			gv.Group = path[1]
		}
		found := resources[gv]
		if found == nil {
			return nil
		}
		found.TypeMeta = metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}
		return found
	}
}

// groups returns the union of the regions' groups. missing are the regions that did not answer. The error is a refusal,
// if no region answered.
func (h *Handler) groups(ctx context.Context, id router.Identity) (union []discoveryv2.APIGroupDiscovery, missing []string, err error) {
	regions, err := aggregate.Regions(h.routes, id, nil)
	if err != nil {
		return nil, nil, err
	}
	members := regions.Members()
	h.known.keep(members)
	ctx, cancel := context.WithTimeout(ctx, reviewTime)
	defer cancel()
	served, errs := make([][]discoveryv2.APIGroupDiscovery, len(members)), make([]error, len(members))
	each(len(members), func(i int) {
		k := members[i].Region
		if served[i], errs[i] = h.groupsOf(ctx, members[i]); errs[i] == nil {
			h.known.put(k, served[i])
		} else if _, refused := statusOf(errs[i]); !refused {
			served[i] = h.known.get(k)
		}
	})
	if err := noneOf(members, errs); err != nil {
		return nil, nil, err
	}
	for i, m := range members {
		if errs[i] != nil {
			missing = append(missing, m.Region.String())
		}
		union = join(union, served[i], func(g schema.GroupVersionResource) string { return h.commonGroup(g, m.Region) })
	}
	return union, missing, nil
}

// noneOf returns why no region answered: the refusal of one, or else a 503. It returns nil if a region answered.
func noneOf(members []aggregate.Member, errs []error) error {
	if slices.Contains(errs, nil) {
		return nil
	}
	answers := make([]reviewed, len(members))
	for i, m := range members {
		answers[i] = reviewed{region: m.Region, err: errs[i]}
	}
	_, silent, err := divide(answers)
	if err != nil {
		return err
	}
	return unknown(silent)
}

// groupsOf reads the groups that a region serves to the caller.
func (h *Handler) groupsOf(ctx context.Context, m aggregate.Member) ([]discoveryv2.APIGroupDiscovery, error) {
	if h.routes.Health(m.Region).Unreachable() {
		return nil, &region.Error{Region: m.Region, Op: "discover", Err: region.ErrUnavailable}
	}
	var groups []discoveryv2.APIGroupDiscovery
	for _, path := range []string{"/api", "/apis"} {
		text, err := m.REST.Get().AbsPath(path).SetHeader("Accept", aggregatedType).Do(ctx).Raw()
		if err != nil {
			return nil, err
		}
		var list discoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("%s is no aggregated discovery: %w", path, err)
		}
		groups = append(groups, list.Items...)
	}
	return groups, nil
}

// commonGroup returns the group of a region's type among the types of all regions.
func (h *Handler) commonGroup(regional schema.GroupVersionResource, k region.Key) string {
	common := regional
	common.Group = k.Provider
	if mapped, ok := h.opts.Map(common, k); ok && mapped == regional {
		return common.Group
	}
	return regional.Group
}

// join adds the groups of one more region to union. rename returns the common group of a type. Of a type that both have,
// the first description stays, with the verbs and subresources of both.
func join(union, more []discoveryv2.APIGroupDiscovery, rename func(schema.GroupVersionResource) string) []discoveryv2.APIGroupDiscovery {
	for _, group := range more {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				name := rename(schema.GroupVersionResource{Group: group.Name, Version: version.Version, Resource: resource.Resource})
				resource = *resource.DeepCopy()
				if kind := resource.ResponseKind; kind != nil && kind.Group == group.Name {
					kind.Group = name
				}
				g := named(&union, name, func(g discoveryv2.APIGroupDiscovery) string { return g.Name }, func() discoveryv2.APIGroupDiscovery {
					return discoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
				})
				v := named(&g.Versions, version.Version, func(v discoveryv2.APIVersionDiscovery) string { return v.Version }, func() discoveryv2.APIVersionDiscovery {
					return discoveryv2.APIVersionDiscovery{Version: version.Version, Freshness: version.Freshness}
				})
				known := named(&v.Resources, resource.Resource, func(r discoveryv2.APIResourceDiscovery) string { return r.Resource },
					func() discoveryv2.APIResourceDiscovery { return resource })
				known.Verbs = merged(known.Verbs, resource.Verbs)
				for _, sub := range resource.Subresources {
					at := named(&known.Subresources, sub.Subresource, func(s discoveryv2.APISubresourceDiscovery) string { return s.Subresource },
						func() discoveryv2.APISubresourceDiscovery { return sub })
					at.Verbs = merged(at.Verbs, sub.Verbs)
				}
				if version.Freshness == discoveryv2.DiscoveryFreshnessCurrent {
					v.Freshness = version.Freshness
				}
			}
		}
	}
	return union
}

// named returns the item of a name in list, which it adds if it is missing.
func named[T any](list *[]T, name string, nameOf func(T) string, add func() T) *T {
	i := slices.IndexFunc(*list, func(t T) bool { return nameOf(t) == name })
	if i < 0 {
		i = len(*list)
		*list = append(*list, add())
	}
	return &(*list)[i]
}

// merged returns the sorted union of two sets.
func merged(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
