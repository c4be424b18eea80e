// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package peers_test tests peers that join and leave a ring in use.
package peers_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }

// Changes of the ring, as subcommands of "atollctl peer".
const (
	join        = "join"
	leave       = "leave"
	forceRemove = "force-remove"
)

// TestPeers repeats these changes of a ring, while processes add and remove ServiceClusters: a
// fourth peer joins, leaves, joins again, and is removed by force while it is dead. The process of
// each change is killed at random moments, and the change is then repeated: with the same log,
// after a recovery with the same log, or with another log.
//
// After each change, the PeerSet of every member lists the right members, and an audit finds no
// violation. After a join, a sweep may be necessary before this audit. Every member has the
// acknowledged objects that were not removed, and no member has an object of a denied add. No name
// ever has two owners. The fourth peer keeps no object of the time before it left. An add that runs
// while the peer leaves may put a reservation into the peer. If the process of this add is killed,
// the next recovery with the peer configured deletes the reservation.
//
// ATOLL_CHANGES is the number of processes to kill for each kind of change.
func TestPeers(t *testing.T) {
	kills := ctltest.Count(t, "ATOLL_CHANGES", 2)
	var options []plane.Options
	for _, name := range plane.Names(4) {
		options = append(options, plane.Options{Name: name})
	}
	planes := planetest.NewAll(t, options...) // not shared planes: the test kills one of them
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := &ring{
		t: t, Ring: ctltest.New(t, planes, 3), random: rand.New(rand.NewPCG(seed, 0)), acme: fmt.Sprintf("acme-%x", seed),
		core: planes[:3], guest: planes[3], killed: map[string]int{}, done: map[string]int{}, limit: map[string]time.Duration{},
	}
	for _, change := range []string{join, leave, forceRemove} {
		r.limit[change] = time.Second
	}
	r.changer = r.Shell("changer")
	r.core3().Succeed(t, "account", "add", "--target", planes[0].Name(), "-f", r.account())
	r.wrongClusters()
	r.witness = r.Witness(t.Context(), r.acme)
	defer r.witness.Stop()
	adders := r.addDuring()

	start := time.Now()
	for n := 0; r.killed[join] < kills || r.killed[leave] < kills || r.killed[forceRemove] < kills; n++ {
		require.Less(t, n, 5*kills, "too few processes could be killed")
		r.change(join)
		r.change(leave)
		r.change(join)
		require.NoError(t, r.guest.Kill(t.Context()))
		r.change(forceRemove)
		require.NoError(t, r.guest.Restart(t.Context()))
	}
	adders.stop()
	t.Logf("changes: %v, of their processes killed: %v, in %s", r.done, r.killed, time.Since(start).Round(time.Second))
	t.Logf("meanwhile %d operations, by exit code: %v; %d ServiceClusters in the end", adders.operations, adders.codes, len(adders.known))
	t.Logf("the guest held %d reservations of killed processes after it had left, and %d guards of adds that were aborted as it joined", r.left, r.swept)
	reads, events := r.witness.Seen()
	t.Logf("the witness read all planes %d times and saw %d events", reads, events)
}

type ring struct {
	*ctltest.Ring
	t       *testing.T
	random  *rand.Rand
	witness *ctltest.Witness
	changer *ctltest.Shell
	adders  *adders
	acme    string
	core    []*plane.Plane
	guest   *plane.Plane // the peer that joins and leaves

	killed, done map[string]int           // by kind of change
	left, swept  int                      // objects in the guest: reservations left to a recovery, guards left to a sweep
	limit        map[string]time.Duration // upper bound of the moment of a kill
}

// core3 returns a shell with only the permanent members configured.
func (r *ring) core3() *ctltest.Shell { return r.Shell("core", r.core...) }

