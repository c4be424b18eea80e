// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// fixture is a Source that runs until the test ends.
type fixture struct {
	t     *testing.T
	hub   *regiontest.Server
	lines *logtest.Lines

	mu        sync.Mutex
	published []*region.Snapshot
	ids       map[region.PeerName]func(context.Context) (string, error) // what the clusters report about themselves
	reads     int
}

func (f *fixture) start(opts Options) {
	f.t.Helper()
	opts.Namespace, opts.Logger = namespace, f.lines.Logger()
	if opts.Plugins == nil {
		opts.Plugins = []Plugin{fleet()}
	}
	source, err := New(apiOf(f.t, f.hub), opts)
	require.NoError(f.t, err)
	source.verifier.id = func(ctx context.Context, peer region.Peer) (string, error) {
		f.mu.Lock()
		f.reads++
		read := f.ids[peer.Name]
		f.mu.Unlock()
		return read(ctx)
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan error, 1)
	go func() {
		done <- source.Run(ctx, func(s *region.Snapshot) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.published = append(f.published, s)
		})
	}()
	f.t.Cleanup(func() {
		cancel()
		require.NoError(f.t, <-done)
	})
	f.pass(time.Second)
}

// pass lets time pass.
func (f *fixture) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// put changes a profile, and lets the Source see it.
func (f *fixture) put(obj *unstructured.Unstructured) {
	f.t.Helper()
	put(f.t, f.hub, obj)
	f.pass(time.Second)
}

// id sets what the cluster of a peer reports.
func (f *fixture) id(peer region.PeerName, id string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids[peer] = func(context.Context) (string, error) { return id, err }
}

// last returns the peers of the last Snapshot as text: name, regions, host or error.
func (f *fixture) last() []string {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.NotEmpty(f.t, f.published)
	var all []string
	for p := range f.published[len(f.published)-1].Peers() {
		state, _, _ := strings.Cut(p.Credentials.String(), " ")
		all = append(all, fmt.Sprint(p.Name, p.Regions, " ", state))
	}
	return all
}

// refusal returns why no connection to the peer is possible.
func (f *fixture) refusal(peer region.PeerName) error {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.published[len(f.published)-1].Peer(peer)
	require.True(f.t, ok)
	_, err := region.NewConn(*p, region.ConnOptions{})
	return err
}

func (f *fixture) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.published)
}

// bubble runs a test with a fixture in a bubble.
func bubble(t *testing.T, run func(*fixture)) {
	t.Helper()
	_, err := definitions() // compiled outside of the bubble
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		run(&fixture{t: t, hub: newHub(t, regiontest.Options{}), lines: logtest.New(), ids: map[region.PeerName]func(context.Context) (string, error){}})
	})
}

func listed(keys string) string {
	return "properties: [{name: regions.atoll.dev, value: '" + keys + "'}]"
}

// Profiles become peers, join, change and leave. A profile that cannot be used keeps its peer's last good state and
// disturbs no other. The Source writes nothing.
func TestSource(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.put(profile(f.t, "eu", access("https://eu", listed("a.loodse"))))
		f.put(profile(f.t, "us", access("https://us")))
		f.hub.Reset()
		f.start(Options{})
		require.Equal(t, []string{"eu[a.loodse] eu", "us[] us"}, f.last())

		f.put(profile(f.t, "eu", access("http://eu", listed("b.loodse"))))
		require.Equal(t, []string{"eu[a.loodse] eu", "us[] us"}, f.last())
		f.lines.Await(t, "ClusterProfile fleet/eu", "status.accessProviders[fleet].cluster.server")
		f.put(profile(f.t, "asia", "{}"))
		require.Equal(t, []string{"asia[] none", "eu[a.loodse] eu", "us[] us"}, f.last())
		require.ErrorContains(t, f.refusal("asia"), "ClusterProfile fleet/asia: status.accessProviders")
		f.put(profile(f.t, "us", access("https://us2", listed("c.loodse"))))
		f.put(profile(f.t, "asia", access("https://asia")))
		f.put(profile(f.t, "eu", access("https://eu", listed("b.loodse"))))
		require.Equal(t, []string{"asia[] asia", "eu[b.loodse] eu", "us[c.loodse] us2"}, f.last())
		f.lines.Await(t, "can be used again", "eu")

		before := f.count()
		f.hub.Partition(true)
		f.pass(time.Hour)
		require.Equal(t, before, f.count(), "absence is not deletion")
		f.hub.Partition(false)
		f.pass(time.Minute)
		require.Equal(t, before, f.count(), "nothing has changed")

		remove(t, f.hub, "us")
		f.pass(time.Second)
		require.Equal(t, []string{"asia[] asia", "eu[b.loodse] eu"}, f.last())
		for _, w := range writes(f.hub) {
			require.NotContains(t, w, "patch", "only the test writes: it creates, updates and deletes")
		}
	})
}

