// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// inWorld runs fn in a world with two peers, on a fake clock.
func inWorld(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu", "us")
		fn(t, w)
	})
}

// bindTo claims the region in p, waits until this claim is Bound, and then claims the region in
// other.
func (w *world) bindTo(p, other region.PeerName) {
	w.t.Helper()
	w.claim(p)
	passes(3 * time.Second)
	w.claim(other)
	passes(3 * time.Second)
	require.Equal(w.t, "Bound "+string(p), w.statusOf(p))
	require.Equal(w.t, "Conflict "+string(p), w.statusOf(other))
}

func TestARegionClaimedInTwoPeersEndsBoundOnceAndInConflictOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.claim("us")
		passes(200 * time.Millisecond)
		require.Equal(t, "Pending", w.statusOf("us"))
		time.Sleep(time.Second) // the older claim wins
		w.claim("eu")
		passes(3 * time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Conflict us", w.statusOf("eu"))
		require.Contains(t, w.stored("eu", claims).Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)["message"],
			"peer us has held region us-east-1.loodse since 20")
	})
}

func TestSteadyStateMakesNoRequests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.cluster("us")
		passes(3 * time.Second)
		w.claim("eu")
		passes(3 * time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Conflict us", w.statusOf("eu"))
		servers := []*regiontest.Server{w.plane, w.ring.Server("eu"), w.ring.Server("us")}
		for _, s := range servers {
			s.Reset()
		}
		passes(time.Hour)
		for _, s := range servers {
			for _, r := range s.Requests() {
				require.Contains(t, []string{"list", "watch"}, r.Verb, "%s %s", r.Method, r.Path)
			}
		}
	})
}

func TestTheHolderKeepsTheRegion(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stop := w.start(w.api, Options{})
		w.bindTo("us", "eu")
		since := w.lease().Object["spec"].(map[string]any)["acquireTime"]

		stop()
		for _, p := range []region.PeerName{"eu", "us"} {
			obj := w.stored(p, claims)
			delete(obj.Object, "status")
			_, err := w.conn(p).Dynamic().Resource(claims).Namespace(provider).UpdateStatus(t.Context(), obj, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.Equal(t, "silence", w.statusOf(p))
		}
		stop = w.start(w.api, Options{})
		passes(3 * time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Conflict us", w.statusOf("eu"))

		// The holder is unreachable, and all arbiters restart.
		stop()
		w.ring.Partition("us", true)
		w.start(w.api, Options{})
		passes(time.Hour)
		require.Equal(t, "Conflict us", w.statusOf("eu"))
		w.ring.Partition("us", false)
		passes(time.Minute)
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Conflict us", w.statusOf("eu"))
		require.Equal(t, since, w.lease().Object["spec"].(map[string]any)["acquireTime"])
	})
}

func TestADeletedClaimHandsTheRegionOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.bindTo("us", "eu")
		w.unclaim("us")
		passes(3 * time.Second)
		require.Equal(t, "Bound eu", w.statusOf("eu"))
		w.claim("us")
		passes(3 * time.Second)
		require.Equal(t, "Bound eu", w.statusOf("eu"))
		require.Equal(t, "Conflict eu", w.statusOf("us"))
		w.unclaim("us")
		w.unclaim("eu")
		passes(3 * time.Second)
		require.Nil(t, w.lease(), "no claim is left")
	})
}

func TestAClaimThatIsBeingDeletedHoldsUntilItIsGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.bindTo("us", "eu")
		client := w.conn("us").Dynamic().Resource(claims).Namespace(provider)
		obj := w.stored("us", claims)
		obj.SetFinalizers([]string{"example.com/slow"})
		_, err := client.Update(t.Context(), obj, metav1.UpdateOptions{})
		require.NoError(t, err)
		w.unclaim("us")
		passes(time.Minute)
		require.Equal(t, "Pending us", w.statusOf("us"))
		require.Equal(t, "Conflict us", w.statusOf("eu"))
		obj = w.stored("us", claims)
		obj.SetFinalizers(nil)
		_, err = client.Update(t.Context(), obj, metav1.UpdateOptions{})
		require.NoError(t, err)
		passes(3 * time.Second)
		require.Equal(t, "Bound eu", w.statusOf("eu"))
	})
}

