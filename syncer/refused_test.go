// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/targets"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var (
	secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	roles   = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
)

const someRole = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}"

// copied returns a definition by which a server serves a type of Kubernetes as a cluster-scoped custom resource.
func copied(gr schema.GroupResource) *apiextensionsv1.CustomResourceDefinition {
	c := crd(gr.Resource, "Kind"+gr.Resource, true)
	c.Name, c.Spec.Group, c.Spec.Scope = gr.String(), gr.Group, apiextensionsv1.ClusterScoped
	c.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "https://example.org/approved"}
	return c
}

// servedPowerful returns the types that need a permit, and definitions of those types among them that regiontest
// servers lack.
func servedPowerful() (all []schema.GroupResource, defined []*apiextensionsv1.CustomResourceDefinition) {
	builtin := parseAll("controllerrevisions.apps customresourcedefinitions.apiextensions.k8s.io endpoints endpointslices.discovery.k8s.io leases.coordination.k8s.io namespaces nodes persistentvolumes " + powerful[syncer.PermitRBAC])
	for _, gr := range allPowerful() {
		if !slices.Contains(builtin, gr) {
			defined = append(defined, copied(gr))
		}
		all = append(all, gr)
	}
	return all, defined
}

// minimal returns a small object of the type r that servers accept. gv is its apiVersion.
func minimal(r metav1.APIResource, gv string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": gv, "kind": r.Kind}}
	obj.SetName("x")
	obj.SetLabels(map[string]string{v1alpha1.ClusterLabel: target})
	switch r.Kind {
	case "CustomResourceDefinition":
		def := crd("extras", "Extra", true)
		obj.SetName(def.Name)
		version := map[string]any{"name": "v1", "served": false, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}
		obj.Object["spec"] = map[string]any{"group": "example.org", "scope": "Namespaced", "names": map[string]any{"plural": "extras", "kind": "Extra"}, "versions": []any{version}}
	case "EndpointSlice":
		obj.Object["addressType"] = "IPv4"
		obj.Object["endpoints"] = []any{}
	case "RoleBinding", "ClusterRoleBinding":
		obj.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "x"}
	}
	return obj
}

// each finds the given types in discovery, and calls the func do for each type with a client and a minimal object.
func (s *side) each(all []schema.GroupResource, do func(gr schema.GroupResource, client dynamic.ResourceInterface, obj *unstructured.Unstructured)) {
	s.t.Helper()
	_, lists, err := s.api.Discovery().ServerGroupsAndResources()
	require.NoError(s.t, err)
	left := slices.Clone(all)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(s.t, err)
		for _, r := range list.APIResources {
			gr := schema.GroupResource{Group: gv.Group, Resource: r.Name}
			at := slices.Index(left, gr)
			if at < 0 {
				continue
			}
			left = slices.Delete(left, at, at+1)
			client := dynamic.ResourceInterface(s.client.Resource(gv.WithResource(r.Name)))
			if r.Namespaced {
				client = s.client.Resource(gv.WithResource(r.Name)).Namespace("default")
			}
			do(gr, client, minimal(r, list.GroupVersion))
		}
	}
	require.Empty(s.t, left, "types that are not served")
}

// Without permits, the syncer syncs no object of a type that needs a Power. With all permits, it syncs objects of each
// such type.
func TestPowerIsNotSynced(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all, defined := servedPowerful()
		p := &pair{t: t, up: newSide(t, "up", regiontest.Options{CRDs: defined}), down: newSide(t, "down", regiontest.Options{CRDs: defined})}
		p.up.each(all, func(gr schema.GroupResource, client dynamic.ResourceInterface, obj *unstructured.Unstructured) {
			_, err := client.Create(t.Context(), obj, metav1.CreateOptions{})
			require.NoError(t, err, gr)
		})
		p.up.create(configMaps, a)
		exists := func(gr schema.GroupResource) (there bool) {
			p.down.each([]schema.GroupResource{gr}, func(_ schema.GroupResource, client dynamic.ResourceInterface, obj *unstructured.Unstructured) {
				list, err := client.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + obj.GetName()})
				require.NoError(t, err)
				there = len(list.Items) > 0
			})
			return there
		}
		p.reset()
		p.start(syncer.Options{})
		require.NotNil(t, p.down.get(configMaps, "a"))
		require.Equal(t, []string{"patch configmaps a"}, p.down.writes())
		require.Equal(t, []string{"patch configmaps a"}, p.up.writes())
		problems := p.problems()
		for _, gr := range all {
			require.False(t, exists(gr), "%s is there without its permit", gr)
			if slices.Contains([]string{"namespaces", "endpoints", "endpointslices"}, gr.Resource) {
				require.Equal(t, 0, strings.Count(strings.Join(problems, "\n"), gr.Resource+" "), "not reported, since other clients label them")
				continue
			}
			require.True(t, slices.ContainsFunc(problems, func(s string) bool {
				return strings.HasPrefix(s, gr.Resource+" ") && strings.HasSuffix(s, " NotPermitted")
			}), "%s: nothing is reported", gr)
		}
		p.stop()
		p.start(syncer.Options{Permit: syncer.Powers()})
		for _, gr := range all {
			require.True(t, exists(gr), "%s is not there with all permits", gr)
		}
		require.Empty(t, p.problems())
	})
}

