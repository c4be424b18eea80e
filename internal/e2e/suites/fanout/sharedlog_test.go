// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/recordtest"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/kubelog"
)

// measured wraps a log by embedding it, as programs do for metrics.
type measured struct{ wal.Log }

// sharing makes a coordinator that uses the log in the ring's first plane, with its own client and
// the least rights.
func (r *ring) sharing(t *testing.T, identity string, observer *fanout.Observer) *fanout.Coordinator {
	t.Helper()
	log, err := kubelog.New(connect(t, r.planes[0], restricted(t, r.planes[0], rights.CoordinateCentral())), kubelog.Options{})
	require.NoError(t, err)
	c, err := fanout.New(r.conns, measured{log}, fanout.Options{
		Kinds: account.Kinds(), Identity: identity, LeaseTimeout: 2 * time.Second, MaxInFlight: time.Nanosecond, Observer: observer,
	})
	require.NoError(t, err)
	return c
}

// Two coordinators share a log, each through a wrapper. Recover of one coordinator does not touch
// an operation on which the other one works. It settles an add that a coordinator of the first
// release left open. In that release, a record in the central plane decided an operation. Recover
// commits the add if the record had decided it, and otherwise aborts it.
func TestSharedLogOnRealServers(t *testing.T) {
	r := newRing(t, planetest.Shared(t, 3))
	reached, release := make(chan string, 1), make(chan struct{})
	var once sync.Once
	let := sync.OnceFunc(func() { close(release) })
	defer let()
	working := r.sharing(t, "them/1", &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
		if e.Verb == "advance" && !e.Done {
			once.Do(func() {
				reached <- e.Operation
				<-release
			})
		}
	}})
	other := r.sharing(t, "me/1", nil)
	name, done := unique("acme"), make(chan error, 1)
	go func() {
		_, err := working.Add(within(t, time.Minute), newAccount(name), fanout.AddOptions{})
		done <- err
	}()
	<-reached
	ops, err := other.Recover(within(t, time.Minute))
	require.NoError(t, err)
	require.Empty(t, ops, "it is alive")
	let()
	require.NoError(t, <-done)
	r.audited(t, other)

	for _, decided := range []bool{true, false} {
		cluster := r.firstRelease(t, name, decided)
		_, err = other.Recover(within(t, time.Minute))
		require.NoError(t, err)
		r.audited(t, other)
		got, err := planetest.Dynamic(t, r.planes[1].Config()).Resource(fanout.ServiceClusters().Resource).Namespace(name).Get(t.Context(), cluster, metav1.GetOptions{})
		if !decided {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		stage, _, _ := unstructured.NestedString(got.Object, "spec", "fanout", "stage")
		require.Equal(t, "Configured", stage)
	}
}

// firstRelease writes the record and the objects of an add whose coordinator, of the first release,
// was killed. If decided is set, the kill came after the record had decided the add, and otherwise
// before. firstRelease returns the name of the object.
func (r *ring) firstRelease(t *testing.T, namespace string, decided bool) string {
	t.Helper()
	const digest = "7f076163fffdbe71041bffbf52961bb3e4ff3a343225d1a268bbce505f6c9e98"
	name, id, target := unique("db"), unique("1a2048c4278"), r.planes[1].Name()
	var names []string
	for _, p := range r.planes {
		names = append(names, p.Name())
	}
	data, err := json.Marshal(map[string]any{
		"group": "kubecarrier.io", "kind": "ServiceCluster", "namespace": namespace, "name": name,
		"operation": map[string]any{
			"ID": id, "Action": "add", "Coordinator": "first/1", "Peers": names, "Target": target, "Digest": digest,
			"Payload": "96653a75570bf1de7004310b93f17b2601fbe3f48e6968a05eeb1fff360fa238", "Start": time.Now().UnixMicro(), "Central": true, "Within": true, "Lease": 60,
		},
		"record":  map[string]any{"Primary": map[string]any{"Peer": target}},
		"content": map[string]any{"spec": map[string]any{"kubeconfigSecret": map[string]any{"name": "db"}}},
	})
	require.NoError(t, err)
	records := recordtest.In(connect(t, r.planes[0], restricted(t, r.planes[0], rights.CoordinateCentral())))
	record, err := records.Propose(t.Context(), wal.Entry{
		ID: id, Kind: "add ServiceCluster.kubecarrier.io", Key: "operation/" + id, Owner: "first/1/QPL6Z2", Data: data, Began: time.Now(),
	})
	require.NoError(t, err)
	var claimed string
	for _, p := range r.planes {
		obj, role := newServiceCluster(namespace, name), "Primary"
		require.NoError(t, unstructured.SetNestedField(obj.Object, "db", "spec", "kubeconfigSecret", "name"))
		if p.Name() != target {
			role = "Secondary"
			obj.Object["spec"] = map[string]any{}
		}
		require.NoError(t, unstructured.SetNestedMap(obj.Object, map[string]any{"stage": "Reserved", "claim": map[string]any{
			"coordinator": "first/1", "digest": digest, "operation": id, "peer": p.Name(), "record": record.UID, "role": role,
			"start": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), "target": target,
		}}, "spec", "fanout"))
		got, err := planetest.Dynamic(t, p.Config()).Resource(fanout.ServiceClusters().Resource).Namespace(namespace).Create(t.Context(), obj, metav1.CreateOptions{})
		require.NoError(t, err)
		if p.Name() == target {
			claimed = string(got.GetUID())
		}
	}
	if decided {
		_, err = records.Decide(t.Context(), id, record.Version, target, claimed)
		require.NoError(t, err)
	}
	return name
}
