// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var syncTargets = schema.GroupVersionResource{Group: "workload.kcp.io", Version: "v1alpha1", Resource: "synctargets"}

// conditions returns the conditions of the SyncTarget, as "type status reason".
func (p *pair) conditions() []string {
	target := p.target()
	var all []string
	for _, c := range target.Status.Conditions {
		all = append(all, c.Type+" "+string(c.Status)+" "+c.Reason)
	}
	return all
}

func (p *pair) target() *v1alpha1.SyncTarget {
	p.t.Helper()
	obj, err := p.up.client.Resource(syncTargets).Get(p.t.Context(), target, metav1.GetOptions{})
	require.NoError(p.t, err)
	st := &v1alpha1.SyncTarget{}
	require.NoError(p.t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, st))
	return st
}

// withTargets returns options of an upstream that serves SyncTargets with the definition of package config.
func withTargets(t *testing.T) regiontest.Options {
	t.Helper()
	types, err := syncTargetTypes()
	require.NoError(t, err)
	return regiontest.Options{Definitions: types}
}

var syncTargetTypes = sync.OnceValues(func() (*regiontest.Definitions, error) {
	crd, err := config.CRD("synctargets.workload.kcp.io")
	if err != nil {
		return nil, err
	}
	return regiontest.Compile(crd)
})

func TestHeartbeat(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", withTargets(t)), down: newSide(t, "down", regiontest.Options{})}
		_, err := p.up.client.Resource(syncTargets).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": target},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		opts := syncer.Options{Heartbeat: 20 * time.Second, DeleteCap: syncer.DeleteCap{Objects: 1, Share: 0.1}}
		p.start(opts)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"DeletionsHeld False WithinCap", "Reachable True Answered", "Ready True Syncing", "TypesCompatible True Compatible"}, p.conditions())
		require.Contains(t, p.target().Status.SyncedResources, "deployments.apps")
		require.NotContains(t, p.target().Status.SyncedResources, "roles.rbac.authorization.k8s.io")
		first := p.target().Status
		time.Sleep(time.Minute)
		second := p.target().Status
		require.True(t, first.LastSyncerHeartbeatTime.Before(second.LastSyncerHeartbeatTime))
		require.Equal(t, first.Conditions, second.Conditions)

		p.up.numbered(3)
		p.rest()
		for _, name := range []string{"c-000", "c-001"} {
			p.up.delete(configMaps, name)
		}
		time.Sleep(time.Minute)
		require.Contains(t, p.conditions(), "DeletionsHeld True CapReached")

		p.down.Partition(true)
		time.Sleep(2 * time.Minute)
		require.Contains(t, p.conditions(), "Ready False Unreachable")
		require.Contains(t, p.conditions(), "Reachable False Unreachable")
		require.Contains(t, p.target().Status.SyncedResources, "deployments.apps", "the last known types stay")
		p.down.Partition(false)
		time.Sleep(2 * time.Minute)
		require.Contains(t, p.conditions(), "Ready True Syncing")

		p.stop()
		before := p.target().ResourceVersion
		time.Sleep(30 * time.Second) // within the lease
		require.Equal(t, before, p.target().ResourceVersion, "a Syncer that has ended writes nothing")

		known := p.target().Status.Conditions
		p.down.Inject(regiontest.Fault{Verb: "list", Resource: configMaps.GroupResource(), Do: regiontest.Delay(18 * time.Second)})
		p.start(opts)
		require.Equal(t, known, p.target().Status.Conditions, "the conditions stay until all lists are complete")
	})
}

// A cluster that is unreachable from the start is reported as unreachable.
func TestHeartbeatOfAClusterThatNeverAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", withTargets(t)), down: newSide(t, "down", regiontest.Options{})}
		_, err := p.up.client.Resource(syncTargets).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": target},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		p.down.Partition(true)
		p.start(syncer.Options{Heartbeat: 20 * time.Second})
		require.Equal(t, []string{"Reachable False Unreachable", "Ready False Unreachable"}, p.conditions())
		p.down.Partition(false)
		time.Sleep(time.Minute)
		require.Contains(t, p.conditions(), "Ready True Syncing")
	})
}

// A Syncer whose lists are not complete yet keeps the conditions and the synced types that the process before it wrote.
func TestHeartbeatWhileListsAreOnTheirWay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", withTargets(t)), down: newSide(t, "down", regiontest.Options{})}
		_, err := p.up.client.Resource(syncTargets).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": target},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		opts := syncer.Options{Heartbeat: 20 * time.Second}
		slow := func() {
			p.down.Inject(regiontest.Fault{Verb: "list", Resource: configMaps.GroupResource(), Times: 3, Do: regiontest.Delay(18 * time.Second)})
			p.up.Inject(regiontest.Fault{Verb: "get", Resource: syncTargets.GroupResource(), Do: regiontest.Delay(time.Second)})
		}
		slow()
		p.start(opts) // it writes its first heartbeat after a second
		require.Contains(t, p.conditions(), "Ready True Syncing")
		require.Contains(t, p.conditions(), "TypesCompatible True Compatible", "types that are not listed yet are not incompatible")
		time.Sleep(2 * time.Minute)
		p.stop()
		known := p.target().Status
		require.Contains(t, known.SyncedResources, "configmaps")
		slow()
		p.start(opts)
		require.Equal(t, known.Conditions, p.target().Status.Conditions)
		require.Equal(t, known.SyncedResources, p.target().Status.SyncedResources)
		require.True(t, known.LastSyncerHeartbeatTime.Before(p.target().Status.LastSyncerHeartbeatTime))
	})
}
