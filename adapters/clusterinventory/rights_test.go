// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// each returns a rule for each resource name, so that Grants.Unused names an object that is not read.
func each(rules []rbacv1.PolicyRule) (divided []rbacv1.PolicyRule) {
	for _, r := range rules {
		if len(r.ResourceNames) == 0 {
			divided = append(divided, r)
		}
		for _, name := range r.ResourceNames {
			one := *r.DeepCopy()
			one.ResourceNames = []string{name}
			divided = append(divided, one)
		}
	}
	return divided
}

// judge verifies that the rights sufficed for all requests to s, and that each was used.
func judge(t *testing.T, grants *rightstest.Grants, s *regiontest.Server) {
	t.Helper()
	require.Empty(t, grants.Denied(s.Requests()))
	require.Empty(t, grants.Unused())
}

// guarded returns a peer that serves ClusterProperties and grants the role to the program, and a connection as the
// program.
func guarded(t *testing.T, role *rbacv1.ClusterRole) (*regiontest.Server, *rightstest.Grants, region.Credentials) {
	t.Helper()
	grants := rightstest.New(each(role.Rules)...)
	s := regiontest.NewServer(regiontest.Options{Name: "eu", Tokens: rightstest.Tokens(), Authorize: grants.Authorize})
	t.Cleanup(s.Close)
	addProperties(t, s, "v1beta1", map[string]string{ClusterIDProperty: "one", ClusterSetProperty: "set"})
	config := s.Config()
	config.BearerToken = rightstest.Program
	creds, err := region.FromConfig(config)
	require.NoError(t, err)
	return s, grants, creds
}

// ringOf returns a region.Ring of src that runs until the test ends.
func ringOf(t *testing.T, src region.Source) *region.Ring {
	t.Helper()
	ring, err := region.NewRing(src, region.Options{})
	require.NoError(t, err)
	logtest.Run(t, ring.Start)
	return ring
}

// The roles of a Publisher suffice, and it uses each right.
func TestPublisherRights(t *testing.T) {
	_, err := definitions() // compiled outside of the bubble
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		grants := rightstest.Of(nil, []*rbacv1.Role{PublisherRights(namespace)})
		hub := newHub(t, regiontest.Options{Tokens: rightstest.Tokens(), Authorize: grants.Authorize})
		eu, inPeer, creds := guarded(t, PublisherPeerRights())
		orphan := parse(t, "{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ClusterProfile, metadata: {name: us, namespace: "+namespace+
			", labels: {x-k8s.io/cluster-manager: atoll}}, spec: {clusterManager: {name: atoll}}}")
		_, err := profilesOf(t, hub).Create(t.Context(), orphan, metav1.CreateOptions{FieldManager: FieldManager})
		require.NoError(t, err)
		source, err := region.FromPeers(region.Peer{Name: "eu", Credentials: creds})
		require.NoError(t, err)
		publish(t, rightstest.API(t, hub, rightstest.Program), ringOf(t, source), PublisherOptions{})
		require.Contains(t, properties(read(t, hub, "eu")), "clusterset.k8s.io=set")
		_, err = profilesOf(t, hub).Patch(t.Context(), "eu", types.MergePatchType, []byte(`{"spec":{"displayName":"x"}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		pass(time.Minute)
		judge(t, grants, hub)
		judge(t, inPeer, eu)
	})
}

// The roles of a Source suffice, and it uses each right.
func TestSourceRights(t *testing.T) {
	_, err := definitions() // compiled outside of the bubble
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		grants := rightstest.Of(nil, []*rbacv1.Role{SourceRights(namespace)})
		hub := newHub(t, regiontest.Options{Tokens: rightstest.Tokens(), Authorize: grants.Authorize})
		eu, inPeer, creds := guarded(t, SourcePeerRights())
		put(t, hub, profile(t, "eu", access("https://eu.example", expected)))
		source, err := New(rightstest.API(t, hub, rightstest.Program), Options{Namespace: namespace, Plugins: []Plugin{fleet()}})
		require.NoError(t, err)
		// The plugin is a program, which does not run in a bubble: its credentials are replaced.
		read := source.verifier.id
		source.verifier.id = func(ctx context.Context, peer region.Peer) (string, error) {
			peer.Credentials = creds
			return read(ctx, peer)
		}
		ring := ringOf(t, replaced{source, creds})
		pass(time.Minute)
		conn, err := ring.Conn("eu")
		require.NoError(t, err)
		_, err = conn.UID(t.Context())
		require.NoError(t, err)
		put(t, hub, profile(t, "us", access("https://us.example")))
		pass(time.Minute)
		require.Equal(t, 2, ring.Snapshot().Len(), "the watch works")
		judge(t, grants, hub)
		judge(t, inPeer, eu)
	})
}

// replaced is a Source whose peer eu has other credentials, and whose other peers have none.
type replaced struct {
	*Source
	creds region.Credentials
}

func (r replaced) Run(ctx context.Context, publish func(*region.Snapshot)) error {
	return r.Source.Run(ctx, func(s *region.Snapshot) {
		var peers []region.Peer
		for p := range s.Peers() {
			peer := *p
			peer.Credentials = region.Credentials{}
			if peer.Name == "eu" {
				peer.Credentials = r.creds
			}
			peers = append(peers, peer)
		}
		if next, err := region.NewSnapshot(peers...); err == nil {
			publish(next)
		}
	})
}
