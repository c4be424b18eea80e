// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"iter"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// newStill returns a world in which no loop runs: a test makes its own task.
func newStill(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	w.ring, w.c = newRing(t)
	w.plane = regiontest.NewServer(regiontest.Options{Name: "plane", Definitions: definitions(t)})
	t.Cleanup(w.plane.Close)
	var err error
	w.api, err = region.APIFor(w.plane.Config())
	require.NoError(t, err)
	w.r, err = NewReplicator(w.api, w.ring, w.c, Options{RemovalCap: noCap})
	require.NoError(t, err)
	return w
}

// taskOf returns a task with obj as the cached central object.
func (w *world) taskOf(obj *unstructured.Unstructured, observed ...observation) *task {
	return &task{
		replicator: w.r, key: types.NamespacedName{Name: obj.GetName()}, object: obj, observed: observed, want: wanted{origin: obj.GetUID(), removing: true}, leave: func() {},
	}
}

// finalizers sets the finalizers of a central Account.
func (w *world) finalizers(name string, finalizers ...string) *unstructured.Unstructured {
	w.t.Helper()
	obj := get(w.t, w.api, resource, "", name)
	obj.SetFinalizers(finalizers)
	written, err := w.api.Dynamic().Resource(resource).Update(w.t.Context(), obj, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	return written
}

// discard and remove delete a Role or namespace only by the UID that was read. An object that has
// replaced it since stays.
func TestWhatWasReplacedIsNotDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring, _ := newRing(t)
		c := connTo(t, ring, "eu-west")
		made := func(name string) *unstructured.Unstructured {
			ns, err := namespaces(c).Create(t.Context(), manifest(name), metav1.CreateOptions{})
			require.NoError(t, err)
			return ns
		}
		made("kept")
		role := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": map[string]any{"name": "reader"}}}
		roles := c.Dynamic().Resource(rolesResource).Namespace("kept")
		before, err := roles.Create(t.Context(), role, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, roles.Delete(t.Context(), "reader", metav1.DeleteOptions{}))
		_, err = roles.Create(t.Context(), role, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, discard(t.Context(), roles, before))
		require.NotNil(t, get(t, c, rolesResource, "kept", "reader"))

		old := made("acme")
		require.NoError(t, namespaces(c).Delete(t.Context(), "acme", metav1.DeleteOptions{}))
		next := made("acme")
		require.ErrorContains(t, remove(t.Context(), c, "acme", old.GetUID()), "UID")
		require.Equal(t, next.GetUID(), get(t, c, namespacesResource, "", "acme").GetUID())
	})
}

// A status is written only to the version of the Account that was read. If another client has
// changed the Account since, the status is written to the new version. If another Account has
// replaced it, no status is written.
func TestAStatusReachesOnlyTheAccountItIsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStill(t)
		accounts := w.api.Dynamic().Resource(resource)
		c, err := region.NewConn(region.Peer{Name: "eu-west", Credentials: credentialsOf(t, w.plane)}, region.ConnOptions{})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		stale := w.create(newAccount("acme", []any{"Tenant"}))
		ns := namespace{name: "acme", ours: true}

		w.finalizers("acme", "example.com/theirs") // another client changes the Account
		require.NoError(t, report(t.Context(), c, stale, ns, access{}))
		require.NotEmpty(t, accountIn(t, w.api, "acme").Status.Conditions, "the conflict is no success")

		w.finalizers("acme")
		stale = get(t, w.api, resource, "", "acme")
		w.delete("acme")
		w.create(newAccount("acme", []any{"Provider"}))
		require.True(t, apierrors.IsConflict(apply(t.Context(), c, stale, ns, access{foreign: []string{"role x"}})))
		require.Empty(t, accountIn(t, w.api, "acme").Status.Conditions)
		require.True(t, apierrors.IsConflict(w.r.report(t.Context(), stale, Presence{Key: types.NamespacedName{Name: "acme"}, Total: 3})))
		obj, err := accounts.Get(t.Context(), "acme", metav1.GetOptions{})
		require.NoError(t, err)
		require.Nil(t, obj.Object["status"])
	})
}