func TestAPeerThatLeftLosesItsRegions(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.bindTo("us", "eu")
		require.NoError(t, w.ring.Leave("us"))
		passes(50 * time.Second)
		require.Equal(t, "Conflict us", w.statusOf("eu"), "it may rejoin")
		passes(20 * time.Second)
		require.Equal(t, "Bound eu", w.statusOf("eu"))
		require.NoError(t, w.ring.Join("us", w.ring.Server("us")))
		passes(3 * time.Second)
		require.Equal(t, "Conflict eu", w.statusOf("us"))
		require.Equal(t, "Bound eu", w.statusOf("eu"))
	})
}

func TestAPeerThatComesUnderAnotherNameKeepsItsRegions(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.bindTo("us", "eu")
		server := w.ring.Server("us")
		require.NoError(t, w.ring.Leave("us"))
		require.NoError(t, w.ring.Join("us-east", server))
		passes(3 * time.Second)
		require.Equal(t, "Bound us-east", w.statusOf("us-east"))
		require.Equal(t, "Conflict us-east", w.statusOf("eu"))
	})
}

func TestARestoredPeer(t *testing.T) {
	t.Run("to before it was told", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.claim("us")
			before := w.ring.Server("us").Save()
			w.start(w.api, Options{})
			passes(3 * time.Second)
			w.claim("eu")
			passes(3 * time.Second)
			require.NoError(t, w.ring.Server("us").Load(before))
			passes(time.Minute)
			require.Equal(t, "Bound us", w.statusOf("us"))
			require.Equal(t, "Conflict us", w.statusOf("eu"))
		})
	})
	t.Run("to when it held what it has given up", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.start(w.api, Options{})
			w.bindTo("us", "eu")
			before := w.ring.Server("us").Save()
			w.unclaim("us")
			passes(3 * time.Second)
			require.Equal(t, "Bound eu", w.statusOf("eu"))
			require.NoError(t, w.ring.Server("us").Load(before))
			require.Equal(t, "Bound us", w.statusOf("us"), "as in the backup")
			passes(time.Minute)
			require.Equal(t, "Conflict eu", w.statusOf("us"))
			require.Equal(t, "Bound eu", w.statusOf("eu"))
		})
	})
}

func TestADecisionThatIsLostIsRememberedByItsClaim(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stop := w.start(w.api, Options{})
		w.claim("eu")
		passes(3 * time.Second)
		w.unclaim("eu")
		w.claim("us")
		passes(3 * time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"))
		since := w.lease().Object["spec"].(map[string]any)["acquireTime"]
		stop()
		require.NoError(t, w.api.Dynamic().Resource(leases).Namespace("kubecarrier-system").Delete(t.Context(), leaseName(usEast1), metav1.DeleteOptions{}))
		w.claim("eu")
		w.start(w.api, Options{})
		passes(3 * time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Conflict us", w.statusOf("eu"))
		require.Equal(t, since, w.lease().Object["spec"].(map[string]any)["acquireTime"])
	})
}

func TestWithoutThePlaneNothingChanges(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stop := w.start(w.api, Options{})
		w.bindTo("us", "eu")
		w.plane.Partition(true)
		w.unclaim("us")
		passes(time.Minute)
		require.Equal(t, "Conflict us", w.statusOf("eu"), "no next holder can be chosen")
		w.claim("us")
		passes(time.Minute)
		require.Equal(t, "Pending", w.statusOf("us"))
		stop()
		w.start(w.api, Options{})
		passes(time.Minute)
		require.Equal(t, "Conflict us", w.statusOf("eu"))
		require.Equal(t, "Pending", w.statusOf("us"))
		w.plane.Partition(false)
		passes(2 * time.Minute)
		require.Equal(t, "Bound eu", w.statusOf("eu"))
		require.Equal(t, "Conflict eu", w.statusOf("us"))
	})
}

func TestADeadPeerDelaysNobody(t *testing.T) {
	t.Run("that refuses connections", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.ring.Partition("us", true)
			w.start(w.api, Options{})
			passes(11 * time.Second) // until Patience has passed
			w.claim("eu")
			passes(2 * time.Second)
			require.Equal(t, "Bound eu", w.statusOf("eu"))
		})
	})
	t.Run("that accepts requests and never answers", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.start(w.api, Options{CallTimeout: 2 * time.Second})
			w.claim("us")
			passes(200 * time.Millisecond)
			w.ring.Server("us").Inject(regiontest.Fault{Times: -1, Do: regiontest.Hang()})
			w.claim("eu")
			passes(10 * time.Second)
			require.Equal(t, "Bound eu", w.statusOf("eu"))
			w.ring.Server("us").Reset()
			passes(2 * time.Minute)
			require.Equal(t, "Conflict eu", w.statusOf("us"))
		})
	})
}