// A profile that was deleted and made again may be another cluster, so the last good state of the first one is not used.
func TestRecreatedProfile(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.put(profile(f.t, "eu", access("https://eu", listed("a.loodse"))))
		f.start(Options{})
		remove(t, f.hub, "eu")
		f.put(profile(f.t, "eu", "{}"))
		require.Equal(t, []string{"eu[] none"}, f.last())
	})
}

// If two profiles list a region, the peer of the older one serves it, and the other peer stays.
func TestRegionOfTwoProfiles(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.put(profile(f.t, "us", access("https://us", listed("a.loodse,b.loodse"))))
		f.pass(time.Minute)
		f.put(profile(f.t, "eu", access("https://eu", listed("a.loodse,c.loodse"))))
		f.start(Options{})
		require.Equal(t, []string{"eu[c.loodse] eu", "us[a.loodse b.loodse] us"}, f.last())
		f.lines.Await(t, "eu", "region a.loodse is served by us")
		remove(t, f.hub, "us")
		f.pass(time.Second)
		require.Equal(t, []string{"eu[a.loodse c.loodse] eu"}, f.last())
	})
}

// A selector leaves profiles of other managers out.
func TestSelector(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.put(profile(f.t, "us", access("https://us")))
		f.put(profile(f.t, "eu", access("https://eu")))
		f.start(Options{Selector: "team=eu"})
		require.Equal(t, []string{"eu[] eu"}, f.last())
	})
}

const expected = "properties: [{name: cluster.clusterset.k8s.io, value: one}]"

// A peer whose profile names the ID of its cluster is used only while the cluster has this ID.
func TestClusterID(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.put(profile(f.t, "eu", access("https://eu", expected)))
		f.put(profile(f.t, "us", access("https://us", expected)))
		f.put(profile(f.t, "asia", access("https://asia", expected)))
		f.put(profile(f.t, "any", access("https://any")))
		f.id("eu", "one", nil)
		f.id("us", "two", nil)
		f.id("asia", "", nil) // no About API
		f.start(Options{})
		require.Equal(t, []string{"any[] any", "asia[] asia", "eu[] eu", "us[] none"}, f.last())
		require.ErrorIs(t, f.refusal("us"), region.ErrOtherCluster)
		require.ErrorContains(t, f.refusal("us"), `peer us: credentials reach another cluster: ClusterProperty cluster.clusterset.k8s.io is "two" there, and "one" in the ClusterProfile`)
		f.lines.Await(t, "us", "another cluster")
		require.Equal(t, 1, f.count(), "the first Snapshot waits for the IDs")

		f.id("us", "one", nil)
		f.id("eu", "", errors.New("connection refused"))
		f.pass(verifyInterval)
		require.Equal(t, []string{"any[] any", "asia[] asia", "eu[] eu", "us[] us"}, f.last())
		f.id("eu", "three", nil)
		f.pass(verifyInterval)
		require.ErrorIs(t, f.refusal("eu"), region.ErrOtherCluster)

		f.put(profile(f.t, "eu", access("https://eu", "properties: [{name: cluster.clusterset.k8s.io, value: three}]")))
		require.NoError(t, f.refusal("eu"))
		reads := f.reads
		remove(t, f.hub, "us")
		remove(t, f.hub, "eu")
		f.put(profile(f.t, "asia", access("https://asia")))
		f.pass(time.Hour)
		require.Equal(t, reads, f.reads, "nothing is left to verify")
	})
}

// A cluster that does not answer delays the first Snapshot by at most five seconds, and is used as soon as it answers.
func TestClusterIDUnreadable(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.put(profile(f.t, "eu", access("https://eu", expected)))
		f.put(profile(f.t, "us", access("https://us")))
		f.ids["eu"] = func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", errors.New("no answer")
		}
		f.start(Options{})
		require.Zero(t, f.count())
		f.pass(firstLook)
		require.Equal(t, []string{"eu[] none", "us[] us"}, f.last())
		f.pass(verifyTimeout)
		require.Equal(t, []string{"eu[] none", "us[] us"}, f.last())
		require.ErrorContains(t, f.refusal("eu"), "peer eu: the ID of its cluster is not verified: no answer")
		require.NotErrorIs(t, f.refusal("eu"), region.ErrOtherCluster)
		before := f.count()
		f.pass(time.Hour)
		require.Equal(t, before, f.count())
		f.id("eu", "one", nil)
		f.pass(verifyRetry + verifyTimeout)
		require.Equal(t, []string{"eu[] eu", "us[] us"}, f.last())
	})
}