func credentialsOf(t *testing.T, s *regiontest.Server) region.Credentials {
	t.Helper()
	creds, err := region.FromConfig(s.Config())
	require.NoError(t, err)
	return creds
}

// When the Replicator's finalizer is removed, the finalizers of other clients stay, even one that
// was added since the read.
func TestFinalizersOfOthersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStill(t)
		w.create(newAccount("acme", []any{"Tenant"}))
		stale := w.finalizers("acme", "example.com/theirs", Finalizer)
		now := w.finalizers("acme", "example.com/theirs", Finalizer, "example.com/late")
		_, err := w.taskOf(stale).removeFinalizer(t.Context())
		require.True(t, apierrors.IsConflict(err), "%v", err)
		require.Equal(t, now.GetFinalizers(), get(t, w.api, resource, "", "acme").GetFinalizers())
		done, err := w.taskOf(now).removeFinalizer(t.Context())
		require.NoError(t, err)
		require.True(t, done)
		require.Equal(t, []string{"example.com/theirs", "example.com/late"}, get(t, w.api, resource, "", "acme").GetFinalizers())
	})
}

// No peer gets a central object before its finalizer is written.
func TestTheFinalizerComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.plane.Inject(regiontest.Fault{Verb: "patch", Resource: resource.GroupResource(), Name: "acme", Times: -1, Do: regiontest.Refuse(http.StatusServiceUnavailable)})
		w.create(newAccount("acme", []any{"Tenant"}))
		time.Sleep(10 * time.Second)
		for _, p := range peerNames {
			require.Nil(t, accountIn(t, w.conn(p), "acme"), p)
		}
		w.plane.Reset()
		w.awaitReady("acme")
	})
}

// The removal of a central object ends only when every peer has confirmed by a live read that
// nothing of the object is left.
func TestEveryPeerConfirmsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStill(t)
		w.create(newAccount("acme", []any{"Tenant"}))
		wish := w.finalizers("acme", Finalizer)
		gone := func() (bool, error) { return w.taskOf(wish).remove(t.Context()) }

		left := newAccount("acme", []any{"Tenant"})
		left.SetAnnotations(map[string]string{OriginAnnotation: string(wish.GetUID())})
		peer := w.conn("us-east").Dynamic().Resource(resource)
		_, err := peer.Create(t.Context(), left, metav1.CreateOptions{})
		require.NoError(t, err)
		done, err := gone()
		require.NoError(t, err)
		require.False(t, done, "us-east has it")
		require.NoError(t, peer.Delete(t.Context(), "acme", metav1.DeleteOptions{}))

		for _, code := range []int{http.StatusServiceUnavailable, http.StatusForbidden, http.StatusNotFound} {
			w.ring.Server("us-east").Inject(regiontest.Fault{Verb: "get", Resource: resource.GroupResource(), Name: "acme", Do: regiontest.Refuse(code)})
			done, err = gone()
			require.Error(t, err, "%d does not prove an absence: the 404 is of a type that is not served", code)
			require.False(t, done)
		}
		done, err = gone()
		require.NoError(t, err)
		require.True(t, done)
	})
}

// A removal deletes only the home that was read: an object with another UID stays.
func TestARemovalIsForTheHomeThatWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}))
		w.awaitReady("acme")
		w.stop()
		wish := get(t, w.api, resource, "", "acme")
		stale := &replica{UID: "an-earlier-one", Stage: fanoutv1alpha1.StageActive, Home: true, Origin: wish.GetUID()}
		done, err := w.taskOf(wish, observation{peer: w.home("acme"), member: fanoutv1alpha1.PeerActive, copy: stale}).remove(t.Context())
		require.NoError(t, err)
		require.False(t, done)
		w.inEffect("acme")
	})
}

