// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// BenchmarkConverge replicates the Accounts of a central plane to peers in memory, until every
// Account is Ready in all of them. It has two baselines, bare loops over dynamic clients with the
// same concurrency:
//
//   - ratio: against the creation of the final objects, without reservation, reading back,
//     status, log or central plane: 4 requests for each Account in each peer.
//   - same-requests-ratio: against the requests that put an Account under the protocol, sent
//     without any decision: 9 requests for each Account in each peer.
//
// Each ratio is the baseline's time divided by the Replicator's. The servers run in the same
// process, so each of these times includes the servers' work. A server takes longer for a write
// that it validates against transition rules, or merges, than for a plain create.
//
// A thousand Accounts in a thousand peers are a million pairs of an Account and a peer. The objects
// of so many pairs take 24 GB in memory. So no shape has a thousand peers and a thousand Accounts.
// us/pair is the figure to compare between shapes: it grows if the work for one pair depends on the
// number of pairs.
func BenchmarkConverge(b *testing.B) {
	for _, shape := range []struct{ peers, accounts int }{{3, 1000}, {10, 1000}, {1000, 5}} {
		b.Run(fmt.Sprintf("peers=%d/accounts=%d", shape.peers, shape.accounts), func(b *testing.B) {
			var ours, bare, same time.Duration
			requests := 0
			for b.Loop() {
				b.StopTimer()
				f := newFleet(b, shape.peers, shape.accounts)
				took, made := f.converge()
				ours, requests = ours+took, requests+made
				bare += f.each("bare", f.create)
				same += f.each("same", f.bringUp)
				f.close()
				b.StartTimer()
			}
			pairs := float64(shape.peers * shape.accounts * b.N)
			b.ReportMetric(bare.Seconds()/ours.Seconds(), "ratio")
			b.ReportMetric(same.Seconds()/ours.Seconds(), "same-requests-ratio")
			b.ReportMetric(float64(ours.Microseconds())/pairs, "us/pair")
			b.ReportMetric(float64(requests)/pairs, "requests/pair")
		})
	}
}

// fleet is a central plane with Accounts, and the peers that the Accounts are replicated to.
type fleet struct {
	*world

	b        *testing.B
	accounts int
	clients  []dynamic.Interface
}

func newFleet(b *testing.B, peers, accounts int) *fleet {
	b.Helper()
	f := &fleet{world: &world{t: b, ring: regiontest.NewRing()}, b: b, accounts: accounts}
	for i := range peers {
		name := fmt.Sprintf("peer-%04d", i)
		server := regiontest.NewServer(regiontest.Options{Name: name, History: 1 << 14})
		require.NoError(b, f.ring.Join(region.PeerName(name), server))
		client, err := dynamic.NewForConfig(server.Config())
		require.NoError(b, err)
		f.clients = append(f.clients, client)
	}
	require.NoError(b, f.ring.AddDefinitions(definitions(b)))
	var err error
	f.c, err = fanout.New(f.ring, waltest.NewMemory(), fanout.Options{Kinds: Kinds(), CallTimeout: time.Hour, LeaseTimeout: 10 * time.Minute})
	require.NoError(b, err)
	require.NoError(b, f.c.InitPeers(b.Context()))
	f.plane = regiontest.NewServer(regiontest.Options{Name: "plane", Definitions: definitions(b)})
	f.api, err = region.APIFor(f.plane.Config())
	require.NoError(b, err)
	for i := range accounts {
		f.world.create(f.account("acme", i))
	}
	return f
}

func (f *fleet) close() {
	f.plane.Close()
	f.ring.Close()
}

func (f *fleet) account(prefix string, i int) *unstructured.Unstructured {
	return newAccount(fmt.Sprintf("%s-%04d", prefix, i), []any{"Tenant"}, alice)
}

