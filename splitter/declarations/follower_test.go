// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package declarations_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/maintest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter/declarations"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
)

func TestMain(m *testing.M) { maintest.Main(m) }

var workloadTypes = v1alpha1.GroupVersion.WithResource("workloadtypes")

// world is an API server in memory with a Follower.
type world struct {
	*regiontest.Server
	t   *testing.T
	api region.API

	mu   sync.Mutex
	runs []string // the replicas paths of the types of each run
	busy int      // runs at this moment
	fail error    // what a run returns at once
}

func newWorld(t *testing.T, served bool) *world {
	w := &world{Server: regiontest.NewServer(regiontest.Options{History: 100000}), t: t}
	t.Cleanup(w.Close)
	if served {
		w.serve()
	}
	api, err := region.APIFor(w.Config())
	require.NoError(t, err)
	w.api = api
	return w
}

func (w *world) serve() {
	crd, err := config.CRD("workloadtypes.splitter.atoll.dev")
	require.NoError(w.t, err)
	require.NoError(w.t, w.AddCRD(crd))
}

func (w *world) run(ctx context.Context, specs []v1alpha1.WorkloadTypeSpec) error {
	var text []string
	for _, s := range specs {
		text = append(text, fmt.Sprintf("%s=%s", s.Resource.Resource, s.Replicas))
	}
	w.mu.Lock()
	w.runs = append(w.runs, strings.Join(text, " "))
	w.busy++
	fail, busy := w.fail, w.busy
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.busy--
		w.mu.Unlock()
	}()
	if busy != 1 {
		return errors.New("two runs at a time")
	}
	if fail != nil {
		return fail
	}
	<-ctx.Done()
	return nil
}

func (w *world) start(opts declarations.Options) (stop func()) {
	f, err := declarations.New(w.api, w.run, opts)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(w.t, <-done)
		require.Zero(w.t, w.busy, "Start waits for the function")
	})
	w.t.Cleanup(stop)
	w.rest()
	return stop
}

func (w *world) rest() {
	for range 15 {
		time.Sleep(time.Second)
		synctest.Wait()
	}
}

// began returns the runs that began since the last call.
func (w *world) began() []string {
	w.rest()
	w.mu.Lock()
	defer w.mu.Unlock()
	runs := w.runs
	w.runs = nil
	return runs
}

func rollouts(replicas string) string {
	return "{apiVersion: splitter.atoll.dev/v1alpha1, kind: WorkloadType, metadata: {name: rollouts.argoproj.io}, spec: {" +
		"resource: {group: argoproj.io, version: v1alpha1, resource: rollouts, kind: Rollout}, replicas: " + replicas + ", status: {available: status.availableReplicas}}}"
}

func (w *world) create(manifest string) error {
	obj := &unstructured.Unstructured{}
	require.NoError(w.t, yaml.Unmarshal([]byte(manifest), &obj.Object))
	_, err := w.api.Dynamic().Resource(workloadTypes).Create(w.t.Context(), obj, metav1.CreateOptions{})
	return err
}

func (w *world) patch(patch string) {
	w.t.Helper()
	_, err := w.api.Dynamic().Resource(workloadTypes).Patch(w.t.Context(), "rollouts.argoproj.io", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// ready returns the condition Ready of the WorkloadType of rollouts.
func (w *world) ready() string {
	w.rest()
	obj, err := w.api.Dynamic().Resource(workloadTypes).Get(w.t.Context(), "rollouts.argoproj.io", metav1.GetOptions{})
	require.NoError(w.t, err)
	c := workload.Condition(obj, "Ready")
	require.Equal(w.t, obj.GetGeneration(), c["observedGeneration"])
	return fmt.Sprint(c["status"], " ", c["reason"], " ", c["message"])
}

func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// The function runs with the types in effect, and again when they change. A spec with a fault changes nothing but the
// condition, also after a restart. At rest nothing is written.
func TestTypesComeAndGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, true)
		stop := w.start(declarations.Options{})
		require.Equal(t, []string{""}, w.began())
		require.NoError(t, w.create(rollouts("spec.replicas")))
		require.Equal(t, []string{"rollouts=spec.replicas"}, w.began())
		require.Equal(t, "True Complete the declaration is in effect", w.ready())
		w.patch(`{"metadata":{"labels":{"a":"b"}}}`)
		require.Empty(t, w.began())
		w.patch(`{"spec":{"replicas":"spec.size"}}`)
		require.Equal(t, []string{"rollouts=spec.size"}, w.began())

		w.patch(`{"spec":{"replicas":"metadata.x"}}`)
		fault := `False Invalid spec.replicas: is "metadata.x"; accepted: a field below one outside of metadata and status, such as spec.replicas; the spec of generation 2 stays in effect`
		require.Equal(t, fault, w.ready())
		require.Empty(t, w.began())
		stop()
		w.start(declarations.Options{})
		require.Equal(t, []string{"rollouts=spec.size"}, w.began())
		require.Equal(t, fault, w.ready())
		w.Reset()
		time.Sleep(time.Hour)
		for _, r := range w.Requests() {
			require.NotEqual(t, http.MethodPatch, r.Method, "at rest")
		}

		w.patch(`{"spec":{"replicas":"spec.number"}}`)
		require.Equal(t, []string{"rollouts=spec.number"}, w.began())
		require.Equal(t, "True Complete the declaration is in effect", w.ready())
		require.NoError(t, w.api.Dynamic().Resource(workloadTypes).Delete(t.Context(), "rollouts.argoproj.io", metav1.DeleteOptions{}))
		require.Equal(t, []string{""}, w.began())
	})
}

