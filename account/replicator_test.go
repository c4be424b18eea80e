// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

var (
	tenant   = []v1alpha1.AccountRole{v1alpha1.AccountTenant}
	provider = []v1alpha1.AccountRole{v1alpha1.AccountProvider}
)

func setRoles(roles ...any) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) { obj.Object["spec"].(map[string]any)["roles"] = roles }
}

func TestReplicatorLifecycle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		wish := newAccount("acme", []any{"Tenant"}, alice)
		wish.SetLabels(map[string]string{"team": "blue", "argocd.argoproj.io/instance": "apps"})
		wish.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
		uid := w.create(wish).GetUID()

		status := w.awaitReady("acme")
		require.Equal(t, v1alpha1.PeerSummary{Total: 3, Present: 3}, status.Peers)
		require.Equal(t, "acme", status.Namespace.Name)
		require.Equal(t, int64(1), status.ObservedGeneration)
		require.Len(t, status.Conditions, 2)
		for _, c := range []string{"Ready", "PresentInAllPeers"} {
			require.Equal(t, metav1.ConditionTrue, condition(status, c).Status)
			require.Equal(t, "3 of 3 peers hold the latest revision", condition(status, c).Message)
			require.Equal(t, int64(1), condition(status, c).ObservedGeneration)
		}
		for _, peer := range peerNames {
			require.Equal(t, tenant, w.held(peer, "acme"))
			require.True(t, granted(t, w.conn(peer), "acme"))
			copied := get(t, w.conn(peer), resource, "", "acme")
			require.Equal(t, map[string]string{"team": "blue"}, copied.GetLabels(), "tracking labels stay where they are")
			require.Equal(t, map[string]string{OriginAnnotation: string(uid)}, copied.GetAnnotations())
		}
		p, ok := w.r.Presence(loop.ParseKey("acme"))
		require.True(t, ok)
		require.True(t, p.Complete())
		require.Equal(t, w.home("acme"), p.Home)
		quiet(t, w.servers()...)

		w.edit(w.api, "acme", setRoles("Provider"))
		w.await("acme", func(s v1alpha1.AccountStatus) bool {
			return s.Phase == v1alpha1.AccountReady && s.ObservedGeneration == 2
		}, "the change is in all peers")
		for _, peer := range peerNames {
			require.Equal(t, provider, w.held(peer, "acme"))
		}
		quiet(t, w.servers()...)

		w.delete("acme")
		w.awaitGone("acme")
		for _, peer := range peerNames {
			require.Nil(t, get(t, w.conn(peer), namespacesResource, "", "acme"))
		}
		eventually(t, func() bool { _, ok := w.r.Presence(loop.ParseKey("acme")); return !ok })
	})
}

// While a peer is unreachable, a new Account waits, and its status reports this. A change of an
// existing Account takes effect in the other peers, and the Account is Unknown in the unreachable
// peer.
func TestReplicatorWithASilentPeer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.create(newAccount("old", []any{"Tenant"}))
		w.awaitReady("old")
		silent := peerNames[0]
		if w.home("old") == silent {
			silent = peerNames[1]
		}
		w.ring.Partition(silent, true)
		status := w.await("old", func(s v1alpha1.AccountStatus) bool { return s.Phase == v1alpha1.AccountUnready }, "a silent peer")
		require.Equal(t, v1alpha1.PeerSummary{Total: 3, Present: 2, Unknown: []string{string(silent)}}, status.Peers)
		for _, c := range []string{"Ready", "PresentInAllPeers", "PresentIn." + string(silent)} {
			require.Equal(t, metav1.ConditionUnknown, condition(status, c).Status, "silence is not absence: %s", c)
		}
		require.Equal(t, "NoAnswer", condition(status, "PresentIn."+string(silent)).Reason)
		require.Contains(t, condition(status, "Ready").Message, "no answer from "+string(silent))

		w.edit(w.api, "old", setRoles("Provider"))
		eventually(t, func() bool {
			for _, peer := range peerNames {
				if peer != silent && !slices.Equal(w.held(peer, "old"), provider) {
					return false
				}
			}
			return true
		}, "the other peers get the change")

		w.create(newAccount("new", []any{"Tenant"}))
		status = w.await("new", func(s v1alpha1.AccountStatus) bool { return s.Phase == v1alpha1.AccountUnready }, "the new Account waits")
		require.Contains(t, condition(status, "Ready").Message, "adding it needs every peer")
		require.Contains(t, condition(status, "Ready").Message, "no answer from "+string(silent))
		require.Equal(t, int32(0), status.Peers.Present)

		w.ring.Partition(silent, false)
		w.awaitReady("new")
		w.awaitReady("old")
		require.Equal(t, provider, w.held(silent, "old"))
		quiet(t, w.servers()...)
	})
}

