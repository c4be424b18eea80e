// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/router/aggregate"
)

// journal records a run of a schedule, to explain a failure: the actions on regions, each step of a watch, and each
// delivered event.
type journal struct {
	mu    sync.Mutex
	began time.Time
	lines []string
}

// newJournal returns a journal that is logged if t fails.
func newJournal(t *testing.T) *journal {
	t.Helper()
	j := &journal{began: time.Now()}
	t.Cleanup(func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if t.Failed() {
			t.Log("what happened:\n" + strings.Join(j.lines, "\n"))
		}
	})
	return j
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf("%10s ", time.Since(j.began).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

func (j *journal) observer() *aggregate.Observer {
	return &aggregate.Observer{
		Listed: func(_ context.Context, outcomes []aggregate.Outcome) {
			for _, o := range outcomes {
				j.note("    %s list: %s, %d items, %v", o.Region, o.State, o.Items, o.Err)
			}
		},
		Followed: func(_ context.Context, e aggregate.FollowEvent) {
			j.note("    %s %s: %s, %v", e.Region, e.Step, e.State, e.Err)
		},
	}
}

func (j *journal) event(kind watch.EventType, o *unstructured.Unstructured) {
	j.note("        %s %s %s", kind, id(o), text(o))
}