func TestLostRepliesOfThePlane(t *testing.T) {
	for name, action := range map[string]regiontest.Action{
		"request": regiontest.DropRequest(), "reply": regiontest.DropReply(), "late": regiontest.ApplyLate(300 * time.Millisecond),
		"refused": regiontest.Refuse(http.StatusServiceUnavailable),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.plane.Inject(
					regiontest.Fault{Verb: "create", Resource: leases.GroupResource(), Do: action},
					regiontest.Fault{Verb: "update", Resource: leases.GroupResource(), Do: action},
					regiontest.Fault{Verb: "delete", Resource: leases.GroupResource(), Do: action},
				)
				w.start(w.api, Options{})
				w.claim("us")
				passes(10 * time.Second)
				w.claim("eu")
				passes(10 * time.Second)
				require.Equal(t, "Bound us", w.statusOf("us"))
				require.Equal(t, "Conflict us", w.statusOf("eu"))
				w.unclaim("us")
				passes(10 * time.Second)
				require.Equal(t, "Bound eu", w.statusOf("eu"))
				w.unclaim("eu")
				passes(10 * time.Second)
				require.Nil(t, w.lease())
			})
		})
	}
}

// TestATypeThatIsNotServedIsNoAbsence checks that a 404 for a type that is not served does not
// count as a deleted claim: some API servers return it for custom resources while they start.
func TestATypeThatIsNotServedIsNoAbsence(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.bindTo("us", "eu")
		crd := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		before := w.ring.Server("us").Save()
		require.NoError(t, w.conn("us").Dynamic().Resource(crd).Delete(t.Context(), "regionclaims.kubecarrier.io", metav1.DeleteOptions{}))
		passes(time.Hour)
		require.Equal(t, "Conflict us", w.statusOf("eu"))
		require.NoError(t, w.ring.Server("us").Load(before))
		passes(time.Minute)
		require.Equal(t, "Bound us", w.statusOf("us"))
	})
}

func TestAForeignLeaseIsNotTouched(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		foreign := leaseOf("kubecarrier-system", usEast1, decision{peer: "x", uid: "y", since: noon}, nil)
		foreign.SetLabels(nil)
		client := w.api.Dynamic().Resource(leases).Namespace("kubecarrier-system")
		_, err := client.Create(t.Context(), foreign, metav1.CreateOptions{})
		require.NoError(t, err)
		w.start(w.api, Options{})
		w.claim("us")
		passes(time.Minute)
		require.Equal(t, "Pending", w.statusOf("us"))
		require.Empty(t, w.lease().GetLabels())
		require.NoError(t, client.Delete(t.Context(), foreign.GetName(), metav1.DeleteOptions{}))
		passes(2 * time.Minute)
		require.Equal(t, "Bound us", w.statusOf("us"))
	})
}

func TestProvidersNeverMeet(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.claim("us")
		w.namespace(w.conn("eu"), "not-loodse")
		other := w.object("RegionClaim", name)
		other.SetNamespace("not-loodse")
		client := w.conn("eu").Dynamic().Resource(claims).Namespace("not-loodse")
		_, err := client.Create(t.Context(), other, metav1.CreateOptions{})
		require.NoError(t, err)
		passes(3 * time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"))
		got, err := client.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.EqualValues(t, "Bound", statusIn(got).Phase)
		require.Equal(t, "eu", statusIn(got).Holder.Peer)
	})
}

func TestAHundredPeersRaceForOneRegion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		var names []region.PeerName
		for i := range n {
			names = append(names, region.PeerName(fmt.Sprintf("p%03d", i)))
		}
		w := newWorld(t, names...)
		w.start(w.api, Options{})
		w.start(w.api, Options{}) // a second Arbiter
		passes(2 * time.Second)
		for _, p := range names {
			w.claim(p)
		}
		passes(time.Minute)
		bound, requests := 0, 0
		for _, p := range names {
			switch said := w.statusOf(p); said[:5] {
			case "Bound":
				bound++
			default:
				require.Contains(t, said, "Conflict ")
			}
			requests += writes(w.ring.Server(p))
			w.ring.Server(p).Reset()
		}
		require.Equal(t, 1, bound)
		t.Logf("%.1f writes per peer, %d in the plane", float64(requests)/n, writes(w.plane))
		w.plane.Reset()
		passes(3 * time.Minute)
		for _, p := range names {
			require.Zero(t, writes(w.ring.Server(p)))
		}
		require.Zero(t, writes(w.plane))
	})
}
