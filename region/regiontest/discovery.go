// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// serveDiscovery serves the paths that belong to no type: health, version, discovery and OpenAPI.
func (s *Server) serveDiscovery(w http.ResponseWriter, c *call) {
	if c.Method != http.MethodGet {
		notFound(w)
		return
	}
	path := strings.Trim(c.Path, "/")
	parts := strings.Split(path, "/")
	switch {
	case path == "":
		writeJSON(w, c, http.StatusOK, metav1.RootPaths{Paths: []string{"/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"}})
	case path == "healthz", parts[0] == "readyz", parts[0] == "livez":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("ok"))
	case path == "version":
		writeJSON(w, c, http.StatusOK, version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.0+memory", GoVersion: "go1.26", Compiler: "gc", Platform: "memory"})
	case (path == "api" || path == "apis") && wantsAggregated(c.http.Header):
		s.serveAggregated(w, c, path == "api")
	case path == "api":
		writeJSON(w, c, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case path == "apis":
		writeJSON(w, c, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: s.groups()})
	case len(parts) == 2 && parts[0] == "apis":
		s.serveGroup(w, c, parts[1])
	case len(parts) == 2 && parts[0] == "api":
		s.serveResources(w, c, "", parts[1])
	case len(parts) == 3 && parts[0] == "apis":
		s.serveResources(w, c, parts[1], parts[2])
	case strings.HasPrefix(path+"/", "openapi/v3/"):
		s.serveOpenAPI(w, c, strings.Join(parts[2:], "/"))
	default:
		notFound(w)
	}
}

// groups returns all API groups except the core group. The versions of each group are in the order of
// preference.
func (s *Server) groups() []metav1.APIGroup {
	versions := map[string][]string{}
	var names []string
	for _, r := range s.catalogue.all() {
		if r.group == "" {
			continue
		}
		if _, ok := versions[r.group]; !ok {
			names = append(names, r.group)
		}
		if !slices.Contains(versions[r.group], r.version) {
			versions[r.group] = append(versions[r.group], r.version)
		}
	}
	groups := make([]metav1.APIGroup, 0, len(names))
	for _, name := range names {
		group := metav1.APIGroup{Name: name}
		slices.SortFunc(versions[name], newestFirst)
		for _, v := range versions[name] {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
		}
		group.PreferredVersion = group.Versions[0]
		groups = append(groups, group)
	}
	return groups
}

func (s *Server) serveGroup(w http.ResponseWriter, c *call, name string) {
	for _, g := range s.groups() {
		if g.Name == name {
			g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			writeJSON(w, c, http.StatusOK, g)
			return
		}
	}
	notFound(w)
}

func (s *Server) serveResources(w http.ResponseWriter, c *call, group, version string) {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version, APIResources: []metav1.APIResource{}}
	if group != "" {
		list.GroupVersion = group + "/" + version
	}
	for _, r := range s.catalogue.all() {
		if r.group != group || r.version != version {
			continue
		}
		list.APIResources = append(list.APIResources, r.apiResource())
		for _, sub := range r.subresources() {
			list.APIResources = append(list.APIResources,
				metav1.APIResource{Name: r.plural + "/" + sub.name, Namespaced: r.namespaced, Kind: r.kind, Verbs: sub.verbs})
		}
	}
	if len(list.APIResources) == 0 {
		notFound(w)
		return
	}
	writeJSON(w, c, http.StatusOK, list)
}

// subresource is a subresource that discovery lists.
type subresource struct {
	name  string
	verbs metav1.Verbs
}

// subresources returns the subresources of the type.
func (r *resource) subresources() []subresource {
	var all []subresource
	if r.status {
		all = append(all, subresource{"status", metav1.Verbs{"get", "patch", "update"}})
	}
	if r.gr() == namespaceResource {
		all = append(all, subresource{"finalize", metav1.Verbs{"update"}})
	}
	return all
}