// As long as the types are not served, only the fixed ones are in effect. An object cannot declare a fixed type, nor one
// that is refused.
func TestFixedTypes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var fixed v1alpha1.WorkloadType
		require.NoError(t, yaml.UnmarshalStrict([]byte(rollouts("spec.fixed")), &fixed))
		w := newWorld(t, false)
		stop := w.start(declarations.Options{Fixed: []v1alpha1.WorkloadTypeSpec{fixed.Spec}})
		require.Equal(t, []string{"rollouts=spec.fixed"}, w.began())
		w.serve()
		time.Sleep(time.Minute)
		require.NoError(t, w.create(rollouts("spec.replicas")))
		require.Equal(t, "False Invalid spec.resource: rollouts.argoproj.io is declared by a file of the program", w.ready())
		require.Empty(t, w.began())
		stop()
		w.start(declarations.Options{Refuse: func(v1alpha1.WorkloadTypeSpec) error { return errors.New("placed whole") }})
		require.Equal(t, "False Invalid placed whole", w.ready())
		require.Equal(t, []string{""}, w.began())
	})
}

// A function that fails runs again. An unreachable API server changes nothing.
func TestFailures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, true)
		require.NoError(t, w.create(rollouts("spec.replicas")))
		w.fail = errors.New("broken")
		w.start(declarations.Options{Retry: 5 * time.Second})
		time.Sleep(time.Minute)
		runs := w.began()
		require.Greater(t, len(runs), 3)
		require.Less(t, len(runs), 30)
		w.mu.Lock()
		w.fail = nil
		w.mu.Unlock()
		require.Equal(t, []string{"rollouts=spec.replicas"}, w.began()[:1])
		require.Empty(t, w.began())
		w.Partition(true)
		time.Sleep(time.Hour)
		require.Empty(t, w.began())
	})
}

// The WorkloadTypes after the first MaxTypes, by name, are not in effect.
func TestTooMany(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, true)
		for i := range declarations.MaxTypes {
			require.NoError(t, w.create(strings.ReplaceAll(rollouts("spec.replicas"), "rollouts", fmt.Sprintf("a%02d", i))))
		}
		require.NoError(t, w.create(rollouts("spec.replicas")))
		w.start(declarations.Options{})
		require.Equal(t, "False Invalid at most 64 WorkloadTypes can be in effect: delete others", w.ready())
		runs := w.began()
		require.Len(t, runs, 1)
		require.Equal(t, declarations.MaxTypes, strings.Count(runs[0], "="))
	})
}

// Changes within Settle lead to one new run.
func TestSettle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, true)
		require.NoError(t, w.create(rollouts("spec.replicas")))
		w.start(declarations.Options{Settle: 5 * time.Second})
		w.began()
		for _, path := range []string{"a", "b", "c"} {
			w.patch(`{"spec":{"replicas":"spec.` + path + `"}}`)
			time.Sleep(time.Second)
		}
		require.Equal(t, []string{"rollouts=spec.c"}, w.began())
	})
}

// ReadOnly writes nothing.
func TestReadOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, true)
		require.NoError(t, w.create(rollouts("spec.replicas")))
		w.start(declarations.Options{ReadOnly: true})
		require.Equal(t, []string{"rollouts=spec.replicas"}, w.began())
		for _, r := range w.Requests() {
			require.NotEqual(t, http.MethodPatch, r.Method)
		}
	})
}

// The API server itself rejects a wrong name, another kind, and paths that are too long or malformed.
func TestSchema(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, true)
		for from, to := range map[string]string{
			"name: rollouts.argoproj.io": "name: other",
			"spec.replicas":              "spec..replicas",
			"status.availableReplicas":   "a" + strings.Repeat(".a", 20),
			"kind: Rollout":              "kind: ''",
		} {
			require.Error(t, w.create(strings.Replace(rollouts("spec.replicas"), from, to, 1)), to)
		}
		require.NoError(t, w.create(rollouts("spec.replicas")))
		_, err := w.api.Dynamic().Resource(workloadTypes).Patch(t.Context(), "rollouts.argoproj.io", types.MergePatchType, []byte(`{"spec":{"resource":{"kind":"Other"}}}`), metav1.PatchOptions{})
		require.ErrorContains(t, err, "kind cannot be changed")
		w.patch(`{"spec":{"resource":{"version":"v1"}}}`)
	})
}

func TestArguments(t *testing.T) {
	w := newWorld(t, false)
	_, err := declarations.New(nil, w.run, declarations.Options{})
	require.ErrorContains(t, err, "up is nil")
	_, err = declarations.New(w.api, nil, declarations.Options{})
	require.ErrorContains(t, err, "run is nil")
	_, err = declarations.New(w.api, w.run, declarations.Options{Fixed: []v1alpha1.WorkloadTypeSpec{{}}})
	require.ErrorContains(t, err, "Options.Fixed[0] (): spec.resource.version: must be set")
	_, err = declarations.New(w.api, w.run, declarations.Options{Fixed: []v1alpha1.WorkloadTypeSpec{workload.BuiltinType("jobs").Spec()}})
	require.ErrorContains(t, err, "jobs.batch is built in")
	require.ErrorContains(t, (&declarations.Follower{}).Start(t.Context()), "not made by New")
}
