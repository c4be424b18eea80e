// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"
)

func thing(name string, uid, rv int, value string) *observed {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing", "value": value}}
	o.SetName(name)
	o.SetUID(types.UID(fmt.Sprint(uid)))
	o.SetResourceVersion(fmt.Sprint(rv))
	return observedDecoded(1, o)
}

// A ledger gets random events and unfinished passes, and then a complete pass over a final state. Each change that it
// returns fits the objects that the consumer holds. In the end, the consumer holds exactly the objects of the final
// state.
func TestLedger(t *testing.T) {
	things := rapid.Custom(func(t *rapid.T) *observed {
		return thing(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name"), rapid.IntRange(1, 3).Draw(t, "uid"),
			rapid.IntRange(1, 3).Draw(t, "rv"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "value"))
	})
	states := rapid.SliceOfDistinct(things, func(o *observed) string { return o.at.name })
	rapid.Check(t, func(t *rapid.T) {
		l, held := newLedger(), map[objectKey]entry{}
		take := func(changes []change) {
			for _, c := range changes {
				before, ok := held[c.at]
				switch c.kind {
				case watch.Added:
					require.False(t, ok, "%v is added twice", c.at)
				default:
					require.True(t, ok, "%v is unknown to the consumer", c.at)
					require.Equal(t, before.uid, c.entry.uid, "%v has another UID", c.at)
				}
				if c.object != nil {
					require.Equal(t, c.entry.uid, c.object.uid, "%v has the object of another UID", c.at)
				}
				if c.kind == watch.Deleted {
					delete(held, c.at)
				} else {
					require.NotEqual(t, before.print, c.entry.print, "%v has not changed", c.at)
					held[c.at] = c.entry
				}
				after := l.after(c)
				l.commit(c)
				require.Equal(t, after, l.stamp())
			}
		}
		for range rapid.IntRange(0, 5).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "event") {
				take(l.event(rapid.SampledFrom([]watch.EventType{watch.Added, watch.Modified, watch.Deleted}).Draw(t, "kind"), things.Draw(t, "object")))
				continue
			}
			state, broken := states.Draw(t, "state"), rapid.IntRange(0, 6).Draw(t, "broken off after")
			l.begin()
			for i, o := range state {
				if i < broken {
					take(l.object(o))
				}
			}
		}
		end := states.Draw(t, "end")
		l.begin()
		for _, o := range end {
			take(l.object(o))
		}
		take(l.missing())
		require.Len(t, held, len(end))
		var sum uint64
		for _, o := range end {
			require.Equal(t, o.print, held[o.at].print)
			sum += o.print
		}
		require.Equal(t, sum, l.sum)
		take(l.all())
		require.Empty(t, held)
		require.Zero(t, l.sum)
	})
}
