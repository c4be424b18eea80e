// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package skew_test

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
)

// upgrade creates objects and open operations with the first release, and then upgrades as
// documented: the CRDs, the programs, a sweep.
func (w *world) upgrade() {
	t := w.t
	old := w.first.Shell("old", w.core...)
	old.Succeed(t, "account", "add", "--target", w.core[0].Name(), "-f", w.account(w.acme, "Tenant"))
	for _, name := range []string{"changed", "left"} {
		old.Succeed(t, "account", "add", "-f", w.account(w.acme+"-"+name, "Tenant"))
	}
	for i, name := range []string{"kept", "leaving", "going"} {
		old.Succeed(t, w.add(name, w.core[i])...)
	}
	logs := []string{}
	for _, k := range []struct {
		log, printed string
		args         []string
	}{
		{"add-reserved", "create ServiceCluster", w.add("reserved", w.core[1])},
		{"add-advanced", "log advance", w.add("advanced", w.core[1])},
		{"add-committed", "put ServiceCluster", w.add("committed", w.core[1])},
		{"remove-advanced", "log advance", w.removal("leaving")},
		{"remove-committed", "put ServiceCluster", w.removal("going")},
		{"account-advanced", "log advance", []string{"account", "add", "-f", w.account(w.acme+"-new", "Tenant")}},
		{"account-updated", "put Account", []string{"account", "update", "-f", w.account(w.acme+"-changed", "Provider")}},
		{"account-removed", "put Account", []string{"account", "remove", w.acme + "-left"}},
	} {
		w.kill(w.first, k.log, k.printed, k.args...)
		logs = append(logs, k.log)
	}
	join, err := w.first.Shell("join", w.all()...).With("-v").RunUntil(t.Context(), "put-peerset", "peer", "join", w.guest.Name())
	require.NoError(t, err)
	require.Equal(t, ctltest.Killed, join.Code, "%s", join)
	logs = append(logs, "join")

	// New programs with old CRDs: operations work, but guards are not bound.
	early := w.present.Shell("early", w.core...)
	early.Succeed(t, w.add("early", w.core[2])...)
	early.Succeed(t, w.add("short", w.core[2])...)
	early.Succeed(t, w.removal("short")...)
	require.Empty(t, w.ring(), "the CRDs of the first release keep no ring ID")

	w.present.Administrator().Succeed(t, "install-crds")
	for _, log := range slices.Backward(logs) {
		w.recover(w.present, log)
	}
	// While the ring has no ID, the first release can change the membership, also with the present
	// CRDs.
	w.first.Shell("guest", w.all()...).Succeed(t, "peer", "join", w.guest.Name())
	w.first.Shell("guest", w.all()...).Succeed(t, "peer", "leave", w.guest.Name())

	require.Equal(t, state(w.core[0].Name()), w.clusterAt("kept"))
	require.Equal(t, state(w.core[2].Name()), w.clusterAt("early"))
	require.Equal(t, state(""), w.clusterAt("short"))
	require.Contains(t, []state{"", state(w.core[1].Name())}, w.clusterAt("reserved"))
	require.Contains(t, []state{"", state(w.core[1].Name())}, w.clusterAt("advanced"))
	require.Equal(t, state(w.core[1].Name()), w.clusterAt("committed"))
	require.Contains(t, []state{"", state(w.core[1].Name())}, w.clusterAt("leaving"))
	require.Equal(t, state(""), w.clusterAt("going"))
	require.Contains(t, []state{"", "Tenant"}, w.accountAt(w.acme+"-new"))
	require.Equal(t, state("Provider"), w.accountAt(w.acme+"-changed"))
	require.Equal(t, state(""), w.accountAt(w.acme+"-left"))

	require.Empty(t, w.ring())
	w.repair(w.present)
	require.NotEmpty(t, w.ring(), "a repair gives the ring its ID")
	for _, name := range []string{"kept", "committed", "early"} {
		w.requireBound(name)
	}
	w.clean()
}
