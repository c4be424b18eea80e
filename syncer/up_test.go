// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// A status whose observedGeneration is that of an earlier spec does not go up.
func TestStatusOfAnEarlierSpecStaysDown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(deployments, deployment)
		p.rest()
		// Each side counts its own generations: the downstream is ahead by two changes of a field that the upstream does not have.
		p.down.patch(deployments, "web", `{"spec":{"minReadySeconds":5}}`)
		p.down.patch(deployments, "web", `{"spec":{"minReadySeconds":null}}`)
		p.rest()
		theirs := p.down.get(deployments, "web").GetGeneration()
		require.Greater(t, theirs, p.up.get(deployments, "web").GetGeneration())
		status := func(generation int64, ready string) string {
			return `{"status":{"observedGeneration":` + asJSON(t, generation) + `,"replicas":2,"readyReplicas":` + ready +
				`,"conditions":[{"type":"Available","status":"True"}]}}`
		}
		p.down.patch(deployments, "web", status(theirs, "2"), "status")
		p.rest()
		up := p.up.get(deployments, "web")
		require.EqualValues(t, 2, field(up, "status", "readyReplicas"))
		require.EqualValues(t, 1, field(up, "status", "observedGeneration"), "the upstream's own generation")

		p.up.patch(deployments, "web", `{"spec":{"template":{"spec":{"hostNetwork":true}}}}`)
		p.rest()
		require.Equal(t, theirs+1, p.down.get(deployments, "web").GetGeneration())
		p.down.patch(deployments, "web", status(theirs, "1"), "status")
		p.rest()
		up = p.up.get(deployments, "web")
		require.EqualValues(t, 2, field(up, "status", "readyReplicas"), "the last known status stays")
		require.EqualValues(t, 1, field(up, "status", "observedGeneration"))
		p.down.patch(deployments, "web", status(theirs+1, "1"), "status")
		p.rest()
		up = p.up.get(deployments, "web")
		require.EqualValues(t, 1, field(up, "status", "readyReplicas"))
		require.EqualValues(t, 2, field(up, "status", "observedGeneration"))
	})
}

// If the new spec cannot be written downstream, a status there still belongs to the old spec, and does not go up.
func TestStatusWhileTheSpecIsOnItsWay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(deployments, deployment)
		p.rest()
		p.down.Inject(regiontest.Fault{Verb: "patch", Resource: deployments.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusInternalServerError)})
		p.up.patch(deployments, "web", `{"spec":{"template":{"spec":{"hostNetwork":true}}}}`)
		p.rest()
		down := p.down.get(deployments, "web")
		down.Object["status"] = map[string]any{"observedGeneration": int64(1), "readyReplicas": int64(2)}
		_, err := p.down.of(deployments).UpdateStatus(t.Context(), down, metav1.UpdateOptions{})
		require.NoError(t, err)
		p.rest()
		require.Nil(t, field(p.up.get(deployments, "web"), "status", "readyReplicas"))
		p.down.Reset()
		time.Sleep(2 * time.Minute)
		require.Nil(t, field(p.up.get(deployments, "web"), "status", "readyReplicas"))
		p.down.patch(deployments, "web", `{"status":{"observedGeneration":2,"readyReplicas":1}}`, "status")
		p.rest()
		require.EqualValues(t, 1, field(p.up.get(deployments, "web"), "status", "readyReplicas"))
	})
}

// If a status changes again while the upstream cache does not show the syncer's last write yet, the syncer waits until
// the cache shows that write, and then writes the new status. So no request has a stale resourceVersion.
func TestStatusIsNotWrittenFromAnOldCopy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", regiontest.Options{}), down: newSide(t, "down", regiontest.Options{})}
		p.up.late()
		p.start(syncer.Options{})
		p.up.create(deployments, deployment)
		for p.down.get(deployments, "web") == nil {
			time.Sleep(10 * time.Millisecond)
		}
		for i := range 20 {
			p.down.patch(deployments, "web", `{"status":{"observedGeneration":1,"replicas":20,"readyReplicas":`+asJSON(t, i)+`}}`, "status")
			time.Sleep(50 * time.Millisecond)
		}
		p.rest()
		require.EqualValues(t, 19, field(p.up.get(deployments, "web"), "status", "readyReplicas"))
		for _, r := range p.up.Requests() {
			require.NotEqual(t, http.StatusConflict, r.Code, "%s %s %s", r.Verb, r.Path, r.FieldManager)
		}
		require.Equal(t, 1, p.up.writesBy("atoll-syncer-"+target), "the finalizer, once")
	})
}

