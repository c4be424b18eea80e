// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package skew_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// upgradeIt is part of the error with which the API server refuses a change of the membership by
// the first release.
const upgradeIt = "upgrade it (atollctl, and every coordinator of the ring)"

// mix runs operations of both releases in the ring concurrently.
func (w *world) mix(steps int) {
	ring := w.ring()
	w.refused(steps > usual)
	for i, r := range []*ctltest.Ring{w.first, w.present} {
		name := fmt.Sprintf("applied-%d", i)
		manifest, err := os.ReadFile(w.cluster(name))
		require.NoError(w.t, err)
		planetest.Apply(w.t, w.core[i], string(manifest))
		r.Shell("adopter", w.core...).Succeed(w.t, "servicecluster", "adopt", name, "-n", w.acme, "--peer", w.core[i].Name())
		require.Equal(w.t, state(w.core[i].Name()), w.clusterAt(name))
	}
	var running sync.WaitGroup
	workers := []*worker{}
	for i := range 2 {
		k := &worker{world: w, number: i, random: rand.New(rand.NewPCG(w.random.Uint64(), 0)), known: map[string]state{}}
		workers = append(workers, k)
		running.Go(func() { k.work(steps) })
	}
	shared := &sharer{world: w, random: rand.New(rand.NewPCG(w.random.Uint64(), 0)), known: map[string]state{}, open: map[string]bool{}}
	running.Go(func() {
		shared.work(steps / 2)
		shared.settle()
	})
	running.Wait()
	require.False(w.t, w.t.Failed(), "a worker has failed")
	for _, k := range workers {
		w.t.Logf("worker %d: exit codes %v, %d killed, %d of them settled by the other release", k.number, k.codes, k.killed, k.crossed)
	}

	w.repair(w.first)
	w.repair(w.present)
	w.clean()
	require.Empty(w.t, w.witness.Twice())
	require.Equal(w.t, ring, w.ring())
}

// refused requires that the first release cannot change the membership. If lease is set, it also
// requires that the first release cannot recover a killed change of the present release. This check
// takes a lease, because the recovery waits for one.
func (w *world) refused(lease bool) {
	t := w.t
	join := []string{"peer", "join", w.guest.Name()}
	refused := w.first.Shell("refused", w.all()...).End(t, join...)
	require.Equal(t, ctltest.Doubt, refused.Code, "%s", refused)
	require.Contains(t, refused.Output, upgradeIt)
	w.recover(w.present, "refused")

	killed, err := w.present.Shell("mixed-join", w.all()...).With("-v").RunUntil(t.Context(), "put-peerset", join...)
	require.NoError(t, err)
	require.Equal(t, ctltest.Killed, killed.Code, "%s", killed)
	if lease {
		refused = w.first.Shell("mixed-join", w.all()...).End(t, "wal", "recover")
		require.Equal(t, ctltest.Doubt, refused.Code, "%s", refused)
		require.Contains(t, refused.Output, upgradeIt)
	}
	w.recover(w.present, "mixed-join")
	w.present.Shell("mixed-leave", w.all()...).Succeed(t, "peer", "leave", w.guest.Name())
}

// worker runs operations in sequence on names of its own. Each operation uses one of the two
// releases; all operations of a worker use one log. The worker kills some operations, and recovers
// them with either release.
type worker struct {
	*world
	number          int
	random          *rand.Rand
	known           map[string]state
	tenant          int
	codes           [6]int
	killed, crossed int
}

// change is one command with its expected result.
type change struct {
	name string
	args []string
	look func() state
	want state
	code int
}

func (k *worker) log() string { return fmt.Sprintf("mixed-%d", k.number) }

func (k *worker) work(steps int) {
	for range steps {
		if k.t.Failed() {
			return
		}
		c := k.choose()
		release := k.either(k.random)
		limit := ctltest.Never
		if k.random.IntN(3) > 0 {
			limit = time.Duration(1 + k.random.Int64N(int64(200*time.Millisecond)))
		}
		result, err := release.Shell(k.log(), k.core...).Run(k.t.Context(), limit, c.args...)
		if err != nil {
			k.t.Error(err)
			return
		}
		before := k.known[c.name]
		if result.Code == ctltest.Killed {
			k.killed++
			if k.random.IntN(3) > 0 {
				release = k.other(release)
				k.crossed++
			}
			k.recoverOver(release, k.log(), k.core)
			now := c.look()
			if !assert.Contains(k.t, []state{before, c.want}, now, "%s was %q; %s", c.name, before, result) {
				return
			}
			k.known[c.name] = now
			continue
		}
		k.codes[result.Code]++
		if !assert.Equal(k.t, c.code, result.Code, "%s was %q; %s", c.name, before, result) ||
			!assert.Equal(k.t, c.want, c.look(), "%s was %q; %s", c.name, before, result) {
			return
		}
		k.known[c.name] = c.want
	}
}

// choose returns a random change with its expected result.
func (k *worker) choose() change {
	name := fmt.Sprintf("mixed-%d-%d", k.number, k.random.IntN(3))
	tenant := fmt.Sprintf("%s-%d-%d", k.acme, k.number, k.tenant)
	cluster, account := func() state { return k.clusterAt(name) }, func() state { return k.accountAt(tenant) }
	role := []string{"Tenant", "Provider"}[k.random.IntN(2)]
	target := k.core[k.random.IntN(len(k.core))]
	is, has := k.known[name], k.known[tenant]
	switch k.random.IntN(8) {
	case 0, 1:
		if is != "" {
			return change{name, k.add(name, target), cluster, is, ctltest.Conflict}
		}
		return change{name, k.add(name, target), cluster, state(target.Name()), ctltest.Done}
	case 2, 3:
		if is == "" {
			return change{name, k.removal(name), cluster, "", ctltest.Failed}
		}
		return change{name, k.removal(name), cluster, "", ctltest.Done}
	case 4, 5:
		verb := "update"
		if has == "" {
			verb = "add"
		}
		return change{tenant, []string{"account", verb, "-f", k.account(tenant, role)}, account, state(role), ctltest.Done}
	case 6:
		if has == "" {
			return change{tenant, []string{"account", "add", "-f", k.account(tenant, role)}, account, state(role), ctltest.Done}
		}
		return change{tenant, []string{"account", "move", tenant, "--to", target.Name()}, account, has, ctltest.Done}
	default:
		// Planes without controllers keep the namespace of a removed Account, so the next Account
		// gets another name.
		k.tenant++
		if has == "" {
			return change{tenant, []string{"account", "remove", tenant}, account, "", ctltest.Failed}
		}
		return change{tenant, []string{"account", "remove", tenant}, account, "", ctltest.Done}
	}
}
