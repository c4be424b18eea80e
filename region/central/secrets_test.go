// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// When a Secret is created, broken, corrected or deleted, the Peer's status shows it within a second. Working
// credentials stay in use.
func TestSecretChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu", "us")
		p := w.start(PeersOptions{})
		valid := func() string { return w.conditionOf("eu", masterv1alpha1.PeerConditionKubeconfigValid) }
		w.peer("eu", "eu-kubeconfig")
		pass(time.Second)
		require.Equal(t, "False SecretNotFound", valid())
		require.Equal(t, "False SecretNotFound", w.ready("eu"))
		require.Contains(t, w.message("eu", masterv1alpha1.PeerConditionKubeconfigValid), "kubecarrier-system/eu-kubeconfig")
		require.Equal(t, 1, p.ring.Snapshot().Len())
		_, err := p.ring.Conn("eu")
		require.ErrorContains(t, err, "peer eu: connect: the Peer is not accepted: SecretNotFound")

		w.secret("eu-kubeconfig", "hunter2")
		pass(time.Second)
		require.Equal(t, "False KubeconfigInvalid", valid())
		require.Contains(t, w.message("eu", masterv1alpha1.PeerConditionKubeconfigValid), "clusters[0].cluster.server: is not an https address")
		require.Equal(t, masterv1alpha1.PeerNotReady, w.get("eu").Status.Phase)

		w.secret("eu-kubeconfig", "eu one")
		pass(time.Second)
		require.Equal(t, "True Accepted", valid())
		require.Equal(t, "True Reachable", w.ready("eu"))
		conn, err := p.ring.Conn("eu")
		require.NoError(t, err)

		generation := uint64(1)
		for _, step := range []struct{ secret, valid string }{
			{"eu two", "True Accepted"}, {"hunter2", "False KubeconfigInvalid"}, {"eu three", "True Accepted"},
			{"us", "False OtherCluster"}, {"eu four", "True Accepted"}, {"", "False SecretNotFound"}, {"eu five", "True Accepted"},
		} {
			if step.secret == "" {
				w.deleteSecret("eu-kubeconfig")
			} else {
				w.secret("eu-kubeconfig", step.secret)
			}
			if strings.HasPrefix(step.secret, "eu") {
				generation++
			}
			pass(time.Second)
			require.Equal(t, generation, conn.Health().Generation, "%s", step.secret)
			require.Equal(t, step.valid, valid(), "%s", step.secret)
			same, err := p.ring.Conn("eu")
			require.NoError(t, err)
			require.Same(t, conn, same)
			_, err = conn.Dynamic().Resource(namespaceResource).Get(t.Context(), "default", metav1.GetOptions{})
			require.NoError(t, err)
			if strings.HasPrefix(step.valid, "False") {
				require.Equal(t, step.valid, w.ready("eu"))
				require.NotEmpty(t, w.get("eu").Status.ClusterUID)
			}
		}
		require.Empty(t, writes(w.servers["us"], w.servers["eu"]))
		status, err := json.Marshal(w.get("eu").Status)
		require.NoError(t, err)
		require.NotContains(t, string(status), "hunter2")
	})
}

// Only the Secrets that Peers name are read. Of the others only metadata is read.
func TestOnlyNamedSecretsAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu", "us")
		w.secret("other", "hunter2")
		w.register("eu")
		w.secret("us-kubeconfig", "us")
		w.plane.Reset()
		p := w.start(PeersOptions{})
		pass(time.Second)
		w.secret("other", "hunter3")
		pass(2 * secretPoll) // Secrets that were read before the watch started are read once more
		reads := func() (names []string) {
			for _, r := range w.plane.Requests() {
				if r.Resource == "secrets" && r.Verb == "get" {
					names = append(names, r.Name)
				}
				require.False(t, r.Resource == "secrets" && (r.Verb == "list" || r.Verb == "watch") && r.Namespace != Namespace, "%v", r)
			}
			return names
		}
		require.NotEmpty(t, reads())
		require.NotContains(t, reads(), "other")
		require.NotContains(t, reads(), "us-kubeconfig")
		before := len(reads())
		w.peer("us", "us-kubeconfig")
		pass(time.Second)
		require.Equal(t, "True Reachable", w.ready("us"))
		pass(time.Hour)
		require.Len(t, reads(), before+1)

		// After a change of other parts of the Secret, it is read and nothing changes.
		snapshot := p.ring.Snapshot()
		w.annotate("us-kubeconfig", "x")
		pass(time.Second)
		require.Len(t, reads(), before+2)
		require.Same(t, snapshot, p.ring.Snapshot())
	})
}

// Secrets that may be read but not watched are polled.
func TestSecretsThatCannotBeWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu")
		w.register("eu")
		w.plane.Inject(regiontest.Fault{Verb: "list", Resource: schema.GroupResource{Resource: "secrets"}, Times: -1, Do: regiontest.Refuse(http.StatusForbidden)})
		p := w.start(PeersOptions{})
		pass(10 * time.Second)
		require.Equal(t, "True Reachable", w.ready("eu"))
		w.secret("eu-kubeconfig", "eu two")
		pass(2 * secretPoll)
		conn, err := p.ring.Conn("eu")
		require.NoError(t, err)
		require.EqualValues(t, 2, conn.Health().Generation)
	})
}

