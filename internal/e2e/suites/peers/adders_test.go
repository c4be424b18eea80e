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

// adders are processes that add and remove ServiceClusters all the time.
type adders struct {
	ring    *ring
	turn    sync.RWMutex // held for reading by an operation, for writing by who looks
	running sync.WaitGroup
	stop    func() // ends them and waits until they have ended; may be called twice

	mu         sync.Mutex
	operations int
	codes      map[int]int
	known      map[string]string          // what is there, by name: where its primary is
	denied     map[string]ctltest.Result  // what was not added
	open       map[string]*ctltest.Result // what a killed or doubtful process was about
	broken     []string
	deaths     int
}

const workers = 2

// addDuring starts the adders. They have ended before the test's directories go,
// however it ends.
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

// pause waits for the operations at work, and lets none begin.
func (a *adders) pause()  { a.turn.Lock() }
func (a *adders) resume() { a.turn.Unlock() }

// shell is a worker's. It is configured as it was when the guest was no member, or
// as if it were one.
func (a *adders) shell(worker int, guest bool) *ctltest.Shell {
	planes := a.ring.core
	if guest {
		planes = a.ring.Planes
	}
	return a.ring.Shell(fmt.Sprintf("adder-%d", worker), planes...)
}

// operate adds an object, and removes it again more often than not.
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

// add adds an object, and notes what came of it. It returns whether it is there.
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

// die kills some processes that have the guest configured as they add. The
// workers are paused.
func (a *adders) die(random *rand.Rand) {
	for worker := range 2 * workers {
		a.deaths++
		name := fmt.Sprintf("late-%d", a.deaths)
		a.add(a.shell(worker%workers, true), name, random, time.Duration(1+random.Int64N(int64(200*time.Millisecond))))
	}
}

// note counts a result. It returns false if there is none.
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

// acknowledged are the names that an exit code has said are there.
func (a *adders) acknowledged() map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	names := map[string]bool{}
	for name := range a.known {
		names[name] = true
	}
	return names
}

// recover settles what the workers' logs have open, over the planes given.
func (a *adders) recover(planes []*plane.Plane) {
	a.ring.t.Helper()
	require.Empty(a.ring.t, a.broken)
	for worker := range workers {
		result := a.ring.Shell(fmt.Sprintf("adder-%d", worker), planes...).Recover(a.ring.t)
		require.Equal(a.ring.t, ctltest.Done, result.Code, "%s", result)
	}
}

// requireTruth compares what the exit codes said with what the members hold.
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
		if a.open[name] != nil { // now it is known
			a.known[name] = owner.Plane
		}
	}
	for name := range a.known {
		require.Contains(t, held, name, "what was acknowledged is not there")
	}
	for name, result := range a.open {
		if held[name] == nil {
			a.denied[name] = *result
		}
		delete(a.open, name)
	}
}