// converge returns the time until all Accounts are Ready, and the number of requests that the peers
// have served, not counting watches.
func (f *fleet) converge() (took time.Duration, requests int) {
	f.b.Helper()
	ready := make(chan struct{})
	var mu sync.Mutex
	done := map[string]bool{}
	r, err := NewReplicator(f.api, f.ring, f.c, Options{Observer: &Observer{Changed: func(_ context.Context, p Presence) {
		mu.Lock()
		defer mu.Unlock()
		if p.Complete() && p.Total == len(f.clients) && !done[p.Key.Name] {
			done[p.Key.Name] = true
			if len(done) == f.accounts {
				close(ready)
			}
		}
	}}})
	require.NoError(f.b, err)
	for p := range f.ring.Snapshot().Peers() {
		f.ring.Server(p.Name).Reset()
	}
	runtime.GC()
	f.b.StartTimer()
	start := time.Now()
	stop := run(f.b, r.Start)
	<-ready
	took = time.Since(start)
	f.b.StopTimer()
	stop()
	for p := range f.ring.Snapshot().Peers() {
		for _, r := range f.ring.Server(p.Name).Requests() {
			if r.Verb != "watch" {
				requests++
			}
		}
	}
	return took, requests
}

// each returns the time that do takes for all Accounts in all peers.
func (f *fleet) each(prefix string, do func(ctx context.Context, c dynamic.Interface, account *unstructured.Unstructured) error) time.Duration {
	f.b.Helper()
	runtime.GC()
	start := time.Now()
	var g errgroup.Group
	g.SetLimit(8)
	for i := range f.accounts {
		g.Go(func() error {
			account := f.account(prefix, i)
			var peers errgroup.Group
			for _, client := range f.clients {
				peers.Go(func() error { return do(f.b.Context(), client, account) })
			}
			return peers.Wait()
		})
	}
	require.NoError(f.b, g.Wait())
	return time.Since(start)
}

// create creates the final objects of an Account in a peer.
func (f *fleet) create(ctx context.Context, c dynamic.Interface, account *unstructured.Unstructured) error {
	if _, err := c.Resource(resource).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	return f.grant(ctx, c, account)
}

// grant creates the objects that an Account needs in a peer.
func (f *fleet) grant(ctx context.Context, c dynamic.Interface, account *unstructured.Unstructured) error {
	name := account.GetName()
	roles, bindings := DefaultRights().grants(account)
	if _, err := c.Resource(namespacesResource).Create(ctx, manifest(name), metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := c.Resource(rolesResource).Namespace(name).Create(ctx, roles[0], metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := c.Resource(bindingsResource).Namespace(name).Create(ctx, bindings[0], metav1.CreateOptions{})
	return err
}

// bringUp sends the requests that put an Account under the protocol in a peer, with the claim of
// an existing Account.
func (f *fleet) bringUp(ctx context.Context, c dynamic.Interface, account *unstructured.Unstructured) error {
	accounts := c.Resource(resource)
	like, err := accounts.Get(ctx, f.account("acme", 0).GetName(), metav1.GetOptions{}) // stands for the read that the protocol makes later
	if err != nil {
		return err
	}
	if _, err := c.Resource(peerSetsResource).Get(ctx, fanoutv1alpha1.PeerSetName, metav1.GetOptions{}); err != nil {
		return err
	}
	obj := account.DeepCopy()
	obj.Object["spec"] = like.Object["spec"]
	obj.SetAnnotations(like.GetAnnotations())
	claim := obj.Object["spec"].(map[string]any)["fanout"].(map[string]any)
	claim["stage"] = string(fanoutv1alpha1.StageReserved)
	if obj, err = accounts.Create(ctx, obj, metav1.CreateOptions{FieldManager: FieldManager}); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(obj.Object, string(fanoutv1alpha1.StageActive), "spec", "fanout", "stage"); err != nil {
		return err
	}
	if obj, err = accounts.Update(ctx, obj, metav1.UpdateOptions{FieldManager: FieldManager}); err != nil {
		return err
	}
	if _, err := c.Resource(namespacesResource).Get(ctx, account.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("the namespace should not be there: %w", err)
	}
	if err := f.grant(ctx, c, account); err != nil {
		return err
	}
	status := &unstructured.Unstructured{Object: map[string]any{"status": like.Object["status"]}}
	status.SetGroupVersionKind(like.GroupVersionKind())
	status.SetName(obj.GetName())
	status.SetResourceVersion(obj.GetResourceVersion())
	_, err = accounts.ApplyStatus(ctx, obj.GetName(), status, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	return err
}
