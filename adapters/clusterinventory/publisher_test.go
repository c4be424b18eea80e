// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// inBubble runs a test with a hub in a bubble.
func inBubble(t *testing.T, run func(*testing.T, *regiontest.Server)) {
	t.Helper()
	_, err := definitions() // compiled outside of the bubble
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) { run(t, newHub(t, regiontest.Options{})) })
}

// publish runs a Publisher until the test ends.
func publish(t *testing.T, api region.API, d region.Directory, opts PublisherOptions) *logtest.Lines {
	t.Helper()
	lines := logtest.New()
	opts.Namespace, opts.Logger = namespace, lines.Logger()
	if opts.Manager == "" {
		opts.Manager = "atoll"
	}
	publisher, err := NewPublisher(api, d, opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- publisher.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	pass(5 * time.Second)
	return lines
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// read returns a profile of the hub.
func read(t *testing.T, hub *regiontest.Server, name string) *inventory.ClusterProfile {
	t.Helper()
	obj, err := profilesOf(t, hub).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	p, err := decode(obj)
	require.NoError(t, err)
	return p
}

// properties returns the properties of a profile as text.
func properties(p *inventory.ClusterProfile) []string {
	var all []string
	for _, q := range p.Status.Properties {
		all = append(all, q.Name+"="+q.Value)
	}
	slices.Sort(all)
	return all
}

func uidOf(t *testing.T, ring *regiontest.Ring, name region.PeerName) string {
	t.Helper()
	conn, err := ring.Conn(name)
	require.NoError(t, err)
	uid, err := conn.UID(t.Context())
	require.NoError(t, err)
	return string(uid)
}

// Each peer has a profile that the CRD accepts; nothing is written while nothing changes; the profile of a peer that has
// left is deleted.
func TestPublisher(t *testing.T) {
	inBubble(t, func(t *testing.T, hub *regiontest.Server) {
		ring := regiontest.NewRing("eu", "us")
		defer ring.Close()
		require.NoError(t, ring.Serve("eu", region.Key{Provider: "loodse", Name: "a"}, region.Key{Provider: "loodse", Name: "b"}))
		addProperties(t, ring.Server("eu"), "v1beta1", map[string]string{ClusterIDProperty: "one", ClusterSetProperty: "set"})
		addProperties(t, ring.Server("us"), "v1alpha1", map[string]string{ClusterIDProperty: strings.Repeat("x", maxValue+1)})
		publish(t, apiOf(t, hub), ring, PublisherOptions{})

		eu := read(t, hub, "eu")
		require.Equal(t, map[string]string{"x-k8s.io/cluster-manager": "atoll"}, eu.Labels)
		require.Equal(t, inventory.ClusterProfileSpec{DisplayName: "eu", ClusterManager: inventory.ClusterManager{Name: "atoll"}}, eu.Spec)
		require.Equal(t, []string{"cluster.clusterset.k8s.io=one", "clusterset.k8s.io=set", "regions.atoll.dev=a.loodse,b.loodse", "uid.atoll.dev=" + uidOf(t, ring, "eu")}, properties(eu))
		require.NotEmpty(t, eu.Status.Version.Kubernetes)
		require.Len(t, eu.Status.Conditions, 1)
		require.Equal(t, "ControlPlaneHealthy Unknown Unknown", conditionText(eu))
		require.Equal(t, []string{"uid.atoll.dev=" + uidOf(t, ring, "us")}, properties(read(t, hub, "us")), "a value that is too long is left out")

		hub.Reset()
		pass(time.Hour)
		require.Empty(t, writes(hub), "nothing has changed")

		require.NoError(t, ring.Leave("us"))
		pass(time.Second)
		require.Len(t, writes(hub), 1)
		_, err := profilesOf(t, hub).Get(t.Context(), "us", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err))
		require.NoError(t, ring.Join("us", ring.Server("us")))
		pass(5 * time.Second)
		read(t, hub, "us")
	})
}

func conditionText(p *inventory.ClusterProfile) string {
	c := p.Status.Conditions[0]
	return fmt.Sprint(c.Type, " ", c.Status, " ", c.Reason)
}

// The condition follows the probes of the ring, and its time is that of the last change.
func TestHealth(t *testing.T) {
	inBubble(t, func(t *testing.T, hub *regiontest.Server) {
		eu := regiontest.NewServer(regiontest.Options{Name: "eu"})
		t.Cleanup(eu.Close)
		creds, err := region.FromConfig(eu.Config())
		require.NoError(t, err)
		source, err := region.FromPeers(region.Peer{Name: "eu", Credentials: creds})
		require.NoError(t, err)
		ring, err := region.NewRing(source, region.Options{})
		require.NoError(t, err)
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- ring.Start(ctx) }()
		t.Cleanup(func() {
			cancel()
			require.NoError(t, <-done)
		})
		publish(t, apiOf(t, hub), ring, PublisherOptions{})
		healthy := read(t, hub, "eu")
		require.Equal(t, "ControlPlaneHealthy True Healthy", conditionText(healthy))
		eu.Partition(true)
		pass(5 * time.Minute)
		p := read(t, hub, "eu")
		require.Equal(t, "ControlPlaneHealthy False Unhealthy", conditionText(p))
		require.Equal(t, "several probes in a row failed: connection refused", p.Status.Conditions[0].Message)
		require.Equal(t, properties(healthy), properties(p))
		require.True(t, healthy.Status.Conditions[0].LastTransitionTime.Before(&p.Status.Conditions[0].LastTransitionTime))
		hub.Reset()
		pass(time.Hour)
		require.Empty(t, writes(hub))
		eu.Partition(false)
		pass(2 * time.Minute)
		require.Equal(t, "ControlPlaneHealthy True Healthy", conditionText(read(t, hub, "eu")))
	})
}