// The last known status stays upstream while a recreated downstream object has no status, and while the downstream is
// unreachable.
func TestLastKnownStatusStays(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(deployments, deployment)
		p.rest()
		p.down.patch(deployments, "web", `{"status":{"observedGeneration":1,"replicas":2,"readyReplicas":2}}`, "status")
		p.rest()
		p.down.delete(deployments, "web")
		p.rest()
		require.NotNil(t, p.down.get(deployments, "web"))
		require.EqualValues(t, 2, field(p.up.get(deployments, "web"), "status", "readyReplicas"))
		p.down.patch(deployments, "web", `{"status":{"replicas":0}}`, "status")
		p.rest()
		require.EqualValues(t, 2, field(p.up.get(deployments, "web"), "status", "readyReplicas"), "no controller has observed the object yet")

		p.down.Partition(true)
		p.reset()
		time.Sleep(10 * time.Minute)
		require.Empty(t, p.up.writes())
		for _, s := range p.Status().Types {
			if s.Reason == "" {
				require.Error(t, s.Err)
				require.Greater(t, time.Since(s.Since), 8*time.Minute, "Since is when the cache became stale")
			}
		}
		p.down.Partition(false)
		time.Sleep(time.Minute)
		p.down.patch(deployments, "web", `{"status":{"observedGeneration":1,"replicas":2,"readyReplicas":1}}`, "status")
		p.rest()
		require.EqualValues(t, 1, field(p.up.get(deployments, "web"), "status", "readyReplicas"))
	})
}

// A status goes up whether or not the type has a status subresource upstream and downstream.
func TestStatusWithAndWithoutSubresource(t *testing.T) {
	for name, test := range map[string]struct{ up, down bool }{
		"both": {true, true}, "neither": {false, false}, "upstream": {true, false}, "downstream": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				with := func(status bool) regiontest.Options {
					return regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd("widgets", "Widget", status)}}
				}
				p := &pair{t: t, up: newSide(t, "up", with(test.up)), down: newSide(t, "down", with(test.down))}
				p.start(syncer.Options{})
				p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}")
				p.rest()
				var sub []string
				if test.down {
					sub = []string{"status"}
				}
				p.reset()
				p.down.patch(widgets, "a", `{"status":{"observedGeneration":1,"ready":true,"conditions":[{"type":"Ready","status":"True","observedGeneration":1}]}}`, sub...)
				p.rest()
				up := p.up.get(widgets, "a")
				require.Equal(t, true, field(up, "status", "ready"))
				require.EqualValues(t, up.GetGeneration(), field(up, "status", "observedGeneration"))
				require.EqualValues(t, 1, field(up, "spec", "size"))
				require.Len(t, p.up.writes(), 1)
				require.Len(t, p.down.writes(), 1, "only the test's write")
				require.EqualValues(t, 1, field(p.down.get(widgets, "a"), "spec", "size"))

				p.up.patch(widgets, "a", `{"spec":{"size":2}}`)
				p.rest()
				require.EqualValues(t, 2, field(p.down.get(widgets, "a"), "spec", "size"))
				require.Equal(t, true, field(p.down.get(widgets, "a"), "status", "ready"))
				generation := asJSON(t, p.down.get(widgets, "a").GetGeneration())
				p.down.patch(widgets, "a", `{"status":{"observedGeneration":`+generation+`,"ready":null,"conditions":null}}`, sub...)
				p.rest()
				up = p.up.get(widgets, "a")
				require.Nil(t, field(up, "status", "ready"), "a field that is removed downstream is removed upstream")
				require.Nil(t, field(up, "status", "conditions"))
				require.EqualValues(t, up.GetGeneration(), field(up, "status", "observedGeneration"))
				p.reset()
				p.stop()
				p.start(syncer.Options{})
				require.Empty(t, p.up.writes())
				require.Empty(t, p.down.writes())
				require.Empty(t, p.problems())
			})
		})
	}
}

// Conditions that another client writes upstream stay.
func TestConditionsOfOthersStay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(deployments, deployment)
		p.rest()
		p.down.patch(deployments, "web", `{"status":{"observedGeneration":1,"conditions":[{"type":"Available","status":"True"}]}}`, "status")
		p.rest()
		up := p.up.get(deployments, "web")
		conditions, _, _ := unstructured.NestedSlice(up.Object, "status", "conditions")
		require.NoError(t, unstructured.SetNestedSlice(up.Object, append(conditions, map[string]any{"type": "Theirs", "status": "True"}), "status", "conditions"))
		_, err := p.up.of(deployments).UpdateStatus(t.Context(), up, metav1.UpdateOptions{FieldManager: "somebody"})
		require.NoError(t, err)
		p.rest()
		p.down.patch(deployments, "web", `{"status":{"observedGeneration":1,"conditions":[{"type":"Available","status":"False"}]}}`, "status")
		p.rest()
		status := map[string]any{}
		for _, c := range field(p.up.get(deployments, "web"), "status", "conditions").([]any) {
			status[c.(map[string]any)["type"].(string)] = c.(map[string]any)["status"]
		}
		require.Equal(t, map[string]any{"Available": "False", "Theirs": "True"}, status)
	})
}

