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

// hands are processes that add and remove ServiceClusters all the time. Each has a log and
// names of its own, which it uses again and again.
type hands struct {
	all     []*hand
	turn    sync.RWMutex // held for reading by an operation, for writing by pause
	running sync.WaitGroup
	stop    func()
}

type hand struct {
	mu     sync.Mutex // of its log
	shell  *ctltest.Shell
	random *rand.Rand
	names  []string
	known  map[string]acknowledged
	broken error
	codes  map[int]int
	made   int
	misled int // operations that were refused by the name of a wrong cluster
}

// acknowledged is what is known of a name.
type acknowledged struct {
	payload string // of what is there; "": nothing
	uid     string // if it was looked at
	open    bool   // it is not known
	by      ctltest.Result
}

// reported says whether one of the losses is a. A process that adds an object prints its
// operation, and not its UID.
func (a acknowledged) reported(losses []loss) bool {
	return slices.ContainsFunc(losses, func(l loss) bool {
		return l.uid == a.uid || strings.Contains(a.by.Output, l.operation)
	})
}

// begin starts the processes. They have ended before the test's directories go.
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

// end stops the processes and adds up what they did.
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

// operate adds an object of a name that is free, or removes it.
func (h *hand) operate(r *restores) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := h.names[h.random.IntN(len(h.names))]
	was := h.known[name]
	if was.open {
		return // the next look tells
	}
	kill := ctltest.Never
	if h.random.IntN(8) == 0 {
		kill = time.Duration(1 + h.random.Int64N(int64(300*time.Millisecond)))
	}
	h.made++
	next := acknowledged{payload: fmt.Sprintf("%s-%d", name, h.made)}
	target := r.ring.Planes[h.random.IntN(len(r.ring.Planes))].Name()
	args := []string{"servicecluster", "add", name, "-n", r.acme, "--target", target, "-f", r.file(name, next.payload)}
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

// mislead runs an operation with kubeconfigs that are swapped, or of which two lead to one
// cluster. An addition is refused by the name of a wrong cluster. A removal may be committed
// where the object is, and leaves the wrong cluster for its recovery, by name; or it asks no
// other peer yet, since the one of the object is being brought back. While one of the clusters
// is down there may be no word of it, and one that starts answers 403 until its authorizer has
// read the roles.
func (h *hand) mislead(r *restores, args []string) (ctltest.Result, error) {
	planes := slices.Clone(r.ring.Planes)
	h.random.Shuffle(len(planes), func(i, j int) { planes[i], planes[j] = planes[j], planes[i] })
	leads := map[string]*plane.Plane{planes[0].Name(): planes[1], planes[1].Name(): planes[0], planes[2].Name(): planes[2]}
	if h.random.IntN(2) == 0 {
		leads[planes[0].Name()] = planes[0] // and planes[1] as well
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
	excused := named || restarted && says("is forbidden: ")
	switch {
	case result.Code == ctltest.Input && !excused,
		result.Code == ctltest.Done && args[1] != "remove",
		result.Code == ctltest.Done && !excused && !says("no answer") && !says("is asked after peer "):
		return result, fmt.Errorf("want a word of the wrong cluster: %s", result)
	}
	return result, nil
}

// misleading is a shell with a log of its own: recover runs it with the right kubeconfigs.
func (h *hand) misleading(r *restores, leads map[string]*plane.Plane) *ctltest.Shell {
	return r.ring.ShellTo("misled-"+h.names[0], leads)
}

// requireNotAcknowledged says that a person may delete o: no process was told that it is
// there, and one is not about to be told.
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

// requireTruth compares what was acknowledged with what the planes hold, and with what was
// reported as lost. What was open is known from then on.
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
			case now.payload == was.payload:
			case now.payload == "" && was.reported(losses):
			default:
				t.Fatalf("%s is %q, and was acknowledged as %q, which nothing reported as lost (reported: %v); %s", name, now.payload, was.payload, losses, was.by)
			}
			h.known[name] = now
		}
	}
}

func (r *restores) file(name, payload string) string {
	return r.ring.File(r.t, fmt.Sprintf("apiVersion: kubecarrier.io/v1alpha1\nkind: ServiceCluster\nmetadata:\n  namespace: %s\n  name: %s\nspec:\n  kubeconfigSecret:\n    name: %s\n", r.acme, name, payload))
}

// findings are what an audit printed as JSON, before what it says to people.
func findings(t *testing.T, result ctltest.Result) []finding {
	t.Helper()
	begin := strings.Index(result.Output, "{")
	require.GreaterOrEqual(t, begin, 0, "%s", result)
	var list struct{ Items []finding }
	require.NoError(t, json.NewDecoder(strings.NewReader(result.Output[begin:])).Decode(&list), "%s", result)
	return list.Items
}