// A type whose group is named like one of Kubernetes is refused as long as this release does not know it. A permit
// with the name of the type allows it.
func TestUnknownTypeIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		unknown := copied(schema.ParseGroupResource("things.future.k8s.io"))
		p := &pair{t: t, up: newSide(t, "up", regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{unknown}}),
			down: newSide(t, "down", regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{unknown}})}
		things := schema.GroupVersionResource{Group: "future.k8s.io", Version: "v1", Resource: "things"}
		_, err := p.up.client.Resource(things).Create(t.Context(), parse(t, "{apiVersion: future.k8s.io/v1, kind: Kindthings, metadata: {name: a}}"), metav1.CreateOptions{})
		require.NoError(t, err)
		p.start(syncer.Options{})
		require.Equal(t, []string{"things /a NotPermitted"}, p.problems())
		at := slices.IndexFunc(p.Status().Types, func(s syncer.TypeStatus) bool { return s.Resource == things })
		require.Contains(t, p.Status().Types[at].Message, "needs the permit things.future.k8s.io")
		p.stop()
		p.start(syncer.Options{Permit: []syncer.Power{"things.future.k8s.io"}})
		_, err = p.down.client.Resource(things).Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
	})
}

// A Secret that is a credential of a cluster is synced in neither direction. That holds also if a Secret of the same
// name was synced before.
func TestCredentialsStay(t *testing.T) {
	for name, test := range map[string]struct{ fields, reason string }{
		"bootstrap token":       {"type: bootstrap.kubernetes.io/token, metadata: {name: s, labels: %s}", "NotPermitted"},
		"token of an account":   {"type: kubernetes.io/service-account-token, metadata: {name: s, labels: %s, annotations: {kubernetes.io/service-account.name: default}}", "NotSyncable"},
		"credential by its tag": {"type: kubernetes.io/dockercfg, data: {.dockercfg: e30=}, metadata: {name: s, labels: %s, annotations: {kubernetes.io/service-account.name: default}}", "NotPermitted"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, upsyncAll)
				manifest := "{apiVersion: v1, kind: Secret, " + test.fields + "}"
				down, up := "{workloads.kcp.io/cluster: "+target+"}", "{state.workload.kcp.io/"+target+": Upsync}"
				p.up.create(secrets, "{apiVersion: v1, kind: Secret, metadata: {name: s}}")
				p.rest()
				require.NotNil(t, p.down.get(secrets, "s"))
				p.up.delete(secrets, "s")
				p.rest()
				p.up.create(secrets, fmt.Sprintf(manifest, down))
				p.rest()
				require.Nil(t, p.down.get(secrets, "s"))
				require.Equal(t, []string{"secrets default/s " + test.reason}, p.problems())
				p.up.delete(secrets, "s")
				p.rest()
				require.Empty(t, p.problems())

				p.down.create(secrets, fmt.Sprintf(manifest, up))
				p.rest()
				require.Nil(t, p.up.get(secrets, "s"))
				require.Equal(t, []string{"secrets default/s " + test.reason}, p.problems())
			})
		})
	}
}