// A removal is complete only when every peer has confirmed it.
func TestReplicatorRemovesFromAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}))
		w.awaitReady("acme")
		silent := peerNames[2]
		if w.home("acme") == silent {
			silent = peerNames[1]
		}
		w.ring.Partition(silent, true)
		w.await("acme", func(s v1alpha1.AccountStatus) bool { return len(s.Peers.Unknown) == 1 }, "the peer is reported as unreachable")
		w.delete("acme")
		status := w.await("acme", func(s v1alpha1.AccountStatus) bool {
			return s.Phase == v1alpha1.AccountTerminating && condition(s, "PresentIn."+string(silent)).Status == metav1.ConditionUnknown
		}, "it waits for the silent peer")
		require.Equal(t, "Removing", condition(status, "Ready").Reason)
		require.Contains(t, condition(status, "Ready").Message, "no answer from "+string(silent))

		w.ring.Partition(silent, false)
		w.awaitGone("acme")
		require.Nil(t, get(t, w.conn(silent), namespacesResource, "", "acme"))
	})
}

// A ServiceCluster in an Account's namespace delays the removal of the Account, and the Account's
// status names it.
func TestReplicatorNamesOccupants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.create(newAccount("loodse", []any{"Provider"}))
		w.awaitReady("loodse")
		sc := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"kubeconfigSecret": map[string]any{"name": "db"}}}}
		sc.SetAPIVersion("kubecarrier.io/v1alpha1")
		sc.SetKind("ServiceCluster")
		sc.SetNamespace("loodse")
		sc.SetName("eu-west-1")
		_, err := w.c.Add(t.Context(), sc, fanout.AddOptions{Target: "eu-west"})
		require.NoError(t, err)

		w.delete("loodse")
		w.await("loodse", func(s v1alpha1.AccountStatus) bool {
			return s.Phase == v1alpha1.AccountTerminating && strings.Contains(condition(s, "Ready").Message, "serviceclusters loodse/eu-west-1 in eu-west")
		}, "the object in the namespace is reported")
		_, err = w.c.Remove(t.Context(), fanout.ServiceClusters().GroupKind(), loop.ParseKey("loodse/eu-west-1"), fanout.RemoveOptions{})
		require.NoError(t, err)
		w.awaitGone("loodse")
	})
}

// After an edit or deletion in a peer, the content of the central plane is restored.
func TestReplicatorRepairsDrift(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}, alice))
		w.awaitReady("acme")
		home := w.home("acme")

		// An edit of the home is a request for the next revision. The Replicator then commits one
		// more revision with the central content.
		w.edit(w.conn(home), "acme", func(obj *unstructured.Unstructured) {
			obj.Object["spec"].(map[string]any)["subjects"] = []any{map[string]any{"kind": "User", "name": "mallory"}}
		})
		eventually(t, func() bool {
			for _, peer := range peerNames {
				account := accountIn(t, w.conn(peer), "acme")
				if len(account.Spec.Subjects) != 1 || account.Spec.Subjects[0].Name != "alice" || account.Spec.Fanout.Revision.Number < 2 {
					return false
				}
			}
			return true
		}, "the central plane's content is in effect again")
		w.awaitReady("acme")

		// A deleted replica is created again.
		victim := peerNames[0]
		if victim == home {
			victim = peerNames[1]
		}
		was := get(t, w.conn(victim), resource, "", "acme").GetUID()
		deleteIn(t, w.conn(victim), resource, "", "acme")
		eventually(t, func() bool {
			obj := get(t, w.conn(victim), resource, "", "acme")
			return obj != nil && obj.GetUID() != was && len(w.held(victim, "acme")) == 1
		})
		w.awaitReady("acme")
	})
}

