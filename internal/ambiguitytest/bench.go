// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package ambiguitytest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/boxtest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// Target is the peer that holds the primaries of all operations; Other is a peer that holds
// secondaries (guards or replicas). A bench has these two peers, and may have more.
const (
	Target region.PeerName = "us-east"
	Other  region.PeerName = "eu-west"
)

// Bench is a ring with two connections to each peer: one through a box, and one that bypasses it.
type Bench struct {
	boxes   map[region.PeerName]*boxtest.Box
	through region.Directory
	past    region.Directory
	lease   time.Duration
	acme    string // the Account that ServiceClusters live in
	names   atomic.Int64
}

// NewBench puts a box before the API server of each kubeconfig, and adds the Account of the
// ServiceClusters. The peers must already have the CRDs and PeerSets. lease is the LeaseTimeout of
// the coordinators, which pause for about a sixtieth of it between attempts.
func NewBench(t *testing.T, kubeconfigs map[region.PeerName][]byte, lease time.Duration) *Bench {
	t.Helper()
	b := &Bench{boxes: map[region.PeerName]*boxtest.Box{}, lease: lease}
	var through, past []*region.Conn
	for name, kubeconfig := range kubeconfigs {
		box, err := boxtest.New(kubeconfig)
		require.NoError(t, err)
		t.Cleanup(box.Close)
		b.boxes[name] = box
		through, past = append(through, connect(t, name, box.Kubeconfig())), append(past, connect(t, name, kubeconfig))
	}
	b.through, b.past = region.Fixed(through...), region.Fixed(past...)
	b.acme = b.unique("acme")
	_, err := b.coordinator(t, b.past, waltest.NewMemory(), nil).Add(t.Context(), newAccount(b.acme, "Tenant"), fanout.AddOptions{Target: Target})
	require.NoError(t, err)
	return b
}

func connect(t *testing.T, name region.PeerName, kubeconfig []byte) *region.Conn {
	t.Helper()
	credentials, err := region.ParseKubeconfig(kubeconfig, region.Trust{})
	require.NoError(t, err)
	conn, err := region.NewConn(region.Peer{Name: name, Credentials: credentials}, region.ConnOptions{})
	require.NoError(t, err)
	return conn
}

func (b *Bench) coordinator(t *testing.T, d region.Directory, log wal.Log, observer *fanout.Observer) *fanout.Coordinator {
	t.Helper()
	c, err := fanout.New(d, log, fanout.Options{
		Kinds: account.Kinds(), LeaseTimeout: b.lease, CallTimeout: time.Minute, MaxInFlight: time.Nanosecond, Observer: observer,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Wait(context.WithoutCancel(t.Context()))) })
	return c
}

// unique makes a name that no other bench uses.
func (b *Bench) unique(prefix string) string {
	return fmt.Sprintf("%s-%x-%d", prefix, time.Now().UnixNano(), b.names.Add(1))
}

// journal records the steps of one coordinator.
type journal struct {
	mu    sync.Mutex
	begun int // number of writes that have begun
	ended []fanout.StepEvent
}

func (j *journal) step(_ context.Context, e fanout.StepEvent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case e.Done:
		j.ended = append(j.ended, e)
	case e.Verb == "create" || e.Verb == "put" || e.Verb == "delete":
		j.begun++
	}
}

func newAccount(name, role string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "catalog.kubecarrier.io/v1alpha1",
		"kind":       "Account",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"roles": []any{role}},
	}}
}

func newServiceCluster(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubecarrier.io/v1alpha1",
		"kind":       "ServiceCluster",
		"metadata":   map[string]any{"namespace": namespace, "name": name},
		"spec":       map[string]any{"kubeconfigSecret": map[string]any{"name": name}},
	}}
}