// No object is synced into or out of a namespace of a cluster itself, whatever the name of the namespace on the other
// side is.
func TestReservedNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		prefix, up, down string
		refused          bool
	}{
		"the same":                {"", "kube-system", "kube-system", true},
		"one that is not there":   {"", "kube-flannel", "kube-flannel", true},
		"under another name":      {"acme-", "kube-system", "acme-kube-system", true},
		"only downstream":         {"k", "ube-system", "kube-system", true},
		"of an installation":      {"", "atoll-syncer-my-cluster-abcdefghij", "atoll-syncer-my-cluster-abcdefghij", true},
		"of one, only downstream": {"atoll-", "syncer-x", "atoll-syncer-x", true},
		"one that sounds alike":   {"", "kubeshop", "kubeshop", false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{Namespaces: syncer.PrefixNamespaces(test.prefix), Upsync: upsyncAll.Upsync, Permit: []syncer.Power{syncer.PermitNamespaces}})
				for s, namespace := range map[*side]string{p.up: test.up, p.down: test.down} {
					_, err := s.client.Resource(namespaces).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
						"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
					}}, metav1.CreateOptions{})
					if err != nil {
						require.ErrorContains(t, err, "already exists")
					}
				}
				p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: "+test.up+"}}")
				p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: born, namespace: "+test.down+", labels: {state.workload.kcp.io/"+target+": Upsync}}}")
				p.rest()
				if !test.refused {
					require.NotNil(t, p.down.get(configMaps, "a", test.down))
					require.NotNil(t, p.up.get(configMaps, "born", test.up))
					return
				}
				require.Nil(t, p.down.get(configMaps, "a", test.down))
				require.Nil(t, p.up.get(configMaps, "born", test.up))
				require.Empty(t, p.up.get(configMaps, "a", test.up).GetFinalizers())
				require.Equal(t, []string{"configmaps " + test.up + "/a NotPermitted", "configmaps " + test.up + "/born NotPermitted"}, p.problems())
			})
		})
	}
}

// A Namespace of a cluster itself is not synced, even with PermitNamespaces.
func TestReservedNamespaceObjects(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Permit: []syncer.Power{syncer.PermitNamespaces}})
		p.up.create(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: kube-more, labels: {workloads.kcp.io/cluster: "+target+", pod-security.kubernetes.io/enforce: privileged}}}")
		p.up.create(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
		p.rest()
		require.NotNil(t, p.down.get(namespaces, "shop"))
		require.Nil(t, p.down.get(namespaces, "kube-more"))
		require.Equal(t, []string{"namespaces /kube-more NotPermitted"}, p.problems())
	})
}

// Options.Refuse refuses custom types, and objects by their content, in both directions.
func TestRefuse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Upsync: upsyncAll.Upsync, Refuse: func(gr schema.GroupResource, obj *unstructured.Unstructured) string {
			switch {
			case obj == nil && gr == gadgets.GroupResource():
				return "gadgets grant rights"
			case obj != nil && field(obj, "spec", "admin") == true:
				return "administrators are made by hand"
			}
			return ""
		}})
		p.up.create(gadgets, "{apiVersion: example.org/v1, kind: Gadget, metadata: {name: g}}")
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: w}, spec: {admin: true}}")
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: ok}, spec: {size: 1}}")
		p.down.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: born, labels: {state.workload.kcp.io/my-cluster: Upsync}}, spec: {admin: true}}")
		p.down.create(gadgets, "{apiVersion: example.org/v1, kind: Gadget, metadata: {name: born, labels: {state.workload.kcp.io/my-cluster: Upsync}}}")
		p.rest()
		require.NotNil(t, p.down.get(widgets, "ok"))
		require.Nil(t, p.down.get(widgets, "w"))
		require.Nil(t, p.down.get(gadgets, "g"))
		require.Nil(t, p.up.get(widgets, "born"))
		require.Nil(t, p.up.get(gadgets, "born"))
		require.Equal(t, []string{"gadgets default/born NotPermitted", "gadgets default/g NotPermitted",
			"widgets default/born NotPermitted", "widgets default/w NotPermitted"}, p.problems())
		require.Equal(t, syncer.ReasonNotPermitted, p.reason(gadgets))
		p.up.patch(widgets, "w", `{"spec":{"admin":false}}`)
		p.rest()
		require.NotNil(t, p.down.get(widgets, "w"))
	})
}

