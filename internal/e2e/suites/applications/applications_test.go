// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package applications_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
)

// The objects of each application go down. At least 95 % of them arrive as their authors wrote them, and the page
// docs/evidence/applications.md lists the others with the reason. The status of workloads comes back. Each object that
// is deleted upstream is deleted in the cluster.
func TestApplications(t *testing.T) {
	chosen, all := choose(t, corpus(t))
	w := newWorld(t, nil)
	var items []item
	for _, a := range chosen {
		items = append(items, w.create(t, a)...)
	}
	w.discover(t) // the types that the applications define
	found := newFindings()
	for _, a := range chosen {
		t.Run(a.name, func(t *testing.T) {
			for _, i := range items {
				if i.application == a.name {
					w.arrives(t, i, found)
				}
			}
		})
	}
	if t.Failed() {
		return
	}
	found.check(t, all, func() coverage { return w.covered(t, items) })
	w.remove(t, items)
	t.Logf("%d applications, %d objects, %s of CPU", len(chosen), len(items), cpu(t))
}

// arrives waits until an object is in its final state on both sides, and adds it to the findings.
func (w *world) arrives(t *testing.T, i item, found *findings) {
	t.Helper()
	if why := staysUp(i.written); why != "" {
		_, err := w.of(w.down, i).Get(t.Context(), i.written.GetName(), metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%s: %s: %v", i.application, i, err)
		found.add(i, comparison{changed: []string{"the object"}}, false)
		return
	}
	reports := slices.Contains(reporting, i.written.GetKind())
	var c comparison
	var last error
	planetest.Eventually(t, long, i.application+": "+i.String(), func(ctx context.Context) error {
		if ctx.Err() != nil {
			return last
		}
		up, err := w.of(w.up, i).Get(ctx, i.written.GetName(), metav1.GetOptions{})
		if err != nil {
			return errors.Join(err, last)
		}
		down, err := w.of(w.down, i).Get(ctx, i.written.GetName(), metav1.GetOptions{})
		if ctx.Err() != nil {
			return errors.Join(err, last)
		}
		if last = err; err == nil && reports {
			last = errors.Join(running(down), came(up, down))
		}
		if last != nil {
			last = fmt.Errorf("%w; the syncer reports %q", last, w.problem(i))
			return last
		}
		c = compare(i.written, up, down)
		return nil
	})
	if problem := w.problem(i); problem != "" {
		t.Errorf("%s: %s: the syncer reports %s", i.application, i, problem)
	}
	found.add(i, c, reports)
}

// remove deletes all objects upstream, custom types last, and waits until they are gone on both sides.
func (w *world) remove(t *testing.T, items []item) {
	t.Helper()
	isType := func(i item) bool { return i.written.GetKind() == "CustomResourceDefinition" }
	for _, types := range []bool{false, true} {
		for _, i := range items {
			if isType(i) == types {
				w.delete(t, i)
			}
		}
		for _, i := range items {
			if isType(i) == types {
				w.gone(t, i, w.up)
				w.gone(t, i, w.down)
			}
		}
	}
}

// delete deletes an object upstream. Nothing there removes the finalizers of its author, so delete removes them.
func (w *world) delete(t *testing.T, i item) {
	t.Helper()
	client, name := w.of(w.up, i), i.written.GetName()
	if theirs := i.written.GetFinalizers(); len(theirs) > 0 {
		patch := `{"metadata":{"$deleteFromPrimitiveList/finalizers":["` + theirs[0] + `"]}}`
		_, err := client.Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	background := metav1.DeletePropagationBackground
	require.NoError(t, client.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}))
}

func (w *world) gone(t *testing.T, i item, api region.API) {
	t.Helper()
	planetest.Eventually(t, long, fmt.Sprintf("%s: no %s", i.application, i), func(ctx context.Context) error {
		obj, err := w.of(api, i).Get(ctx, i.written.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("it has the finalizers %v; the syncer reports %q", obj.GetFinalizers(), w.problem(i))
	})
}
