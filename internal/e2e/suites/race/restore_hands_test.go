// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package race_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
)

// hands controls processes that continuously add and remove ServiceClusters. Each process has its
// own log and its own names, which it reuses.
type hands struct {
	all     []*hand
	turn    sync.RWMutex // read-locked by operations, write-locked by pause
	running sync.WaitGroup
	stop    func()
}

type hand struct {
	mu     sync.Mutex // serializes the use of its log
	shell  *ctltest.Shell
	random *rand.Rand
	names  []string
	known  map[string]acknowledged
	broken error
	codes  map[int]int
	made   int
	misled int // operations whose output named a wrong cluster
}

// acknowledged is the expected state of a name.
type acknowledged struct {
	payload string // of the existing object; "": none
	uid     string // empty until requireTruth has read it
	open    bool   // the state is unknown
	by      ctltest.Result
}

// reported reports whether one of the losses is the object of a. The output of a process that adds
// an object contains the object's UID. It may lack the operation that the loss names: a request
// that gave way to an older one is tried again as another operation.
func (a acknowledged) reported(losses []loss) bool {
	return slices.ContainsFunc(losses, func(l loss) bool {
		return l.uid == a.uid || strings.Contains(a.by.Output, l.uid)
	})
}

// begin starts the processes. A cleanup ends them before the directories of the test are removed.
func (r *restores) begin() {
	for i := range 3 {
		h := &hand{
			shell: r.ring.Shell(fmt.Sprintf("hand-%d", i)), random: rand.New(rand.NewPCG(r.random.Uint64(), 0)),
			known: map[string]acknowledged{}, codes: map[int]int{},
		}
		for n := range 3 {
			h.names = append(h.names, fmt.Sprintf("db-%d-%d", i, n))
		}
		r.hands.all = append(r.hands.all, h)
	}
	ended := make(chan struct{})
	r.hands.stop = sync.OnceFunc(func() {
		close(ended)
		r.hands.running.Wait()
	})
	r.t.Cleanup(r.hands.stop)
	for _, h := range r.hands.all {
		r.hands.running.Go(func() {
			for h.broken == nil {
				select {
				case <-ended:
					return
				default:
				}
				r.hands.turn.RLock()
				h.operate(r)
				r.hands.turn.RUnlock()
			}
		})
	}
}

func (h *hands) pause()  { h.turn.Lock() }
func (h *hands) resume() { h.turn.Unlock() }

// end stops the processes and adds up their counts.
func (r *restores) end() {
	r.hands.stop()
	for _, h := range r.hands.all {
		require.NoError(r.t, h.broken)
		r.misled += h.misled
		for code, n := range h.codes {
			r.codes[code] += n
			r.operations += n
		}
	}
}

// operate adds an object under a free name, or removes the object of a name in use.
func (h *hand) operate(r *restores) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := h.names[h.random.IntN(len(h.names))]
	was := h.known[name]
	if was.open {
		return // unknown until requireTruth reads it
	}
	kill := ctltest.Never
	if h.random.IntN(8) == 0 {
		kill = time.Duration(1 + h.random.Int64N(int64(300*time.Millisecond)))
	}
	h.made++
	next := acknowledged{payload: fmt.Sprintf("%s-%d", name, h.made)}
	target := r.ring.Planes[h.random.IntN(len(r.ring.Planes))].Name()
	args := []string{"servicecluster", "add", name, "-n", r.acme, "--target", target, "-f", r.file(name, next.payload), "-o", "json"}
	if was.payload != "" {
		next = acknowledged{}
		args = []string{"servicecluster", "remove", name, "-n", r.acme}
	}
	if h.made%8 == 1 {
		next.by, h.broken = h.mislead(r, args)
	} else {
		next.by, h.broken = h.shell.With("--timeout", "10s").Run(r.t.Context(), kill, args...)
		h.codes[next.by.Code]++
	}
	switch next.by.Code {
	case ctltest.Done:
		h.known[name] = next
	case ctltest.Killed, ctltest.Doubt:
		h.known[name] = acknowledged{payload: next.payload, open: true, by: next.by}
	}
}