// A refused object that an earlier release has synced stays as it is on both sides, and is reported. If it is deleted
// upstream, it stays there until its downstream object is gone.
func TestSyncedByAnEarlierRelease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Permit: []syncer.Power{syncer.PermitRBAC}})
		p.up.create(roles, someRole)
		p.up.create(roles, strings.Replace(someRole, "name: r", "name: moves", 1))
		p.rest()
		require.NotNil(t, p.down.get(roles, "r"))
		p.stop()

		p.reset()
		p.start(syncer.Options{Conditions: false})
		p.up.patch(roles, "r", `{"rules":[]}`)
		p.down.patch(roles, "r", `{"metadata":{"labels":{"theirs":"x"}}}`)
		p.rest()
		require.Len(t, field(p.down.get(roles, "r"), "rules"), 1, "it is not updated")
		require.Equal(t, []string{"roles default/moves NotPermitted", "roles default/r NotPermitted"}, p.problems())
		p.up.delete(roles, "r")
		p.up.patch(roles, "moves", `{"metadata":{"labels":{"workloads.kcp.io/cluster":"another"}}}`)
		time.Sleep(time.Hour)
		require.Equal(t, []string{"patch roles r", "delete roles r", "patch roles moves"}, p.up.writes(), "the test's")
		require.Equal(t, []string{"patch roles r"}, p.down.writes(), "the test's")
		require.Equal(t, []string{"roles default/moves NotPermitted", "roles default/r NotPermitted"}, p.problems())
		at := slices.IndexFunc(p.Status().Types, func(s syncer.TypeStatus) bool { return s.Resource == roles })
		require.Contains(t, p.Status().Types[at].Problems[1].Message, "needs the permit RBAC")
		require.Contains(t, p.Status().Types[at].Problems[1].Message, "the deletion waits for it: delete the copy, permit the type, or stop the syncer and call Detach")

		// A person deletes the downstream objects.
		p.down.delete(roles, "r")
		p.down.delete(roles, "moves")
		time.Sleep(2 * time.Minute)
		require.Nil(t, p.up.get(roles, "r"))
		p.up.patch(roles, "moves", `{"metadata":{"labels":{"tier":"x"}}}`)
		p.stop()
		p.start(syncer.Options{})
		require.Empty(t, p.up.get(roles, "moves").GetFinalizers())
		require.Empty(t, p.problems())
	})
}

// With its permit, a type that was refused is synced again. Detach removes our finalizer from a refused object whose
// deletion waits.
func TestDetachOfRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Permit: []syncer.Power{syncer.PermitRBAC}})
		p.up.create(roles, someRole)
		p.up.create(configMaps, a)
		p.rest()
		p.stop()
		p.start(syncer.Options{})
		p.stop()
		p.start(syncer.Options{Permit: []syncer.Power{syncer.PermitRBAC}})
		p.up.patch(roles, "r", `{"rules":[]}`)
		p.rest()
		require.Empty(t, field(p.down.get(roles, "r"), "rules"), "it is synced again")
		p.stop()
		p.start(syncer.Options{})
		p.up.delete(roles, "r")
		p.rest()
		require.NotNil(t, p.up.get(roles, "r"), "its deletion waits")
		p.stop()
		require.NoError(t, p.Detach(t.Context()))
		require.Nil(t, p.up.get(roles, "r"))
		require.NotNil(t, p.down.get(roles, "r"))
		require.Empty(t, p.up.get(configMaps, "a").GetFinalizers())
	})
}

// Detach removes the condition of a refused object, although the object never had our finalizer.
func TestDetachRemovesConditionsOfRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Conditions: true})
		p.up.create(roles, someRole)
		p.rest()
		require.NotEmpty(t, p.up.get(roles, "r").GetAnnotations())
		require.Empty(t, p.up.get(roles, "r").GetFinalizers())
		p.stop()
		require.NoError(t, p.Detach(t.Context()))
		require.Empty(t, p.up.get(roles, "r").GetAnnotations())
	})
}

