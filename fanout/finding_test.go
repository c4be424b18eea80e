// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// Each finding has the class of its repair, and the command that repairs only this finding. Of the
// violations, an audit with repair repairs those of ClassRepair only.
func TestFindingsAreSorted(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	for _, name := range []string{"one", "two", "three"} {
		_, err := c.Add(t.Context(), newServiceCluster(acme, name), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
	}
	in := func(p region.PeerName) *region.Conn { return conn(t, r, p) }
	require.NoError(t, c.Wait(t.Context()))
	resource := schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "serviceclusters"}
	for _, name := range []string{"one", "two"} {
		require.NoError(t, in("eu-west").Dynamic().Resource(resource).Namespace(acme).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	_, err := in("eu-west").Dynamic().Resource(resource).Namespace(acme).Create(t.Context(), newServiceCluster(acme, "two"), metav1.CreateOptions{})
	require.NoError(t, err)

	find := func(report *fanout.Report, name, invariant string) fanout.Violation {
		t.Helper()
		for _, v := range report.Violations {
			if v.Key.Name == name && v.Invariant == invariant {
				return v
			}
		}
		t.Fatalf("%s of %s was not found: %+v", invariant, name, report.Violations)
		return fanout.Violation{}
	}
	report, err := c.Audit(t.Context(), false)
	require.NoError(t, err)
	missing := find(report, "one", "I2")
	require.Equal(t, fanout.ClassRepair, missing.Class)
	require.Equal(t, "atollctl audit --repair --only servicecluster/"+acme+"/one", missing.Mend)
	stranger := find(report, "two", "I1")
	require.Equal(t, fanout.ClassConflict, stranger.Class)
	require.Equal(t, "kubectl --context eu-west delete servicecluster.kubecarrier.io two -n "+acme, stranger.Mend)

	// AuditObject repairs only the named object.
	require.NoError(t, in("ap-south").Dynamic().Resource(resource).Namespace(acme).Delete(t.Context(), "three", metav1.DeleteOptions{}))
	only, err := c.AuditObject(t.Context(), serviceClusters, key(acme, "one"), true)
	require.NoError(t, err)
	require.Empty(t, only.Violations)
	require.Len(t, only.Repaired, 1)
	report, err = c.Audit(t.Context(), false)
	require.NoError(t, err)
	find(report, "three", "I2")

	report, err = c.Audit(t.Context(), true)
	require.NoError(t, err)
	require.NoError(t, report.Refused)
	find(report, "two", "I1")
	for _, v := range report.Violations {
		require.Equal(t, "two", v.Key.Name, "%+v", v)
	}
	// The command of the conflict's finding repairs the conflict. Then an audit repairs the rest.
	require.NoError(t, in("eu-west").Dynamic().Resource(resource).Namespace(acme).Delete(t.Context(), "two", metav1.DeleteOptions{}))
	_, err = c.Audit(t.Context(), true)
	require.NoError(t, err)
	requireClean(t, c)
}

// While a peer is the wrong cluster nothing is repaired: objects that it lacks look deleted.
// The finding names the peer.
func TestARepairIsRefusedBesideAWrongCluster(t *testing.T) {
	own, other := newRing(t), newRing(t)
	c := coordinator(t, own, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	require.NoError(t, c.Wait(t.Context()))
	resource := schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "serviceclusters"}
	require.NoError(t, conn(t, own, "ap-south").Dynamic().Resource(resource).Namespace(acme).Delete(t.Context(), "db", metav1.DeleteOptions{}))
	for _, p := range peers {
		own.Server(p).Reset()
		other.Server(p).Reset()
	}
	m := coordinator(t, misled(t, own, other, "eu-west"), waltest.NewMemory(), fanout.Options{})
	report, err := m.Audit(t.Context(), true)
	require.NoError(t, err)
	requireWrong(t, report.Refused, "eu-west")
	require.Empty(t, report.Repaired)
	require.Equal(t, fanout.ClassIdentity, report.Violations[0].Class)
	require.Equal(t, region.PeerName("eu-west"), report.Violations[0].Peer)
	require.Equal(t, "correct the kubeconfig of peer eu-west, then: atollctl peers", report.Violations[0].Mend)
	require.Zero(t, writes(own))
	require.Zero(t, writes(other))

	found, err := m.Identity().Peers(t.Context())
	require.NoError(t, err)
	for o := range found.All() {
		require.NoError(t, o.Err)
		require.NotNil(t, o.Value.Set)
		if o.Peer != "eu-west" {
			require.NoError(t, o.Value.Problem)
			continue
		}
		requireWrong(t, o.Value.Problem, "eu-west")
		wrong := &fanout.WrongPeerError{}
		require.ErrorAs(t, o.Value.Problem, &wrong)
		require.Equal(t, fanout.PropertyRing, wrong.Property)
		require.Equal(t, oneRing(t, other), wrong.Found)
		require.Equal(t, wrong.Want, oneRing(t, own))
		require.Equal(t, []region.PeerName{"ap-south", "us-east"}, wrong.By)
	}
}

// All peers are silent. Identity.Peers returns after one CallTimeout, because it asks all peers at
// once, and each peer only once.
func TestSilentPeersAreAskedForTheirIdentityOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		for _, peer := range peers {
			r.Server(peer).Inject(regiontest.Fault{Times: -1, Do: regiontest.Hang()})
		}
		c := coordinator(t, misled(t, r, r), waltest.NewMemory(), fanout.Options{CallTimeout: 2 * time.Second})
		began := time.Now()
		found, err := c.Identity().Peers(t.Context())
		require.NoError(t, err)
		for o := range found.All() {
			require.ErrorIs(t, o.Err, context.DeadlineExceeded)
		}
		require.Equal(t, 2*time.Second, time.Since(began))
	})
}

