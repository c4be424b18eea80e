// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
)

// restoring is a ring in which one peer is restored from a backup. It also holds the names of
// objects in the current part of the test.
type restoring struct {
	*ring
	set               *plane.Plane // the restored plane
	acme              string       // the Account of the ServiceClusters
	kept, gone, db    string       // ServiceClusters: in the backup; removed after it; added after it
	grown, old, added string       // Accounts: updated after the backup; removed after it; added after it
	durable           fanout.AddOptions
}

// TestRestoredPeer restores us-east to an older state, from a copy of the data directory or with
// etcdutl, and brings the peer back with Comeback. Comeback reports the ServiceCluster that us-east
// has lost, and the peers agree afterwards. This holds if notes in the other peers reveal the
// restore, and if only their objects do. With notes, Comeback first names the objects that were
// removed after the backup. A removal that no coordinator ends does not keep the peer from coming
// back.
func TestRestoredPeer(t *testing.T) {
	t.Parallel()
	r := &restoring{ring: newRing(t, own(t))}
	r.set = r.planes[1]
	r.durable = fanout.AddOptions{Target: region.PeerName(r.set.Name()), Durable: true}
	observer := &fanout.Observer{} // without output: a running coordinator would flood the test's log
	noting, _ := r.coordinator(t, fanout.Options{LeaseTimeout: time.Second, SweepEvery: 200 * time.Millisecond, NoteEvery: 200 * time.Millisecond, Observer: observer})
	blind, _ := r.coordinator(t, fanout.Options{LeaseTimeout: time.Second, NoteEvery: -1, Observer: observer})
	r.acme = addAccount(t, noting)

	snapshot := func(bump uint64) func(context.Context) error {
		return func(ctx context.Context) error { return r.set.RestoreSnapshot(ctx, bump) }
	}
	for _, part := range []struct {
		name    string
		play    func(*testing.T, *fanout.Coordinator, func(context.Context) error)
		c       *fanout.Coordinator
		restore func(context.Context) error
	}{
		{"noticed, the directory put back", r.noticed, noting, r.set.Restore},
		{"noticed, a snapshot with a higher revision", r.noticed, noting, snapshot(1_000_000)},
		{"unnoticed, a snapshot", r.unnoticed, blind, snapshot(0)},
		{"a removal is left, a snapshot", r.left, blind, snapshot(0)},
	} {
		begin := time.Now()
		part.play(t, part.c, part.restore)
		t.Logf("%s: %s", part.name, time.Since(begin).Round(100*time.Millisecond))
	}
}

// before adds the objects that us-east holds when the test saves its data.
func (r *restoring) before(t *testing.T, c *fanout.Coordinator) {
	t.Helper()
	r.kept, r.gone, r.db = unique("kept"), unique("gone"), unique("db")
	r.grown, r.old, r.added = unique("grown"), unique("old"), unique("added")
	for _, obj := range []*unstructured.Unstructured{
		newServiceCluster(r.acme, r.kept), newServiceCluster(r.acme, r.gone), newAccount(r.grown), newAccount(r.old),
	} {
		_, err := c.Add(within(t, time.Minute), obj, r.durable)
		require.NoError(t, err)
	}
}

// after makes the changes that us-east loses by the restore: it adds a ServiceCluster and an
// Account, and updates an Account.
func (r *restoring) after(t *testing.T, c *fanout.Coordinator) {
	t.Helper()
	for _, obj := range []*unstructured.Unstructured{newServiceCluster(r.acme, r.db), newAccount(r.added)} {
		op, err := c.Add(within(t, time.Minute), obj, r.durable)
		require.NoError(t, err)
		require.True(t, op.Durable)
	}
	_, err := c.Update(within(t, time.Minute), withRoles(r.grown, "Provider"), fanout.AddOptions{})
	require.NoError(t, err)
}

