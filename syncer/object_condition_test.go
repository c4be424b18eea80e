// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// conditions returns the conditions of an object's status by type, as "status reason".
func conditions(obj *unstructured.Unstructured) map[string]string {
	found := map[string]string{}
	all, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range all {
		fields := c.(map[string]any)
		reason, _ := fields["reason"].(string)
		found[fields["type"].(string)] = fields["status"].(string) + " " + reason
	}
	return found
}

// conditionOf returns the condition in the annotation of an object, as "status reason", or "" without the annotation.
func conditionOf(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	var c map[string]string
	text := obj.GetAnnotations()["synced.syncer.atoll.dev/my-cluster"]
	if text == "" {
		return ""
	}
	require.NoError(t, json.Unmarshal([]byte(text), &c))
	return c["status"] + " " + c["reason"]
}

func TestConditions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Conditions: true})
		p.up.create(deployments, deployment)
		p.rest()
		require.Equal(t, map[string]string{"Synced": "True Synced"}, conditions(p.up.get(deployments, "web")))
		p.down.patch(deployments, "web", `{"status":{"observedGeneration":1,"replicas":2,"conditions":[{"type":"Available","status":"True","reason":"Enough"}]}}`, "status")
		p.rest()
		require.Equal(t, map[string]string{"Synced": "True Synced", "Available": "True Enough"}, conditions(p.up.get(deployments, "web")))
		require.NotContains(t, asJSON(t, p.down.get(deployments, "web")), "Synced", "the condition does not go down")

		p.reset()
		p.down.Inject(regiontest.Fault{Verb: "patch", Resource: deployments.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusUnprocessableEntity)})
		p.up.patch(deployments, "web", `{"spec":{"replicas":3}}`)
		p.rest()
		up := p.up.get(deployments, "web")
		require.Equal(t, map[string]string{"Synced": "False Refused", "Available": "True Enough"}, conditions(up))
		require.EqualValues(t, 2, field(up, "status", "replicas"), "the last known status stays")
		require.Len(t, p.up.writes(), 2, "the user's write and the condition")
		time.Sleep(9 * time.Minute)
		require.Len(t, p.up.writes(), 2)
		p.down.Reset()
		p.up.patch(deployments, "web", `{"spec":{"replicas":4}}`)
		p.rest()
		require.Equal(t, map[string]string{"Synced": "True Synced", "Available": "True Enough"}, conditions(p.up.get(deployments, "web")))

		p.reset()
		p.stop()
		p.start(syncer.Options{Conditions: true})
		require.Empty(t, p.up.writes(), "a restart writes nothing")
		require.Empty(t, p.down.writes())

		// The object leaves the cluster: its condition is removed.
		p.up.patch(deployments, "web", `{"metadata":{"labels":{"workloads.kcp.io/cluster":"another"}}}`)
		p.rest()
		up = p.up.get(deployments, "web")
		require.Equal(t, map[string]string{"Available": "True Enough"}, conditions(up))
		require.Empty(t, up.GetFinalizers())
	})
}

// The condition is in an annotation if the type has no status subresource, or if its list of conditions is atomic.
func TestConditionsWithoutAPlace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Conditions: true})
		p.up.create(configMaps, a)
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}")
		p.up.create(gadgets, "{apiVersion: example.org/v1, kind: Gadget, metadata: {name: g}, spec: {size: 1}}")
		p.rest()
		p.down.patch(widgets, "w", `{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True"}]}}`, "status")
		p.rest()
		p.down.patch(gadgets, "g", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
		p.rest()
		require.Equal(t, "True Synced", conditionOf(t, p.up.get(configMaps, "a")))
		require.Equal(t, "True Synced", conditionOf(t, p.up.get(widgets, "w")))
		require.Equal(t, map[string]string{"Ready": "True "}, conditions(p.up.get(widgets, "w")))
		require.Equal(t, "True Synced", conditionOf(t, p.up.get(gadgets, "g")))
		require.Equal(t, map[string]string{"Ready": "True "}, conditions(p.up.get(gadgets, "g")))
		require.Empty(t, p.down.get(configMaps, "a").GetAnnotations()["synced.syncer.atoll.dev/my-cluster"])
		p.reset()
		p.rest()
		require.Empty(t, p.up.writes())
		p.stop()
		p.start(syncer.Options{Conditions: true})
		require.Empty(t, p.up.writes(), "a restart writes nothing")
		require.Empty(t, p.down.writes())

		p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, labels: {theirs: 'yes'}}}")
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign}}")
		p.rest()
		require.Equal(t, "False Foreign", conditionOf(t, p.up.get(configMaps, "foreign")))
		p.up.patch(configMaps, "a", `{"metadata":{"labels":{"workloads.kcp.io/cluster":null}}}`)
		p.rest()
		require.Empty(t, conditionOf(t, p.up.get(configMaps, "a")))
	})
}

// The condition of an object of a refused type is an annotation: a write of its status could itself use the power
// for which the type is refused.
func TestTheConditionOfARefusedTypeIsNotInItsStatus(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Conditions: true, Refuse: func(gr schema.GroupResource, obj *unstructured.Unstructured) string {
			if gr == deployments.GroupResource() && obj == nil {
				return "not here"
			}
			return ""
		}})
		p.up.create(deployments, deployment)
		p.rest()
		up := p.up.get(deployments, "web")
		require.Equal(t, "False NotPermitted", conditionOf(t, up))
		require.Empty(t, conditions(up))
	})
}

// An object that is synced to several clusters has a condition for each of them. Detach removes the condition of its
// own cluster only.
func TestConditionsOfSeveralClusters(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		one := newPair(t, syncer.Options{Target: "one", Conditions: true})
		two := &pair{t: t, up: one.up, down: newSide(t, "two", regiontest.Options{})}
		two.down.Inject(regiontest.Fault{Verb: "patch", Resource: schema.GroupResource{Group: "apps", Resource: "deployments"}, Times: -1, Do: regiontest.Refuse(http.StatusUnprocessableEntity)})
		two.start(syncer.Options{Target: "two", Conditions: true})
		one.up.create(deployments, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {state.workload.kcp.io/one: Sync, state.workload.kcp.io/two: Sync}}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}")
		one.rest()
		require.Equal(t, map[string]string{"Synced-one": "True Synced", "Synced-two": "False Refused"}, conditions(one.up.get(deployments, "web")))
		two.stop()
		require.NoError(t, two.Detach(t.Context()))
		require.Equal(t, map[string]string{"Synced-one": "True Synced"}, conditions(one.up.get(deployments, "web")))
	})
}

// A long message is cut between two characters. If half a character were left, the server would store the message in
// another form, and the syncer would write it again and again.
func TestConditionOfManyWords(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		opts := syncer.Options{Conditions: true, Transform: []syncer.Transformer{func(*unstructured.Unstructured) error {
			return errors.New("x" + strings.Repeat("é", 1000))
		}}}
		p := newPair(t, opts)
		p.up.create(configMaps, a)
		p.rest()
		require.Equal(t, "False Transform", conditionOf(t, p.up.get(configMaps, "a")))
		p.stop()
		p.reset()
		p.start(opts)
		require.Empty(t, p.up.writes(), "a restart writes nothing")
	})
}
