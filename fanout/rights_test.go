// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// The rights of "atollctl rbac --kinds" suffice for a Coordinator with kinds of a program's own, and it uses each of them in
// each peer.
func TestRightsOfKinds(t *testing.T) {
	once := account.Kinds()[0]
	for _, kind := range account.Kinds() {
		if kind.Mode == fanout.Once {
			once = kind
		}
	}
	once.Within = fanout.Kind{}.Within
	kinds := []fanout.Kind{once, fanout.Secrets()}

	servers, grants := map[region.PeerName]*regiontest.Server{}, map[region.PeerName]*rightstest.Grants{}
	for _, p := range peers {
		grants[p] = rightstest.New(rights.Kinds(once.Resource.GroupResource(), schema.GroupResource{Resource: "secrets"}).Rules...)
		servers[p] = regiontest.NewServer(regiontest.Options{Name: string(p), Tokens: rightstest.Tokens(), Authorize: grants[p].Authorize})
		t.Cleanup(servers[p].Close)
		require.NoError(t, servers[p].AddDefinitions(definitions(t)))
	}
	as := func(token string) region.Directory {
		var all []region.Peer
		for _, p := range peers {
			config := servers[p].Config()
			config.BearerToken = token
			credentials, err := region.FromConfig(config)
			require.NoError(t, err)
			all = append(all, region.Peer{Name: p, Credentials: credentials})
		}
		source, err := region.FromPeers(all...)
		require.NoError(t, err)
		ring, err := region.NewRing(source, region.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- ring.Start(ctx) }()
		t.Cleanup(func() {
			cancel()
			require.NoError(t, <-ended)
		})
		require.Eventually(t, func() bool { return ring.Snapshot().Len() == len(peers) }, time.Minute, time.Millisecond)
		return ring
	}
	require.NoError(t, coordinator(t, as(rightstest.Admin), waltest.NewMemory(), fanout.Options{Kinds: kinds, Scheme: scheme.Scheme}).InitPeers(t.Context()))

	c := coordinator(t, as(rightstest.Program), waltest.NewMemory(), fanout.Options{Kinds: kinds, Scheme: scheme.Scheme})
	for _, p := range peers { // each peer holds a primary once, and guards and replicas of the others
		name := "in-" + string(p)
		secret := func(value string) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string][]byte{"a": []byte(value)}}
		}
		_, err := c.Add(t.Context(), newServiceCluster("default", name), fanout.AddOptions{Target: p})
		require.NoError(t, err)
		_, err = c.Agree(t.Context(), secret("one"), fanout.AddOptions{Target: p})
		require.NoError(t, err)
		_, err = c.Update(t.Context(), secret("two"), fanout.AddOptions{})
		require.NoError(t, err)
		_, err = c.Sweep(t.Context())
		require.NoError(t, err)
		requireClean(t, c)
		for _, kind := range kinds {
			_, err = c.Remove(t.Context(), kind.GroupKind(), key("default", name), fanout.RemoveOptions{})
			require.NoError(t, err)
		}
	}
	// A Coordinator finishes changes of the membership, whichever coordinator began them.
	_, err := c.Leave(t.Context(), "us-east")
	require.NoError(t, err)
	_, err = c.Join(t.Context(), "us-east")
	require.NoError(t, err)
	require.NoError(t, c.Wait(t.Context()))
	for _, p := range peers {
		require.Empty(t, grants[p].Denied(servers[p].Requests()), p)
		require.Empty(t, grants[p].Unused(), p)
	}
}