// noticed tests a restore that the notes in the other peers reveal.
func (r *restoring) noticed(t *testing.T, c *fanout.Coordinator, restore func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Start(ctx) })
	defer running.Wait()
	defer stop()

	r.before(t, c)
	require.NoError(t, r.set.Save(t.Context()))
	saved, epoch := r.held(t, r.set), r.peerSet(t, r.set).Spec.Epoch
	kept := r.cluster(t, r.kept)
	r.after(t, c)
	_, err := c.Remove(within(t, time.Minute), serviceClusters, key(r.acme, r.gone), fanout.RemoveOptions{})
	require.NoError(t, err)
	_, err = c.Remove(within(t, time.Minute), accounts, key("", r.old), fanout.RemoveOptions{})
	require.NoError(t, err)
	r.awaitNoted(t, epoch)
	lost := r.cluster(t, r.db)
	require.NoError(t, restore(t.Context()))

	planetest.Eventually(t, time.Minute, "the restore is found", func(ctx context.Context) error {
		err := c.Identity().Recognize(ctx, region.PeerName(r.set.Name())) // the restarted server may first answer 403
		if errors.Is(err, fanout.ErrReturned) {
			return nil
		}
		return fmt.Errorf("not yet: %w", err)
	})
	_, err = c.Add(within(t, time.Minute), newServiceCluster(r.acme, unique("other")), fanout.AddOptions{Target: "eu-west"})
	require.ErrorIs(t, err, fanout.ErrReturned)
	require.ErrorContains(t, err, "atollctl peer comeback "+r.set.Name())
	returned, ok := errors.AsType[*fanout.ReturnedError](err)
	require.True(t, ok, "%v", err)
	require.EqualValues(t, r.set.Name(), returned.Peer)
	require.Less(t, returned.Epoch, returned.Noted)
	report, err := c.Audit(within(t, time.Minute), true)
	require.NoError(t, err)
	require.ErrorContains(t, report.Unread.Err(), fanout.ErrReturned.Error())
	_, _ = c.Sweep(within(t, time.Minute)) // fails: it reports why it skips the peer
	require.Equal(t, saved, r.held(t, r.set), "nothing is written there")

	_, err = c.Comeback(within(t, time.Minute), region.PeerName(r.set.Name()))
	blocked, ok := errors.AsType[*fanout.BlockedError](err)
	require.True(t, ok, "%v", err)
	var names []string
	for _, o := range blocked.Blocking {
		names = append(names, o.Key.Name)
	}
	require.ElementsMatch(t, []string{r.gone, r.old}, names, "they were removed after the backup")
	forget(t, r.in(t, r.set, fanout.ServiceClusters(), r.acme), r.gone)
	forget(t, r.in(t, r.set, account.Kind(), ""), r.old)

	change, err := c.Comeback(within(t, time.Minute), region.PeerName(r.set.Name()))
	require.NoError(t, err)
	require.Equal(t, fanout.Done, change.State)
	require.Len(t, change.Lost, 1)
	require.Equal(t, key(r.acme, r.db), change.Lost[0].Key)
	require.Equal(t, lost, change.Lost[0].UID)
	require.NotEmpty(t, change.Lost[0].Operation)
	for _, p := range r.planes {
		require.Equal(t, []string{"Provider"}, r.roles(t, p, r.grown), "the update is in %s", p.Name())
		require.Equal(t, []string{"Tenant"}, r.roles(t, p, r.added), "the lost Account is in %s again", p.Name())
	}
	require.Equal(t, kept, r.cluster(t, r.kept))
	r.released(t, c, lost)
}