// An object in a namespace of a cluster itself stays on both sides if an earlier release synced it. If such an object
// has our finalizer and no downstream object, its deletion does not wait.
func TestEarlierCopiesInReservedNamespaces(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		held := "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: kube-system, finalizers: [syncer.atoll.dev/" + target + "], labels: {workloads.kcp.io/cluster: " + target + "}}}"
		origin := p.up.create(configMaps, fmt.Sprintf(held, "synced"))
		p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, data: {k: v}, metadata: {name: synced, namespace: kube-system, labels: {syncer.atoll.dev/owner: "+p.Status().Owner+
			"}, annotations: {syncer.atoll.dev/origin: kube-system/synced, syncer.atoll.dev/uid: "+string(origin.GetUID())+"}}}")
		p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: gone, namespace: kube-system, labels: {syncer.atoll.dev/owner: "+p.Status().Owner+
			"}, annotations: {syncer.atoll.dev/origin: kube-system/gone, syncer.atoll.dev/uid: 00000000-0000-0000-0000-000000000000}}}")
		p.up.create(configMaps, fmt.Sprintf(held, "never"))
		p.rest()
		require.NotEmpty(t, p.up.get(configMaps, "never", "kube-system").GetFinalizers(), "the finalizer of another client is not removed")
		require.NotNil(t, p.down.get(configMaps, "gone", "kube-system"))
		require.Equal(t, []string{"configmaps kube-system/gone NotPermitted", "configmaps kube-system/never NotPermitted", "configmaps kube-system/synced NotPermitted"}, p.problems())
		require.NoError(t, p.up.client.Resource(configMaps).Namespace("kube-system").Delete(t.Context(), "never", metav1.DeleteOptions{}))
		p.rest()
		require.Nil(t, p.up.get(configMaps, "never", "kube-system"), "there is no downstream object to wait for")
		require.NoError(t, p.up.client.Resource(configMaps).Namespace("kube-system").Delete(t.Context(), "synced", metav1.DeleteOptions{}))
		time.Sleep(time.Hour)
		require.NotNil(t, p.up.get(configMaps, "synced", "kube-system"))
		require.Equal(t, "v", field(p.down.get(configMaps, "synced", "kube-system"), "data", "k"))
		require.NoError(t, p.down.client.Resource(configMaps).Namespace("kube-system").Delete(t.Context(), "synced", metav1.DeleteOptions{}))
		p.rest()
		require.Nil(t, p.up.get(configMaps, "synced", "kube-system"))

		// With another namespace map, no upstream namespace maps to the namespace of this downstream object any
		// longer.
		p.stop()
		p.start(syncer.Options{Namespaces: syncer.PrefixNamespaces("acme-")})
		require.NotNil(t, p.down.get(configMaps, "gone", "kube-system"))
		require.Contains(t, p.problems(), "configmaps kube-system/gone NotPermitted")
	})
}

// A syncer needs no rights on types that it refuses. If it has no rights on such a type, it reports an error for the
// type, asks again every ten minutes, and syncs other types.
func TestRefusedTypesNeedNoRights(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", withTargets(t)), down: newSide(t, "down", regiontest.Options{})}
		p.createTarget()
		for _, s := range []*side{p.up, p.down} {
			s.Inject(regiontest.Fault{Resource: roles.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusForbidden)})
		}
		p.up.create(configMaps, a)
		p.start(syncer.Options{Heartbeat: 20 * time.Second, Upsync: upsyncAll.Upsync})
		time.Sleep(time.Minute)
		require.NotNil(t, p.down.get(configMaps, "a"))
		require.Contains(t, p.conditions(), "TypesCompatible True Compatible")
		at := slices.IndexFunc(p.Status().Types, func(s syncer.TypeStatus) bool { return s.Resource == roles })
		require.Error(t, p.Status().Types[at].Err)
		asked := func() (n int) {
			for _, r := range slices.Concat(p.up.Requests(), p.down.Requests()) {
				if r.Resource == roles.Resource {
					n++
				}
			}
			return n
		}
		before := asked()
		time.Sleep(time.Hour)
		require.Equal(t, 3*6, asked()-before, "each of three watches asks every ten minutes")
		for change, err := range p.Diff(t.Context()) {
			require.NoError(t, err)
			require.NotEqual(t, roles.GroupResource(), change.Resource)
		}
		p.stop()
		require.NoError(t, p.Detach(t.Context()))
		require.Empty(t, p.up.get(configMaps, "a").GetFinalizers())
	})
}

// createTarget creates the SyncTarget.
func (p *pair) createTarget() {
	p.t.Helper()
	_, err := p.up.client.Resource(syncTargets).Create(p.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": target},
	}}, metav1.CreateOptions{})
	require.NoError(p.t, err)
}

