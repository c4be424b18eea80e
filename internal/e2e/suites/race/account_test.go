// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package race_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// TestAccountRace removes an Account while other processes add ServiceClusters to it. In every
// third round the Account begins with a ServiceCluster, which another process removes. Some
// processes are killed. In the end:
//
//   - the Account is gone with all its ServiceClusters, or
//   - it exists with all acknowledged ServiceClusters, or
//   - its removal waits for ServiceClusters. They were added while the commit of the removal was
//     under way, or after the process of the removal was killed at the beginning of the commit. The
//     removal ends when these ServiceClusters are removed.
//
// The number of rounds is half of ATOLL_ROUNDS.
func TestAccountRace(t *testing.T) {
	rounds := ctltest.Count(t, "ATOLL_ROUNDS", 10) / 2
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	planes := planetest.Shared(t, 3)
	r := &accountRaces{
		races: races{t: t, ring: ctltest.New(t, planes, len(planes)), random: rand.New(rand.NewPCG(seed, 0)), codes: map[int]int{}},
		seed:  seed,
	}
	start := time.Now()
	for n := range rounds {
		r.round(n)
	}
	t.Logf("%d rounds, %d processes, %d of them killed, in %s; ended by exit code: %v; %d Accounts were gone in the end, %d removals waited, %d were in doubt",
		rounds, r.processes, r.codes[ctltest.Killed], time.Since(start).Round(time.Second), r.codes, r.gone, r.waited, r.doubted)
}

type accountRaces struct {
	races
	seed uint64

	gone, waited, doubted int
}

func (r *accountRaces) round(n int) {
	r.t.Helper()
	r.acme = fmt.Sprintf("acme-%x-%d", r.seed, n)
	first := r.ring.Shell("first")
	first.Succeed(r.t, "account", "add", "-f", r.ring.File(r.t, fmt.Sprintf("apiVersion: catalog.kubecarrier.io/v1alpha1\nkind: Account\nmetadata:\n  name: %s\nspec:\n  roles: [Tenant]\n", r.acme)))
	target := func(i int) string { return r.ring.Planes[(n+i)%len(r.ring.Planes)].Name() }
	racers := []*racer{{args: []string{"account", "remove", r.acme, "-v"}}}
	for i := range 1 + r.random.IntN(2) {
		name := fmt.Sprintf("db-%d", i)
		racers = append(racers, &racer{payload: name, target: target(i), args: append(r.add(name, name, target(i)), "-v")})
	}
	if n%3 == 2 {
		r.usual = first.Succeed(r.t, r.add(before, before, target(2))...)
		racers = append(racers, &racer{payload: before, args: []string{"servicecluster", "remove", before, "-n", r.acme}})
	} else if r.usual == 0 {
		r.usual = 100 * time.Millisecond
	}
	var running sync.WaitGroup
	for i, p := range racers {
		p.shell = r.ring.Shell(fmt.Sprintf("racer-%d-%d", n, i))
		kill, wait := ctltest.Never, time.Duration(0)
		if r.random.IntN(4) == 0 {
			kill = 1 + time.Duration(r.random.Int64N(int64(4*r.usual)))
		}
		if i > 0 { // the removal needs some time to reach its commit, so the other processes start later
			wait = time.Duration(r.random.Int64N(int64(r.usual)))
		}
		running.Go(func() {
			sleep(r.t.Context(), wait)
			if i == 0 && n%5 == 1 { // after this log write the outcome is unknown
				p.result, p.err = p.shell.RunUntil(r.t.Context(), "log advance", p.args...)
				return
			}
			p.result, p.err = p.shell.Run(r.t.Context(), kill, p.args...)
		})
	}
	running.Wait()
	for _, p := range racers {
		require.NoError(r.t, p.err)
		r.processes++
		r.codes[p.result.Code]++
	}
	defer func() {
		if r.t.Failed() {
			for _, p := range racers {
				r.t.Logf("%s", p.result)
			}
		}
	}()
	open := func(p *racer) bool { return p.result.Code == ctltest.Killed || p.result.Code == ctltest.Doubt }
	for _, p := range racers[1:] {
		if open(p) {
			result := p.shell.Recover(r.t)
			require.Equal(r.t, ctltest.Done, result.Code, "%s", result)
		}
	}
	// The removal of the Account is recovered last: it may have waited for another operation.
	remover, waits := racers[0], false
	if open(remover) || r.removing() {
		result := remover.shell.Recover(r.t)
		require.Contains(r.t, []int{ctltest.Done, ctltest.Doubt}, result.Code, "%s", result)
		waits = result.Code == ctltest.Doubt
		require.Equal(r.t, waits, strings.Contains(result.Output, "its namespace still holds"), "%s", result)
	}
	auditor := r.ring.Shell("auditor")
	auditor.Audit(r.t)
	r.settled(racers, waits)
	if waits {
		for _, p := range racers[1:] {
			first.Succeed(r.t, "servicecluster", "remove", p.payload, "-n", r.acme, "--ignore-not-found")
		}
		result := remover.shell.Recover(r.t)
		require.Equal(r.t, ctltest.Done, result.Code, "%s", result)
		require.Empty(r.t, r.stages(), "%s", remover.result)
		auditor.Audit(r.t)
	}
}