// A Secret that cannot be read changes nothing for the peer except its status.
func TestSecretUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu")
		w.register("eu")
		secrets := schema.GroupResource{Resource: "secrets"}
		w.plane.Inject(regiontest.Fault{Verb: "get", Resource: secrets, Times: -1, Do: regiontest.Refuse(http.StatusForbidden)})
		p := w.start(PeersOptions{})
		pass(10 * time.Second)
		require.Equal(t, "Unknown SecretUnreadable", w.ready("eu"))
		require.Equal(t, masterv1alpha1.PeerPending, w.get("eu").Status.Phase)
		require.Equal(t, 1, p.ring.Snapshot().Len())
		w.plane.Reset()
		pass(time.Minute)
		require.Equal(t, "True Reachable", w.ready("eu"))
		w.plane.Inject(regiontest.Fault{Verb: "get", Resource: secrets, Times: -1, Do: regiontest.Refuse(http.StatusForbidden)})
		w.secret("eu-kubeconfig", "eu two")
		pass(time.Minute)
		require.Equal(t, "Unknown SecretUnreadable", w.ready("eu"))
		require.Equal(t, masterv1alpha1.PeerNotReady, w.get("eu").Status.Phase)
		conn, err := p.ring.Conn("eu")
		require.NoError(t, err)
		require.Equal(t, region.Healthy, conn.Health().State)
		w.plane.Reset()
		pass(time.Minute)
		require.Equal(t, "True Reachable", w.ready("eu"))
		require.EqualValues(t, 2, conn.Health().Generation)
	})
}

// A Peer that names another Secret keeps its connection and its working credentials until the other Secret works.
func TestPeerNamesAnotherSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu")
		w.register("eu")
		p := w.start(PeersOptions{})
		pass(2 * time.Second)
		conn, err := p.ring.Conn("eu")
		require.NoError(t, err)
		name := func(secret string) {
			peers := w.client(w.plane, peerResource, "")
			obj, err := peers.Get(t.Context(), "eu", metav1.GetOptions{})
			require.NoError(t, err)
			require.NoError(t, unstructured.SetNestedField(obj.Object, secret, "spec", "kubeconfigSecret", "name"))
			_, err = peers.Update(t.Context(), obj, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
		works := func() {
			t.Helper()
			pass(time.Second)
			same, err := p.ring.Conn("eu")
			require.NoError(t, err)
			require.Same(t, conn, same)
			_, err = conn.Dynamic().Resource(namespaceResource).Get(t.Context(), "default", metav1.GetOptions{})
			require.NoError(t, err)
		}
		w.secret("there", "eu there")
		name("there")
		works()
		require.EqualValues(t, 2, conn.Health().Generation)
		name("missing")
		works()
		require.Equal(t, "False SecretNotFound", w.ready("eu"))
		peer := w.get("eu")
		require.Equal(t, peer.Generation, peer.Status.ObservedGeneration)
		w.secret("missing", "eu missing")
		works()
		require.Equal(t, "True Reachable", w.ready("eu"))
		require.EqualValues(t, 3, conn.Health().Generation)

		// A restarted program without usable credentials keeps the peer, and reports that it cannot be reached.
		w.secret("missing", "garbage")
		p.stop()
		p = w.start(PeersOptions{})
		pass(time.Minute)
		require.Equal(t, "False KubeconfigInvalid", w.ready("eu"))
		require.Equal(t, "Unknown Pending", w.conditionOf("eu", masterv1alpha1.PeerConditionReachable))
		_, err = p.ring.Conn("eu")
		require.ErrorContains(t, err, "peer eu: connect: kubeconfig in Secret")
		w.plane.Reset()
		pass(10 * time.Minute)
		require.Empty(t, writes(w.plane))
	})
}

// With Options.Namespace, a Peer's Secret is read from that namespace, and not from the default one.
func TestSecretsOfAnotherNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu")
		w.create(w.plane, namespaceResource, "", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "fleet"}})
		w.create(w.plane, secretResource, "fleet", map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "eu-kubeconfig", "namespace": "fleet"},
			"stringData": map[string]any{"kubeconfig": "eu"},
		})
		w.secret("eu-kubeconfig", "hunter2") // in the default namespace
		w.peer("eu", "eu-kubeconfig")
		source, err := New(w.api(w.plane), Options{Namespace: "fleet"})
		require.NoError(t, err)
		source.secrets.parse = w.inProcess
		ring, err := region.NewRing(source, region.Options{})
		require.NoError(t, err)
		peers, err := NewPeers(source, ring, PeersOptions{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		p := &program{w: w, source: source, ring: ring, peers: peers, cancel: cancel}
		p.wg.Go(func() { p.run(ctx) })
		t.Cleanup(p.stop)
		pass(time.Second)
		conn, err := ring.Conn("eu")
		require.NoError(t, err)
		require.Equal(t, region.Healthy, conn.Health().State)
	})
}
