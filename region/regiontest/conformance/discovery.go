// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

func discoveries() []testCase {
	return []testCase{
		{"discovery", "discovery lists the served resources", func(e *env) {
			e.widgets()
			client, err := discovery.NewDiscoveryClientForConfigAndClient(e.Config, e.http)
			require.NoError(e, err)
			var list *metav1.APIResourceList
			e.until("the type is discovered", func() bool {
				list, err = client.ServerResourcesForGroupVersion(e.Group + "/v1")
				return err == nil && len(list.APIResources) == 2
			})
			widgets := list.APIResources[slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "widgets" })]
			e.fact("kind", "Widget", widgets.Kind)
			e.fact("singular", "widget", widgets.SingularName)
			e.fact("namespaced", true, widgets.Namespaced)
			e.fact("short names", []string{"wd"}, widgets.ShortNames)
			e.fact("categories", []string{"conformance"}, widgets.Categories)
			verbs := slices.Sorted(slices.Values(widgets.Verbs))
			e.fact("verbs", []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}, verbs)
			status := list.APIResources[slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "widgets/status" })]
			e.fact("status verbs", []string{"get", "patch", "update"}, slices.Sorted(slices.Values(status.Verbs)))
			core, err := client.ServerResourcesForGroupVersion("v1")
			require.NoError(e, err)
			for _, name := range []string{"namespaces", "namespaces/finalize", "secrets", "configmaps", "services", "serviceaccounts", "events", "pods"} {
				e.fact(name, true, slices.ContainsFunc(core.APIResources, func(r metav1.APIResource) bool { return r.Name == name }))
			}
			_, err = client.ServerVersion()
			e.fact("version", "OK", e.errorText(err))
			_, err = client.ServerResourcesForGroupVersion("nowhere.example.org/v1")
			e.fact("unknown group", "404 NotFound", codeAndReason(err))
		}},
		{"discovery-aggregated", "two requests discover all types", func(e *env) {
			e.widgets()
			const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
			var widgets map[string]any
			e.until("the type is discovered", func() bool {
				reply := e.do("GET", "/apis", nil, "Accept", aggregated+",application/json")
				e.fact("content type", aggregated, reply.Header.Get("Content-Type"))
				group := named(reply.Body["items"], func(g map[string]any) any { return g["metadata"].(map[string]any)["name"] }, e.Group)
				version := named(group["versions"], func(v map[string]any) any { return v["version"] }, "v1")
				widgets = named(version["resources"], func(r map[string]any) any { return r["resource"] }, "widgets")
				return len(widgets) > 0 && version["freshness"] == "Current"
			})
			e.fact("kind", map[string]any{"group": e.Group, "version": "v1", "kind": "Widget"}, widgets["responseKind"])
			e.fact("singular", "widget", widgets["singularResource"])
			e.fact("scope", "Namespaced", widgets["scope"])
			e.fact("short names", []any{"wd"}, widgets["shortNames"])
			e.fact("categories", []any{"conformance"}, widgets["categories"])
			status := named(widgets["subresources"], func(r map[string]any) any { return r["subresource"] }, "status")
			e.fact("status", map[string]any{"group": e.Group, "version": "v1", "kind": "Widget"}, status["responseKind"])
			core := e.do("GET", "/api", nil, "Accept", aggregated)
			version := named(named(core.Body["items"], func(g map[string]any) any {
				name, _ := g["metadata"].(map[string]any)["name"].(string)
				return name
			}, "")["versions"], func(v map[string]any) any { return v["version"] }, "v1")
			e.fact("core", true, len(named(version["resources"], func(r map[string]any) any { return r["resource"] }, "namespaces")) > 0)
			for accept, kind := range map[string]string{
				"application/json":                                           "APIGroupList",
				"application/json," + aggregated:                             "APIGroupDiscoveryList",
				"application/json," + aggregated + ";q=0.5":                  "APIGroupDiscoveryList",
				aggregated + ",application/json;q=0.5":                       "APIGroupDiscoveryList",
				"application/json;g=x.io;v=v2;as=Something,application/json": "APIGroupList",
			} {
				e.fact(accept, kind, e.do("GET", "/apis", nil, "Accept", accept).Body["kind"])
			}

			client, err := discovery.NewDiscoveryClientForConfigAndClient(e.Config, e.http)
			require.NoError(e, err)
			groups, lists, err := client.ServerGroupsAndResources()
			e.fact("client-go", "OK", e.errorText(err))
			e.fact("the group in client-go", true, slices.ContainsFunc(groups, func(g *metav1.APIGroup) bool { return g.Name == e.Group }))
			list := lists[slices.IndexFunc(lists, func(l *metav1.APIResourceList) bool { return l.GroupVersion == e.Group+"/v1" })]
			e.fact("its resources", 2, len(list.APIResources))
		}},
		{"discovery-mapper", "a REST mapper finds kinds and resources", func(e *env) {
			e.widgets()
			client, err := discovery.NewDiscoveryClientForConfigAndClient(e.Config, e.http)
			require.NoError(e, err)
			e.until("the group is discovered", func() bool {
				groups, err := restmapper.GetAPIGroupResources(client)
				if err != nil {
					return false
				}
				mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(schema.GroupKind{Group: e.Group, Kind: "Widget"})
				return err == nil && mapping.Resource == e.gvr()
			})
			groups, err := restmapper.GetAPIGroupResources(client)
			require.NoError(e, err)
			mapper := restmapper.NewDiscoveryRESTMapper(groups)
			for kind, want := range map[schema.GroupKind]schema.GroupVersionResource{
				{Kind: "Secret"}:                    secrets,
				{Group: "apps", Kind: "Deployment"}: deployments,
				{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: crds,
				{Group: "coordination.k8s.io", Kind: "Lease"}:                     leases,
			} {
				mapping, err := mapper.RESTMapping(kind)
				require.NoError(e, err)
				e.fact(kind.String(), want, mapping.Resource)
			}
		}},
		{"discovery-health", "health, version and OpenAPI", func(e *env) {
			for _, path := range []string{"/readyz", "/livez", "/healthz"} {
				reply := e.do("GET", path, nil)
				e.fact(path, "200 ok", itoa(reply.Code)+" "+reply.Text)
			}
			reply := e.do("GET", "/version", nil)
			e.fact("version", "1", text(reply.Body["major"]))
			reply = e.do("GET", "/apis/nowhere.example.org/v1/things", nil)
			e.fact("unknown path", 404, reply.Code)
			e.widgets()
			e.until("the schema is published", func() bool {
				reply := e.do("GET", "/openapi/v3", nil, "Accept", "application/json")
				paths, _ := reply.Body["paths"].(map[string]any)
				return paths["apis/"+e.Group+"/v1"] != nil
			})
			var schemas map[string]any
			e.until("the schema is complete", func() bool {
				reply := e.do("GET", "/openapi/v3/apis/"+e.Group+"/v1", nil, "Accept", "application/json")
				components, _ := reply.Body["components"].(map[string]any)
				schemas, _ = components["schemas"].(map[string]any)
				return len(schemas) > 0
			})
			found := false
			for _, s := range schemas {
				kinds, _ := s.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
				for _, k := range kinds {
					found = found || k.(map[string]any)["kind"] == "Widget"
				}
			}
			e.fact("schema of Widget", true, found)
		}},
	}
}