// An add is undone if its central object is deleted during the add, even if another central object
// has the name by then.
func TestAnAddWhoseOriginGoesIsUndone(t *testing.T) {
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Options{})
			for _, p := range peerNames {
				w.ring.Server(p).Inject(regiontest.Fault{Verb: "create", Resource: resource.GroupResource(), Do: regiontest.Delay(5 * time.Second)})
			}
			first := w.create(newAccount("acme", []any{"Tenant"}))
			time.Sleep(3 * time.Second)
			w.finalizers("acme")
			w.delete("acme")
			if again {
				w.create(newAccount("acme", []any{"Provider"}))
			}
			time.Sleep(time.Minute)
			for _, p := range peerNames {
				obj := get(t, w.conn(p), resource, "", "acme")
				if !again {
					require.Nil(t, obj, p)
					continue
				}
				require.NotEqual(t, string(first.GetUID()), obj.GetAnnotations()[OriginAnnotation], p)
			}
		})
	}
}

// A deletion that is held for the reason TooMany stays held, even if only few deletions remain.
func TestAHeldDeletionStaysHeld(t *testing.T) {
	w := &world{r: &Replicator{opts: Options{RemovalCap: noCap}}}
	wish := newAccount("acme", []any{"Tenant"})
	wish.SetDeletionTimestamp(new(metav1.Now()))
	wish.SetAnnotations(map[string]string{fanoutv1alpha1.RemovalHeldAnnotation: holdTooMany + ": 8 of 8 were deleted"})
	held, wait := w.taskOf(wish).weigh()
	require.Equal(t, removalHold{holdTooMany, "8 of 8 were deleted"}, held)
	require.Zero(t, wait)
}

// Before the central plane has been read, no object counts as missing there.
func TestAPlaneThatWasNotReadLacksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}))
		w.awaitReady("acme")
		w.stop()
		w.plane.Partition(true)
		r, err := NewReplicator(w.api, w.ring, w.c, Options{RemovalCap: noCap})
		require.NoError(t, err)
		run(t, r.Start)
		time.Sleep(time.Minute)
		for _, p := range peerNames {
			require.False(t, isOrphaned(get(t, w.conn(p), resource, "", "acme")), p)
		}
	})
}

// late is a Directory that lists its peers only once known is closed.
type late struct {
	region.Directory
	known chan struct{}
}

func (d late) Snapshot() *region.Snapshot {
	select {
	case <-d.known:
		return d.Directory.Snapshot()
	default:
		return &region.Snapshot{}
	}
}

func (d late) Watch(ctx context.Context) iter.Seq[*region.Snapshot] {
	select {
	case <-d.known:
	case <-ctx.Done():
	}
	return d.Directory.Watch(ctx)
}

// A Catalog deletes no Region before its directory has listed its regions.
func TestCatalogWaitsForTheDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring, c := newRing(t)
		serve(t, ring)
		_, err := c.Add(t.Context(), newAccount("acme", []any{"Tenant"}), fanout.AddOptions{})
		require.NoError(t, err)
		eu := connTo(t, ring, "eu-west")
		catalog, err := NewCatalog(eu, ring, CatalogOptions{})
		require.NoError(t, err)
		stop := run(t, catalog.Start)
		eventually(t, func() bool { return len(published(t, eu, "acme")) == 3 })
		stop()
		slow := late{ring, make(chan struct{})}
		catalog, err = NewCatalog(eu, slow, CatalogOptions{})
		require.NoError(t, err)
		run(t, catalog.Start)
		time.Sleep(time.Minute)
		require.Len(t, published(t, eu, "acme"), 3)
		close(slow.known)
		time.Sleep(time.Minute)
		require.Len(t, published(t, eu, "acme"), 3)
	})
}

// Gather reads all pages of a peer.
func TestGatherReadsAllPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring, _ := newRing(t)
		configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		for _, name := range []string{"a", "b", "c"} {
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
			_, err := connTo(t, ring, "eu-west").Dynamic().Resource(configMaps).Namespace("default").Create(t.Context(), obj, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		g, err := Gather(t.Context(), ring, []schema.GroupVersionResource{configMaps}, GatherOptions{ListOptions: metav1.ListOptions{Limit: 2}})
		require.NoError(t, err)
		require.Len(t, g.Entries, 3)
	})
}