// An Account that was added by fan-out is taken over if it equals the central object. A different
// one is left alone and reported field by field, and it stays when the central object is deleted.
func TestReplicatorMeetsAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		_, err := w.c.Add(t.Context(), newAccount("equal", []any{"Tenant"}), fanout.AddOptions{})
		require.NoError(t, err)
		_, err = w.c.Add(t.Context(), newAccount("other", []any{"Provider"}), fanout.AddOptions{})
		require.NoError(t, err)

		w.create(newAccount("equal", []any{"Tenant"}))
		w.awaitReady("equal")
		require.NotEmpty(t, get(t, w.conn("eu-west"), resource, "", "equal").GetAnnotations()[OriginAnnotation])
		w.delete("equal")
		w.awaitGone("equal")

		w.create(newAccount("other", []any{"Tenant"}))
		status := w.await("other", func(s v1alpha1.AccountStatus) bool { return condition(s, "Ready").Reason == "Conflict" }, "the different Account is a conflict")
		require.Equal(t, v1alpha1.AccountUnready, status.Phase)
		require.Contains(t, condition(status, "Ready").Message, `has spec.roles[0] "Provider" instead of "Tenant"`)
		w.delete("other")
		eventually(t, func() bool { return accountIn(t, w.api, "other") == nil })
		for _, peer := range peerNames {
			require.Equal(t, provider, w.held(peer, "other"), "it was not made for the central object")
		}
	})
}

func TestReplicatorMeetsWhatAPersonApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		_, err := w.conn("us-east").Dynamic().Resource(resource).Create(t.Context(), newAccount("acme", []any{"Provider"}), metav1.CreateOptions{})
		require.NoError(t, err)
		w.create(newAccount("acme", []any{"Tenant"}))
		w.await("acme", func(s v1alpha1.AccountStatus) bool {
			return condition(s, "Ready").Reason == "Conflict" && strings.Contains(condition(s, "Ready").Message, "applied in us-east")
		}, "the peer is reported")
		deleteIn(t, w.conn("us-east"), resource, "", "acme")
		w.awaitReady("acme")
	})
}

// If the central plane is itself a peer, the Replicator adopts a central Account, so that it is the
// home. An edit of the home reaches another peer, and its deletion removes the Account from all
// peers.
func TestReplicatorInPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		w.ring, w.c = newRing(t)
		w.plane = w.ring.Server("us-east")
		w.start(w.plane, Options{})

		w.create(newAccount("acme", []any{"Tenant"}, alice))
		status := w.awaitReady("acme")
		require.Equal(t, v1alpha1.PeerSummary{Total: 3, Present: 3}, status.Peers)
		for _, c := range []string{"Ready", "PresentInAllPeers", "NamespaceReady", "RolesReady"} {
			require.Equal(t, metav1.ConditionTrue, condition(status, c).Status, c)
		}
		require.Equal(t, region.PeerName("us-east"), w.home("acme"))
		require.NotContains(t, get(t, w.api, resource, "", "acme").GetFinalizers(), Finalizer)
		quiet(t, w.servers()...)

		w.edit(w.api, "acme", setRoles("Provider"))
		w.await("acme", func(s v1alpha1.AccountStatus) bool {
			return s.Phase == v1alpha1.AccountReady && len(w.held("eu-west", "acme")) == 1 && w.held("eu-west", "acme")[0] == v1alpha1.AccountProvider
		},
			"an edit of the home is in all peers")

		w.ring.Partition("eu-west", true)
		status = w.await("acme", func(s v1alpha1.AccountStatus) bool { return s.Phase == v1alpha1.AccountUnready }, "a peer is silent")
		require.Equal(t, []string{"eu-west"}, status.Peers.Unknown)
		require.Equal(t, metav1.ConditionTrue, condition(status, "RolesReady").Status, "this peer's own conditions stay")
		w.ring.Partition("eu-west", false)
		w.awaitReady("acme")
		quiet(t, w.servers()...)

		w.delete("acme")
		w.awaitGone("acme")
	})
}

func TestNewReplicatorChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring := regiontest.NewRing()
		c := coordinate(t, ring)
		api := connTo(t, regiontest.NewRing("eu"), "eu")
		for want, makes := range map[string]func() (*Replicator, error){
			"plane is nil":       func() (*Replicator, error) { return NewReplicator(nil, ring, c, Options{}) },
			"directory is nil":   func() (*Replicator, error) { return NewReplicator(api, nil, c, Options{}) },
			"coordinator is nil": func() (*Replicator, error) { return NewReplicator(api, ring, nil, Options{}) },
			"exists Once": func() (*Replicator, error) {
				return NewReplicator(api, ring, c, Options{Kind: fanout.ServiceClusters()})
			},
		} {
			_, err := makes()
			require.ErrorContains(t, err, want)
		}
	})
}
