// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
)

// TestPlan plans adds on real API servers, with the least rights.
func TestPlan(t *testing.T) {
	planes := planetest.Shared(t, 3)
	r := newRing(t, planes)
	c, _ := r.coordinator(t, fanout.Options{})
	ctx := within(t, 2*time.Minute)
	acme := unique("acme")
	_, err := c.Add(ctx, newAccount(acme), fanout.AddOptions{})
	require.NoError(t, err)
	target := region.PeerName(planes[0].Name())
	other := region.PeerName(planes[1].Name())
	opts := fanout.AddOptions{Target: target}

	plan, err := c.Plan(ctx, newServiceCluster(acme, "db"), opts)
	require.NoError(t, err)
	require.Equal(t, fanout.Done, plan.State)
	require.Positive(t, plan.Latency)
	require.NoError(t, plan.Peers.Err())
	op, err := c.Add(ctx, newServiceCluster(acme, "db"), opts)
	require.NoError(t, err, "the plan wrote nothing")

	_, err = c.Plan(ctx, newServiceCluster(acme, "db"), fanout.AddOptions{Target: other})
	var held *fanout.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, op.ID, held.Operation)
	require.Equal(t, target, held.Holder)
	_, err = c.Plan(ctx, newServiceCluster(acme, "Not-A-Name"), opts)
	require.ErrorContains(t, err, "metadata.name")
	_, err = c.Plan(ctx, newServiceCluster(unique("nobody"), "db"), opts)
	require.ErrorIs(t, err, fanout.ErrNoOwner)

	// Plan reports the refusal by an admission policy of one peer.
	admin, err := region.NewConn(planetest.Peer(t, planes[1]), region.ConnOptions{})
	require.NoError(t, err)
	for _, obj := range refuseNamed("refused", unique("refuse")) {
		client := admission(admin, obj.GetKind())
		_, err := client.Create(ctx, obj, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Delete(context.WithoutCancel(t.Context()), obj.GetName(), metav1.DeleteOptions{}) })
	}
	require.Eventually(t, func() bool {
		plan, err = c.Plan(ctx, newServiceCluster(acme, "refused"), opts)
		return err != nil
	}, time.Minute, 100*time.Millisecond)
	require.ErrorIs(t, err, fanout.ErrAborted)
	require.ErrorContains(t, err, "no such name here")
	for o := range plan.Peers.All() {
		require.Equal(t, o.Peer == other, o.Err != nil, "%s: %v", o.Peer, o.Err)
	}
	_, err = c.Add(ctx, newServiceCluster(acme, "refused"), opts)
	require.ErrorIs(t, err, fanout.ErrAborted)
	require.ErrorContains(t, err, "no such name here")
	require.ErrorContains(t, err, string(other))
	require.False(t, apierrors.IsAlreadyExists(err))
	r.audited(t, c)
}

// refuseNamed returns a policy and its binding. The policy refuses to create ServiceClusters with
// the given name.
func refuseNamed(name, policy string) []*unstructured.Unstructured {
	object := func(kind string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": policy}, "spec": spec,
		}}
	}
	return []*unstructured.Unstructured{
		object("ValidatingAdmissionPolicy", map[string]any{
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups": []any{"kubecarrier.io"}, "apiVersions": []any{"*"}, "operations": []any{"CREATE"}, "resources": []any{"serviceclusters"},
			}}},
			"validations": []any{map[string]any{"expression": "object.metadata.name != '" + name + "'", "message": "no such name here"}},
		}),
		object("ValidatingAdmissionPolicyBinding", map[string]any{"policyName": policy, "validationActions": []any{"Deny"}}),
	}
}