// mislead runs an operation with kubeconfigs that are swapped, or of which two lead to one cluster.
//
//   - An add must be refused with the name of a wrong cluster.
//   - A removal may be committed in the object's cluster. It then leaves the other peers to its
//     recovery. Either it names the wrong cluster, or it has sent no request to the other peers
//     because the object's cluster is being restored.
//   - While one of the clusters is down, the wrong cluster may remain undetected: connections to it
//     are refused, and once it starts it answers 403 until its authorizer has read the roles.
func (h *hand) mislead(r *restores, args []string) (ctltest.Result, error) {
	planes := slices.Clone(r.ring.Planes)
	h.random.Shuffle(len(planes), func(i, j int) { planes[i], planes[j] = planes[j], planes[i] })
	leads := map[string]*plane.Plane{planes[0].Name(): planes[1], planes[1].Name(): planes[0], planes[2].Name(): planes[2]}
	if h.random.IntN(2) == 0 {
		leads[planes[0].Name()] = planes[0] // the kubeconfig of planes[1] leads there, too
	}
	begun := r.restarts.Load()
	result, err := h.misleading(r, leads).With("--timeout", "10s").Run(r.t.Context(), ctltest.Never, args...)
	if err != nil {
		return result, err
	}
	named := strings.Contains(result.Output, "two peers reach one cluster: ")
	for peer, leadsTo := range leads {
		named = named || peer != leadsTo.Name() && strings.Contains(result.Output, "the cluster behind peer "+peer+" calls itself "+leadsTo.Name())
	}
	if named {
		h.misled++
	}
	restarted := begun%2 == 1 || r.restarts.Load() != begun
	says := func(text string) bool { return strings.Contains(result.Output, text) }
	excused := named || restarted && (says("is forbidden: ") || says("connection refused") || says("before all known HTTP paths have been installed"))
	switch {
	case result.Code == ctltest.Input && !excused,
		result.Code == ctltest.Done && args[1] != "remove",
		result.Code == ctltest.Done && !excused && !says("no answer") && !says("is asked after peer "):
		return result, fmt.Errorf("the output does not name the wrong cluster: %s", result)
	}
	return result, nil
}

// misleading returns a shell with a log of its own, so that restores.recover can later use the log
// with the right kubeconfigs.
func (h *hand) misleading(r *restores, leads map[string]*plane.Plane) *ctltest.Shell {
	return r.ring.ShellTo("misled-"+h.names[0], leads)
}

// requireNotAcknowledged requires that no process has acknowledged o, so that a person may delete
// o. It takes the lock of each hand, and so waits for the running operations.
func (h *hands) requireNotAcknowledged(t *testing.T, o ctltest.Object) {
	t.Helper()
	for _, w := range h.all {
		w.mu.Lock()
		known, ours := w.known[o.Name]
		w.mu.Unlock()
		if ours && !known.open {
			require.NotEqual(t, known.payload, payload(o), "%s is to be deleted by a person, and was acknowledged by %s", o, known.by)
		}
	}
}

// requireTruth compares the expected states with the objects in the planes and the reported losses.
// It records the state of the names whose state was unknown.
func (r *restores) requireTruth(losses []loss) {
	t := r.t
	t.Helper()
	held := map[string][]ctltest.Object{}
	for _, p := range r.ring.Planes {
		objects, err := r.ring.Objects(t.Context(), p.Name(), ctltest.ServiceClusters, r.acme)
		require.NoError(t, err)
		for name, o := range objects {
			held[name] = append(held[name], o)
		}
	}
	for _, h := range r.hands.all {
		require.NoError(t, h.broken)
		for _, name := range h.names {
			was, there := h.known[name], held[name]
			now := acknowledged{by: was.by}
			if len(there) > 0 {
				owner := ctltest.RequireOwner(t, name, there, len(r.ring.Planes))
				now.payload, now.uid = payload(owner), owner.UID
			}
			switch {
			case was.open:
			case now.payload == was.payload && (was.uid == "" || now.uid == was.uid):
			case now.payload == "" && was.reported(losses):
			default:
				t.Fatalf("%s is %q of UID %q, but %q of UID %q was acknowledged and not reported as lost (reported: %v); %s",
					name, now.payload, now.uid, was.payload, was.uid, losses, was.by)
			}
			h.known[name] = now
		}
	}
}

func (r *restores) file(name, payload string) string {
	return r.ring.File(r.t, fmt.Sprintf("apiVersion: kubecarrier.io/v1alpha1\nkind: ServiceCluster\nmetadata:\n  namespace: %s\n  name: %s\nspec:\n  kubeconfigSecret:\n    name: %s\n", r.acme, name, payload))
}

// findings returns the items that an audit printed as JSON, before the messages for people.
func findings(t *testing.T, result ctltest.Result) []finding {
	t.Helper()
	begin := strings.Index(result.Output, "{")
	require.GreaterOrEqual(t, begin, 0, "%s", result)
	var list struct{ Items []finding }
	require.NoError(t, json.NewDecoder(strings.NewReader(result.Output[begin:])).Decode(&list), "%s", result)
	return list.Items
}
