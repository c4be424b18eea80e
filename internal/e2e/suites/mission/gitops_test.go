// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mission_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

var serviceClusters = schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "serviceclusters"}

// Values of spec.fanout as a coordinator writes them.
const (
	primary = `{claim: {operation: op-1, digest: d, start: "2026-01-02T03:04:05.000000Z", role: Primary, peer: eu-west, target: eu-west}, stage: %s}`
	guard   = `{claim: {operation: op-1, digest: d, start: "2026-01-02T03:04:05.000000Z", role: Secondary, peer: eu-west, target: us-east, primary: {peer: us-east, uid: u1}}, stage: Reserved}`
)

// person is a user who has manifests and kubectl. The methods that use client write as a
// coordinator does.
type person struct {
	kubectl
	namespace string
	client    dynamic.ResourceInterface
}

func newPerson(t *testing.T) *person {
	t.Helper()
	p := planetest.Shared(t, 1)[0]
	clients := api(t, p)
	namespace := planetest.Namespace(t, p)
	return &person{kubectl: newKubectl(t, p), namespace: namespace, client: clients.Dynamic().Resource(serviceClusters).Namespace(namespace)}
}

// manifest returns the manifest in the person's repository, which contains no claim.
func (p *person) manifest(secret string) string {
	return fmt.Sprintf("{apiVersion: kubecarrier.io/v1alpha1, kind: ServiceCluster, metadata: {name: db-1, namespace: %s}, spec: {kubeconfigSecret: {name: %s}, metadata: {displayName: Database}}}", p.namespace, secret)
}

// create writes an object as a coordinator does.
func (p *person) create(t *testing.T, spec string) (*unstructured.Unstructured, error) {
	t.Helper()
	obj := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(fmt.Appendf(nil, "{apiVersion: kubecarrier.io/v1alpha1, kind: ServiceCluster, metadata: {name: db-1}, spec: %s}", spec), &obj.Object))
	return p.client.Create(t.Context(), obj, metav1.CreateOptions{FieldManager: "coordinator"})
}

// claim writes spec.fanout of the existing object, as a coordinator does.
func (p *person) claim(t *testing.T, fanout string) error {
	t.Helper()
	obj := p.get(t)
	var parsed map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(fanout), &parsed))
	require.NoError(t, unstructured.SetNestedMap(obj.Object, parsed, "spec", "fanout"))
	_, err := p.client.Update(t.Context(), obj, metav1.UpdateOptions{FieldManager: "coordinator"})
	return err
}

func (p *person) get(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	obj, err := p.client.Get(t.Context(), "db-1", metav1.GetOptions{})
	require.NoError(t, err)
	return obj
}

// field returns a string field of the object, or "" if the field is absent.
func (p *person) field(t *testing.T, path ...string) string {
	t.Helper()
	value, _, err := unstructured.NestedString(p.get(t).Object, path...)
	require.NoError(t, err)
	return value
}

// committed creates a committed primary, as a coordinator does.
func (p *person) committed(t *testing.T) {
	t.Helper()
	_, err := p.create(t, "{kubeconfigSecret: {name: one}, metadata: {displayName: Database}, fanout: "+fmt.Sprintf(primary, "Reserved")+"}")
	require.NoError(t, err)
	require.NoError(t, p.claim(t, fmt.Sprintf(primary, "Configured")))
}

