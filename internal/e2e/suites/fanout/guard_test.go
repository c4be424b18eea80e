// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal/waltest"
)

const vaultClaim = "vault.example.com/claim"

// vaultCRD requires spec.owner and fills in spec.size.
const vaultCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: vaults.guards.example.com}
spec:
  group: guards.example.com
  scope: Namespaced
  names: {plural: vaults, singular: vault, kind: Vault, listKind: VaultList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [owner]
            properties:
              owner: {type: string}
              password: {type: string}
              size: {type: integer, default: 3}
`

// vaults returns a kind of objects that exist once, with claims in an annotation. Their
// reservations keep the payload.
func vaults() fanout.Kind {
	return fanout.Kind{
		Resource:   schema.GroupVersionResource{Group: "guards.example.com", Version: "v1", Resource: "vaults"},
		Kind:       "Vault",
		Namespaced: true,
		Mode:       fanout.Once,
		Claim:      fanout.InAnnotation(vaultClaim),
		Inert:      func(*unstructured.Unstructured) error { return nil },
		Guard: func(guard *unstructured.Unstructured) error {
			return unstructured.SetNestedField(guard.Object, "nobody", "spec", "owner")
		},
	}
}

func vault(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "guards.example.com/v1", "kind": "Vault",
		"metadata": map[string]any{
			"namespace": "default", "name": name,
			"labels":      map[string]any{"example.com/hint": "hunter2"},
			"annotations": map[string]any{"example.com/note": "hunter2"},
		},
		"spec": map[string]any{"owner": "alice", "password": "hunter2"},
	}}
}

// TestGuards requires that guards on real API servers have no payload, also with CRD defaults and
// under the admission policy. An audit with repair removes the payload of guards that an earlier
// release wrote, and a later sweep writes no guard. An add whose guard the CRD rejects fails and
// leaves no object.
func TestGuards(t *testing.T) {
	planes := planetest.Shared(t, 3)
	newRing(t, planes) // writes the PeerSets
	var conns []*region.Conn
	for _, p := range planes {
		planetest.Apply(t, p, vaultCRD)
		conn, err := region.NewConn(planetest.Peer(t, p), region.ConnOptions{})
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	in := func(i int, name string) *unstructured.Unstructured {
		obj, err := conns[i].Dynamic().Resource(vaults().Resource).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		return obj
	}
	bare := func(i int, name string) *unstructured.Unstructured {
		guard := in(i, name)
		text, err := json.Marshal(guard)
		require.NoError(t, err)
		require.NotContains(t, string(text), "hunter2")
		require.Equal(t, map[string]any{"owner": "nobody", "size": int64(3)}, guard.Object["spec"])
		return guard
	}
	coordinator := func(kind fanout.Kind) *fanout.Coordinator {
		c, err := fanout.New(region.Fixed(conns...), waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{kind}, Observer: trace(t)})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Wait(context.WithoutCancel(t.Context()))) })
		return c
	}
	ctx := within(t, 2*time.Minute)
	target := fanout.AddOptions{Target: conns[0].Peer(), Durable: true}

	short := vaults()
	short.Guard = nil
	_, err := coordinator(short).Add(ctx, vault("short"), target)
	refused, ok := errors.AsType[*fanout.GuardError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []string{"spec"}, refused.Fields)
	require.ErrorIs(t, err, fanout.ErrAborted)
	short.Guard = func(guard *unstructured.Unstructured) error {
		return unstructured.SetNestedField(guard.Object, int64(1), "spec", "size")
	}
	_, err = coordinator(short).Add(ctx, vault("short"), target)
	require.ErrorContains(t, err, "set Kind.Guard to fill spec.owner")
	for _, conn := range conns {
		_, err := conn.Dynamic().Resource(vaults().Resource).Namespace("default").Get(ctx, "short", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	}

	c := coordinator(vaults())
	name := unique("db")
	op, err := c.Add(ctx, vault(name), target)
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State, "%v", op.Peers.Err())
	for i := 1; i < len(conns); i++ {
		bare(i, name)
		// Make this guard one of an earlier release, with payload, and with the annotation of a
		// tool.
		guard, full := in(i, name), vault(name)
		guard.Object["spec"] = full.Object["spec"]
		guard.SetLabels(full.GetLabels())
		annotations := full.GetAnnotations()
		annotations[vaultClaim] = guard.GetAnnotations()[vaultClaim]
		annotations["kubectl.kubernetes.io/last-applied-configuration"] = `{"spec":{"password":"hunter2"}}`
		guard.SetAnnotations(annotations)
		_, err := conns[i].Dynamic().Resource(vaults().Resource).Namespace("default").Update(ctx, guard, metav1.UpdateOptions{FieldManager: "atoll-fanout"})
		require.NoError(t, err)
	}
	for _, conn := range conns {
		enforce(t, conn, vaults(), vault(unique("probe")), vaultClaim)
	}
	report, err := c.Audit(ctx, true)
	require.NoError(t, err)
	require.Empty(t, report.Violations)
	require.Len(t, report.Repaired, 2)
	var versions []string
	for i := 1; i < len(conns); i++ {
		versions = append(versions, bare(i, name).GetResourceVersion())
	}
	_, err = c.Sweep(ctx)
	require.NoError(t, err)
	for i := 1; i < len(conns); i++ {
		require.Equal(t, versions[i-1], in(i, name).GetResourceVersion(), "at rest nothing is written")
	}
	require.Equal(t, "hunter2", in(0, name).Object["spec"].(map[string]any)["password"])
	op, err = c.Remove(ctx, vaults().GroupKind(), key("default", name), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State, "%v", op.Peers.Err())
}
