// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aggregatedType is the content type of aggregated discovery (KEP-3352), which has all groups, versions and resources in
// two responses.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// wantsAggregated reports whether a request for /api or /apis accepts aggregated discovery. A real server prefers it to
// plain JSON, whatever the order and the weights.
func wantsAggregated(h http.Header) bool {
	for accepted := range strings.SplitSeq(h.Get("Accept"), ",") {
		media, params, err := mime.ParseMediaType(accepted)
		if err == nil && media == "application/json" && params["g"] == apidiscoveryv2.GroupName && params["v"] == "v2" && params["as"] == "APIGroupDiscoveryList" {
			return true
		}
	}
	return false
}

// serveAggregated responds with the core group, or with all other groups.
func (s *Server) serveAggregated(w http.ResponseWriter, c *call, core bool) {
	list := apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	for _, r := range s.catalogue.all() {
		if (r.group == "") != core {
			continue
		}
		group := entry(&list.Items, func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == r.group },
			apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: r.group}})
		version := entry(&group.Versions, func(v apidiscoveryv2.APIVersionDiscovery) bool { return v.Version == r.version },
			apidiscoveryv2.APIVersionDiscovery{Version: r.version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent})
		version.Resources = append(version.Resources, r.discovered())
	}
	for i := range list.Items {
		slices.SortFunc(list.Items[i].Versions, func(a, b apidiscoveryv2.APIVersionDiscovery) int { return newestFirst(a.Version, b.Version) })
	}
	w.Header().Set("Content-Type", aggregatedType)
	w.Header().Set("Vary", "Accept")
	writeJSON(w, c, http.StatusOK, list)
}

// entry returns the element of list for which the function is returns true. If the list has no such element, entry first
// appends add.
func entry[T any](list *[]T, is func(T) bool, add T) *T {
	i := slices.IndexFunc(*list, is)
	if i < 0 {
		i = len(*list)
		*list = append(*list, add)
	}
	return &(*list)[i]
}

// discovered describes the resource and its subresources as aggregated discovery does.
func (r *resource) discovered() apidiscoveryv2.APIResourceDiscovery {
	scope := apidiscoveryv2.ScopeCluster
	if r.namespaced {
		scope = apidiscoveryv2.ScopeNamespace
	}
	d := apidiscoveryv2.APIResourceDiscovery{
		Resource: r.plural, SingularResource: r.singular, Scope: scope, Verbs: r.verbs, ShortNames: r.short, Categories: r.categories,
		ResponseKind: &metav1.GroupVersionKind{Group: r.group, Version: r.version, Kind: r.kind},
	}
	for _, sub := range r.subresources() {
		d.Subresources = append(d.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: sub.name, Verbs: sub.verbs, ResponseKind: d.ResponseKind})
	}
	return d
}