// The condition ObjectsRefused of the SyncTarget counts the refused objects and names some of them. It changes only
// when the refused objects change. With Conditions each refused object has a condition too.
func TestRefusedIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", withTargets(t)), down: newSide(t, "down", regiontest.Options{})}
		p.createTarget()
		opts := syncer.Options{Heartbeat: 20 * time.Second, Conditions: true}
		p.start(opts)
		time.Sleep(time.Minute)
		for _, c := range p.target().Status.Conditions {
			require.NotEqual(t, "ObjectsRefused", c.Type, "without refused objects there is no such condition")
		}
		for i := range 40 {
			p.up.create(roles, strings.Replace(someRole, "name: r", fmt.Sprintf("name: r-%02d", i), 1))
		}
		p.up.create(secrets, "{apiVersion: v1, kind: Secret, type: bootstrap.kubernetes.io/token, metadata: {name: s}}")
		time.Sleep(time.Minute)
		require.Contains(t, p.conditions(), "ObjectsRefused True NotPermitted")
		require.Contains(t, p.conditions(), "Ready True Syncing")
		message := p.conditionMessage("ObjectsRefused")
		require.Equal(t, "40 roles.rbac.authorization.k8s.io (default/r-00, default/r-01, default/r-02, ...): needs the permit RBAC: it gives away the rights that the syncer has, "+
			"1 secrets (default/s): a Secret of type bootstrap.kubernetes.io/token lets machines join a cluster", message)
		require.Equal(t, "False NotPermitted", conditionOf(t, p.up.get(roles, "r-00")))
		require.Equal(t, "False NotPermitted", conditionOf(t, p.up.get(secrets, "s")))
		before := p.target().Status.Conditions
		p.reset()
		time.Sleep(time.Hour)
		require.Equal(t, before, p.target().Status.Conditions)
		p.stop()
		p.start(opts)
		for _, w := range slices.Concat(p.up.writes(), p.down.writes()) {
			require.True(t, strings.HasPrefix(w, "patch synctargets/status "), "%s: only heartbeats are written", w)
		}
		require.NoError(t, p.up.client.Resource(roles).Namespace("default").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
		p.up.delete(secrets, "s")
		time.Sleep(time.Minute)
		require.Contains(t, p.conditions(), "ObjectsRefused False NothingRefused")
		require.Empty(t, p.problems())
	})
}

// conditionMessage returns the message of a condition of the SyncTarget.
func (p *pair) conditionMessage(condition string) string {
	p.t.Helper()
	for _, c := range p.target().Status.Conditions {
		if c.Type == condition {
			return c.Message
		}
	}
	return ""
}

// Diff yields each refused object with its reason.
func TestDiffOfRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", regiontest.Options{}), down: newSide(t, "down", regiontest.Options{})}
		p.up.create(roles, someRole)
		s, err := syncer.New(p.up.api, p.down.api, syncer.Options{Target: target})
		require.NoError(t, err)
		var found []string
		for change, err := range s.Diff(t.Context()) {
			require.NoError(t, err)
			found = append(found, fmt.Sprintf("%s %s %s%s", change.Resource, change.Object, change.Write, change.Reason))
		}
		require.Equal(t, []string{"roles.rbac.authorization.k8s.io default/r NotPermitted"}, found)
	})
}

// UpstreamRights, DownstreamRights and the functions of package targets return no rules for types that need a Power
// which is not permitted.
func TestRightsOfRefused(t *testing.T) {
	all := append(allPowerful(), configMaps.GroupResource())
	opts := syncer.Options{Target: target}
	rules := slices.Concat(syncer.UpstreamRights(opts, all...), syncer.DownstreamRights(opts, all...), targets.Rights(targets.Push, opts, all...), targets.Rights(targets.Pull, opts, all...))
	for _, rule := range rules {
		for _, gr := range allPowerful() {
			if gr.Resource == "namespaces" || gr.Resource == "nodes" {
				continue // kube-system identifies a cluster, namespaces are created, and nodes are read for the capacity
			}
			require.False(t, rule.APIGroups[0] == gr.Group && strings.HasPrefix(rule.Resources[0], gr.Resource), "%v", rule)
		}
	}
	opts.Permit = syncer.Powers()
	require.Contains(t, fmt.Sprint(syncer.UpstreamRights(opts, all...)), "certificatesigningrequests")
	require.Contains(t, fmt.Sprint(syncer.DownstreamRights(opts, all...)), "certificatesigningrequests")
	require.NotContains(t, fmt.Sprint(targets.InstallRights(syncer.Options{}, all...)), "certificatesigningrequests")
	require.Contains(t, fmt.Sprint(targets.InstallRights(opts, all...)), "certificatesigningrequests")
}
