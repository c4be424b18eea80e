// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

func TestConfirm(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		us := &peer{name: "us", conn: w.conn("us")}
		c := &clerk{scene: &regionState{key: usEast1}}
		ask := func(p *peer, uid types.UID) outcome {
			o, err := c.confirm(t.Context(), p, command{verb: confirmGone, uid: uid})
			require.Equal(t, o == failed, err != nil)
			return o
		}
		require.Equal(t, missing, ask(us, "another"), "no object with this name")
		w.claim("us")
		require.Equal(t, missing, ask(us, "another"), "another one")
		require.Equal(t, done, ask(us, w.stored("us", claims).GetUID()))

		// This server does not serve the type, like a server that is starting.
		bare := regiontest.NewRing("bare")
		t.Cleanup(bare.Close)
		conn, err := bare.Conn("bare")
		require.NoError(t, err)
		require.Equal(t, failed, ask(&peer{name: "bare", conn: conn}, "another"))

		w.ring.Partition("us", true)
		require.Equal(t, failed, ask(us, "another"))
	})
}

func TestAStatusReachesOnlyTheClaimItIsFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		old := w.claim("us")
		w.unclaim("us")
		w.claim("us")
		status, ok := reportOn(old, ruling{decision: decision{peer: "us", uid: old.GetUID(), since: noon}, firm: true}, nil, noon)
		require.True(t, ok)
		a := &Arbiter{queue: loop.NewQueue(loop.QueueOptions{})}
		_, err := a.apply(t.Context(), usEast1, &peer{name: "us", conn: w.conn("us")}, claims.Resource, old, &status)
		require.NoError(t, err, "the cache will report the change")
		require.Equal(t, "silence", w.statusOf("us"))
		w.unclaim("us")
		_, err = a.apply(t.Context(), usEast1, &peer{name: "us", conn: w.conn("us")}, claims.Resource, old, &status)
		require.NoError(t, err)
		require.Nil(t, w.stored("us", claims))
	})
}

func TestDecisionsAreWrittenByCompareAndSwap(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		open := func() *records {
			return &records{client: w.api.Dynamic().Resource(leases).Namespace("kubecarrier-system"), ns: "kubecarrier-system", key: usEast1}
		}
		one, other := open(), open()
		read := func(r *records) decision {
			d, err := r.read(t.Context())
			require.NoError(t, err)
			return d
		}
		first, second := heldAt(1), heldAt(2)
		require.True(t, read(one).none())
		require.True(t, read(other).none())
		require.NoError(t, one.write(t.Context(), first))
		require.True(t, surpassed(other.write(t.Context(), second)), "there is one")
		require.Equal(t, first, read(one))
		require.Equal(t, first, read(other))

		require.NoError(t, other.write(t.Context(), second))
		require.True(t, surpassed(one.write(t.Context(), first)), "it changed")
		require.True(t, surpassed(one.erase(t.Context())), "it changed")
		require.Equal(t, second, read(one))
		require.EqualValues(t, 1, w.lease().Object["spec"].(map[string]any)["leaseTransitions"])

		require.Equal(t, second, read(other))
		require.NoError(t, one.erase(t.Context()))
		require.True(t, surpassed(other.write(t.Context(), first)), "it is gone")
		require.NoError(t, open().write(t.Context(), first))
		require.True(t, surpassed(other.write(t.Context(), second)), "it is another one")
		require.True(t, surpassed(other.erase(t.Context())))
	})
}

func TestLeaseNames(t *testing.T) {
	t.Parallel()
	long := region.Key{Provider: "loodse", Name: strings.Repeat("a.", 125) + "a"}
	require.NoError(t, long.Validate())
	require.Equal(t, "us-east-1.loodse", leaseName(usEast1))
	require.LessOrEqual(t, len(leaseName(long)), maxName)
	other := long
	other.Provider = "not-loodse"
	require.NotEqual(t, leaseName(long), leaseName(other))
	lease := leaseOf("ns", long, heldAt(1), nil)
	d, err := decisionIn(lease, long)
	require.NoError(t, err)
	require.Equal(t, heldAt(1), d)
	_, err = decisionIn(lease, other)
	require.ErrorContains(t, err, "names another region")
	lease.SetAnnotations(map[string]string{regionAnnotation: long.String()})
	_, err = decisionIn(lease, long)
	require.ErrorContains(t, err, "must both be set")
}

// TestASlowPeerIsWaitedFor checks that an object which is missing in an unsynced cache does not
// count as absent.
func TestASlowPeerIsWaitedFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.claim("us")
		time.Sleep(2 * time.Second)
		w.claim("eu")
		w.ring.Server("us").Inject(regiontest.Fault{Verb: "list", Times: -1, Do: regiontest.Delay(5 * time.Second)})
		w.start(w.api, Options{})
		passes(4 * time.Second)
		require.Equal(t, "Pending", w.statusOf("eu"))
		passes(4 * time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Conflict us", w.statusOf("eu"))
	})
}

// TestPatience checks that the wait for an unresponsive peer ends after Patience.
func TestPatience(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.claim("eu")
		w.ring.Server("us").Inject(regiontest.Fault{Times: -1, Do: regiontest.Hang()})
		w.start(w.api, Options{Patience: time.Minute, Workers: 1})
		passes(58 * time.Second)
		require.Equal(t, "Pending", w.statusOf("eu"))
		passes(4 * time.Second)
		require.Equal(t, "Bound eu", w.statusOf("eu"))
	})
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	_, err := New(nil, nil, Options{})
	require.ErrorContains(t, err, "Directory is nil")
	for want, opts := range map[string]Options{
		"Options.Namespace": {Namespace: "No"},
		"Options.Settle":    {Settle: -1},
		"Options.Departure": {Departure: -time.Second},
	} {
		_, err := New(nil, region.Fixed(), opts)
		require.ErrorContains(t, err, want)
	}
	a, err := New(nil, region.Fixed(), Options{})
	require.NoError(t, err)
	ctx := t.Context()
	a.started.Store(true)
	require.ErrorContains(t, a.Start(ctx), "twice")
}

// TestAMissingNamespaceIsNamed checks that the error names the namespace for decisions if the plane
// lacks it.
func TestAMissingNamespaceIsNamed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := &clerk{scene: &regionState{key: usEast1}, records: &records{
			client: w.api.Dynamic().Resource(leases).Namespace("elsewhere"), ns: "elsewhere", key: usEast1,
		}}
		r, err := c.recorded(c.records.write(t.Context(), heldAt(1)))
		require.Equal(t, failed, r.outcome)
		require.ErrorContains(t, err, "namespace elsewhere must exist in the central plane")
	})
}
