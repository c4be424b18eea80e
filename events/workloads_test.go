// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account"
	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/wal/waltest"
)

var (
	accountsResource = schema.GroupVersionResource{Group: "catalog.kubecarrier.io", Version: "v1alpha1", Resource: "accounts"}
	deployments      = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	policies         = schema.GroupVersionResource{Group: "splitter.atoll.dev", Version: "v1alpha1", Resource: "placementpolicies"}
	configMaps       = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

func TestEventsOfOperations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e    fanout.StepEvent
		want string
	}{
		"before the command": {fanout.StepEvent{UID: "1", Finalizers: []string{"f"}}, ""},
		"nothing waits":      {fanout.StepEvent{UID: "1", Done: true}, ""},
		"not read":           {fanout.StepEvent{Done: true, Finalizers: []string{"f"}}, ""},
		"waits":              {fanout.StepEvent{UID: "1", Done: true, Finalizers: []string{"f"}}, "Normal RemovalWaits"},
		"held":               {fanout.StepEvent{UID: "1", Done: true, Held: "too many"}, "Warning RemovalHeld"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireEvent(t, c.want)(ofStep(c.e))
		})
	}
}

func TestEventsOfDivision(t *testing.T) {
	t.Parallel()
	divided := ofDivision(splitter.DividedEvent{Plan: splitter.Plan{Shards: []splitter.Assignment{{Cluster: "a", Replicas: 2}, {Cluster: "b"}, {Cluster: "c", Replicas: 1}}}})
	require.Equal(t, "Normal Divided it is divided over clusters: a 2, c 1", string(divided.Type)+" "+divided.Reason+" "+divided.Message)
	require.Equal(t, "it is divided over no cluster", ofDivision(splitter.DividedEvent{}).Message)
	failed := ofDivision(splitter.DividedEvent{Err: errors.New("refused")})
	require.Equal(t, "Warning DivisionFailed it could not be divided: refused", string(failed.Type)+" "+failed.Reason+" "+failed.Message)
	for name, c := range map[string]struct {
		e    splitter.ReportedEvent
		want string
	}{
		"first placed":     {splitter.ReportedEvent{Condition: "Placed", Status: "True", Reason: "Placed"}, ""},
		"placed again":     {splitter.ReportedEvent{Condition: "Placed", Before: "False", Status: "True", Reason: "Placed"}, "Normal AllPlaced"},
		"unplaced":         {splitter.ReportedEvent{Condition: "Placed", Before: "True", Status: "False", Reason: "Unplaced"}, "Warning Unplaced"},
		"rollout goes on":  {splitter.ReportedEvent{Condition: "Progressing", Status: "True", Reason: "ReplicaSetUpdated"}, ""},
		"rollout is stuck": {splitter.ReportedEvent{Condition: "Progressing", Before: "True", Status: "False", Reason: "ProgressDeadlineExceeded"}, "Warning ProgressDeadlineExceeded"},
		"other condition":  {splitter.ReportedEvent{Condition: "Available", Before: "True", Status: "False", Reason: "MinimumReplicasUnavailable"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireEvent(t, c.want)(ofCondition(c.e))
		})
	}
}

func TestEventsOfPlacement(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e    placement.PlacedEvent
		want string
	}{
		"placed":      {placement.PlacedEvent{After: []string{"a"}}, "Normal Placed"},
		"moves":       {placement.PlacedEvent{Before: []string{"a"}, After: []string{"a", "b"}, Leaving: []string{"a"}}, "Normal Moved"},
		"left":        {placement.PlacedEvent{Before: []string{"a", "b"}, After: []string{"b"}}, "Normal Left"},
		"one more":    {placement.PlacedEvent{Before: []string{"a"}, After: []string{"a", "b"}}, "Normal Moved"},
		"same":        {placement.PlacedEvent{Before: []string{"a"}, After: []string{"a"}}, ""},
		"nowhere":     {placement.PlacedEvent{}, ""},
		"no clusters": {placement.PlacedEvent{Before: []string{"a"}}, "Normal NotPlaced"},
		"failed":      {placement.PlacedEvent{After: []string{"a"}, Err: errors.New("refused")}, "Warning PlacementFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireEvent(t, c.want)(ofPlacement(c.e))
		})
	}
	moved, _ := ofPlacement(placement.PlacedEvent{Before: []string{"a"}, After: []string{"a", "b"}, Leaving: []string{"a"}, By: "spread"})
	require.Equal(t, "it moves to b and leaves a, by policy spread", moved.Message)
}

