// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/syncer"
)

// The gauges are sums over the syncers that run, and follow each change of a problem.
func TestSyncerGauges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := newMetrics(t, Options{})
		ctx, end := context.WithCancel(t.Context())
		a, b := m.Syncer(ctx, nil), m.Syncer(t.Context(), nil)
		secrets := schema.GroupResource{Resource: "secrets"}
		problem := func(o *syncer.Observer, resource schema.GroupResource, name string, reason syncer.Reason) {
			o.Problem(t.Context(), syncer.ProblemEvent{Resource: resource, Object: types.NamespacedName{Name: name}, Reason: reason})
		}
		synced := func(o *syncer.Observer, resource schema.GroupResource, synced bool) {
			o.Type(t.Context(), syncer.TypeEvent{Resource: resource.WithVersion("v1"), Synced: synced})
		}
		problems := func(resource schema.GroupResource, reason syncer.Reason) int {
			return value(m.syncer.problems.WithLabelValues(resource.String(), string(reason)))
		}

		synced(a, deployment, true)
		synced(a, deployment, true) // again in another version
		synced(a, secrets, true)
		synced(b, deployment, true)
		require.Equal(t, 3, value(m.syncer.types))

		problem(a, deployment, "x", syncer.ReasonRefused)
		problem(a, deployment, "x", syncer.ReasonRefused) // with another message
		problem(a, deployment, "y", syncer.ReasonRefused)
		problem(b, deployment, "x", syncer.ReasonRefused) // the same name for another target
		problem(a, secrets, "x", syncer.ReasonForeign)
		require.Equal(t, 3, problems(deployment, syncer.ReasonRefused))
		problem(a, deployment, "x", syncer.ReasonFight)
		require.Equal(t, 2, problems(deployment, syncer.ReasonRefused))
		require.Equal(t, 1, problems(deployment, syncer.ReasonFight))
		problem(a, deployment, "x", "")
		problem(a, deployment, "z", "") // never had one
		require.Equal(t, 0, problems(deployment, syncer.ReasonFight))

		synced(a, secrets, false)
		require.Equal(t, 0, problems(secrets, syncer.ReasonForeign), "a type that is no longer synced")

		for range 2 {
			a.Another(t.Context(), syncer.AnotherEvent{Message: "a sign"})
			a.Capacity(t.Context(), syncer.CapacityEvent{Err: errors.New("forbidden")})
		}
		require.Equal(t, 1, value(m.syncer.another))
		require.Equal(t, 1, value(m.syncer.unreadable))
		a.Capacity(t.Context(), syncer.CapacityEvent{})
		require.Equal(t, 0, value(m.syncer.unreadable))

		end()
		synctest.Wait()
		problem(a, deployment, "late", syncer.ReasonFight)
		synced(a, secrets, true)
		a.Another(t.Context(), syncer.AnotherEvent{Message: "late"})
		require.Equal(t, 0, problems(deployment, syncer.ReasonFight))
		require.Equal(t, 1, problems(deployment, syncer.ReasonRefused), "of the syncer that still runs")
		require.Equal(t, 1, value(m.syncer.types))
		require.Equal(t, 0, value(m.syncer.another))
	})
}

// Each kind of write has a direction.
func TestDirections(t *testing.T) {
	for w, want := range map[syncer.Write]string{
		syncer.WriteFinalizer: "upstream", syncer.WriteRelease: "upstream", syncer.WriteStatus: "upstream", syncer.WriteFields: "upstream",
		syncer.WriteUpsync: "upstream", syncer.WriteCondition: "upstream", syncer.WriteUnscheduled: "upstream", syncer.WriteDeleteUpstream: "upstream",
		syncer.WriteNamespace: "either",
		syncer.WriteCreate:    "downstream", syncer.WriteUpdate: "downstream", syncer.WriteDelete: "downstream", syncer.WriteStatusDown: "downstream",
	} {
		require.Equal(t, want, direction(w), w)
	}
}
