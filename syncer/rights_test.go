// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/targets"
)

// few are the types in the tests of rights: one without a status and one with a status.
var few = []schema.GroupResource{configMaps.GroupResource(), deployments.GroupResource()}

// guarded returns a side that allows a program only the rights in grants, and the API that the program uses.
func guarded(t *testing.T, name string, opts regiontest.Options, grants *rightstest.Grants) (*side, region.API) {
	t.Helper()
	opts.Name, opts.History, opts.Tokens, opts.Authorize = name, 100000, rightstest.Tokens(), grants.Authorize
	s := &side{Server: regiontest.NewServer(opts), t: t}
	t.Cleanup(s.Close)
	s.api = rightstest.API(t, s.Server, rightstest.Admin)
	s.client = s.api.Dynamic()
	return s, rightstest.API(t, s.Server, rightstest.Program)
}

// granted returns the rights in the roles that package rights defines for the given part of a program.
func granted(t *testing.T, part string, s rights.Syncing) *rightstest.Grants {
	t.Helper()
	cluster, namespaced, ok := rights.Sync(part, s)
	require.True(t, ok)
	return rightstest.Of(cluster, namespaced)
}

// requireExact fails if g lacks a right that a request needed, or has a right that no request used.
func requireExact(t *testing.T, s *side, g *rightstest.Grants) {
	t.Helper()
	require.Empty(t, g.Denied(s.Requests()))
	require.Empty(t, g.Unused())
}

const someDeployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: a}}, template: {metadata: {labels: {a: a}}, spec: {containers: [{name: c, image: i}]}}}}"

// The roles that package rights defines are sufficient for an Agent, which uses each right in them.
func TestRightsOfASyncer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		upGrants := granted(t, "syncer", rights.Syncing{Target: target, Types: few})
		downGrants := granted(t, "syncer", rights.Syncing{Downstream: true, Types: few, Unscheduled: true})
		up, upAPI := guarded(t, "up", withTargets(t), upGrants)
		down, downAPI := guarded(t, "down", regiontest.Options{}, downGrants)
		p := &pair{t: t, up: up, down: down}
		_, err := up.client.Resource(syncTargets).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": target},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		agent, err := targets.NewAgent(upAPI, downAPI, syncer.Options{Target: target, Types: typesAre(few), Unscheduled: counting})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = agent.Start(ctx) })
		defer wg.Wait()
		defer cancel()
		p.rest()
		_, err = up.client.Resource(namespaces).Create(t.Context(), parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: other}}"), metav1.CreateOptions{})
		require.NoError(t, err)
		up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}")
		up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
		up.create(deployments, someDeployment)
		p.rest()
		down.patch(deployments, "a", `{"status":{"observedGeneration":1,"replicas":1}}`, "status")
		p.rest()
		require.EqualValues(t, 1, field(up.get(deployments, "a"), "status", "replicas"))
		require.NotNil(t, down.get(configMaps, "a", "other"))
		down.pod(down.set(down.get(deployments, "a"), "a-1"), "a-1-a", noNode(few5))
		p.rest()
		require.NotEmpty(t, unscheduled(up.get(deployments, "a"), target))
		// The syncer reads an object live when the object loses its label.
		up.patch(deployments, "a", `{"metadata":{"labels":null}}`)
		up.patch(configMaps, "a", `{"metadata":{"labels":null}}`)
		p.rest()
		require.Nil(t, down.get(deployments, "a"))
		require.Nil(t, down.get(configMaps, "a"))
		// If a downstream object has lost its label, the syncer reads it live when its origin is deleted.
		for _, gvr := range []schema.GroupVersionResource{configMaps, deployments} {
			up.patch(gvr, "a", `{"metadata":{"labels":{"workloads.kcp.io/cluster":"`+target+`"}}}`)
			p.rest()
			down.patch(gvr, "a", `{"metadata":{"labels":null}}`)
			up.delete(gvr, "a")
			p.rest()
			require.Nil(t, up.get(gvr, "a"))
		}
		time.Sleep(time.Minute)
		requireExact(t, up, upGrants)
		requireExact(t, down, downGrants)
	})
}

// The roles for Upsync and DeleteUpstream are sufficient. The syncer uses each upstream right in them, except rights
// to get objects: it needs these only for objects that lose their label.
func TestRightsOfTheWayUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := rights.Syncing{Types: few, Upsync: few[1:], DeleteUpstream: true}
		upGrants := granted(t, "syncer", s)
		s.Downstream = true
		downGrants := granted(t, "syncer", s)
		up, upAPI := guarded(t, "up", regiontest.Options{}, upGrants)
		down, downAPI := guarded(t, "down", regiontest.Options{}, downGrants)
		p := &pair{t: t, up: &side{Server: up.Server, t: t, client: up.client, api: upAPI}, down: &side{Server: down.Server, t: t, client: down.client, api: downAPI}}
		p.start(syncer.Options{
			Types: typesAre(few), Upsync: typesAre(few[1:]), OnDownstreamDelete: syncer.DeleteUpstream, Conditions: true,
			Rules: []syncer.Rule{{Type: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Path: "spec.replicas", Owner: syncer.FirstWriter, Up: true}},
		})
		_, err := down.client.Resource(namespaces).Create(t.Context(), parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: other}}"), metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = down.client.Resource(deployments).Namespace("other").Create(t.Context(), parse(t,
			strings.Replace(someDeployment, "name: a}", "name: born, labels: {state.workload.kcp.io/my-cluster: Upsync}}", 1)), metav1.CreateOptions{})
		require.NoError(t, err)
		up.create(configMaps, a)
		up.create(deployments, someDeployment)
		p.rest()
		require.NotNil(t, up.get(deployments, "born", "other"))
		for _, name := range []string{"a", "born"} {
			namespace := map[string]string{"a": "default", "born": "other"}[name]
			_, err := down.client.Resource(deployments).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType,
				[]byte(`{"status":{"observedGeneration":1,"replicas":1}}`), metav1.PatchOptions{}, "status")
			require.NoError(t, err)
		}
		down.patch(deployments, "a", `{"spec":{"replicas":3}}`)
		p.rest()
		require.EqualValues(t, 1, field(up.get(deployments, "born", "other"), "status", "replicas"))
		require.EqualValues(t, 3, field(up.get(deployments, "a"), "spec", "replicas"))
		require.NoError(t, down.client.Resource(deployments).Namespace("other").Delete(t.Context(), "born", metav1.DeleteOptions{}))
		down.delete(configMaps, "a")
		p.rest()
		require.Nil(t, up.get(deployments, "born", "other"))
		require.Nil(t, up.get(configMaps, "a"))
		require.Empty(t, p.problems())
		require.Empty(t, upGrants.Denied(up.Requests()))
		require.Empty(t, downGrants.Denied(down.Requests()))
		for _, name := range upGrants.Unused() {
			require.Contains(t, name, ": get ") // for objects that lose their label, as in TestRightsOfASyncer
		}
	})
}

func typesAre(all []schema.GroupResource) syncer.TypeFilter {
	return func(gr schema.GroupResource) bool { return slices.Contains(all, gr) }
}
