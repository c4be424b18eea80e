// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// away returns some peer that is not the home of the Account.
func (w *world) away(name string) region.PeerName {
	w.t.Helper()
	home := w.home(name)
	for _, peer := range peerNames {
		if peer != home {
			return peer
		}
	}
	return ""
}

// A peer is restored to a time before the removal of an Account, so it has the Account again. A
// sweep deletes the Account there. It is not added to the other peers, and no other Account is
// removed.
func TestRestoredPeerResurrectsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}, alice))
		w.create(newAccount("other", []any{"Tenant"}))
		w.awaitReady("acme")
		w.awaitReady("other")
		peer := w.away("acme")
		saved := w.ring.Server(peer).Save()
		w.delete("acme")
		w.awaitGone("acme")

		w.ring.Server(peer).Reset()
		require.NoError(t, w.ring.Server(peer).Load(saved))
		eventually(t, func() bool {
			return slices.ContainsFunc(w.ring.Server(peer).Requests(), func(r regiontest.Request) bool {
				return r.Verb == "delete" && r.Resource == "accounts" && r.Name == "acme" && r.Code == 200
			})
		}, "a sweep deletes it")
		eventually(t, func() bool { return accountIn(t, w.conn(peer), "acme") == nil })
		w.awaitReady("other")
		for _, p := range peerNames {
			require.Nil(t, accountIn(t, w.conn(p), "acme"))
			require.Equal(t, tenant, w.held(p, "other"), "no other Account is removed")
		}
	})
}

// A peer that is restored to a time before a change gets the change again.
func TestRestoredPeerIsBroughtUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}))
		w.awaitReady("acme")
		peer := w.away("acme")
		saved := w.ring.Server(peer).Save()
		w.edit(w.api, "acme", setRoles("Provider"))
		w.await("acme", func(s v1alpha1.AccountStatus) bool {
			return s.ObservedGeneration == 2 && s.Phase == v1alpha1.AccountReady
		}, "changed")
		w.create(newAccount("late", []any{"Tenant"}))
		w.awaitReady("late")

		require.NoError(t, w.ring.Server(peer).Load(saved))
		eventually(t, func() bool {
			roles := w.held(peer, "acme")
			return len(roles) == 1 && roles[0] == v1alpha1.AccountProvider && len(w.held(peer, "late")) == 1
		}, "the restored peer gets its objects back")
		w.awaitReady("acme")
		w.awaitReady("late")
	})
}

// While the central plane is unreachable, the coordinators' sweeps restore an object that is
// deleted in a peer. Later, a change of the central object is replicated as before.
func TestCentralPlaneAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}))
		w.awaitReady("acme")
		w.plane.Partition(true)
		deleteIn(t, w.conn(w.away("acme")), resource, "", "acme")
		eventually(t, func() bool {
			for _, peer := range peerNames {
				if len(w.held(peer, "acme")) == 0 {
					return false
				}
			}
			return true
		}, "the coordinators' sweeps need no central plane")
		w.plane.Partition(false)
		w.edit(w.api, "acme", setRoles("Provider"))
		w.await("acme", func(s v1alpha1.AccountStatus) bool {
			return s.ObservedGeneration == 2 && s.Phase == v1alpha1.AccountReady
		}, "the change is replicated")
	})
}

// A central plane is restored to a time before the creation of an Account. The peers keep the
// Account, and it is reported as an orphan.
func TestCentralPlaneRestored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		orphans := map[types.NamespacedName]region.PeerName{}
		w := newWorld(t, Options{Observer: &Observer{Orphaned: func(_ context.Context, e OrphanEvent) {
			mu.Lock()
			defer mu.Unlock()
			orphans[e.Key] = e.Peer
		}}})
		saved := w.plane.Save()
		uid := w.create(newAccount("acme", []any{"Tenant"})).GetUID()
		w.awaitReady("acme")
		home := w.home("acme")
		require.NoError(t, w.plane.Load(saved))
		eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return orphans[loop.ParseKey("acme")] == home
		})
		for _, peer := range peerNames {
			require.Equal(t, tenant, w.held(peer, "acme"), "no Account is lost")
		}
		orphaned := func() bool {
			return condition(accountIn(t, w.conn(home), "acme").Status, "Orphaned").Status == metav1.ConditionTrue
		}
		eventually(t, orphaned, "the status of its home reports that")
		require.Equal(t, v1alpha1.AccountReady, accountIn(t, w.conn(home), "acme").Status.Phase, "and it can be used as before")
		quiet(t, w.servers()...)

		// When the central object is applied again with the same content, it takes over the objects
		// in the peers.
		again := w.create(newAccount("acme", []any{"Tenant"}))
		require.NotEqual(t, uid, again.GetUID())
		w.awaitReady("acme")
		require.Equal(t, string(again.GetUID()), get(t, w.conn("us-east"), resource, "", "acme").GetAnnotations()[OriginAnnotation])
		eventually(t, func() bool { return !orphaned() }, "it is no orphan any more")
	})
}

