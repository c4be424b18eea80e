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

// ambiguity is a fault and what a coordinator can know of a write that met it.
type ambiguity struct {
	boxtest.Fault
	class string
	again bool // clients of HTTP/2 send the request again by themselves
	swept bool // what is held back arrives only after recovery
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

// Run lets each call of each operation meet each ambiguity, or one in every, where
// calls begin with different ones. They meet on the bench that bench returns: one
// for each operation if they are to run in parallel, else one for all.
//
// What a write may have done is never called certain, and nothing but the
// protocol repeats it. What the caller is told is true, then and after recovery
// and after what was held back arrives. Recovery leaves nothing under way, and
// every invariant in force.
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
	t.Logf("the caller is told: %v", told)
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

// counted fails the test if a write arrived that the protocol did not order, or
// if none met the fault.
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
		arrived-- // the transport's
	}
	require.LessOrEqual(t, arrived, steps.begun, "writes were repeated behind the protocol's back")
}

// classified fails the test unless the step that met the fault was judged as it
// should be.
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
		require.True(t, inEffect, "it was said to be committed")
	case errors.Is(told, fanout.ErrAborted), errors.Is(told, fanout.ErrEnded):
		require.False(t, inEffect, "it was said not to be in effect: %v", told)
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

// clean fails the test unless every invariant is in force and nothing is under
// way.
func clean(t *testing.T, c *fanout.Coordinator) {
	t.Helper()
	report, err := c.Audit(t.Context(), false)
	require.NoError(t, err)
	require.NoError(t, report.Unread.Err())
	require.Empty(t, report.Violations)
	require.Empty(t, report.Pending)
}

// String names the ambiguity.
func (a ambiguity) String() string {
	if a.swept {
		return a.Fault.String() + ", after recovery"
	}
	return a.Fault.String()
}
