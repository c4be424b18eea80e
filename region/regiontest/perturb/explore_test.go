// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

func TestARightController(t *testing.T) {
	opts := perturb.Options{Pairs: 20}
	if testing.Short() {
		opts.Plans = 20
	}
	report := perturb.Explore(t, scenario(copier{}), opts)
	require.Equal(t, cmp.Or(opts.Plans, report.Plans)+opts.Pairs, report.Runs)
	require.LessOrEqual(t, report.Missed, report.Runs/20)
}

// Find finds each of these mistakes of the copier: with every kind of fault in by, and with the plan in
// docs/perturbation.md.
func TestSeededMistakes(t *testing.T) {
	for name, test := range map[string]struct {
		copier copier
		by     []perturb.Kind
		plan   string
	}{
		"a stale read":              {copier{mixesReads: true}, []perturb.Kind{perturb.WatchLate}, "WatchLate at copier watch configmaps at up #3"},
		"a lost intermediate state": {copier{countsEvents: true}, []perturb.Kind{perturb.WatchGap, perturb.CrashBefore, perturb.CrashAfter, perturb.EditBefore}, "WatchGap at copier watch configmaps at up #1"},
		"an unobserved deletion":    {copier{awaitsDeletions: true}, []perturb.Kind{perturb.CrashBefore}, "CrashBefore at copier delete configmaps default/b at down #1"},
	} {
		t.Run(name, func(t *testing.T) {
			report := perturb.Find(t, scenario(test.copier), perturb.Options{Only: func(p perturb.Plan) bool {
				return !testing.Short() || slices.Contains(test.by, p[0].Kind)
			}})
			found, plans := map[perturb.Kind]bool{}, map[string]error{}
			for _, f := range report.Failures {
				require.Len(t, f.Plan, 1)
				found[f.Plan[0].Kind] = true
				plans[f.Plan.String()] = f.Err
			}
			require.ErrorContains(t, plans[test.plan], "it ends in another state")
			for _, kind := range test.by {
				require.True(t, found[kind], "%s by %s; found: %v", name, kind, found)
			}
		})
	}
}

// A fault deletes an object of a user during the rest at the end of the run, before the third heartbeat of a loop.
// The user creates the object again, so the run ends in the same state as the undisturbed run.
func TestWhatIsDeletedAtRestIsMadeAgain(t *testing.T) {
	s := scenario(copier{})
	s.Loops = []perturb.Loop{{Name: "beats", Run: func(ctx context.Context, access perturb.Access) error {
		up, err := client(access, "up")
		if err != nil {
			return err
		}
		for {
			patch := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"beat"},"data":{"at":%q}}`, time.Now())
			if _, err := up.Patch(ctx, "beat", types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: "beats"}); err != nil {
				return err
			}
			select {
			case <-time.After(20 * time.Minute):
			case <-ctx.Done():
				return nil
			}
		}
	}}}
	s.Script = s.Script[:1]
	s.Beats = func(p perturb.Point) bool { return p.Name == "beat" }
	s.Differ = []perturb.Field{{Resource: "configmaps", Path: "data.at"}}
	perturb.Replay(t, s, perturb.Plan{{
		Kind: perturb.DeleteBefore,
		At:   perturb.Point{Loop: "beats", Server: "up", Verb: "patch", Resource: "configmaps", Namespace: "default", Name: "beat", N: 3},
		Of:   perturb.Object{Server: "up", Resource: "configmaps", Namespace: "default", Name: "a"},
	}})
}
