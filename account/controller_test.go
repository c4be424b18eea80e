// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

func control(t testing.TB, d region.Directory, opts ControllerOptions) (stop func()) {
	t.Helper()
	k, err := NewController(d, opts)
	require.NoError(t, err)
	return run(t, k.Start)
}

func granted(t testing.TB, c *region.Conn, name string) bool {
	t.Helper()
	binding := get(t, c, bindingsResource, name, "kubecarrier-tenant")
	return get(t, c, rolesResource, name, "kubecarrier-tenant") != nil && binding != nil && binding.GetDeletionTimestamp() == nil
}

func deleteIn(t testing.TB, c *region.Conn, gvr schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	require.NoError(t, c.Dynamic().Resource(gvr).Namespace(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

func TestControllerRepairsDrift(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring, c := newRing(t)
		_, err := c.Add(t.Context(), newAccount("acme", []any{"Tenant"}, alice), fanout.AddOptions{})
		require.NoError(t, err)
		eu := connTo(t, ring, "eu-west")
		require.True(t, granted(t, eu, "acme"))
		var repairs atomic.Int64
		control(t, ring, ControllerOptions{Observer: &Observer{Repaired: func(_ context.Context, e RepairEvent) {
			if e.Err == nil && e.Drifted && e.UID == accountIn(t, eu, "acme").UID {
				repairs.Add(1)
			}
		}}})

		deleteIn(t, eu, rolesResource, "acme", "kubecarrier-tenant")
		eventually(t, func() bool { return granted(t, eu, "acme") }, "a deleted Role comes back")

		obj := get(t, eu, bindingsResource, "acme", "kubecarrier-tenant")
		obj.Object["subjects"] = []any{map[string]any{"kind": "User", "apiGroup": rbacv1.GroupName, "name": "mallory"}}
		_, err = eu.Dynamic().Resource(bindingsResource).Namespace("acme").Update(t.Context(), obj, metav1.UpdateOptions{FieldManager: "kubectl"})
		require.NoError(t, err)
		eventually(t, func() bool {
			subjects, _, _ := unstructured.NestedSlice(get(t, eu, bindingsResource, "acme", "kubecarrier-tenant").Object, "subjects")
			return len(subjects) == 1 && subjects[0].(map[string]any)["name"] == "alice"
		}, "an edited RoleBinding is restored")

		// The namespace is deleted with everything in it, while the status still reports Ready.
		was := get(t, eu, namespacesResource, "", "acme").GetUID()
		deleteIn(t, eu, namespacesResource, "", "acme")
		eventually(t, func() bool {
			ns := get(t, eu, namespacesResource, "", "acme")
			return ns != nil && ns.GetUID() != was && granted(t, eu, "acme") && accountIn(t, eu, "acme").Status.Phase == v1alpha1.AccountReady
		}, "a deleted namespace is created again")
		require.Positive(t, repairs.Load())

		quiet(t, ring.Server("ap-south"), ring.Server("eu-west"), ring.Server("us-east"))
	})
}

// If another client's Role has the name of an Account's Role, the Account is Unready in that peer,
// and the condition RolesReady names the Role. The Controller does not change the Role. After the
// Role was deleted, the Controller creates the Account's Role, and the Account is Ready.
func TestControllerGoesOnAfterAConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring, c := newRing(t)
		eu := connTo(t, ring, "eu-west")
		_, err := namespaces(eu).Create(t.Context(), manifest("acme"), metav1.CreateOptions{})
		require.NoError(t, err)
		foreign := owned("acme", v1alpha1.AccountTenant, "Role", map[string]any{"rules": []any{}})
		foreign.SetLabels(nil)
		foreign, err = eu.Dynamic().Resource(rolesResource).Namespace("acme").Create(t.Context(), foreign, metav1.CreateOptions{})
		require.NoError(t, err)
		op, err := c.Add(t.Context(), newAccount("acme", []any{"Tenant"}, alice), fanout.AddOptions{})
		require.NoError(t, err)
		require.Equal(t, fanout.Committed, op.State, "it is in effect, and not ready in one peer")
		require.Equal(t, v1alpha1.AccountUnready, accountIn(t, eu, "acme").Status.Phase)

		control(t, ring, ControllerOptions{})
		time.Sleep(time.Minute)
		status := accountIn(t, eu, "acme").Status
		require.Equal(t, v1alpha1.AccountUnready, status.Phase)
		require.Equal(t, "RolesConflict", condition(status, ConditionRolesReady).Reason)
		require.Contains(t, condition(status, ConditionRolesReady).Message, "role kubecarrier-tenant in namespace acme")
		require.Equal(t, foreign, get(t, eu, rolesResource, "acme", "kubecarrier-tenant"))
		deleteIn(t, eu, rolesResource, "acme", "kubecarrier-tenant")
		eventually(t, func() bool {
			return accountIn(t, eu, "acme").Status.Phase == v1alpha1.AccountReady && granted(t, eu, "acme")
		})
	})
}

// While a peer is unreachable, the Controller repairs another peer. When the peer is reachable
// again, the Controller repairs it, too.
func TestControllerWithASilentPeer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring, c := newRing(t)
		_, err := c.Add(t.Context(), newAccount("acme", []any{"Tenant"}, alice), fanout.AddOptions{})
		require.NoError(t, err)
		control(t, ring, ControllerOptions{})
		ring.Partition("ap-south", true)
		eu, ap := connTo(t, ring, "eu-west"), connTo(t, ring, "ap-south")
		deleteIn(t, eu, rolesResource, "acme", "kubecarrier-tenant")
		eventually(t, func() bool { return granted(t, eu, "acme") })

		ring.Partition("ap-south", false)
		deleteIn(t, ap, rolesResource, "acme", "kubecarrier-tenant")
		eventually(t, func() bool { return granted(t, ap, "acme") })
	})
}

