// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

// keepsCopies returns an error if w deleted a copy in down although its ConfigMap exists in up.
func keepsCopies(ctx context.Context, w perturb.Write, access perturb.Access) error {
	if w.Server != "down" || w.Verb != "delete" {
		return nil
	}
	up, err := client(access, "up")
	if err != nil {
		return err
	}
	_, err = up.Get(ctx, w.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("the copy of %s was deleted", w.Name)
}

// The mistaken copier deletes a copy and creates it again, which the end state does not show. Find
// reports it only with Scenario.Always, and does not report the right copier.
func TestAlwaysFindsWhatTheEndDoesNotShow(t *testing.T) {
	edits := perturb.Options{Only: func(p perturb.Plan) bool { return p[0].Kind == perturb.EditBefore && p[0].Of.Server == "down" }}
	mistaken, right := scenario(copier{startsAnew: true}), scenario(copier{})
	require.Empty(t, perturb.Find(t, mistaken, edits).Failures, "without Always")

	mistaken.Always, right.Always = keepsCopies, keepsCopies
	var plans []string
	for _, f := range perturb.Find(t, mistaken, edits).Failures {
		require.ErrorContains(t, f.Err, "after copier delete configmaps default/a at down #1: Scenario.Always fails: the copy of a was deleted")
		plans = append(plans, f.Plan.String())
	}
	require.Contains(t, plans, "EditBefore of configmaps default/a at down, at copier update configmaps default/a at down #1")
	require.Empty(t, perturb.Find(t, right, edits).Failures, "of a controller that is right")
}

// Always is called for each write that a server has executed, with the object before and after the
// write. This includes late writes and excludes rejected ones.
func TestAlwaysSeesEachWrite(t *testing.T) {
	value := func(o map[string]any) any { return o["data"].(map[string]any)["value"] }
	shown := func(plan perturb.Plan) []string {
		var mu sync.Mutex
		var all [][]string // the writes of each run of Replay
		s := scenario(copier{})
		servers := s.Servers
		s.Servers = func() (map[string]perturb.Server, error) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, nil)
			return servers()
		}
		s.Script = slices.DeleteFunc(s.Script, func(step perturb.Step) bool { return step.Name == "make b" || step.Name == "delete b" })
		s.Script = append(s.Script, perturb.Step{Name: "delete a", Do: func(ctx context.Context, access perturb.Access) error {
			c, err := client(access, "up")
			if err != nil {
				return err
			}
			return ignoreNotFound(c.Delete(ctx, "a", metav1.DeleteOptions{}))
		}})
		s.Always = func(_ context.Context, w perturb.Write, _ perturb.Access) error {
			mu.Lock()
			defer mu.Unlock()
			text := w.Verb + ":"
			if w.Before != nil {
				text += fmt.Sprint(" from ", value(w.Before.Object))
			}
			if w.After != nil {
				text += fmt.Sprint(" to ", value(w.After.Object))
			}
			all[len(all)-1] = append(all[len(all)-1], text)
			return nil
		}
		perturb.Replay(t, s, plan)
		return all[len(all)-1]
	}
	require.Equal(t, []string{"create: to 1", "update: from 1 to 2", "create: to 2", "delete: from 2"}, shown(nil))
	update := perturb.Point{Loop: "copier", Server: "down", Verb: "update", Resource: "configmaps", Namespace: "default", Name: "a", N: 1}
	of := perturb.Object{Server: "down", Resource: "configmaps", Namespace: "default", Name: "a"}
	require.Equal(t, []string{"create: to 1", "update: from 1 to 2", "create: to 2", "delete: from 2"},
		shown(perturb.Plan{{Kind: perturb.EditBefore, At: update, Of: of}}), "the update that is refused is not shown")
	create := update
	create.Verb = "create"
	require.Contains(t, shown(perturb.Plan{{Kind: perturb.CrashAfter, At: create}}), "create: to 1")
	require.Contains(t, shown(perturb.Plan{{Kind: perturb.ApplyLate, At: update}}), "update: from 1 to 2")
}