// unnoticed tests a restore that only the objects reveal.
func (r *restoring) unnoticed(t *testing.T, c *fanout.Coordinator, restore func(context.Context) error) {
	t.Helper()
	r.before(t, c)
	require.NoError(t, r.set.Save(t.Context()))
	r.after(t, c)
	lost := r.cluster(t, r.db)
	require.NoError(t, restore(t.Context()))

	var report *fanout.Report
	planetest.Eventually(t, time.Minute, "the peer knows its roles", func(ctx context.Context) (err error) {
		if report, err = c.Audit(ctx, false); err != nil {
			return err
		}
		return report.Unread.Err()
	})
	require.True(t, slices.ContainsFunc(report.Violations, func(v fanout.Violation) bool {
		return v.Invariant == "lost" && v.Class == fanout.ClassRestored && v.Key == key(r.acme, r.db)
	}), "%v", report.Violations)
	r.requireHeld(t, c)

	// The home has lost the latest revision, so its next revision gets the number of the lost one.
	_, err := c.Update(within(t, time.Minute), withRoles(r.grown, "Provider", "Tenant"), fanout.AddOptions{})
	require.NoError(t, err)
	_, _ = c.Sweep(within(t, time.Minute)) // fails: it reports the loss
	revisions := map[string]bool{}
	for _, p := range r.planes {
		require.Equal(t, []string{"Provider", "Tenant"}, r.roles(t, p, r.grown), "in %s", p.Name())
		obj, err := r.in(t, p, account.Kind(), "").Get(t.Context(), r.grown, metav1.GetOptions{})
		require.NoError(t, err)
		revision, ok, err := unstructured.NestedMap(obj.Object, "spec", "fanout", "revision")
		require.NoError(t, err)
		require.True(t, ok)
		revisions[fmt.Sprint(revision)] = true
	}
	require.Len(t, revisions, 1, "%v", revisions)

	change, err := c.Comeback(within(t, time.Minute), region.PeerName(r.set.Name()))
	require.NoError(t, err)
	require.Len(t, change.Lost, 1)
	require.Equal(t, key(r.acme, r.db), change.Lost[0].Key)
	require.Equal(t, []string{"Tenant"}, r.roles(t, r.set, r.added), "the lost Account is there again")
	r.released(t, c, lost)
}

// left tests a restore that brings back a removed object. Another peer has a later object of the
// same name, which a person has deleted. No coordinator runs that would end the removal of the
// later object. Comeback ends this removal, and returns a BlockedError with the object that the
// restore brought back.
func (r *restoring) left(t *testing.T, c *fanout.Coordinator, restore func(context.Context) error) {
	t.Helper()
	name, other := unique("left"), r.planes[2]
	_, err := c.Add(within(t, time.Minute), newServiceCluster(r.acme, name), r.durable)
	require.NoError(t, err)
	require.NoError(t, r.set.Save(t.Context()))
	_, err = c.Remove(within(t, time.Minute), serviceClusters, key(r.acme, name), fanout.RemoveOptions{})
	require.NoError(t, err)
	elsewhere := fanout.AddOptions{Target: region.PeerName(other.Name()), Durable: true}
	_, err = c.Add(within(t, time.Minute), newServiceCluster(r.acme, name), elsewhere)
	require.NoError(t, err)
	leaving := r.in(t, other, fanout.ServiceClusters(), r.acme)
	require.NoError(t, leaving.Delete(t.Context(), name, metav1.DeleteOptions{}))
	require.NoError(t, restore(t.Context()))
	planetest.Eventually(t, time.Minute, "the peer knows its roles", func(ctx context.Context) error {
		report, err := c.Audit(ctx, false)
		if err != nil {
			return err
		}
		return report.Unread.Err()
	})

	_, err = c.Comeback(within(t, time.Minute), region.PeerName(r.set.Name()))
	blocked, ok := errors.AsType[*fanout.BlockedError](err)
	require.True(t, ok, "%v", err)
	require.Len(t, blocked.Blocking, 1)
	require.Equal(t, key(r.acme, name), blocked.Blocking[0].Key)
	_, err = leaving.Get(t.Context(), name, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "its removal has ended: %v", err)
	forget(t, r.in(t, r.set, fanout.ServiceClusters(), r.acme), name)
	_, err = c.Comeback(within(t, time.Minute), region.PeerName(r.set.Name()))
	require.NoError(t, err)
	_, err = c.Add(within(t, time.Minute), newServiceCluster(r.acme, name), elsewhere)
	require.NoError(t, err, "the name is free")
	r.audited(t, c)
}

