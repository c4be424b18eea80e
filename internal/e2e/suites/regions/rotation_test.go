// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regions_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
)

// rotations holds, for each peer, the latest RotateEvent of the ring in this process.
type rotations map[region.PeerName]chan region.RotateEvent

func newRotations(peers ...region.PeerName) rotations {
	r := rotations{}
	for _, peer := range peers {
		r[peer] = make(chan region.RotateEvent, 1)
	}
	return r
}

// note keeps only the latest event.
func (r rotations) note(_ context.Context, e region.RotateEvent) {
	events, ok := r[e.Peer]
	if !ok {
		return
	}
	select {
	case <-events:
	default:
	}
	events <- e
}

// change stores a kubeconfig of a peer and returns when the ring uses it. It fails the test if stop
// delivers an error first. A probe that times out is no failure: the ring retries it.
func (r rotations) change(t *testing.T, w *world, peer region.PeerName, kubeconfig []byte, stop <-chan error) {
	t.Helper()
	select {
	case <-r[peer]: // drop the event of an earlier change
	default:
	}
	w.store(t, string(peer), kubeconfig)
	var late error
	for over := time.After(soon); ; {
		select {
		case e := <-r[peer]:
			if errors.Is(e.Err, context.DeadlineExceeded) {
				late = e.Err
				continue
			}
			require.NoError(t, e.Err)
			return
		case err := <-stop:
			t.Fatal(err)
		case <-over:
			t.Fatalf("the ring does not use the changed Secret: %v", late)
		}
	}
}

// rotate changes the kubeconfig of eu-west many times. Meanwhile clients that were made before the
// first change send requests, none of which may fail. ATOLL_ROTATIONS is the number of changes.
func rotate(t *testing.T, w *world, p *program, rotated rotations) {
	n := ctltest.Count(t, "ATOLL_ROTATIONS", 100)
	conn, err := p.loops.Load().ring.Conn("eu-west")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	planetest.Apply(t, w.euWest, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: load, namespace: loodse}, rules: []}")
	var requests atomic.Int64
	failures := make(chan error, 4)
	var load sync.WaitGroup
	for i := range cap(failures) {
		request := func(ctx context.Context) error {
			_, err := conn.Dynamic().Resource(namespaces).Get(ctx, "loodse", metav1.GetOptions{})
			return err
		}
		if i == 0 { // the first client writes, the others read
			request = func(ctx context.Context) error {
				label := fmt.Appendf(nil, `{"metadata":{"labels":{"example.org/rotation":"%d"}}}`, requests.Load())
				_, err := conn.Dynamic().Resource(roles).Namespace("loodse").Patch(ctx, "load", types.MergePatchType, label, metav1.PatchOptions{})
				return err
			}
		}
		load.Go(func() {
			for ctx.Err() == nil {
				// Not ctx: a cancelled request would count as a failure.
				if err := request(t.Context()); err != nil {
					failures <- err
					return
				}
				requests.Add(1)
			}
		})
	}
	var slowest time.Duration
	for range n {
		next := kubeconfig(t, w.euWest)
		start := time.Now()
		rotated.change(t, w, "eu-west", next, failures)
		slowest = max(slowest, time.Since(start))
	}
	cancel()
	load.Wait()
	select {
	case err := <-failures:
		t.Fatalf("after %d requests: %v", requests.Load(), err)
	default:
	}
	t.Logf("%d requests during %d rotations, none failed; the slowest took %s from the Secret to its use", requests.Load(), n, slowest)
	w.awaitPeers(t, "eu-west")
}

// revoke gives us-east's Peer the token of a service account, and deletes the account once the
// token is in use. From then on the peer rejects all requests.
func revoke(t *testing.T, w *world, rotated rotations) {
	const namespace, name = "default", "revoked"
	token, err := w.usEast.ServiceAccountKubeconfig(t.Context(), namespace, name)
	require.NoError(t, err)
	planetest.Apply(t, w.usEast, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: revoked}, "+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, "+
		"subjects: [{kind: ServiceAccount, namespace: "+namespace+", name: "+name+"}]}")
	config, err := plane.ConfigOf(token)
	require.NoError(t, err)
	allowed := planetest.Dynamic(t, config)
	planetest.Eventually(t, soon, "the token has all rights", func(ctx context.Context) error {
		_, err := allowed.Resource(namespaces).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		return err
	})
	rotated.change(t, w, "us-east", token, nil)
	w.of(w.usEast).remove(t, serviceAccounts, namespace, name)
}