// change runs one change until it succeeds, however often it is killed, and checks the result.
func (r *ring) change(change string) {
	r.t.Helper()
	args := []string{"peer", change, r.guest.Name()}
	if change == forceRemove {
		args = append(args, "--i-know-it-never-returns", "--by", "the judge")
	}
	before := r.adders.acknowledged()
	for {
		result, err := r.changer.Run(r.t.Context(), 1+time.Duration(r.random.Int64N(int64(r.limit[change]))), args...)
		require.NoError(r.t, err)
		if result.Code == ctltest.Done {
			r.limit[change] -= r.limit[change] / 8
			break
		}
		require.Equal(r.t, ctltest.Killed, result.Code, "%s", result)
		r.killed[change]++
		r.limit[change] += r.limit[change] / 10
		if r.random.IntN(3) > 0 {
			continue
		}
		if r.random.IntN(3) == 0 { // by another process, with another log
			r.Shell(fmt.Sprintf("changer-%d", r.killed[change])).Succeed(r.t, args...)
		} else {
			r.recover(change)
			r.changer.Succeed(r.t, args...)
		}
		break
	}
	r.done[change]++
	r.look(change, before)
}

// recover settles the operations of killed processes. While the guest is dead, an earlier join or
// leave that a process with another log completed stays in doubt: spec.change in the PeerSet of the
// guest may still have the change.
func (r *ring) recover(change string) {
	r.t.Helper()
	if change == forceRemove {
		result := r.changer.End(r.t, "wal", "recover")
		about := func(change string) bool { return strings.Contains(result.Output, change+" of "+r.guest.Name()) }
		if result.Code == ctltest.Doubt && (about("Join") || about("Leave")) {
			return
		}
	}
	result := r.changer.Recover(r.t)
	require.Equal(r.t, ctltest.Done, result.Code, "%s", result)
}

// look checks the ring after a change. before holds the names of the objects that were acknowledged
// before the change began.
func (r *ring) look(change string, before map[string]bool) {
	r.t.Helper()
	members := slices.Clone(r.core)
	if change == join {
		members = append(members, r.guest)
	}
	r.adders.pause()
	defer r.adders.resume()
	r.requireMembers(members)
	if change == leave {
		r.adders.die(r.random)
	}
	r.adders.recover(members)
	r.requireClean(members, change)
	r.adders.requireTruth(members)
	require.Empty(r.t, r.witness.Twice())
	if change == leave {
		r.requireNothing(before)
	}
}

// requireClean audits the members. After a join it first repairs: during a join, concurrent adds
// also get a guard in the guest. If such an add aborts in a process without the guest configured,
// the guard stays until a sweep deletes it. The sweep must find nothing else.
func (r *ring) requireClean(members []*plane.Plane, change string) {
	r.t.Helper()
	auditor := r.Shell("auditor", members...)
	if change == join {
		repair := auditor.Audit(r.t, "--repair")
		for line := range strings.Lines(repair) {
			columns := strings.Fields(line)
			if len(columns) > 5 && slices.Contains([]string{"Violation", "Repaired", "Pending"}, columns[0]) {
				require.Equal(r.t, []string{"Repaired", "I6", r.guest.Name(), "ServiceCluster", r.acme}, columns[:5], "%s", repair)
				require.Contains(r.t, line, "a leftover of operation", "%s", repair)
				r.swept++
			}
		}
	}
	auditor.Audit(r.t)
}

func (r *ring) account() string {
	return r.File(r.t, fmt.Sprintf("apiVersion: catalog.kubecarrier.io/v1alpha1\nkind: Account\nmetadata:\n  name: %s\nspec:\n  roles: [Tenant]\n", r.acme))
}

func (r *ring) cluster(name string) string {
	return r.File(r.t, fmt.Sprintf("apiVersion: kubecarrier.io/v1alpha1\nkind: ServiceCluster\nmetadata:\n  namespace: %s\n  name: %s\nspec:\n  kubeconfigSecret:\n    name: %s\n", r.acme, name, name))
}
