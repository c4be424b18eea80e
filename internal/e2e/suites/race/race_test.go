// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package race_test tests processes that race for names.
package race_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }

// TestRace makes two or four processes of atollctl, each with its own log, add the same name in
// different peers. In every third round an object already holds the name, and one of the processes
// removes that object instead. Some processes are killed at a random moment, in some rounds an API
// server is frozen for a while, and at times a killed process loses its log. Meanwhile a witness
// without code of the library reads and watches all planes.
//
// No name ever has two owners. An add that exits with 0 owns the name; an add that exits with 1 or
// 3 never owned it. A removal that exits with 0 has removed the object; a removal that exits with 1
// or 3 has not. After the recovery an audit finds no violation, if necessary after a repair. The
// object can then be removed, and another object can be added under its name.
//
// ATOLL_ROUNDS is the number of rounds, ATOLL_FREEZE the maximum time for which an API server is
// frozen.
func TestRace(t *testing.T) {
	rounds := ctltest.Count(t, "ATOLL_ROUNDS", 10)
	freeze := 5 * time.Second
	if text := os.Getenv("ATOLL_FREEZE"); text != "" {
		var err error
		freeze, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	// The planes are not shared, because the test freezes them.
	var options []plane.Options
	for _, name := range plane.Names(3) {
		options = append(options, plane.Options{Name: name})
	}
	planes := planetest.NewAll(t, options...)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := &races{
		t: t, ring: ctltest.New(t, planes, len(planes)), random: rand.New(rand.NewPCG(seed, 0)),
		acme: fmt.Sprintf("acme-%x", seed), freeze: freeze, codes: map[int]int{},
	}
	first := r.ring.Shell("first")
	first.Succeed(t, "account", "add", "-f", r.ring.File(t, fmt.Sprintf("apiVersion: catalog.kubecarrier.io/v1alpha1\nkind: Account\nmetadata:\n  name: %s\nspec:\n  roles: [Tenant]\n", r.acme)))
	r.usual = first.Succeed(t, r.add("warm-up", "warm-up", "us-east")...)
	r.witness = r.ring.Witness(t.Context(), r.acme)
	defer r.witness.Stop()

	start := time.Now()
	for n := range rounds {
		r.round(n)
		if n%50 == 49 {
			t.Logf("%d rounds in %s", n+1, time.Since(start).Round(time.Second))
		}
	}
	reads, events := r.witness.Seen()
	t.Logf("%d rounds, %d with a removal, %d processes, %d of them killed, %d rounds with a frozen API server, %d logs lost, in %s; ended by exit code: %v; %d names owned in the end",
		rounds, r.removals, r.processes, r.codes[ctltest.Killed], r.frozen, r.lost, time.Since(start).Round(time.Second), r.codes, r.won)
	t.Logf("the witness read all planes %d times and saw %d events", reads, events)
}

type races struct {
	t       *testing.T
	ring    *ctltest.Ring
	random  *rand.Rand
	witness *ctltest.Witness
	acme    string
	usual   time.Duration
	freeze  time.Duration

	processes, removals, frozen, lost, won int
	codes                                  map[int]int
}

// racer is one process.
type racer struct {
	payload string // unique content of its object; for a removal, the content of the object to remove
	target  string // empty for a removal
	args    []string
	shell   *ctltest.Shell
	result  ctltest.Result
	err     error
	lost    bool // its log is never used again
}

func (r *races) manifest(name, payload string) string {
	return r.ring.File(r.t, fmt.Sprintf("apiVersion: kubecarrier.io/v1alpha1\nkind: ServiceCluster\nmetadata:\n  namespace: %s\n  name: %s\nspec:\n  kubeconfigSecret:\n    name: %s\n", r.acme, name, payload))
}

func (r *races) add(name, payload, target string) []string {
	return []string{"servicecluster", "add", name, "-n", r.acme, "--target", target, "-f", r.manifest(name, payload)}
}

// before is the payload of an object that exists before a race.
const before = "before"

// round is one race for one name.
func (r *races) round(n int) {
	r.t.Helper()
	name := fmt.Sprintf("db-%d", n)
	target := func(i int) string { return r.ring.Planes[(n+i)%len(r.ring.Planes)].Name() }
	racers := make([]*racer, 2+2*r.random.IntN(2))
	kills := make([]time.Duration, len(racers))
	for i := range racers {
		p := &racer{payload: fmt.Sprintf("racer-%d", i), target: target(i), shell: r.ring.Shell(fmt.Sprintf("racer-%d-%d", n, i))}
		p.args = r.add(name, p.payload, p.target)
		racers[i] = p
		if r.random.IntN(3) == 0 {
			kills[i] = 1 + time.Duration(r.random.Int64N(int64(4*r.usual)))
		}
	}
	if n%3 == 2 {
		r.removals++
		r.ring.Shell("before").Succeed(r.t, r.add(name, before, target(len(racers)))...)
		racers[0] = &racer{payload: before, shell: racers[0].shell, args: []string{"servicecluster", "remove", name, "-n", r.acme}}
	}
	freezes := n%20 == 7
	var frozen *plane.Plane
	var after, long time.Duration
	if freezes {
		r.frozen++
		frozen = r.ring.Planes[r.random.IntN(len(r.ring.Planes))]
		after, long = time.Duration(r.random.Int64N(int64(2*r.usual))), time.Duration(r.random.Int64N(int64(r.freeze)))
	}

	var running sync.WaitGroup
	for i, p := range racers {
		running.Go(func() {
			p.result, p.err = p.shell.Run(r.t.Context(), kills[i], p.args...)
		})
	}
	if freezes {
		r.whileFrozen(frozen, after, long)
	}
	running.Wait()
	for _, p := range racers {
		require.NoError(r.t, p.err)
		r.processes++
		r.codes[p.result.Code]++
		p.lost = p.result.Code == ctltest.Killed && r.random.IntN(20) == 0
	}
	r.compare(name, racers)
	r.recovered(name, racers, freezes)
	r.free(name)
}

// whileFrozen waits for the time after, and then freezes an API server for the time long.
func (r *races) whileFrozen(p *plane.Plane, after, long time.Duration) {
	r.t.Helper()
	sleep(r.t.Context(), after)
	require.NoError(r.t, p.Pause(r.t.Context()))
	sleep(r.t.Context(), long)
	require.NoError(r.t, p.Resume(r.t.Context()))
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// compare compares the exit codes with the objects in the planes and the owners that the witness saw.
func (r *races) compare(name string, racers []*racer) {
	r.t.Helper()
	owners := r.owners(name)
	require.LessOrEqual(r.t, len(owners), 1, "%v", owners)
	owns := func(p *racer) bool { return len(owners) == 1 && payload(owners[0]) == p.payload }
	for _, p := range racers {
		removes := p.target == ""
		switch p.result.Code {
		case ctltest.Done:
			require.Equal(r.t, !removes, owns(p), "%v; %s", owners, p.result)
			if !removes {
				require.Equal(r.t, p.target, owners[0].Plane, "%s", p.result)
			}
		case ctltest.Failed, ctltest.Conflict:
			require.Equal(r.t, removes, owns(p), "%v; %s", owners, p.result)
			for _, o := range r.witness.Owners(name) {
				require.True(r.t, removes || payload(o) != p.payload, "%v; %s", o, p.result)
			}
		case ctltest.Killed, ctltest.Doubt:
		default:
			r.t.Fatalf("unexpected: %s", p.result)
		}
	}
}

// recovered recovers the logs that were not lost. It requires that an audit then finds no
// violation, and that no exit code was wrong.
func (r *races) recovered(name string, racers []*racer, frozen bool) {
	r.t.Helper()
	repair := frozen // the thawed API server may have applied late requests
	for _, p := range racers {
		if p.lost {
			r.lost++
			repair = true
			continue
		}
		if p.result.Code == ctltest.Killed || p.result.Code == ctltest.Doubt {
			result := p.shell.Recover(r.t)
			require.Equal(r.t, ctltest.Done, result.Code, "%s", result)
		}
	}
	auditor := r.ring.Shell("auditor")
	if repair {
		// The audit deletes a reservation whose coordinator shows no heartbeat for a lease.
		auditor.Audit(r.t, "--repair")
	}
	auditor.Audit(r.t)
	r.compare(name, racers)
	require.Empty(r.t, r.witness.Twice())
	ever := slices.DeleteFunc(r.witness.Owners(name), func(o ctltest.Object) bool { return payload(o) == before })
	require.LessOrEqual(r.t, len(ever), 1, "%v", ever)
}

// free removes the object that the race left, adds an object with the same name in a random peer,
// and removes that object, too.
func (r *races) free(name string) {
	r.t.Helper()
	shell := r.ring.Shell("next")
	if owners := r.owners(name); len(owners) > 0 {
		r.won++
		shell.Succeed(r.t, "servicecluster", "remove", name, "-n", r.acme)
	}
	shell.Succeed(r.t, r.add(name, "next", r.ring.Planes[r.random.IntN(len(r.ring.Planes))].Name())...)
	shell.Succeed(r.t, "servicecluster", "remove", name, "-n", r.acme)
	for _, p := range r.ring.Planes {
		objects, err := r.ring.Objects(r.t.Context(), p.Name(), ctltest.ServiceClusters, r.acme)
		require.NoError(r.t, err)
		require.NotContains(r.t, objects, name, "%s", p.Name())
	}
}

// owners returns the present owners of a name.
func (r *races) owners(name string) []ctltest.Object {
	r.t.Helper()
	var owners []ctltest.Object
	for _, p := range r.ring.Planes {
		objects, err := r.ring.Objects(r.t.Context(), p.Name(), ctltest.ServiceClusters, r.acme)
		require.NoError(r.t, err)
		if o := objects[name]; o.Owner() {
			owners = append(owners, o)
		}
	}
	return owners
}

func payload(o ctltest.Object) string { return o.Field("spec", "kubeconfigSecret", "name") }
