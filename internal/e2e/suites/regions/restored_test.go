// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regions_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// TestRestored restores us-east to an older state:
//
//   - A region that us-east has given up since the backup stays with its present holder.
//   - A region that us-east holds, and whose claim is in the backup, stays with us-east.
//   - A region that us-east holds, and whose claim is not in the backup, goes to another
//     peer that claims it.
//   - An Account added since the backup comes back to us-east. An Account removed since the
//     backup stays removed everywhere.
//
// A region is never Bound in two planes at once, except the region that us-east has given up: the
// API server of us-east serves the old status until an arbiter updates it.
func TestRestored(t *testing.T) {
	w := newWorld(t)
	p, _ := w.start(t, "restored", "a", nil)
	w.populate(t, p)
	planetest.Apply(t, w.central, provider("removed"))
	w.awaitAccount(t, "removed")
	for _, name := range []string{"kept", "given-up"} {
		planetest.Apply(t, w.usEast, regionClaim("loodse", name))
		w.awaitClaim(t, w.usEast, name, "Bound")
	}
	for _, name := range []string{"kept", "taken-over"} {
		planetest.Apply(t, w.euWest, regionClaim("loodse", name))
	}
	w.awaitClaim(t, w.euWest, "kept", "Conflict")
	w.awaitClaim(t, w.euWest, "taken-over", "Bound")
	planetest.Apply(t, w.usEast, regionClaim("loodse", "taken-over"))
	w.awaitClaim(t, w.usEast, "taken-over", "Conflict")
	require.NoError(t, w.usEast.Save(t.Context()))
	w.awaitPeers(t, "us-east")
	claims := map[string]types.UID{}
	for _, name := range []string{"kept", "taken-over"} {
		claims[name] = w.of(w.usEast).get(t, regionClaims, "loodse", name).GetUID()
	}

	w.of(w.usEast).remove(t, regionClaims, "loodse", "given-up")
	planetest.Apply(t, w.euWest, regionClaim("loodse", "given-up"))
	w.awaitClaim(t, w.euWest, "given-up", "Bound")
	w.of(w.euWest).remove(t, regionClaims, "loodse", "taken-over")
	w.awaitClaim(t, w.usEast, "taken-over", "Bound")
	planetest.Apply(t, w.euWest, regionClaim("loodse", "taken-over"))
	planetest.Apply(t, w.usEast, regionClaim("loodse", "forgotten"))
	w.awaitClaim(t, w.usEast, "forgotten", "Bound")
	planetest.Apply(t, w.euWest, regionClaim("loodse", "forgotten"))
	for _, name := range []string{"taken-over", "forgotten"} {
		w.awaitClaim(t, w.euWest, name, "Conflict")
	}
	planetest.Apply(t, w.central, provider("added"))
	w.awaitAccount(t, "added")
	w.of(w.central).remove(t, accounts, "", "removed")

	w.watched(t, types.NamespacedName{Namespace: "loodse", Name: "given-up"})
	require.NoError(t, w.usEast.Restore(t.Context()))
	_, err := w.of(w.usEast).Resource(regionClaims).Namespace("loodse").Get(t.Context(), "forgotten", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "us-east was not set back: %v", err)
	w.awaitPeers(t, "us-east")
	for name, phases := range map[string][2]string{
		"kept":       {"Bound", "Conflict"},
		"taken-over": {"Bound", "Conflict"},
		"given-up":   {"Conflict", "Bound"},
	} {
		w.awaitClaim(t, w.usEast, name, phases[0])
		w.awaitClaim(t, w.euWest, name, phases[1])
	}
	w.awaitClaim(t, w.euWest, "forgotten", "Bound")
	for name, uid := range claims {
		require.Equal(t, uid, w.of(w.usEast).get(t, regionClaims, "loodse", name).GetUID(), "claim %s was replaced", name)
	}
	w.of(w.usEast).await(t, "the Account is back", accounts, "", "added")
	for _, name := range []string{"added", "loodse"} {
		w.awaitAccount(t, name)
		for _, p := range w.planes {
			require.Nil(t, w.of(p).get(t, namespaces, "", name).GetDeletionTimestamp(), "%s: namespace %s", p.Name(), name)
		}
	}
	for _, p := range w.planes {
		planetest.Eventually(t, soon, "the removed Account is nowhere", func(ctx context.Context) error {
			obj, err := w.of(p).Resource(accounts).Get(ctx, "removed", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return err
			}
			return fmt.Errorf("%s has it: %v", p.Name(), obj)
		})
	}
}