// API servers count annotations of a Deployment as generations. Two syncers that write the status of one Deployment into
// annotations still come to rest.
func TestDeploymentOfSeveralClusters(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		one := newPair(t, syncer.Options{Target: "one"})
		two := &pair{t: t, up: one.up, down: newSide(t, "two", regiontest.Options{})}
		two.start(syncer.Options{Target: "two"})
		one.up.create(deployments, strings.Replace(deployment, "name: web", "name: web, labels: {state.workload.kcp.io/one: Sync, state.workload.kcp.io/two: Sync}", 1))
		one.rest()
		for i, p := range []*pair{one, two} {
			generation := p.down.get(deployments, "web").GetGeneration()
			p.down.patch(deployments, "web", fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":%d}}`, generation, i+1), "status")
		}
		one.rest()
		annotations := one.up.get(deployments, "web").GetAnnotations()
		require.JSONEq(t, `{"replicas":1}`, annotations["status.workload.kcp.io/one"])
		require.JSONEq(t, `{"replicas":2}`, annotations["status.workload.kcp.io/two"])
		one.reset()
		time.Sleep(time.Hour)
		require.Empty(t, one.up.writes())
	})
}

// An object that is synced to several clusters has an annotation with the status of each cluster.
func TestObjectOfSeveralClusters(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		one := newPair(t, syncer.Options{Target: "one"})
		two := &pair{t: t, up: one.up, down: newSide(t, "two", regiontest.Options{})}
		two.start(syncer.Options{Target: "two"})
		one.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a, labels: {state.workload.kcp.io/one: Sync, state.workload.kcp.io/two: Sync, state.workload.kcp.io/three: Sync}}, spec: {size: 1}}")
		one.rest()
		for _, p := range []*pair{one, two} {
			down := p.down.get(widgets, "a")
			require.EqualValues(t, 1, field(down, "spec", "size"))
			require.Equal(t, map[string]string{"syncer.atoll.dev/owner": p.Status().Owner}, down.GetLabels(), "a cluster does not get the labels of the others")
			require.Equal(t, "default/a", down.GetAnnotations()["syncer.atoll.dev/origin"])
		}
		one.down.patch(widgets, "a", `{"status":{"observedGeneration":1,"address":"1.1.1.1"}}`, "status")
		two.down.patch(widgets, "a", `{"status":{"address":"2.2.2.2"}}`, "status")
		one.rest()
		up := one.up.get(widgets, "a")
		require.Nil(t, field(up, "status"))
		require.JSONEq(t, `{"observedGeneration":1,"address":"1.1.1.1"}`, up.GetAnnotations()["status.workload.kcp.io/one"])
		require.JSONEq(t, `{"address":"2.2.2.2"}`, up.GetAnnotations()["status.workload.kcp.io/two"])
		require.ElementsMatch(t, []string{"syncer.atoll.dev/one", "syncer.atoll.dev/two"}, up.GetFinalizers())
		for _, p := range []*pair{one, two} {
			require.NotContains(t, asJSON(t, p.down.get(widgets, "a").GetAnnotations()), "status.workload.kcp.io")
		}

		two.down.patch(widgets, "a", `{"status":{"address":"`+strings.Repeat("x", 17000)+`"}}`, "status")
		two.rest()
		require.Equal(t, []string{"widgets default/a StatusRefused"}, two.problems())
		two.down.patch(widgets, "a", `{"status":{"address":"3.3.3.3"}}`, "status")
		two.rest()
		require.Empty(t, two.problems())

		// The object leaves one of the clusters.
		one.up.patch(widgets, "a", `{"metadata":{"labels":{"state.workload.kcp.io/one":null}}}`)
		one.rest()
		require.Nil(t, one.down.get(widgets, "a"))
		require.NotNil(t, two.down.get(widgets, "a"))
		require.Equal(t, []string{"syncer.atoll.dev/two"}, one.up.get(widgets, "a").GetFinalizers())
		one.up.delete(widgets, "a")
		one.rest()
		require.Nil(t, two.down.get(widgets, "a"))
		require.Nil(t, one.up.get(widgets, "a"))
	})
}

// A status that the upstream rejects is reported. It is not sent again within 20 minutes unless it changes.
func TestRefusedStatus(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}}")
		p.rest()
		p.reset()
		p.up.Inject(regiontest.Fault{Verb: "patch", Resource: widgets.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusUnprocessableEntity)})
		p.down.patch(widgets, "a", `{"status":{"a":1}}`, "status")
		time.Sleep(10 * time.Minute)
		require.Equal(t, []string{"patch widgets/status a"}, p.up.writes())
		require.Equal(t, []string{"widgets default/a StatusRefused"}, p.problems())
		time.Sleep(10 * time.Minute)
		require.Len(t, p.up.writes(), 1)
		p.up.Reset()
		p.down.patch(widgets, "a", `{"status":{"a":2}}`, "status")
		p.rest()
		require.EqualValues(t, 2, field(p.up.get(widgets, "a"), "status", "a"))
		require.Empty(t, p.problems())
	})
}

// The field uncountedTerminatedPods, which the Job controller keeps for itself, does not go up.
func TestStatusWithoutNotes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(jobs, "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}")
		p.settle()
		p.down.patch(jobs, "a", `{"status":{"active":1,"uncountedTerminatedPods":{"succeeded":["11111111-1111-1111-1111-111111111111"]}}}`, "status")
		p.settle()
		require.Equal(t, map[string]any{"active": int64(1)}, p.up.get(jobs, "a").Object["status"])
	})
}
