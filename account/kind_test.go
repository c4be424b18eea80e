// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// peer returns a server with the CRD of Accounts, and a connection to it.
func peer(t *testing.T) (*regiontest.Server, *region.Conn) {
	t.Helper()
	crd, err := config.CRD("accounts.catalog.kubecarrier.io")
	require.NoError(t, err)
	ring := regiontest.NewRing("eu")
	t.Cleanup(ring.Close)
	require.NoError(t, ring.AddCRDs(crd))
	conn, err := ring.Conn("eu")
	require.NoError(t, err)
	return ring.Server("eu"), conn
}

func create(t *testing.T, c *region.Conn, name string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"roles": []any{"Tenant"}}}}
	obj.SetGroupVersionKind(resource.GroupVersion().WithKind("Account"))
	obj.SetName(name)
	created, err := c.Dynamic().Resource(resource).Create(t.Context(), obj, metav1.CreateOptions{})
	require.NoError(t, err)
	return created
}

func statusOf(t *testing.T, c *region.Conn, name string) v1alpha1.AccountStatus {
	t.Helper()
	obj, err := c.Dynamic().Resource(resource).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	var account v1alpha1.Account
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &account))
	return account.Status
}

func getNamespace(t *testing.T, c *region.Conn, name string) (*unstructured.Unstructured, error) {
	t.Helper()
	return namespaces(c).Get(t.Context(), name, metav1.GetOptions{})
}

func writes(s *regiontest.Server) (n int) {
	for _, r := range s.Requests() {
		if r.Verb != "get" && r.Verb != "list" {
			n++
		}
	}
	return n
}

func TestActivatedMakesTheNamespaceAndReportsIt(t *testing.T) {
	t.Parallel()
	server, c := peer(t)
	acme := create(t, c, "acme")
	require.NoError(t, Kind().Activated(t.Context(), c, acme))

	ns, err := getNamespace(t, c, "acme")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"kubernetes.io/metadata.name": "acme", Label: "acme"}, ns.GetLabels())
	status := statusOf(t, c, "acme")
	require.Equal(t, "acme", status.Namespace.Name)
	require.Equal(t, v1alpha1.AccountReady, status.Phase)
	require.Equal(t, int64(1), status.ObservedGeneration)
	require.Len(t, status.Conditions, 3)

	require.False(t, Kind().Ready(acme), "the object from before the activation")
	now, err := c.Dynamic().Resource(resource).Get(t.Context(), "acme", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, Kind().Ready(now))
	now.SetGeneration(2)
	require.False(t, Kind().Ready(now), "the status is of an earlier generation")

	// Activate again, with an object that lacks the status: nothing is written.
	server.Reset()
	require.NoError(t, Kind().Activated(t.Context(), c, acme))
	require.Zero(t, writes(server))
}

func TestActivatedKeepsWhatOthersReport(t *testing.T) {
	t.Parallel()
	_, c := peer(t)
	acme := create(t, c, "acme")
	apply := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"conditions": []any{map[string]any{
			"type": "PresentInAllPeers", "status": "True", "reason": "Present", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z",
		}},
		"peers": map[string]any{"total": int64(3), "present": int64(3)},
	}}}
	apply.SetGroupVersionKind(acme.GroupVersionKind())
	apply.SetName("acme")
	_, err := c.Dynamic().Resource(resource).ApplyStatus(t.Context(), "acme", apply, metav1.ApplyOptions{FieldManager: "other"})
	require.NoError(t, err)

	require.NoError(t, Kind().Activated(t.Context(), c, acme))
	status := statusOf(t, c, "acme")
	require.Len(t, status.Conditions, 3)
	require.Equal(t, int32(3), status.Peers.Total)

	obj, err := c.Dynamic().Resource(resource).Get(t.Context(), "acme", metav1.GetOptions{})
	require.NoError(t, err)
	for _, fields := range obj.GetManagedFields() {
		if fields.Manager == FieldManager {
			require.NotContains(t, fields.FieldsV1.GetRawString(), "PresentInAllPeers", "another's condition must stay another's")
		}
	}
}

func TestForeignNamespaceIsUsedAndNeverDeleted(t *testing.T) {
	t.Parallel()
	_, c := peer(t)
	foreign := manifest("acme")
	foreign.SetLabels(map[string]string{Label: "somebody"})
	_, err := namespaces(c).Create(t.Context(), foreign, metav1.CreateOptions{})
	require.NoError(t, err)
	acme := create(t, c, "acme")
	require.NoError(t, Kind().Activated(t.Context(), c, acme))
	require.Equal(t, v1alpha1.AccountReady, statusOf(t, c, "acme").Phase)

	require.NoError(t, Kind().Released(t.Context(), c, acme))
	ns, err := getNamespace(t, c, "acme")
	require.NoError(t, err)
	require.Nil(t, ns.GetDeletionTimestamp())
}

func TestTerminatingNamespaceIsHeld(t *testing.T) {
	t.Parallel()
	_, c := peer(t)
	old := manifest("acme")
	old.SetFinalizers([]string{"example.com/slow"})
	_, err := namespaces(c).Create(t.Context(), old, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, namespaces(c).Delete(t.Context(), "acme", metav1.DeleteOptions{}))
	acme := create(t, c, "acme")

	err = Kind().Activated(t.Context(), c, acme)
	require.ErrorContains(t, err, "peer eu")
	require.ErrorContains(t, err, "namespace acme is being deleted and counts as held")
	status := statusOf(t, c, "acme")
	require.Equal(t, v1alpha1.AccountUnready, status.Phase)

	// Once the deleted namespace is gone, a new one is created.
	ns, err := getNamespace(t, c, "acme")
	require.NoError(t, err)
	ns.SetFinalizers(nil)
	_, err = namespaces(c).Update(t.Context(), ns, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, Kind().Activated(t.Context(), c, acme))
	require.Equal(t, v1alpha1.AccountReady, statusOf(t, c, "acme").Phase)
}