// stages returns the stages of the Account, by plane.
func (r *accountRaces) stages() map[string]string {
	r.t.Helper()
	stages := map[string]string{}
	for _, p := range r.ring.Planes {
		objects, err := r.ring.Objects(r.t.Context(), p.Name(), ctltest.Accounts, "")
		require.NoError(r.t, err)
		if o, there := objects[r.acme]; there {
			stages[p.Name()] = o.Stage
		}
	}
	return stages
}

// removing reports whether the Account's removal is committed and not finished.
func (r *accountRaces) removing() bool {
	r.t.Helper()
	return slices.Contains(slices.Collect(maps.Values(r.stages())), "Removing")
}

// settled compares the exit codes, and waits, with the objects in the planes. waits is true if the
// recovery left the removal waiting.
func (r *accountRaces) settled(racers []*racer, waits bool) {
	r.t.Helper()
	clusters := map[string]int{}
	for _, p := range r.ring.Planes {
		objects, err := r.ring.Objects(r.t.Context(), p.Name(), ctltest.ServiceClusters, r.acme)
		require.NoError(r.t, err)
		for name, o := range objects {
			require.True(r.t, o.Role == "Secondary" || o.Stage == "Configured", "%s", o)
			clusters[name]++
		}
	}
	stages := r.stages()
	removing := slices.Contains(slices.Collect(maps.Values(stages)), "Removing")
	switch {
	case len(stages) == 0:
		r.gone++
		require.False(r.t, waits, "the Account is gone: %s", racers[0].result)
		require.Empty(r.t, clusters, "their Account is gone: %s", racers[0].result)
	case removing:
		r.waited++
		require.True(r.t, waits, "the removal is not at its end: %s", racers[0].result)
	default:
		require.Len(r.t, stages, len(r.ring.Planes), "%s", racers[0].result)
		for _, stage := range stages {
			require.Equal(r.t, "Active", stage)
		}
		if waits {
			// The log shows that the process may have sent the commit. It did not, and
			// ServiceClusters added later keep the recovery from sending it.
			r.doubted++
		}
	}
	if waits {
		require.NotEmpty(r.t, clusters, "the removal waits for nothing: %s", racers[0].result)
	}
	for name, n := range clusters {
		require.Equal(r.t, len(r.ring.Planes), n, "%s is not in every plane", name)
	}
	for i, p := range racers {
		there := clusters[p.payload] > 0
		if i == 0 {
			there = len(stages) > 0
		}
		adds := p.target != ""
		switch p.result.Code {
		case ctltest.Done:
			require.Equal(r.t, adds, there, "%s", p.result)
		case ctltest.Conflict, ctltest.Failed, ctltest.Input:
			require.Equal(r.t, !adds, there, "%s", p.result)
		case ctltest.Killed, ctltest.Doubt:
		default:
			r.t.Fatalf("unexpected: %s", p.result)
		}
	}
}