// A joining peer counts only once it has all objects.
func TestJoiningPeerIsBackfilled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}, alice))
		w.awaitReady("acme")
		server := regiontest.NewServer(regiontest.Options{Name: "newcomer", Definitions: definitions(t)})
		t.Cleanup(server.Close)
		require.NoError(t, w.ring.Join("newcomer", server))
		status := w.await("acme", func(s v1alpha1.AccountStatus) bool { return condition(s, "PresentIn.newcomer").Reason == "NoMember" }, "the joining peer is reported")
		require.Equal(t, v1alpha1.AccountReady, status.Phase, "it does not count yet")
		require.Equal(t, int32(3), status.Peers.Total)

		_, err := w.c.Join(t.Context(), "newcomer")
		require.NoError(t, err)
		require.Equal(t, tenant, w.held("newcomer", "acme"))
		status = w.await("acme", func(s v1alpha1.AccountStatus) bool { return s.Peers.Total == 4 && s.Phase == v1alpha1.AccountReady }, "it counts")
		require.Equal(t, int32(4), status.Peers.Present)
		require.Len(t, status.Conditions, 2)
		eventually(t, func() bool { return granted(t, w.conn("newcomer"), "acme") })
	})
}

// When an unreachable peer is removed by force, removals no longer wait for it. When it rejoins,
// it brings no object back.
func TestRemovedPeerIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}, alice))
		w.create(newAccount("other", []any{"Tenant"}))
		w.awaitReady("acme")
		w.awaitReady("other")
		lost := w.away("acme")
		server := w.ring.Server(lost)
		w.ring.Partition(lost, true)
		w.await("acme", func(s v1alpha1.AccountStatus) bool { return len(s.Peers.Unknown) == 1 }, "the peer is reported as unreachable")
		w.delete("acme")
		w.await("acme", func(s v1alpha1.AccountStatus) bool { return s.Phase == v1alpha1.AccountTerminating }, "it waits")

		require.NoError(t, w.ring.Leave(lost))
		_, err := w.c.ForceRemove(t.Context(), lost, fanout.ForceRemoveOptions{By: "operator"})
		require.NoError(t, err)
		w.awaitGone("acme")
		w.await("other", func(s v1alpha1.AccountStatus) bool { return s.Peers.Total == 2 && s.Phase == v1alpha1.AccountReady }, "the removed peer does not count")

		server.Partition(false)
		back, err := region.APIFor(server.Config())
		require.NoError(t, err)
		require.NotNil(t, accountIn(t, back, "acme"), "it still has its object")
		require.NoError(t, w.ring.Join(lost, server))
		_, err = w.c.Comeback(t.Context(), lost)
		require.NoError(t, err)
		w.await("other", func(s v1alpha1.AccountStatus) bool { return s.Peers.Total == 3 && s.Phase == v1alpha1.AccountReady }, "it counts again")
		for _, peer := range peerNames {
			require.Nil(t, accountIn(t, w.conn(peer), "acme"), "no Account comes back in %s", peer)
			require.Nil(t, accountIn(t, w.api, "acme"))
		}
	})
}