// A profile of another manager is never changed or deleted, also if it has the name of a peer or our label.
func TestProfilesOfOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, hub *regiontest.Server) {
		put(t, hub, profile(t, "eu", access("https://eu")))
		label := profile(t, "gone", "{}")
		label.SetLabels(map[string]string{"x-k8s.io/cluster-manager": "atoll"})
		put(t, hub, label)
		forged := profile(t, "forged", "{}")
		forged.Object["spec"] = map[string]any{"clusterManager": map[string]any{"name": "atoll"}}
		forged.SetLabels(map[string]string{"x-k8s.io/cluster-manager": "atoll"})
		put(t, hub, forged)
		hub.Reset()
		ring := regiontest.NewRing("eu", "us")
		defer ring.Close()
		lines := publish(t, apiOf(t, hub), ring, PublisherOptions{})
		lines.Await(t, "not published", "ClusterProfile fleet/eu")
		pass(time.Hour)
		for _, w := range writes(hub) {
			require.NotContains(t, w, "/eu")
		}
		remove(t, hub, "eu")
		pass(5 * time.Second)
		require.Equal(t, "atoll", read(t, hub, "eu").Spec.ClusterManager.Name)
		require.Equal(t, "fleet", read(t, hub, "gone").Spec.ClusterManager.Name)
		read(t, hub, "forged")
	})
}

// What another client changes in our profile is restored. Its own properties stay.
func TestRestored(t *testing.T) {
	inBubble(t, func(t *testing.T, hub *regiontest.Server) {
		ring := regiontest.NewRing("eu")
		defer ring.Close()
		publish(t, apiOf(t, hub), ring, PublisherOptions{})
		before := read(t, hub, "eu")
		for _, patch := range []string{
			`{"spec":{"displayName":"x"}}`, `{"metadata":{"labels":{"x-k8s.io/cluster-manager":null,"team":"x"}}}`,
		} {
			_, err := profilesOf(t, hub).Patch(t.Context(), "eu", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			require.NoError(t, err)
		}
		_, err := profilesOf(t, hub).Patch(t.Context(), "eu", types.ApplyPatchType, []byte(`{"apiVersion":"multicluster.x-k8s.io/v1alpha1","kind":"ClusterProfile","metadata":{"name":"eu"},
			"status":{"version":{"kubernetes":"v0"},"properties":[{"name":"a","value":"b"}]}}`), metav1.PatchOptions{FieldManager: "other", Force: new(true)}, "status")
		require.NoError(t, err)
		pass(time.Minute)
		p := read(t, hub, "eu")
		require.Equal(t, before.Spec, p.Spec)
		require.Equal(t, "atoll", p.Labels["x-k8s.io/cluster-manager"])
		require.Equal(t, before.Status.Version, p.Status.Version)
		require.Contains(t, properties(p), "a=b")
		hub.Reset()
		pass(time.Hour)
		require.Empty(t, writes(hub))
	})
}

// Regions that one property cannot hold continue in the next, and a Source reads them all back.
func TestManyRegions(t *testing.T) {
	inBubble(t, func(t *testing.T, hub *regiontest.Server) {
		ring := regiontest.NewRing("eu")
		defer ring.Close()
		var keys []region.Key
		for n := range 60 {
			keys = append(keys, region.Key{Provider: "loodse", Name: fmt.Sprintf("%s-%02d", strings.Repeat("x", 50), n)})
		}
		require.NoError(t, ring.Serve("eu", keys...))
		publish(t, apiOf(t, hub), ring, PublisherOptions{})
		p := read(t, hub, "eu")
		for _, q := range p.Status.Properties {
			require.LessOrEqual(t, len(q.Value), maxValue)
		}
		read, err := listedRegions(p)
		require.NoError(t, err)
		require.Equal(t, keys, read)
	})
}

// While the hub is unreachable nothing is lost, and an outcome that is unknown is repeated.
func TestUnreachableHub(t *testing.T) {
	inBubble(t, func(t *testing.T, hub *regiontest.Server) {
		ring := regiontest.NewRing("eu", "us")
		defer ring.Close()
		publish(t, apiOf(t, hub), ring, PublisherOptions{})
		hub.Partition(true)
		require.NoError(t, ring.Leave("us"))
		require.NoError(t, ring.Serve("eu", region.Key{Provider: "loodse", Name: "a"}))
		pass(time.Minute)
		hub.Partition(false)
		hub.Inject(regiontest.Fault{Verb: "delete", Do: regiontest.DropReply()})
		hub.Inject(regiontest.Fault{Verb: "patch", Do: regiontest.DropReply()})
		pass(2 * time.Minute)
		require.Contains(t, properties(read(t, hub, "eu")), "regions.atoll.dev=a.loodse")
		list, err := profilesOf(t, hub).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
	})
}

// odd is the Shard of a replica that owns one name.
type odd string

func (o odd) Owns(key string) bool { return key == string(o) }
func (odd) Watch(ctx context.Context) iter.Seq[uint64] {
	return func(func(uint64) bool) { <-ctx.Done() }
}

// A replica writes only the profiles that it owns.
func TestShard(t *testing.T) {
	inBubble(t, func(t *testing.T, hub *regiontest.Server) {
		ring := regiontest.NewRing("eu", "us")
		defer ring.Close()
		publish(t, apiOf(t, hub), ring, PublisherOptions{Shard: odd("us")})
		list, err := profilesOf(t, hub).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
		require.Equal(t, "us", list.Items[0].GetName())
	})
}