func dryRuns() []testCase {
	return []testCase{
		{"dry-run", "a dry run returns the result of the write and changes nothing", func(e *env) {
			w := e.widgets()
			dry := []string{"All"}
			made, err := w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(1)}), metav1.CreateOptions{DryRun: dry})
			require.NoError(e, err)
			e.fact("uid", true, made.GetUID() != "")
			e.fact("resourceVersion", "", made.GetResourceVersion())
			e.fact("defaults", "auto", field(made, "spec", "mode"))
			_, err = w.Get(e.Ctx, "a", metav1.GetOptions{})
			e.fact("not created", `404 NotFound: widgets.GROUP "a" not found`, e.errorText(err))
			_, err = w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(-1)}), metav1.CreateOptions{DryRun: dry})
			e.fact("validated", "422 Invalid", codeAndReason(err))
			made, err = w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(1)}), metav1.CreateOptions{})
			require.NoError(e, err)
			_, err = w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{DryRun: dry})
			e.fact("exists", "409 AlreadyExists", codeAndReason(err))
			changed := made.DeepCopy()
			changed.Object["spec"] = map[string]any{"size": int64(2)}
			after, err := w.Update(e.Ctx, changed, metav1.UpdateOptions{DryRun: dry})
			require.NoError(e, err)
			e.fact("update answers", int64(2), field(after, "spec", "size"))
			e.fact("update keeps the resourceVersion", made.GetResourceVersion(), after.GetResourceVersion())
			_, err = w.Apply(e.Ctx, "b", e.widget("b", nil), metav1.ApplyOptions{FieldManager: "m", DryRun: dry})
			e.fact("apply", "OK", e.errorText(err))
			require.NoError(e, w.Delete(e.Ctx, "a", metav1.DeleteOptions{DryRun: dry}))
			still, err := w.Get(e.Ctx, "a", metav1.GetOptions{})
			require.NoError(e, err)
			e.fact("as it was", made.GetResourceVersion(), still.GetResourceVersion())
			_, err = w.Create(e.Ctx, e.widget("c", nil), metav1.CreateOptions{DryRun: []string{"Some"}})
			e.fact("unknown", `422 Invalid: CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"`, e.errorText(err))
		}},
	}
}

// named returns the element of list with that name, or an empty object.
func named(list any, name func(map[string]any) any, want string) map[string]any {
	all, _ := list.([]any)
	for _, element := range all {
		if object, ok := element.(map[string]any); ok && name(object) == want {
			return object
		}
	}
	return map[string]any{}
}
