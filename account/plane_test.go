// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// world is a central plane, three peers, a Coordinator and a Replicator.
type world struct {
	t     testing.TB
	plane *regiontest.Server
	api   region.API
	ring  *regiontest.Ring
	c     *fanout.Coordinator
	r     *Replicator
	stop  func() // stops the Replicator
}

func newWorld(t testing.TB, opts Options, kinds ...fanout.Kind) *world {
	t.Helper()
	w := &world{t: t}
	w.ring, w.c = newRing(t, kinds...)
	w.from(opts)
	return w
}

// newSlowWorld returns a world for tests in which hours pass: its coordinator sweeps at the default
// interval.
func newSlowWorld(t testing.TB, opts Options) *world {
	t.Helper()
	w := &world{t: t}
	w.ring, _ = newRing(t)
	w.c = slow(t, w.ring)
	w.from(opts)
	return w
}

func slow(t testing.TB, d region.Directory) *fanout.Coordinator {
	t.Helper()
	c, err := fanout.New(d, waltest.NewMemory(), fanout.Options{Kinds: Kinds(), NoteEvery: -1}) // at rest nothing is written
	require.NoError(t, err)
	return c
}

// from creates the central plane and starts the coordinator's sweeps and a Replicator.
func (w *world) from(opts Options) {
	w.t.Helper()
	w.plane = regiontest.NewServer(regiontest.Options{Name: "plane", Definitions: definitions(w.t)})
	w.t.Cleanup(w.plane.Close)
	w.start(w.plane, opts)
}

// start starts the coordinator's sweeps and a Replicator of the plane.
func (w *world) start(plane *regiontest.Server, opts Options) {
	w.t.Helper()
	var err error
	w.api, err = region.APIFor(plane.Config())
	require.NoError(w.t, err)
	run(w.t, w.c.Start)
	if opts.RemovalCap == (fanout.RemovalCap{}) {
		opts.RemovalCap = noCap
	}
	w.r, err = NewReplicator(w.api, w.ring, w.c, opts)
	require.NoError(w.t, err)
	w.stop = run(w.t, w.r.Start)
}

func (w *world) servers() []*regiontest.Server {
	all := []*regiontest.Server{w.plane}
	for _, name := range peerNames {
		all = append(all, w.ring.Server(name))
	}
	return all
}

func (w *world) create(obj *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	created, err := w.api.Dynamic().Resource(resource).Create(w.t.Context(), obj, metav1.CreateOptions{FieldManager: "kubectl"})
	require.NoError(w.t, err)
	return created
}

// edit changes an Account in an API server, and retries until the update succeeds.
func (w *world) edit(api region.API, name string, how func(*unstructured.Unstructured)) {
	w.t.Helper()
	eventually(w.t, func() bool {
		obj := get(w.t, api, resource, "", name)
		how(obj)
		_, err := api.Dynamic().Resource(resource).Update(w.t.Context(), obj, metav1.UpdateOptions{FieldManager: "kubectl"})
		return err == nil
	})
}

func (w *world) delete(name string) {
	w.t.Helper()
	require.NoError(w.t, w.api.Dynamic().Resource(resource).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

func (w *world) conn(peer region.PeerName) *region.Conn {
	w.t.Helper()
	return connTo(w.t, w.ring, peer)
}

// await waits until condition holds for the central Account's status.
func (w *world) await(name string, condition func(s v1alpha1.AccountStatus) bool, msg string) v1alpha1.AccountStatus {
	w.t.Helper()
	var status v1alpha1.AccountStatus
	defer func() {
		if w.t.Failed() {
			w.t.Logf("status: %+v", status)
		}
	}()
	eventually(w.t, func() bool {
		account := accountIn(w.t, w.api, name)
		if account == nil {
			return false
		}
		status = account.Status
		return condition(status)
	}, msg)
	return status
}

func (w *world) awaitReady(name string) v1alpha1.AccountStatus {
	w.t.Helper()
	return w.await(name, func(s v1alpha1.AccountStatus) bool { return s.Phase == v1alpha1.AccountReady }, "Ready in all peers")
}

// awaitGone waits until the Account is gone from the plane. It requires that all peers have lost
// the Account by then.
func (w *world) awaitGone(name string) {
	w.t.Helper()
	eventually(w.t, func() bool { return accountIn(w.t, w.api, name) == nil }, "gone from the central plane")
	for p := range w.ring.Snapshot().Peers() {
		require.Nil(w.t, accountIn(w.t, w.conn(p.Name), name), "gone from %s when the central one is", p.Name)
	}
}

func condition(s v1alpha1.AccountStatus, conditionType string) metav1.Condition {
	if c := meta.FindStatusCondition(s.Conditions, conditionType); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// held returns the roles of an Account in a peer, nil if it is not in effect there.
func (w *world) held(peer region.PeerName, name string) []v1alpha1.AccountRole {
	w.t.Helper()
	account := accountIn(w.t, w.conn(peer), name)
	if account == nil || account.Spec.Fanout == nil || account.Spec.Fanout.Stage != fanoutv1alpha1.StageActive {
		return nil
	}
	return account.Spec.Roles
}

// home returns the peer with an Account's home.
func (w *world) home(name string) region.PeerName {
	w.t.Helper()
	for p := range w.ring.Snapshot().Peers() {
		obj := get(w.t, w.conn(p.Name), resource, "", name)
		if obj == nil {
			continue
		}
		state, err := Kind().State(obj)
		require.NoError(w.t, err)
		if isHome(state) {
			return p.Name
		}
	}
	return ""
}
