// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package ambiguitytest

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/boxtest"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// ambiguity is a fault with the class that a coordinator must assign to a write that met it.
type ambiguity struct {
	boxtest.Fault
	class string
	again bool // HTTP/2 clients send the request again by themselves
	swept bool // Release is called only after recovery
}

func ambiguities() []ambiguity {
	return []ambiguity{
		{Fault: boxtest.DropRequest(), class: "Unknown"},
		{Fault: boxtest.DropReply(), class: "Unknown"},
		{Fault: boxtest.Cut(), class: "Unknown"},
		{Fault: boxtest.CutReply(), class: "Unknown"},
		{Fault: boxtest.Timeout(), class: "Unknown"},
		{Fault: boxtest.TimeoutThen(5 * time.Millisecond), class: "Unknown"},
		{Fault: boxtest.TimeoutLate(), class: "Unknown"},
		{Fault: boxtest.TimeoutLate(), class: "Unknown", swept: true},
		{Fault: boxtest.GatewayTimeout(), class: "Unknown"},
		{Fault: boxtest.ErrorAfter(), class: "Unknown"},
		{Fault: boxtest.TooMany(), class: "Unknown"},
		{Fault: boxtest.GoAway(), class: "Applied"},
		{Fault: boxtest.GoAwayLost(), class: "Unknown"},
		{Fault: boxtest.GoAwayBefore(), class: "Applied", again: true},
		{Fault: boxtest.Refuse(), class: "Applied", again: true},
		{Fault: boxtest.ProtocolError(), class: "Unknown", again: true},
	}
}

// Run makes each call of each script meet each ambiguity, as subtests. If every is n > 1, it runs
// only one in n of these pairs; different calls begin with different ambiguities. It calls bench
// once per script if parallel is set, else once for all scripts.
//
// Run requires that the coordinator assigns the class of the ambiguity to the write that met it, and
// that only the protocol repeats writes. The result that the caller got must be true at once, after
// recovery, and after delayed requests have arrived. After recovery no operation may be open, and an
// audit must find no violation.
func Run(t *testing.T, parallel bool, every int, bench func(*testing.T) *Bench) {
	t.Helper()
	var shared *Bench
	if !parallel {
		shared = bench(t)
	}
	for _, script := range scripts {
		t.Run(script.name, func(t *testing.T) {
			b := shared
			if parallel {
				t.Parallel()
				b = bench(t)
			}
			for i, call := range script.calls {
				for j, a := range ambiguities() {
					if (i+j)%every != 0 {
						continue
					}
					t.Run(call.name+"/"+a.String(), func(t *testing.T) { b.meet(t, script.operation, call, a) })
				}
			}
		})
	}
}

func (b *Bench) meet(t *testing.T, o operation, call call, a ambiguity) {
	t.Helper()
	key := types.NamespacedName{Name: b.unique("it")}
	if o.kind.Namespaced {
		key.Namespace = b.acme
	}
	keeper := b.coordinator(t, b.past, waltest.NewMemory(), nil)
	if o.before != nil {
		require.NoError(t, o.before(t.Context(), keeper, key))
	}
	for _, box := range b.boxes {
		box.Disarm()
	}
	box := b.boxes[call.peer]
	box.Arm(call.match, 0, a.Fault)
	log, steps := waltest.NewMemory(), &journal{}
	c := b.coordinator(t, b.through, log, &fanout.Observer{Step: steps.step})
	told := o.run(t.Context(), c, key)
	t.Logf("the caller gets: %v", told)
	b.counted(t, box, a, steps)
	if call.verb != "" {
		classified(t, call, a, steps)
	}
	inEffect := o.effect(b.primary(t, o, key))
	truthful(t, told, inEffect)

	if !a.swept {
		box.Release()
	}
	next := b.coordinator(t, b.through, log, nil)
	_, err := next.Recover(t.Context())
	require.NoError(t, err)
	settled(t, log)
	if a.swept {
		box.Release()
		_, err := next.Audit(t.Context(), true)
		require.NoError(t, err)
	}
	clean(t, next)
	inEffect = o.effect(b.primary(t, o, key))
	truthful(t, told, inEffect)
	held := b.held(t, o, key)
	require.Contains(t, []int{0, len(b.boxes)}, len(held), "the peers do not agree: %v", held)

	if len(held) > 0 {
		require.NoError(t, remove(o.kind)(t.Context(), keeper, key))
	}
}

// counted fails the test if the number of requests that met the fault is not one, or if more writes
// arrived at the boxes than the coordinator began.
func (b *Bench) counted(t *testing.T, box *boxtest.Box, a ambiguity, steps *journal) {
	t.Helper()
	met, arrived := 0, 0
	for _, other := range b.boxes {
		for _, r := range other.Requests() {
			if r.Fault != "" {
				require.Same(t, box, other)
				met++
			}
			if r.Method != http.MethodGet && claimed(r) && (!a.again || r.Passed > 0) {
				arrived += max(r.Passed, 1)
			}
		}
	}
	require.Equal(t, 1, met, "no request met the fault")
	steps.mu.Lock()
	defer steps.mu.Unlock()
	require.Positive(t, steps.begun)
	if a.again && a.class == "Unknown" {
		arrived-- // the HTTP/2 client sent one of them again
	}
	require.LessOrEqual(t, arrived, steps.begun, "writes were repeated behind the protocol's back")
}

// classified fails the test unless the step that met the fault has the class of the ambiguity.
func classified(t *testing.T, call call, a ambiguity, steps *journal) {
	t.Helper()
	steps.mu.Lock()
	defer steps.mu.Unlock()
	nth := call.nth
	for _, e := range steps.ended {
		if e.Peer != call.peer || e.Verb != call.verb || e.Stage != call.stage {
			continue
		}
		if nth--; nth < 0 {
			require.Equal(t, a.class, e.Class, "%s %s: %s %v", e.Peer, e.Verb, e.Code, e.Err)
			return
		}
	}
	t.Fatalf("no step is a %s %s in %s", call.verb, call.stage, call.peer)
}

func truthful(t *testing.T, told error, inEffect bool) {
	t.Helper()
	_, inDoubt := errors.AsType[*fanout.InDoubtError](told)
	switch {
	case told == nil:
		require.True(t, inEffect, "reported as committed, but not in effect")
	case errors.Is(told, fanout.ErrAborted), errors.Is(told, fanout.ErrEnded):
		require.False(t, inEffect, "reported as not in effect, but in effect: %v", told)
	default:
		require.True(t, inDoubt, "%v", told)
	}
}

// settled fails the test if the log has an open operation.
func settled(t *testing.T, log wal.Log) {
	t.Helper()
	for e, err := range log.Open(t.Context()) {
		require.NoError(t, err)
		t.Fatalf("operation %s is open: %s", e.ID, e.State)
	}
}

// clean fails the test if an audit finds a violation or a pending operation.
func clean(t *testing.T, c *fanout.Coordinator) {
	t.Helper()
	report, err := c.Audit(t.Context(), false)
	require.NoError(t, err)
	require.NoError(t, report.Unread.Err())
	require.Empty(t, report.Violations)
	require.Empty(t, report.Pending)
}

// String returns the name of the ambiguity.
func (a ambiguity) String() string {
	if a.swept {
		return a.Fault.String() + ", after recovery"
	}
	return a.Fault.String()
}
