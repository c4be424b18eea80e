// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

var (
	alice  = map[string]any{"kind": "User", "name": "alice"}
	deploy = map[string]any{"kind": "ServiceAccount", "name": "deployer", "namespace": "tools"}
)

// change sets roles and subjects of the Account and returns the updated object.
func change(t *testing.T, c *region.Conn, name string, roles []any, subjects ...any) *unstructured.Unstructured {
	t.Helper()
	obj, err := c.Dynamic().Resource(resource).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	obj.Object["spec"] = map[string]any{"roles": roles, "subjects": subjects}
	obj, err = c.Dynamic().Resource(resource).Update(t.Context(), obj, metav1.UpdateOptions{})
	require.NoError(t, err)
	return obj
}

// accessIn returns the rules of a peer's Roles and the subjects of its RoleBindings, by name.
func accessIn(t *testing.T, c *region.Conn, name string) (roles map[string][]rbacv1.PolicyRule, bindings map[string][]rbacv1.Subject) {
	t.Helper()
	roles, bindings = map[string][]rbacv1.PolicyRule{}, map[string][]rbacv1.Subject{}
	for _, gvr := range []schema.GroupVersionResource{rolesResource, bindingsResource} {
		found, err := c.Dynamic().Resource(gvr).Namespace(name).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, obj := range found.Items {
			if gvr == rolesResource {
				var role rbacv1.Role
				require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &role))
				roles[role.Name] = role.Rules
				continue
			}
			var binding rbacv1.RoleBinding
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &binding))
			require.Equal(t, rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: binding.Name}, binding.RoleRef)
			bindings[binding.Name] = binding.Subjects
		}
	}
	return roles, bindings
}

func TestRolesFollowTheAccount(t *testing.T) {
	t.Parallel()
	server, c := peer(t)
	create(t, c, "acme")
	wantAlice := []rbacv1.Subject{{Kind: "User", Name: "alice", APIGroup: "rbac.authorization.k8s.io"}}
	rights := DefaultRights()

	acme := change(t, c, "acme", []any{"Tenant", "Provider"}, alice)
	require.NoError(t, Kind().Activated(t.Context(), c, acme))
	roles, bindings := accessIn(t, c, "acme")
	require.Empty(t, cmp.Diff(map[string][]rbacv1.PolicyRule{
		"kubecarrier-provider": rights[v1alpha1.AccountProvider],
		"kubecarrier-tenant":   rights[v1alpha1.AccountTenant],
	}, roles))
	require.Equal(t, map[string][]rbacv1.Subject{"kubecarrier-provider": wantAlice, "kubecarrier-tenant": wantAlice}, bindings)

	server.Reset()
	require.NoError(t, Kind().Activated(t.Context(), c, acme))
	require.Zero(t, writes(server), "nothing differs")

	// The Role and RoleBinding of a removed role are deleted.
	acme = change(t, c, "acme", []any{"Tenant"}, alice, deploy)
	require.NoError(t, Kind().Activated(t.Context(), c, acme))
	roles, bindings = accessIn(t, c, "acme")
	require.Len(t, roles, 1)
	require.Equal(t, map[string][]rbacv1.Subject{
		"kubecarrier-tenant": append(wantAlice, rbacv1.Subject{Kind: "ServiceAccount", Name: "deployer", Namespace: "tools"}),
	}, bindings)

	// Without subjects there is no RoleBinding.
	acme = change(t, c, "acme", []any{"Tenant"})
	require.NoError(t, Kind().Activated(t.Context(), c, acme))
	roles, bindings = accessIn(t, c, "acme")
	require.Len(t, roles, 1)
	require.Empty(t, bindings)
	require.Equal(t, v1alpha1.AccountReady, statusOf(t, c, "acme").Phase)
}

