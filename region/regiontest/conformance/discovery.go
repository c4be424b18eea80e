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