// released releases the name of the lost ServiceCluster, and adds a ServiceCluster with the same
// name.
func (r *restoring) released(t *testing.T, c *fanout.Coordinator, uid types.UID) {
	t.Helper()
	r.requireHeld(t, c)
	_, err := c.ReleaseRemoval(within(t, time.Minute), serviceClusters, key(r.acme, r.db), uid)
	require.NoError(t, err)
	_, err = c.Add(within(t, time.Minute), newServiceCluster(r.acme, r.db), r.durable)
	require.NoError(t, err)
	r.audited(t, c)
}

// requireHeld requires that no add succeeds under the name of the lost ServiceCluster, whichever
// peer is the target.
func (r *restoring) requireHeld(t *testing.T, c *fanout.Coordinator) {
	t.Helper()
	for _, target := range r.planes {
		_, err := c.Add(within(t, time.Minute), newServiceCluster(r.acme, r.db), fanout.AddOptions{Target: region.PeerName(target.Name())})
		held, ok := errors.AsType[*fanout.HeldError](err)
		require.True(t, ok, "%v", err)
		require.EqualValues(t, r.set.Name(), held.Lost)
	}
}

// awaitNoted waits until the other peers' notes have an epoch of us-east above epoch.
func (r *restoring) awaitNoted(t *testing.T, epoch int64) {
	t.Helper()
	for _, p := range r.planes {
		if p == r.set {
			continue
		}
		planetest.Eventually(t, time.Minute, "a note in "+p.Name(), func(context.Context) error {
			notes := r.peerSet(t, p).Spec.Notes
			if slices.ContainsFunc(notes, func(n v1alpha1.Note) bool { return n.Peer == r.set.Name() && n.Epoch > epoch }) {
				return nil
			}
			return fmt.Errorf("notes are %v, want one of %s above %d", notes, r.set.Name(), epoch)
		})
	}
}

func (r *restoring) peerSet(t *testing.T, p *plane.Plane) *v1alpha1.PeerSet {
	t.Helper()
	resource := v1alpha1.GroupVersion.WithResource("peersets")
	obj, err := planetest.Dynamic(t, p.Config()).Resource(resource).Get(t.Context(), v1alpha1.PeerSetName, metav1.GetOptions{})
	require.NoError(t, err)
	set := &v1alpha1.PeerSet{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, set))
	return set
}

// in returns an administrator's client for the objects of a kind in one peer.
func (r *restoring) in(t *testing.T, p *plane.Plane, kind fanout.Kind, namespace string) dynamic.ResourceInterface {
	t.Helper()
	client := planetest.Dynamic(t, p.Config()).Resource(kind.Resource)
	if namespace == "" {
		return client
	}
	return client.Namespace(namespace)
}

// cluster returns the UID of a ServiceCluster in us-east.
func (r *restoring) cluster(t *testing.T, name string) types.UID {
	t.Helper()
	obj, err := r.in(t, r.set, fanout.ServiceClusters(), r.acme).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return obj.GetUID()
}

// held lists the objects of account.Kinds in p, with UIDs and resource versions.
func (r *restoring) held(t *testing.T, p *plane.Plane) []string {
	t.Helper()
	var all []string
	for _, kind := range account.Kinds() {
		list, err := r.in(t, p, kind, "").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, obj := range list.Items {
			all = append(all, fmt.Sprintf("%s %s/%s %s %s", kind.Kind, obj.GetNamespace(), obj.GetName(), obj.GetUID(), obj.GetResourceVersion()))
		}
	}
	return all
}

func (r *restoring) roles(t *testing.T, p *plane.Plane, name string) []string {
	t.Helper()
	obj, err := r.in(t, p, account.Kind(), "").Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	roles, _, err := unstructured.NestedStringSlice(obj.Object, "spec", "roles")
	require.NoError(t, err)
	return roles
}

func withRoles(name string, roles ...any) *unstructured.Unstructured {
	obj := newAccount(name)
	obj.Object["spec"] = map[string]any{"roles": roles}
	return obj
}

// forget deletes an object and removes its finalizers, as a person does.
func forget(t *testing.T, client dynamic.ResourceInterface, name string) {
	t.Helper()
	require.NoError(t, client.Delete(t.Context(), name, metav1.DeleteOptions{}))
	_, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = client.Get(t.Context(), name, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}
