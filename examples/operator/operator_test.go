// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// Databases of different regions become ready. Each region has the same Secret, and guards the names of the others.
func TestDatabases(t *testing.T) {
	w := newWorld(t)
	defer w.start()()
	require.NoError(t, w.in("eu-west").Create(t.Context(), database("orders")))
	require.NoError(t, w.in("us-east").Create(t.Context(), database("users")))
	w.awaitReason("eu-west", "orders", "Complete")
	w.awaitReason("us-east", "users", "Complete")
	for _, name := range []string{"orders", "users"} {
		password := w.password("eu-west", name)
		require.Len(t, password, 26)
		for _, peer := range peers {
			require.Equal(t, password, w.password(peer, name), peer)
		}
	}
	for _, peer := range peers {
		require.Equal(t, []string{"orders", "users"}, w.names(peer))
	}
	err := w.in("us-west").Create(t.Context(), database("orders"))
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
}

// If two regions have a Database of one name, both report the conflict, in the same words. When one of them is deleted, the other one gets the
// name.
func TestTheNameIsTaken(t *testing.T) {
	w := newWorld(t)
	for _, peer := range []region.PeerName{"eu-west", "us-east"} {
		require.NoError(t, w.in(peer).Create(t.Context(), database("orders")))
	}
	defer w.start()()
	message := w.awaitReason("eu-west", "orders", "NameTaken").Message
	require.Regexp(t, `eu-west \(.*; us-east \(.*kubectl delete databases\.operator\.example\.com orders -n default`, message)
	require.Equal(t, message, w.awaitReason("us-east", "orders", "NameTaken").Message)
	require.Empty(t, w.password("eu-west", "orders"))
	require.NoError(t, w.in("us-east").Delete(t.Context(), database("orders")))
	w.awaitReason("eu-west", "orders", "Complete")
}

// After a deletion no region has the Database, a guard or the Secret.
func TestDelete(t *testing.T) {
	w := newWorld(t)
	defer w.start()()
	require.NoError(t, w.in("eu-west").Create(t.Context(), database("orders")))
	w.awaitReason("eu-west", "orders", "Complete")
	require.NoError(t, w.in("eu-west").Delete(t.Context(), database("orders")))
	for _, peer := range peers {
		w.await(func() bool {
			_, err := w.ops.Sweep(t.Context()) // the operator's own next one is in a minute
			return err == nil && len(w.names(peer)) == 0 && w.password(peer, "orders") == ""
		})
	}
}

// While a region is away, also when the operator starts, changes and deletions in the other regions go on. A new Database
// needs every region once: until then it reports which one does not answer.
func TestARegionIsAway(t *testing.T) {
	w := newWorld(t)
	stop := w.start()
	require.NoError(t, w.in("eu-west").Create(t.Context(), database("orders")))
	w.awaitReason("eu-west", "orders", "Complete")
	stop()
	w.ring.Partition("us-west", true)
	defer w.start()()

	db := database("orders")
	require.NoError(t, w.in("eu-west").Get(t.Context(), client.ObjectKeyFromObject(db), db))
	db.Spec.Size = "20Gi"
	require.NoError(t, w.in("eu-west").Update(t.Context(), db))
	w.await(func() bool { return w.ready("eu-west", "orders").ObservedGeneration == db.Generation })
	require.Equal(t, "Complete", w.ready("eu-west", "orders").Reason)
	require.NoError(t, w.in("us-east").Create(t.Context(), database("users")))
	require.Contains(t, w.awaitReason("us-east", "users", "PeerUnreachable").Message, "us-west")
	require.NoError(t, w.in("eu-west").Delete(t.Context(), database("orders")))
	w.await(func() bool { return w.password("ap-south", "orders") == "" })
	w.ring.Partition("us-west", false)
	w.awaitReason("us-east", "users", "Complete")
	require.NotEmpty(t, w.password("us-west", "users"))
}

// While two regions are away, repeated attempts report the same condition, and write it once: it does not depend on the
// region that failed first.
func TestRepeatedFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ring.Partition("ap-south", true)
	w.ring.Partition("us-west", true)
	defer w.start()()
	require.NoError(t, w.in("eu-west").Create(t.Context(), database("orders")))
	ready := w.awaitReason("eu-west", "orders", "PeerUnreachable")
	require.Equal(t, "ap-south, us-west: no answer", ready.Message)
	attempts := w.requests("us-east", "create", "databases")
	w.await(func() bool { return w.requests("us-east", "create", "databases") >= attempts+10 })
	require.Equal(t, ready, w.ready("eu-west", "orders"))
	require.Equal(t, 1, w.reports("eu-west"))
}

// The outcome of the first attempt is in doubt. Further attempts cannot read its Secret, and have no effect. Each of the two
// conditions is written once.
func TestAttemptsInDoubt(t *testing.T) {
	t.Parallel() // the first attempt waits for the peer
	w := newWorld(t)
	for _, verb := range []string{"get", "update", "delete"} {
		secrets := schema.GroupResource{Resource: "secrets"}
		w.ring.Server("eu-west").Inject(regiontest.Fault{Verb: verb, Resource: secrets, Times: -1, Do: regiontest.Refuse(503)})
	}
	defer w.start()()
	require.NoError(t, w.in("eu-west").Create(t.Context(), database("orders")))
	ready := w.awaitReason("eu-west", "orders", "InDoubt")
	require.Contains(t, ready.Message, "once peer eu-west answers")
	attempts := w.requests("eu-west", "create", "secrets")
	w.await(func() bool { return w.requests("eu-west", "create", "secrets") >= attempts+6 })
	require.LessOrEqual(t, w.reports("eu-west"), 2)
}

// A new process of the operator checks each Database and changes nothing.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	stop := w.start()
	require.NoError(t, w.in("eu-west").Create(t.Context(), database("orders")))
	w.awaitReason("eu-west", "orders", "Complete")
	stop()
	writes, checks, password := w.writes(), w.requests("eu-west", "create", "secrets"), w.password("eu-west", "orders")
	stop = w.start()
	// Each check asks for the agreed Secret with a create, which the API server rejects.
	w.await(func() bool { return w.requests("eu-west", "create", "secrets") > checks })
	stop()
	require.Equal(t, writes, w.writes())
	require.Equal(t, password, w.password("eu-west", "orders"))
}

// Two replicas share the Databases. When one stops, the other one takes over.
func TestTwoReplicas(t *testing.T) {
	w := newWorld(t)
	stop := w.start()
	defer w.start()()
	names := []string{"a", "b", "c", "d", "e", "f"}
	for _, name := range names[:3] {
		require.NoError(t, w.in("eu-west").Create(t.Context(), database(name)))
		w.awaitReason("eu-west", name, "Complete")
	}
	stop()
	for _, name := range names[3:] {
		require.NoError(t, w.in("us-east").Create(t.Context(), database(name)))
		w.awaitReason("us-east", name, "Complete")
	}
}

// README.md promises a short program.
func TestItIsShort(t *testing.T) {
	source, err := os.ReadFile("operator.go")
	require.NoError(t, err)
	lines := 0
	for line := range strings.Lines(string(source)) {
		require.LessOrEqual(t, len(line), 180)
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "//") {
			lines++
		}
	}
	require.Less(t, lines, 120)
}
