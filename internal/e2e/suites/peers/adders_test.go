// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
)

// adders controls processes that continuously add and remove ServiceClusters.
type adders struct {
	ring    *ring
	turn    sync.RWMutex // read-locked by operations, write-locked by pause
	running sync.WaitGroup
	stop    func() // ends the processes and waits for their end; idempotent

	mu         sync.Mutex
	operations int
	codes      map[int]int
	known      map[string]string          // acknowledged objects: name to plane of the primary
	denied     map[string]ctltest.Result  // names that must not exist
	open       map[string]*ctltest.Result // names of unknown state: killed or in doubt
	broken     []string
	deaths     int
}

const workers = 2

// addDuring starts the processes. A cleanup ends them before the directories of the test are
// removed.
func (r *ring) addDuring() *adders {
	ended := make(chan struct{})
	a := &adders{
		ring: r, codes: map[int]int{}, known: map[string]string{},
		denied: map[string]ctltest.Result{}, open: map[string]*ctltest.Result{},
	}
	a.stop = sync.OnceFunc(func() {
		close(ended)
		a.running.Wait()
	})
	r.adders = a
	r.t.Cleanup(a.stop)
	for worker := range workers {
		random := rand.New(rand.NewPCG(r.random.Uint64(), 0))
		a.running.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-ended:
					return
				default:
				}
				a.turn.RLock()
				a.operate(random, worker, n)
				a.turn.RUnlock()
			}
		})
	}
	return a
}

// pause waits until the running operations have ended, and blocks further operations until resume.
func (a *adders) pause()  { a.turn.Lock() }
func (a *adders) resume() { a.turn.Unlock() }

// shell returns a worker's shell, configured with the guest or without it.
func (a *adders) shell(worker int, guest bool) *ctltest.Shell {
	planes := a.ring.core
	if guest {
		planes = a.ring.Planes
	}
	return a.ring.Shell(fmt.Sprintf("adder-%d", worker), planes...)
}

// operate adds an object, and in most cases also removes the object.
func (a *adders) operate(random *rand.Rand, worker, n int) {
	name := fmt.Sprintf("db-%d-%d", worker, n)
	shell := a.shell(worker, random.IntN(2) == 0)
	kill := ctltest.Never
	if random.IntN(8) == 0 {
		kill = time.Duration(1 + random.Int64N(int64(200*time.Millisecond)))
	}
	if !a.add(shell, name, random, kill) || random.IntN(10) == 0 {
		return
	}
	result, err := shell.Run(a.ring.t.Context(), ctltest.Never, "servicecluster", "remove", name, "-n", a.ring.acme)
	if !a.note(result, err) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch result.Code {
	case ctltest.Done:
		delete(a.known, name)
		a.denied[name] = result
	case ctltest.Doubt:
		delete(a.known, name)
		a.open[name] = &result
	}
}

// add adds an object and records the result. It returns true if the add was acknowledged.
func (a *adders) add(shell *ctltest.Shell, name string, random *rand.Rand, kill time.Duration) bool {
	target := a.ring.core[random.IntN(len(a.ring.core))].Name()
	result, err := shell.Run(a.ring.t.Context(), kill, "servicecluster", "add", name, "-n", a.ring.acme, "--target", target, "-f", a.ring.cluster(name))
	if !a.note(result, err) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch result.Code {
	case ctltest.Done:
		a.known[name] = target
	case ctltest.Killed, ctltest.Doubt:
		a.open[name] = &result
	default:
		a.denied[name] = result
	}
	return result.Code == ctltest.Done
}

// die starts adds with the guest configured, and kills them. The workers must be paused.
func (a *adders) die(random *rand.Rand) {
	for worker := range 2 * workers {
		a.deaths++
		name := fmt.Sprintf("late-%d", a.deaths)
		a.add(a.shell(worker%workers, true), name, random, time.Duration(1+random.Int64N(int64(200*time.Millisecond))))
	}
}

// note counts a result. It returns false if the command could not be run.
func (a *adders) note(result ctltest.Result, err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.broken = append(a.broken, err.Error())
		return false
	}
	a.operations++
	a.codes[result.Code]++
	return true
}

// acknowledged returns the names of all objects whose add was acknowledged.
func (a *adders) acknowledged() map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	names := map[string]bool{}
	for name := range a.known {
		names[name] = true
	}
	return names
}

// recover settles the open operations of the workers' logs, with the given planes configured.
func (a *adders) recover(planes []*plane.Plane) {
	a.ring.t.Helper()
	require.Empty(a.ring.t, a.broken)
	for worker := range workers {
		result := a.ring.Shell(fmt.Sprintf("adder-%d", worker), planes...).Recover(a.ring.t)
		require.Equal(a.ring.t, ctltest.Done, result.Code, "%s", result)
	}
}

// requireTruth compares the exit codes with the objects in the members.
func (a *adders) requireTruth(members []*plane.Plane) {
	t := a.ring.t
	t.Helper()
	held := map[string][]ctltest.Object{}
	for _, p := range members {
		objects, err := a.ring.Objects(t.Context(), p.Name(), ctltest.ServiceClusters, a.ring.acme)
		require.NoError(t, err)
		for name, o := range objects {
			held[name] = append(held[name], o)
		}
	}
	for name, objects := range held {
		owner := ctltest.RequireOwner(t, name, objects, len(members))
		if result, denied := a.denied[name]; denied {
			t.Fatalf("%s is there; %s", owner, result)
		}
		if target, known := a.known[name]; known {
			require.Equal(t, target, owner.Plane, "%v", objects)
		}
		if a.open[name] != nil { // the outcome is now known
			a.known[name] = owner.Plane
		}
	}
	for name := range a.known {
		require.Contains(t, held, name, "an acknowledged object is missing")
	}
	for name, result := range a.open {
		if held[name] == nil {
			a.denied[name] = *result
		}
		delete(a.open, name)
	}
}