// If the PeerSet of a peer cannot be read, Identity.Peers still returns the UID of the peer's
// cluster.
func TestAPeerWithoutItsPeerSetHasAUID(t *testing.T) {
	r := newRing(t)
	r.Server("eu-west").Inject(regiontest.Fault{Times: -1, Resource: peerSetResource.GroupResource(), Do: regiontest.Refuse(http.StatusForbidden)})
	found, err := coordinator(t, misled(t, r, r), waltest.NewMemory(), fanout.Options{}).Identity().Peers(t.Context())
	require.NoError(t, err)
	for o := range found.All() {
		require.NotEmpty(t, o.Value.UID, o.Peer)
		require.Equal(t, o.Peer == "eu-west", o.Err != nil, "%s: %v", o.Peer, o.Err)
	}
}

// If the credentials may not read a cluster's UID, the ring's ID and the peer's own PeerSet
// identify the cluster. If the ring has no ID, the error names the missing right.
func TestAPeerThatMayNotSayWhichClusterItIs(t *testing.T) {
	for _, ids := range []bool{true, false} {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
		acme := addAccount(t, c)
		if !ids {
			forgetRing(t, r)
		}
		r.Server("eu-west").Inject(regiontest.Fault{Times: -1, Verb: "get", Resource: schema.GroupResource{Resource: "namespaces"}, Name: "kube-system", Do: regiontest.Refuse(http.StatusForbidden)})
		blind := coordinator(t, misled(t, r, r), waltest.NewMemory(), fanout.Options{})
		_, err := blind.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
		found, _ := blind.Identity().Peers(t.Context())
		report, audited := blind.Audit(t.Context(), true)
		require.NoError(t, audited)
		if ids {
			require.NoError(t, err)
			require.NoError(t, report.Unread.Err())
			continue
		}
		require.ErrorIs(t, err, fanout.ErrAborted)
		require.ErrorIs(t, err, region.ErrIdentityUnknown)
		require.NotErrorIs(t, err, fanout.ErrWrongPeer)
		require.ErrorContains(t, err, "identity unknown: grant get namespaces/kube-system")
		for o := range found.All() {
			if o.Peer == "eu-west" {
				require.ErrorIs(t, o.Value.Problem, region.ErrIdentityUnknown)
			} else {
				require.NoError(t, o.Value.Problem)
			}
		}
		require.Equal(t, fanout.ClassIdentity, report.Violations[0].Class)
		require.Equal(t, "atollctl rbac | kubectl --context eu-west apply -f -", report.Violations[0].Mend)
	}
}