// While a peer is Quarantined, the Controller deletes the Account's Role and RoleBinding there, and
// not in another peer. When the peer is Active again, the Controller creates them again.
func TestControllerWithdrawsInQuarantine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring, c := newRing(t)
		_, err := c.Add(t.Context(), newAccount("acme", []any{"Tenant"}, alice), fanout.AddOptions{})
		require.NoError(t, err)
		control(t, ring, ControllerOptions{})
		eu := connTo(t, ring, "eu-west")
		become := func(state fanoutv1alpha1.PeerState) {
			set := peerSetOf(t, eu)
			require.NoError(t, unstructured.SetNestedField(set.Object, string(state), "spec", "self", "state"))
			epoch, _, _ := unstructured.NestedInt64(set.Object, "spec", "epoch")
			require.NoError(t, unstructured.SetNestedField(set.Object, epoch+1, "spec", "epoch"))
			_, err := eu.Dynamic().Resource(peerSetsResource).Update(t.Context(), set, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
		become(fanoutv1alpha1.PeerQuarantined)
		eventually(t, func() bool {
			return get(t, eu, rolesResource, "acme", "kubecarrier-tenant") == nil && get(t, eu, bindingsResource, "acme", "kubecarrier-tenant") == nil
		})
		require.True(t, granted(t, connTo(t, ring, "us-east"), "acme"))
		become(fanoutv1alpha1.PeerActive)
		eventually(t, func() bool { return granted(t, eu, "acme") })
	})
}

// A peer is restored to a time before the Account was added, and its cache still shows the Account.
// The Controller creates no namespace: it would have to be deleted again, and might belong to
// another Account by then.
func TestControllerMakesNothingForAnAccountThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring, c := newRing(t)
		server := ring.Server("eu-west")
		saved := server.Save()
		_, err := c.Add(t.Context(), newAccount("acme", []any{"Tenant"}, alice), fanout.AddOptions{})
		require.NoError(t, err)
		k, err := NewController(ring, ControllerOptions{})
		require.NoError(t, err)
		p := k.newKeeper(connTo(t, ring, "eu-west"))
		for _, o := range p.copies() {
			run(t, o.Start)
		}
		acme := types.NamespacedName{Name: "acme"}
		eventually(t, func() bool {
			account, there := p.accounts.Get(acme)
			return there && stageOf(account) == fanoutv1alpha1.StageActive &&
				!slices.ContainsFunc(p.copies(), func(o *loop.Objects) bool { return o.Err() != nil })
		})

		server.Reset()
		server.Inject(regiontest.Fault{Verb: "list", Resource: resource.GroupResource(), Times: -1, Do: regiontest.Hang()})
		require.NoError(t, server.Load(saved))
		eventually(t, func() bool { _, there := p.namespaces.Get(acme); return !there })
		_, err = p.work(t.Context(), "acme")
		require.NoError(t, err)
		require.Zero(t, writesTo(server))
	})
}

// undo keeps the namespace while an Account of its name is Active, because this Account uses it.
// Without such an Account, undo deletes the namespace.
func TestUndoLeavesTheNextAccountItsNamespace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring, c := newRing(t)
		_, err := c.Add(t.Context(), newAccount("acme", []any{"Tenant"}, alice), fanout.AddOptions{})
		require.NoError(t, err)
		eu := connTo(t, ring, "eu-west")
		made := namespace{name: "acme", uid: get(t, eu, namespacesResource, "", "acme").GetUID(), made: true}
		require.NoError(t, made.undo(t.Context(), eu))
		require.NotNil(t, get(t, eu, namespacesResource, "", "acme"))

		_, err = c.Remove(t.Context(), Kind().GroupKind(), types.NamespacedName{Name: "acme"}, fanout.RemoveOptions{})
		require.NoError(t, err)
		orphan, err := ensureNamespace(t.Context(), eu, "acme")
		require.NoError(t, err)
		require.NoError(t, orphan.undo(t.Context(), eu))
		eventually(t, func() bool { return get(t, eu, namespacesResource, "", "acme") == nil })
	})
}

// some is a Shard that owns the keys that begin with a prefix.
type some struct {
	prefix  string
	changes chan uint64
}

func (s some) Owns(key string) bool { return strings.HasPrefix(key, s.prefix) }

func (s some) Watch(ctx context.Context) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for {
			select {
			case n := <-s.changes:
				if !yield(n) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func TestControllerOfAShard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring, c := newRing(t)
		_, err := c.Add(t.Context(), newAccount("acme", []any{"Tenant"}, alice), fanout.AddOptions{})
		require.NoError(t, err)
		control(t, ring, ControllerOptions{Shard: some{prefix: "eu-west/"}})
		eu, us := connTo(t, ring, "eu-west"), connTo(t, ring, "us-east")
		deleteIn(t, us, rolesResource, "acme", "kubecarrier-tenant")
		deleteIn(t, eu, rolesResource, "acme", "kubecarrier-tenant")
		eventually(t, func() bool { return granted(t, eu, "acme") })
		require.False(t, granted(t, us, "acme"), "another replica owns this peer")
	})
}

func TestNewControllerChecks(t *testing.T) {
	t.Parallel()
	_, err := NewController(nil, ControllerOptions{})
	require.ErrorContains(t, err, "directory is nil")
	_, err = NewController(regiontest.NewRing(), ControllerOptions{})
	require.NoError(t, err)
}