// Two Replicators run at once, and one of them stops during the adds. The other one completes all
// adds, and later removes the Accounts.
func TestReplicatorsComeAndGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		other, err := NewReplicator(w.api, w.ring, coordinate(t, w.ring), Options{RemovalCap: noCap})
		require.NoError(t, err)
		run(t, other.Start)
		for i := range 6 {
			w.create(newAccount(fmt.Sprintf("acme-%d", i), []any{"Tenant"}))
		}
		w.stop() // while they are being added
		for i := range 6 {
			w.awaitReady(fmt.Sprintf("acme-%d", i))
		}
		for i := range 6 {
			w.delete(fmt.Sprintf("acme-%d", i))
		}
		for i := range 6 {
			w.awaitGone(fmt.Sprintf("acme-%d", i))
		}
	})
}

// An add is undone if the central object is deleted meanwhile.
func TestAddIsTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.stop()
		wish := w.create(newAccount("acme", []any{"Tenant"}))
		stale, err := NewReplicator(w.api, w.ring, w.c, Options{RemovalCap: noCap})
		require.NoError(t, err)
		w.delete("acme")
		task := &task{replicator: stale, key: loop.ParseKey("acme"), object: wish, acted: true}
		_, err = w.c.Add(t.Context(), desired(Kind(), wish), fanout.AddOptions{})
		require.NoError(t, err)
		require.NoError(t, task.takeBack(t.Context()))
		for _, peer := range peerNames {
			require.Nil(t, accountIn(t, w.conn(peer), "acme"))
		}
	})
}

// The Replicator calls its Observer exactly once for each of these events: an Account becomes
// Ready, a peer becomes unreachable, the Account is Ready again, the Account is removed.
func TestObserverOfReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		var uid types.UID
		w := newWorld(t, Options{Observer: &Observer{
			Ready: func(_ context.Context, e ReadyEvent) {
				mu.Lock()
				defer mu.Unlock()
				uid = e.Object.UID
				if e.Status == metav1.ConditionTrue || e.Before == metav1.ConditionTrue && e.Reason != "Removing" {
					told = append(told, fmt.Sprintf("%s: %s %s", loop.KeyText(e.Object.NamespacedName), e.Status, e.Reason))
				}
			},
			Removed: func(_ context.Context, e RemoveEvent) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, fmt.Sprintf("%s: removed %v", loop.KeyText(e.Object.NamespacedName), e.Object.UID == uid))
			},
		}})
		require.Equal(t, w.create(newAccount("acme", []any{"Tenant"})).GetUID(), func() types.UID {
			w.awaitReady("acme")
			quiet(t, w.servers()...)
			mu.Lock()
			defer mu.Unlock()
			return uid
		}())
		lost := w.away("acme")
		w.ring.Partition(lost, true)
		w.await("acme", func(s v1alpha1.AccountStatus) bool { return s.Phase == v1alpha1.AccountUnready }, "the peer is reported as unreachable")
		w.ring.Partition(lost, false)
		w.awaitReady("acme")
		w.delete("acme")
		w.awaitGone("acme")
		eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(told) == 4
		})
		require.Equal(t, []string{
			"acme: True Complete", "acme: Unknown PeersUnknown", "acme: True Complete", "acme: removed true",
		}, told)
	})
}

// A central plane that becomes a peer later loses no Account and causes no conflict: its Accounts
// keep their homes in the other peers.
func TestCentralPlaneBecomesAPeer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}))
		w.awaitReady("acme")
		home := w.home("acme")
		require.NoError(t, w.ring.Join("plane", w.plane))
		eventually(t, func() bool {
			peer, known := w.r.itself()
			return known && peer == "plane"
		})
		w.edit(w.api, "acme", setRoles("Provider"))
		status := w.await("acme", func(s v1alpha1.AccountStatus) bool {
			return s.ObservedGeneration == 2 && s.Phase == v1alpha1.AccountReady
		}, "edits are replicated as before")
		require.EqualValues(t, 3, status.Peers.Total, "its own peer does not count for it")
		require.Empty(t, status.Peers.Missing)
		for _, peer := range peerNames {
			require.Equal(t, []v1alpha1.AccountRole{v1alpha1.AccountProvider}, w.held(peer, "acme"))
		}
		require.Equal(t, home, w.home("acme"))
		quiet(t, w.servers()...)

		w.delete("acme")
		w.awaitGone("acme")
	})
}
