// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal/waltest"
)

const claimKey = "policy.example.com/claim"

// secrets returns the kind Secret as a kind that exists everywhere, with the claims in an
// annotation.
func secrets() fanout.Kind {
	return fanout.Kind{
		Resource:   schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
		Kind:       "Secret",
		Namespaced: true,
		Mode:       fanout.Everywhere,
		Claim:      fanout.InAnnotation(claimKey),
		Inert: func(obj *unstructured.Unstructured) error {
			delete(obj.Object, "data")
			delete(obj.Object, "stringData")
			return nil
		},
	}
}

func secret(name, password string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{"namespace": "default", "name": name},
		"data":     map[string]any{"password": password},
	}}
}

// TestAdmissionPolicy applies the admission policy of a kind on real API servers. The protocol's
// writes pass. Writes that break the rules of the policy are refused, also for administrators.
func TestAdmissionPolicy(t *testing.T) {
	planes := planetest.Shared(t, 3)
	newRing(t, planes) // writes the PeerSets
	var conns []*region.Conn
	for _, p := range planes {
		conn, err := region.NewConn(planetest.Peer(t, p), region.ConnOptions{})
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	kind := secrets()
	for _, conn := range conns {
		enforce(t, conn, kind, secret(unique("probe"), ""), claimKey)
	}
	c, err := fanout.New(region.Fixed(conns...), waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{kind}, Observer: trace(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Wait(context.WithoutCancel(t.Context()))) })
	ctx := within(t, time.Minute)
	name := unique("ca")
	plan, err := c.Plan(ctx, secret(name, "Zmlyc3Q="), fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, plan.State)
	op, err := c.Add(ctx, secret(name, "Zmlyc3Q="), fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State, "%v", op.Peers.Err())
	op, err = c.Update(ctx, secret(name, "c2Vjb25k"), fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State, "%v", op.Peers.Err())

	client := conns[0].Dynamic().Resource(kind.Resource).Namespace("default")
	for _, tc := range []struct {
		name, refused string
		edit          func(claim string) string
	}{
		{"dropped", "claim cannot be removed: keep annotation " + claimKey, func(string) string { return "" }},
		{"changed", "claim cannot be changed: remove the object from all peers and create it again: the name is held for \"target\":", func(claim string) string {
			return strings.Replace(claim, `"operation":"`, `"operation":"x`, 1)
		}},
		{"back to Reserved", "stage cannot go back", func(claim string) string {
			return strings.Replace(claim, `"stage":"Active"`, `"stage":"Reserved"`, 1)
		}},
		{"another form", "is not a claim as a coordinator writes it", func(claim string) string { return claim + " " }},
		{"the revision falls", "revision.number cannot fall", func(claim string) string {
			return strings.Replace(claim, `"revision":{"number":2`, `"revision":{"number":1`, 1)
		}},
	} {
		obj, err := client.Get(ctx, name, metav1.GetOptions{})
		require.NoError(t, err)
		claim := tc.edit(obj.GetAnnotations()[claimKey])
		obj.SetAnnotations(map[string]string{claimKey: claim})
		if claim == "" {
			obj.SetAnnotations(nil)
		}
		_, err = client.Update(ctx, obj, metav1.UpdateOptions{})
		require.Error(t, err, tc.name)
		require.True(t, apierrors.IsInvalid(err), "%s: %v", tc.name, err)
		require.ErrorContains(t, err, tc.refused)
	}
	// Any user with the rights may change other fields of the object, and create a Secret without a
	// claim.
	obj, err := client.Get(ctx, name, metav1.GetOptions{})
	require.NoError(t, err)
	obj.SetLabels(map[string]string{"example.com/mine": "yes"})
	_, err = client.Update(ctx, obj, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = client.Create(ctx, secret(unique("free"), ""), metav1.CreateOptions{})
	require.NoError(t, err)

	op, err = c.Remove(ctx, kind.GroupKind(), key("default", name), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State, "%v", op.Peers.Err())
}

// enforce applies the policy of kind and waits until the API server enforces the policy. probe is
// an object that is admitted without a claim.
func enforce(t *testing.T, conn *region.Conn, kind fanout.Kind, probe *unstructured.Unstructured, claim string) {
	t.Helper()
	for _, obj := range fanout.AdmissionPolicy(kind) {
		client := admission(conn, obj.GetKind())
		_, err := client.Create(t.Context(), obj, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Delete(context.WithoutCancel(t.Context()), obj.GetName(), metav1.DeleteOptions{}) })
	}
	probe.SetAnnotations(map[string]string{claim: "mine"})
	// The API server enforces a policy some time after its creation.
	require.Eventually(t, func() bool {
		_, err := conn.Dynamic().Resource(kind.Resource).Namespace("default").Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{"All"}})
		return err != nil && strings.Contains(err.Error(), "is not a claim as a coordinator writes it")
	}, time.Minute, 100*time.Millisecond)
}

func admission(conn *region.Conn, kind string) dynamic.ResourceInterface {
	resource := "validatingadmissionpolicies"
	if kind == "ValidatingAdmissionPolicyBinding" {
		resource = "validatingadmissionpolicybindings"
	}
	return conn.Dynamic().Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource})
}
