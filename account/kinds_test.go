// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"slices"
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

func newSecret(name, password string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"password": password}}}
	obj.SetAPIVersion("v1")
	obj.SetKind("Secret")
	obj.SetNamespace("default")
	obj.SetName(name)
	return obj
}

// password returns the password in a Secret, empty if the Secret does not exist.
func password(t testing.TB, api region.API, name string) string {
	t.Helper()
	obj := get(t, api, secrets().Resource, "default", name)
	if obj == nil {
		return ""
	}
	text, _, _ := unstructured.NestedString(obj.Object, "data", "password")
	return text
}

// A Replicator adds, changes and removes Secrets, which are not one of Atoll's kinds, in all peers.
func TestReplicatorOfSecrets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Kind: secrets()}, secrets())
		client := w.api.Dynamic().Resource(secrets().Resource).Namespace("default")
		_, err := client.Create(t.Context(), newSecret("db", "b25l"), metav1.CreateOptions{})
		require.NoError(t, err)
		everywhere := func(want string) func() bool {
			return func() bool {
				p, ok := w.r.Presence(loop.ParseKey("default/db"))
				for _, peer := range peerNames {
					if password(t, w.conn(peer), "db") != want {
						return false
					}
				}
				return ok && p.Complete() && p.Present == 3
			}
		}
		eventually(t, everywhere("b25l"))
		quiet(t, w.servers()...)

		eventually(t, func() bool {
			obj := get(t, w.api, secrets().Resource, "default", "db")
			obj.Object["data"] = map[string]any{"password": "dHdv"}
			_, err := client.Update(t.Context(), obj, metav1.UpdateOptions{})
			return err == nil
		})
		eventually(t, everywhere("dHdv"))

		require.NoError(t, client.Delete(t.Context(), "db", metav1.DeleteOptions{}))
		eventually(t, func() bool { return password(t, w.api, "db") == "" })
		for _, peer := range peerNames {
			require.Nil(t, get(t, w.conn(peer), secrets().Resource, "default", "db"))
		}
	})
}

// With the option Agreed, content is decided once. If a central object has other content than the
// peers have agreed on, its Presence has the reason Conflict and the differing field, and the
// content in the peers stays.
func TestReplicatorOfAgreedContent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Kind: secrets(), Agreed: true}, secrets())
		_, err := w.c.Agree(t.Context(), newSecret("first", "b25l"), fanout.AddOptions{})
		require.NoError(t, err)
		client := w.api.Dynamic().Resource(secrets().Resource).Namespace("default")
		for _, name := range []string{"first", "new"} {
			_, err = client.Create(t.Context(), newSecret(name, "dHdv"), metav1.CreateOptions{})
			require.NoError(t, err)
		}
		eventually(t, func() bool {
			p, ok := w.r.Presence(loop.ParseKey("default/new"))
			return ok && p.Complete()
		}, "new content is agreed on")
		require.Equal(t, "dHdv", password(t, w.conn("eu-west"), "new"))
		var p Presence
		eventually(t, func() bool {
			var ok bool
			p, ok = w.r.Presence(loop.ParseKey("default/first"))
			return ok && p.Reason == "Conflict"
		}, "the content agreed on before stays")
		require.Contains(t, p.Message, "differs in data.password")
		require.NotContains(t, p.Message, "dHdv", "no Secret is shown")
		for _, peer := range peerNames {
			require.Equal(t, "b25l", password(t, w.conn(peer), "first"))
		}

		// The content cannot be changed later either.
		eventually(t, func() bool {
			obj := get(t, w.api, secrets().Resource, "default", "new")
			obj.Object["data"] = map[string]any{"password": "dGhyZWU="}
			_, err := client.Update(t.Context(), obj, metav1.UpdateOptions{})
			return err == nil
		})
		eventually(t, func() bool {
			p, _ := w.r.Presence(loop.ParseKey("default/new"))
			return p.Reason == "Conflict"
		})
		require.Equal(t, "dHdv", password(t, w.conn("eu-west"), "new"))
	})
}

func TestReplicatorOfAShard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mine := some{prefix: "Account/mine", changes: make(chan uint64)}
		w := newWorld(t, Options{Shard: mine})
		w.create(newAccount("other", []any{"Tenant"}))
		w.create(newAccount("mine", []any{"Tenant"}))
		w.awaitReady("mine")
		require.Nil(t, accountIn(t, w.conn("eu-west"), "other"), "another replica owns it")
		_, ok := w.r.Presence(loop.ParseKey("other"))
		require.False(t, ok)
		mine.changes <- 1 // requeues all objects, and nothing differs
		quiet(t, w.servers()...)
	})
}

// Options.Report selects the fields of the status, and Options.FieldManager is the field manager of
// the content in the peers.
func TestReplicatorOptions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Report: ReportConditions, FieldManager: "platform-team", Workers: 1})
		w.create(newAccount("acme", []any{"Tenant"}))
		status := w.await("acme", func(s v1alpha1.AccountStatus) bool { return condition(s, "Ready").Status == metav1.ConditionTrue }, "Ready")
		require.Empty(t, status.Phase, "conditions alone")
		require.Zero(t, status.Peers)
		owners := map[string]bool{}
		for _, fields := range get(t, w.conn(w.home("acme")), resource, "", "acme").GetManagedFields() {
			owners[fields.Manager] = true
		}
		require.True(t, owners["platform-team"], "%v", owners)
	})
}

// A peer without a connection is reported as Unknown. A change of an Account is nevertheless
// committed in its home.
func TestReplicatorWithAPeerWithoutConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}))
		w.awaitReady("acme")
		w.stop()
		lost := w.away("acme")
		r, err := NewReplicator(w.api, without{w.ring, lost}, w.c, Options{RemovalCap: noCap})
		require.NoError(t, err)
		run(t, r.Start)
		status := w.await("acme", func(s v1alpha1.AccountStatus) bool { return len(s.Peers.Unknown) == 1 }, "the peer is Unknown")
		require.Equal(t, v1alpha1.PeerSummary{Total: 3, Present: 2, Unknown: []string{string(lost)}}, status.Peers)
		w.edit(w.api, "acme", setRoles("Provider"))
		eventually(t, func() bool { return slices.Equal(provider, w.held(w.home("acme"), "acme")) }, "the other peers get the change")
	})
}

// without is a directory that has no connection to one peer.
type without struct {
	*regiontest.Ring
	lost region.PeerName
}

func (d without) Conn(name region.PeerName) (*region.Conn, error) {
	if name == d.lost {
		return nil, &region.Error{Peer: name, Op: "connect", Err: region.ErrUnavailable}
	}
	return d.Ring.Conn(name)
}