func TestEventsOfSync(t *testing.T) {
	t.Parallel()
	requireEvent(t, "Warning SyncForeign")(ofProblem(syncer.ProblemEvent{UID: "1", Reason: syncer.ReasonForeign}))
	requireEvent(t, "Normal Synced")(ofProblem(syncer.ProblemEvent{UID: "1"}))
	requireEvent(t, "")(ofProblem(syncer.ProblemEvent{Reason: syncer.ReasonForbidden}))
}

// reasons returns the reasons of the Events of an object in an API server. It selects Events as kubectl describe does, also
// by the UID.
func reasons(t *testing.T, api region.API, object *unstructured.Unstructured) map[string]string {
	t.Helper()
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = "default"
	}
	list, err := api.Dynamic().Resource(resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	found := map[string]string{}
	for _, item := range list.Items {
		var e corev1.Event
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &e))
		of := e.InvolvedObject
		if of.UID == object.GetUID() && of.Kind == object.GetKind() && of.Name == object.GetName() && of.Namespace == object.GetNamespace() && of.APIVersion == object.GetAPIVersion() {
			found[e.Reason] = e.Message
		}
	}
	return found
}

// running starts the parts, and returns a func that ends them.
func running(t *testing.T, parts ...func(context.Context) error) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, start := range parts {
		wg.Go(func() {
			if err := start(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// While the removal of an Account waits for the finalizer of another controller, the Account in that peer has an Event.
func TestARemovalThatWaitsIsAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := regiontest.NewRing("eu", "us")
		defer ring.Close()
		crds, err := config.TypedCRDs()
		require.NoError(t, err)
		require.NoError(t, ring.AddCRDs(crds...))
		r := New(Options{})
		end := running(t, r.Start)
		defer end()
		synctest.Wait()
		steps := 0
		c, err := fanout.New(ring, waltest.NewMemory(), fanout.Options{Kinds: account.Kinds(), Observer: r.Fanout(ring, &fanout.Observer{
			Step: func(context.Context, fanout.StepEvent) { steps++ },
		})})
		require.NoError(t, err)
		require.NoError(t, c.InitPeers(t.Context()))
		acme := &accountv1alpha1.Account{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
		acme.Spec.Roles = []accountv1alpha1.AccountRole{accountv1alpha1.AccountTenant}
		_, err = c.Add(t.Context(), acme, fanout.AddOptions{Target: "eu", Durable: true})
		require.NoError(t, err)

		conn, err := ring.Conn("us")
		require.NoError(t, err)
		client := conn.Dynamic().Resource(accountsResource)
		replica, err := client.Get(t.Context(), "acme", metav1.GetOptions{})
		require.NoError(t, err)
		replica.SetFinalizers(append(replica.GetFinalizers(), "example.com/teardown"))
		replica, err = client.Update(t.Context(), replica, metav1.UpdateOptions{})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = c.Remove(ctx, schema.GroupKind{Group: accountsResource.Group, Kind: "Account"}, types.NamespacedName{Name: "acme"}, fanout.RemoveOptions{})
		require.NoError(t, err)
		passes(time.Second)
		require.Equal(t, map[string]string{"RemovalWaits": "its removal waits for finalizers of other controllers: example.com/teardown"}, reasons(t, conn, replica))
		require.Positive(t, steps)

		_, err = client.Patch(t.Context(), "acme", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		_, err = c.Recover(t.Context())
		require.NoError(t, err)
		require.NoError(t, c.Wait(t.Context()))
	})
}

// The Events of a Deployment show where it is placed, how it is divided, and that replicas have no place.
func TestAPlacedDeploymentHasEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crd, err := config.CRD("placementpolicies.splitter.atoll.dev")
		require.NoError(t, err)
		server := regiontest.NewServer(regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
		defer server.Close()
		api, err := region.APIFor(server.Config())
		require.NoError(t, err)
		r := New(Options{})
		clusters := splitter.StaticClusters("a", "b")
		places, err := placement.New(api, clusters, placement.Options{Observer: r.Placement(api, nil)})
		require.NoError(t, err)
		splits, err := splitter.New(api, clusters, splitter.Options{Place: placement.Place, Observer: r.Splitter(api, nil)})
		require.NoError(t, err)
		end := running(t, r.Start, places.Start, splits.Start)
		defer end()
		synctest.Wait()
		create := func(resource schema.GroupVersionResource, object map[string]any) *unstructured.Unstructured {
			o, err := api.Dynamic().Resource(resource).Namespace("default").Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
			require.NoError(t, err)
			return o
		}
		create(policies, map[string]any{"apiVersion": "splitter.atoll.dev/v1alpha1", "kind": "PlacementPolicy", "metadata": map[string]any{"name": "all"}, "spec": map[string]any{}})
		app := map[string]any{"app": "web"}
		web := create(deployments, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{
			"replicas": int64(4), "selector": map[string]any{"matchLabels": app},
			"template": map[string]any{"metadata": map[string]any{"labels": app}, "spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web"}}}},
		}})
		passes(time.Minute)
		found := reasons(t, api, web)
		require.Equal(t, "it is divided over clusters: a 2, b 2", found["Divided"], "%v", found)
		require.True(t, strings.HasPrefix(found["Placed"], "it is placed on a, b"), "%v", found)
		require.Len(t, found, 2, "%v", found)

		_, err = api.Dynamic().Resource(policies).Namespace("default").Patch(t.Context(), "all", "application/merge-patch+json", []byte(`{"spec":{"maxClusters":1}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		passes(10 * time.Minute)
		found = reasons(t, api, web)
		require.Regexp(t, "^it moves to [ab] and leaves [ab], by policy all$", found["Moved"], "%v", found)
	})
}

// A ConfigMap that is not synced, because its name is taken in the cluster, has an Event with the reason.
func TestAnObjectThatIsNotSyncedHasAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream, downstream := regiontest.NewServer(regiontest.Options{Name: "up"}), regiontest.NewServer(regiontest.Options{Name: "down"})
		defer upstream.Close()
		defer downstream.Close()
		up, err := region.APIFor(upstream.Config())
		require.NoError(t, err)
		down, err := region.APIFor(downstream.Config())
		require.NoError(t, err)
		create := func(api region.API, labels map[string]any) *unstructured.Unstructured {
			o, err := api.Dynamic().Resource(configMaps).Namespace("default").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "taken", "labels": labels}, "data": map[string]any{"key": "ours"},
			}}, metav1.CreateOptions{})
			require.NoError(t, err)
			return o
		}
		create(down, nil)
		r := New(Options{})
		s, err := syncer.New(up, down, syncer.Options{Target: "edge", Observer: r.Syncer(up, nil)})
		require.NoError(t, err)
		end := running(t, r.Start, s.Start)
		defer end()
		synctest.Wait()
		taken := create(up, map[string]any{"workloads.kcp.io/cluster": "edge"})
		passes(time.Minute)
		require.Contains(t, reasons(t, up, taken)["SyncForeign"], "it is not synced: ")

		require.NoError(t, down.Dynamic().Resource(configMaps).Namespace("default").Delete(t.Context(), "taken", metav1.DeleteOptions{}))
		passes(2 * time.Hour)
		require.Contains(t, reasons(t, up, taken), "Synced")
	})
}

// The Observers of workloads call the next Observer, and those of a nil Recorder are the next Observer.
func TestObserversOfWorkloadsPassOn(t *testing.T) {
	inStage(t, Options{}, func(t *testing.T, s *stage) {
		var told []string
		note := func(what string) { told = append(told, what) }
		ctx := t.Context()
		divides := s.r.Splitter(s.api, &splitter.Observer{
			Divided:  func(context.Context, splitter.DividedEvent) { note("divided") },
			Reported: func(context.Context, splitter.ReportedEvent) { note("reported") },
			Cluster:  func(context.Context, splitter.ClusterEvent) { note("cluster") },
		})
		divides.Divided(ctx, splitter.DividedEvent{})
		divides.Reported(ctx, splitter.ReportedEvent{})
		divides.Cluster(ctx, splitter.ClusterEvent{})
		s.r.Placement(s.api, &placement.Observer{Placed: func(context.Context, placement.PlacedEvent) { note("placed") }}).Placed(ctx, placement.PlacedEvent{})
		syncs := s.r.Syncer(s.api, &syncer.Observer{
			Problem:   func(context.Context, syncer.ProblemEvent) { note("problem") },
			Overruled: func(context.Context, syncer.OverruledEvent) { note("overruled") },
			Wrote:     func(context.Context, syncer.WriteEvent) { note("wrote") },
		})
		syncs.Problem(ctx, syncer.ProblemEvent{})
		syncs.Overruled(ctx, syncer.OverruledEvent{UID: "1"})
		syncs.Wrote(ctx, syncer.WriteEvent{})
		require.Equal(t, []string{"divided", "reported", "cluster", "placed", "problem", "overruled", "wrote"}, told)

		var none *Recorder
		next := &syncer.Observer{}
		require.Same(t, next, none.Syncer(s.api, next))
		require.Nil(t, none.Splitter(s.api, nil))
		require.Nil(t, none.Placement(s.api, nil))
		require.Nil(t, none.Fanout(nil, nil))
	})
}