func TestDriftOfRolesIsRepaired(t *testing.T) {
	t.Parallel()
	for name, drift := range map[string]func(t *testing.T, c *region.Conn){
		"rules edited": func(t *testing.T, c *region.Conn) {
			edit(t, c, rolesResource, func(o *unstructured.Unstructured) {
				o.Object["rules"] = []any{map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"*"}}}
			})
		},
		"subject added": func(t *testing.T, c *region.Conn) {
			edit(t, c, bindingsResource, func(o *unstructured.Unstructured) { o.Object["subjects"] = []any{deploy} })
		},
		"label of the role lost": func(t *testing.T, c *region.Conn) {
			edit(t, c, rolesResource, func(o *unstructured.Unstructured) {
				o.SetLabels(map[string]string{Label: "acme"})
			})
		},
		"role deleted": func(t *testing.T, c *region.Conn) {
			require.NoError(t, c.Dynamic().Resource(rolesResource).Namespace("acme").Delete(t.Context(), "kubecarrier-tenant", metav1.DeleteOptions{}))
		},
		"binding replaced by one of another role": func(t *testing.T, c *region.Conn) {
			client := c.Dynamic().Resource(bindingsResource).Namespace("acme")
			obj, err := client.Get(t.Context(), "kubecarrier-tenant", metav1.GetOptions{})
			require.NoError(t, err)
			require.NoError(t, client.Delete(t.Context(), "kubecarrier-tenant", metav1.DeleteOptions{}))
			other := owned("acme", v1alpha1.AccountTenant, "RoleBinding", map[string]any{
				"subjects": obj.Object["subjects"],
				"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": "cluster-admin"},
			})
			_, err = client.Create(t.Context(), other, metav1.CreateOptions{})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c := peer(t)
			create(t, c, "acme")
			acme := change(t, c, "acme", []any{"Tenant"}, alice)
			require.NoError(t, Kind().Activated(t.Context(), c, acme))
			roles, bindings := accessIn(t, c, "acme")

			drift(t, c)
			require.NoError(t, Kind().Activated(t.Context(), c, acme))
			rolesNow, bindingsNow := accessIn(t, c, "acme")
			require.Equal(t, roles, rolesNow)
			require.Equal(t, bindings, bindingsNow)
		})
	}
}

func edit(t *testing.T, c *region.Conn, gvr schema.GroupVersionResource, how func(*unstructured.Unstructured)) {
	t.Helper()
	client := c.Dynamic().Resource(gvr).Namespace("acme")
	obj, err := client.Get(t.Context(), "kubecarrier-tenant", metav1.GetOptions{})
	require.NoError(t, err)
	how(obj)
	_, err = client.Update(t.Context(), obj, metav1.UpdateOptions{FieldManager: "somebody"})
	require.NoError(t, err)
}

func TestForeignRoleIsLeftAloneAndNamed(t *testing.T) {
	t.Parallel()
	_, c := peer(t)
	_, err := namespaces(c).Create(t.Context(), manifest("acme"), metav1.CreateOptions{})
	require.NoError(t, err)
	foreign := owned("acme", v1alpha1.AccountTenant, "Role", map[string]any{"rules": []any{
		map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}},
	}})
	foreign.SetLabels(nil)
	client := c.Dynamic().Resource(rolesResource).Namespace("acme")
	foreign, err = client.Create(t.Context(), foreign, metav1.CreateOptions{})
	require.NoError(t, err)

	create(t, c, "acme")
	acme := change(t, c, "acme", []any{"Tenant"}, alice)
	err = Kind().Activated(t.Context(), c, acme)
	require.ErrorContains(t, err, "peer eu: activate Account: role kubecarrier-tenant")
	status := statusOf(t, c, "acme")
	require.Equal(t, v1alpha1.AccountUnready, status.Phase)
	roles := meta.FindStatusCondition(status.Conditions, ConditionRolesReady)
	require.Equal(t, "RolesConflict", roles.Reason)
	require.Contains(t, roles.Message, "role kubecarrier-tenant in namespace acme")
	now, err := client.Get(t.Context(), foreign.GetName(), metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, foreign.GetResourceVersion(), now.GetResourceVersion())

	// The removal does not delete objects of other clients either.
	ns, err := getNamespace(t, c, "acme")
	require.NoError(t, err)
	ns.SetLabels(nil)
	_, err = namespaces(c).Update(t.Context(), ns, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, Kind().Released(t.Context(), c, acme))
	_, bindings := accessIn(t, c, "acme")
	require.Empty(t, bindings, "the RoleBinding is deleted although the namespace stays")
	_, err = client.Get(t.Context(), foreign.GetName(), metav1.GetOptions{})
	require.NoError(t, err)
}

// A Coordinator and a Controller may both read that a Role is missing, and both create it. The
// later create finds the Role of the other one. Then ensure succeeds, and writes the Role only if
// it differs.
func TestWhatOneOfUsMadeMeanwhileIsOurs(t *testing.T) {
	t.Parallel()
	_, c := peer(t)
	_, err := namespaces(c).Create(t.Context(), manifest("acme"), metav1.CreateOptions{})
	require.NoError(t, err)
	client := c.Dynamic().Resource(rolesResource).Namespace("acme")
	role := func(verb string) *unstructured.Unstructured {
		return owned("acme", v1alpha1.AccountTenant, "Role", map[string]any{"rules": []any{
			map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{verb}},
		}})
	}
	first, err := client.Create(t.Context(), role("get"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, ensure(t.Context(), client, nil, role("get"), FieldManager))
	now, err := client.Get(t.Context(), first.GetName(), metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, first.GetResourceVersion(), now.GetResourceVersion(), "nothing differs")

	require.NoError(t, ensure(t.Context(), client, nil, role("list"), FieldManager))
	now, err = client.Get(t.Context(), first.GetName(), metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, first.GetUID(), now.GetUID())
	require.Equal(t, role("list").Object["rules"], now.Object["rules"])
}