// TestPeopleAndClaims documents the result of plain API calls on objects under the protocol.
func TestPeopleAndClaims(t *testing.T) {
	apply := []string{"apply", "-f", "-"}
	serverSide := []string{"apply", "--server-side", "-f", "-"}
	forced := []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}

	t.Run("apply keeps the claim and takes the change", func(t *testing.T) {
		for _, args := range [][]string{apply, forced} {
			p := newPerson(t)
			p.committed(t)
			p.must(t, p.manifest("one"), args...)
			p.must(t, p.manifest("two"), args...)
			require.Equal(t, "two", p.field(t, "spec", "kubeconfigSecret", "name"))
			require.Equal(t, "Configured", p.field(t, "spec", "fanout", "stage"))
			require.Equal(t, "op-1", p.field(t, "spec", "fanout", "claim", "operation"))
		}
	})
	t.Run("server-side apply conflicts only on what another wrote otherwise", func(t *testing.T) {
		p := newPerson(t)
		p.committed(t)
		p.must(t, p.manifest("one"), serverSide...)
		p.refused(t, `conflict with "coordinator"`, p.manifest("two"), serverSide...)
		require.Equal(t, "one", p.field(t, "spec", "kubeconfigSecret", "name"))
	})
	t.Run("replace without the claim is refused", func(t *testing.T) {
		p := newPerson(t)
		p.committed(t)
		p.refused(t, "claim cannot be removed: use apply instead of replace", p.manifest("one"), "replace", "-f", "-")
		p.refused(t, "claim cannot be removed", "", "patch", "servicecluster", "db-1", "-n", p.namespace, "--type=json", `--patch=[{"op":"remove","path":"/spec"}]`)
		p.refused(t, "claim cannot be removed", "", "patch", "servicecluster", "db-1", "-n", p.namespace, "--type=merge", `--patch={"spec":{"fanout":null}}`)
	})
	t.Run("the claim and the stage cannot be edited", func(t *testing.T) {
		p := newPerson(t)
		p.committed(t)
		p.refused(t, "the name is held for peer eu-west by operation op-1", "", "patch", "servicecluster", "db-1", "-n", p.namespace, "--type=merge", `--patch={"spec":{"fanout":{"claim":{"operation":"mine"}}}}`)
		p.refused(t, "stage cannot go from Configured to Reserved", "", "patch", "servicecluster", "db-1", "-n", p.namespace, "--type=merge", `--patch={"spec":{"fanout":{"stage":"Reserved"}}}`)
	})
	t.Run("apply on a guard is refused and names the peer", func(t *testing.T) {
		p := newPerson(t)
		_, err := p.create(t, "{fanout: "+guard+"}")
		require.NoError(t, err)
		for _, args := range [][]string{apply, serverSide, forced} {
			p.refused(t, "the ServiceCluster of this name is in peer us-east", p.manifest("one"), args...)
		}
		require.Equal(t, "us-east", p.field(t, "spec", "fanout", "claim", "target"))
	})
	t.Run("a guard that is deleted by hand frees the name in that peer, for an object without claim", func(t *testing.T) {
		p := newPerson(t)
		_, err := p.create(t, "{fanout: "+guard+"}")
		require.NoError(t, err)
		p.must(t, "", "delete", "servicecluster", "db-1", "-n", p.namespace)
		p.must(t, p.manifest("one"), apply...)
		require.Empty(t, p.field(t, "spec", "fanout", "stage"))
	})
	t.Run("an applied object is adopted and stays the tool's", func(t *testing.T) {
		for _, args := range [][]string{apply, serverSide} {
			p := newPerson(t)
			p.must(t, p.manifest("one"), args...)
			require.ErrorContains(t, p.claim(t, fmt.Sprintf(primary, "Reserved")), "never as a reservation")
			require.NoError(t, p.claim(t, fmt.Sprintf(primary, "Configured")))
			p.must(t, p.manifest("two"), args...)
			require.Equal(t, "two", p.field(t, "spec", "kubeconfigSecret", "name"))
			require.Equal(t, "Configured", p.field(t, "spec", "fanout", "stage"))
		}
	})
	t.Run("what was written elsewhere is not restored as committed", func(t *testing.T) {
		p := newPerson(t)
		_, err := p.create(t, "{kubeconfigSecret: {name: one}, fanout: "+fmt.Sprintf(primary, "Configured")+"}")
		require.ErrorContains(t, err, "is created Reserved or without spec.fanout")
	})
	t.Run("a reservation cannot be changed", func(t *testing.T) {
		p := newPerson(t)
		_, err := p.create(t, "{kubeconfigSecret: {name: one}, fanout: "+fmt.Sprintf(primary, "Reserved")+"}")
		require.NoError(t, err)
		p.refused(t, "operation op-1 holds the name for peer eu-west", p.manifest("two"), apply...)
	})
	t.Run("status writes change nothing of it", func(t *testing.T) {
		p := newPerson(t)
		p.committed(t)
		p.must(t, "", "patch", "servicecluster", "db-1", "-n", p.namespace, "--subresource=status", "--type=merge", `--patch={"status":{"phase":"Ready"},"spec":null}`)
		require.Equal(t, "Configured", p.field(t, "spec", "fanout", "stage"))
		require.Regexp(t, `db-1 +Ready +Database +Configured +eu-west`, p.must(t, "", "get", "scl", "-n", p.namespace))
	})
}