func TestReleased(t *testing.T) {
	t.Parallel()
	server, c := peer(t)
	acme := create(t, c, "acme")
	require.NoError(t, Kind().Activated(t.Context(), c, acme))
	require.NoError(t, Kind().Released(t.Context(), c, acme))
	_, err := getNamespace(t, c, "acme")
	require.True(t, apierrors.IsNotFound(err))
	require.NoError(t, Kind().Released(t.Context(), c, acme), "a namespace that is gone is released")

	// If another namespace replaces the Account's namespace between the read and the deletion, the new
	// one stays.
	require.NoError(t, Kind().Activated(t.Context(), c, acme))
	server.Inject(regiontest.Fault{Verb: "delete", Resource: schema.GroupResource{Resource: "namespaces"}, Do: regiontest.Crash(func() {
		require.NoError(t, namespaces(c).Delete(t.Context(), "acme", metav1.DeleteOptions{}))
		_, err := namespaces(c).Create(t.Context(), manifest("acme"), metav1.CreateOptions{})
		require.NoError(t, err)
	})})
	err = Kind().Released(t.Context(), c, acme)
	require.Error(t, err)
	_, err = getNamespace(t, c, "acme")
	require.NoError(t, err)
}

// The Account was removed by another process and added again before a late release: the release
// deletes nothing of the new Account.
func TestReleasedAfterTheNextAdd(t *testing.T) {
	t.Parallel()
	_, c := peer(t)
	next := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"roles": []any{"Tenant"},
		"fanout": map[string]any{"stage": "Reserved", "claim": map[string]any{
			"operation": "a later add", "coordinator": "me", "digest": "d", "role": "Primary", "peer": "eu", "target": "eu",
			"start": "2020-01-01T00:00:00Z", "epoch": int64(1),
		}},
	}}}
	next.SetGroupVersionKind(resource.GroupVersion().WithKind("Account"))
	next.SetName("acme")
	next, err := c.Dynamic().Resource(resource).Create(t.Context(), next, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, Kind().Activated(t.Context(), c, next))
	old := next.DeepCopy()
	require.NoError(t, unstructured.SetNestedField(old.Object, "an earlier add", "spec", "fanout", "claim", "operation"))
	require.NoError(t, Kind().Released(t.Context(), c, old))
	_, err = getNamespace(t, c, "acme")
	require.NoError(t, err)

	require.NoError(t, Kind().Released(t.Context(), c, next))
	_, err = getNamespace(t, c, "acme")
	require.True(t, apierrors.IsNotFound(err))
}

// A late activation, after the Account was deleted or replaced, leaves no namespace behind.
func TestActivatedAfterRemoval(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(t *testing.T, c *region.Conn){
		"gone": func(t *testing.T, c *region.Conn) {
			require.NoError(t, c.Dynamic().Resource(resource).Delete(t.Context(), "acme", metav1.DeleteOptions{}))
		},
		"replaced": func(t *testing.T, c *region.Conn) {
			require.NoError(t, c.Dynamic().Resource(resource).Delete(t.Context(), "acme", metav1.DeleteOptions{}))
			create(t, c, "acme")
		},
		"terminating": func(t *testing.T, c *region.Conn) {
			obj, err := c.Dynamic().Resource(resource).Get(t.Context(), "acme", metav1.GetOptions{})
			require.NoError(t, err)
			obj.SetFinalizers([]string{"example.com/slow"})
			_, err = c.Dynamic().Resource(resource).Update(t.Context(), obj, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.NoError(t, c.Dynamic().Resource(resource).Delete(t.Context(), "acme", metav1.DeleteOptions{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c := peer(t)
			acme := create(t, c, "acme")
			remove(t, c)
			require.NoError(t, Kind().Activated(t.Context(), c, acme))
			_, err := getNamespace(t, c, "acme")
			require.True(t, apierrors.IsNotFound(err), "the namespace of a removed Account")
		})
	}
}

func TestErrorsNamePeerAndOperation(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		verb, resource, op string
	}{
		{"get", "namespaces", "make namespace acme"},
		{"create", "namespaces", "make namespace acme"},
		{"get", "accounts", "read Account acme"},
		{"patch", "accounts", "write status of Account acme"},
	} {
		t.Run(test.verb+" "+test.resource, func(t *testing.T) {
			t.Parallel()
			server, c := peer(t)
			acme := create(t, c, "acme")
			gr := schema.GroupResource{Resource: test.resource}
			if test.resource == "accounts" {
				gr = resource.GroupResource()
			}
			server.Inject(regiontest.Fault{Verb: test.verb, Resource: gr, Do: regiontest.Refuse(403)})
			err := Kind().Activated(t.Context(), c, acme)
			require.True(t, apierrors.IsForbidden(err))
			failure, ok := errors.AsType[*region.Error](err)
			require.True(t, ok)
			require.Equal(t, region.PeerName("eu"), failure.Peer)
			require.Equal(t, test.op, failure.Op)
		})
	}
}

func TestValidateName(t *testing.T) {
	t.Parallel()
	require.NoError(t, ValidateName("acme"))
	for _, name := range []string{"", "acme.corp", "Acme", strings.Repeat("a", 64)} {
		require.Error(t, ValidateName(name), name)
	}
	_, c := peer(t)
	dotted := create(t, c, "acme.corp")
	require.ErrorContains(t, Kind().Activated(t.Context(), c, dotted), `account "acme.corp" cannot have a namespace of its name`)
}