func TestRefusedRolesAreNamed(t *testing.T) {
	t.Parallel()
	server, c := peer(t)
	create(t, c, "acme")
	acme := change(t, c, "acme", []any{"Tenant"}, alice)
	server.Inject(regiontest.Fault{Verb: "create", Resource: rolesResource.GroupResource(), Times: 1, Do: regiontest.Refuse(403)})
	err := Kind().Activated(t.Context(), c, acme)
	require.True(t, apierrors.IsForbidden(err))
	roles := meta.FindStatusCondition(statusOf(t, c, "acme").Conditions, ConditionRolesReady)
	require.Equal(t, metav1.ConditionFalse, roles.Status)
	require.Equal(t, "RolesRefused", roles.Reason)

	require.NoError(t, Kind().Activated(t.Context(), c, acme))
	require.Equal(t, v1alpha1.AccountReady, statusOf(t, c, "acme").Phase)
}

// The peer refuses to delete the Role of a role that the Account no longer has. The activation reports this, and still
// updates the Account's other objects.
func TestARoleThatMayNotBeDeletedIsNamed(t *testing.T) {
	t.Parallel()
	server, c := peer(t)
	create(t, c, "acme")
	require.NoError(t, Kind().Activated(t.Context(), c, change(t, c, "acme", []any{"Tenant", "Provider"}, alice)))
	acme := change(t, c, "acme", []any{"Tenant"}, deploy)
	server.Inject(regiontest.Fault{Verb: "delete", Resource: rolesResource.GroupResource(), Times: 1, Do: regiontest.Refuse(403)})
	require.True(t, apierrors.IsForbidden(Kind().Activated(t.Context(), c, acme)))
	require.Equal(t, "RolesRefused", meta.FindStatusCondition(statusOf(t, c, "acme").Conditions, ConditionRolesReady).Reason)
	_, bindings := accessIn(t, c, "acme")
	require.Equal(t, map[string][]rbacv1.Subject{"kubecarrier-tenant": {{Kind: "ServiceAccount", Name: "deployer", Namespace: "tools"}}}, bindings)

	require.NoError(t, Kind().Activated(t.Context(), c, acme))
	roles, _ := accessIn(t, c, "acme")
	require.Len(t, roles, 1)
	require.Equal(t, v1alpha1.AccountReady, statusOf(t, c, "acme").Phase)
}

// An activation in one peer does not overwrite a Replicator's report on all peers.
func TestActivatedLeavesReadyToTheReplicator(t *testing.T) {
	t.Parallel()
	server, c := peer(t)
	acme := create(t, c, "acme")
	require.NoError(t, Kind().Activated(t.Context(), c, acme))
	apply := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"phase": "Unready", "observedGeneration": int64(1),
		"conditions": []any{
			map[string]any{"type": "PresentInAllPeers", "status": "False", "reason": "PeersMissing", "message": "us", "lastTransitionTime": "2020-01-01T00:00:00Z"},
			map[string]any{"type": "Ready", "status": "False", "reason": "PeersMissing", "message": "us", "lastTransitionTime": "2020-01-01T00:00:00Z"},
		},
	}}}
	apply.SetGroupVersionKind(acme.GroupVersionKind())
	apply.SetName("acme")
	obj, err := c.Dynamic().Resource(resource).ApplyStatus(t.Context(), "acme", apply, metav1.ApplyOptions{FieldManager: "replicator", Force: true})
	require.NoError(t, err)
	require.True(t, Kind().Ready(obj), "in this peer it is complete")

	require.NoError(t, Kind().Activated(t.Context(), c, obj))
	status := statusOf(t, c, "acme")
	require.Equal(t, v1alpha1.AccountUnready, status.Phase)
	require.Equal(t, "PeersMissing", meta.FindStatusCondition(status.Conditions, ConditionReady).Reason)
	server.Reset()
	require.NoError(t, Kind().Activated(t.Context(), c, obj))
	require.Zero(t, writes(server))
}
