// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// choosy returns a definition of widgets whose field status.ready has the type that the argument ready names.
func choosy(ready string) *apiextensionsv1.CustomResourceDefinition {
	made := crd("widgets", "Widget", true)
	status := made.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	status.Properties = map[string]apiextensionsv1.JSONSchemaProps{"ready": {Type: ready}}
	made.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"] = status
	return made
}

func choosyOnly(ready string) regiontest.Options {
	return regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{choosy(ready)}}
}

// statusManager is the field manager of the statuses that the syncer writes.
const statusManager = "atoll-syncer-status-" + target

// local is a rule by which the field spec.local belongs to the downstream.
var local = syncer.Rule{Type: schema.GroupKind{Group: "example.org", Kind: "Widget"}, Path: "spec.local", Owner: syncer.Downstream}

const widget = "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}"

// A status that the upstream rejects is reported once. It is sent again when the status or the spec changes, and after
// an hour, since the definition of the type may have changed.
func TestRefusedStatusUpstream(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", choosyOnly("boolean")), down: newSide(t, "down", regiontest.Options{})}
		p.start(syncer.Options{Conditions: true, Types: only(widgets.GroupResource()), Discovery: time.Hour, Rules: []syncer.Rule{local}})
		p.up.create(widgets, widget)
		p.rest()
		p.reset()
		refused := func(sent int) {
			t.Helper()
			require.Equal(t, sent, p.up.writesBy(statusManager))
			require.Equal(t, []string{"widgets default/a StatusRefused"}, p.problems())
			require.Equal(t, "False StatusRefused", conditions(p.up.get(widgets, "a"))["Synced"])
			require.Nil(t, field(p.up.get(widgets, "a"), "status", "ready"))
		}
		p.down.patch(widgets, "a", `{"status":{"ready":"yes"}}`, "status")
		time.Sleep(10 * time.Minute)
		refused(1)
		require.Equal(t, []string{"a StatusRefused"}, p.heard())
		for i := range 3 {
			p.up.patch(widgets, "a", fmt.Sprintf(`{"status":{"theirs":%d}}`, i), "status")
			p.rest()
		}
		p.up.Partition(true)
		time.Sleep(time.Minute)
		p.up.Partition(false)
		time.Sleep(time.Minute)
		refused(1)
		require.Equal(t, []string{"a StatusRefused"}, p.heard())

		p.down.patch(widgets, "a", `{"status":{"ready":"very"}}`, "status")
		p.rest()
		refused(2)
		p.up.patch(widgets, "a", `{"spec":{"size":2}}`)
		p.rest()
		refused(3)
		p.up.patch(widgets, "a", `{"spec":{"local":"yes"}}`)
		p.rest()
		refused(4)
		require.NoError(t, p.up.AddCRD(choosy("string")))
		time.Sleep(50 * time.Minute)
		refused(4)
		time.Sleep(15 * time.Minute)
		require.Equal(t, 5, p.up.writesBy(statusManager))
		require.Equal(t, "very", field(p.up.get(widgets, "a"), "status", "ready"))
		require.Empty(t, p.problems())
		require.Equal(t, "True Synced", conditions(p.up.get(widgets, "a"))["Synced"])
	})
}

// The report about a rejected status ends when the status is removed downstream.
func TestRefusedStatusThatGoes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", choosyOnly("boolean")), down: newSide(t, "down", regiontest.Options{})}
		p.start(syncer.Options{Conditions: true, Types: only(widgets.GroupResource()), Discovery: time.Hour})
		p.up.create(widgets, widget)
		p.rest()
		p.down.patch(widgets, "a", `{"status":{"ready":"yes"}}`, "status")
		p.rest()
		require.Equal(t, []string{"widgets default/a StatusRefused"}, p.problems())
		require.Equal(t, "False StatusRefused", conditions(p.up.get(widgets, "a"))["Synced"])
		p.down.patch(widgets, "a", `{"status":null}`, "status")
		p.rest()
		require.Empty(t, p.problems())
		require.Equal(t, "True Synced", conditions(p.up.get(widgets, "a"))["Synced"])
	})
}

// If a rule gives a part of the status to the upstream, and the downstream rejects this part, that is reported. The
// other fields of the status still go up.
func TestRefusedStatusDownstream(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", regiontest.Options{}), down: newSide(t, "down", choosyOnly("boolean"))}
		p.start(syncer.Options{Conditions: true, Types: only(widgets.GroupResource()), Discovery: time.Hour, Rules: []syncer.Rule{
			local,
			{Type: schema.GroupKind{Group: "example.org", Kind: "Widget"}, Path: "status.ready", Owner: syncer.Upstream},
		}})
		p.up.create(widgets, widget)
		p.rest()
		p.reset()
		refused := func(sent int) {
			t.Helper()
			require.Equal(t, sent, p.down.writesBy(statusManager))
			require.Equal(t, []string{"widgets default/a StatusRefused"}, p.problems())
			require.Equal(t, "False StatusRefused", conditions(p.up.get(widgets, "a"))["Synced"])
			require.Nil(t, field(p.down.get(widgets, "a"), "status", "ready"))
		}
		p.up.patch(widgets, "a", `{"status":{"ready":"yes"}}`, "status")
		time.Sleep(10 * time.Minute)
		refused(1)
		require.Equal(t, []string{"a StatusRefused"}, p.heard())
		for i := range 3 {
			p.down.patch(widgets, "a", fmt.Sprintf(`{"status":{"address":"%d"}}`, i), "status")
			p.rest()
			require.Equal(t, fmt.Sprint(i), field(p.up.get(widgets, "a"), "status", "address"))
		}
		p.down.Partition(true)
		time.Sleep(time.Minute)
		p.down.Partition(false)
		time.Sleep(time.Minute)
		refused(1)
		require.Equal(t, []string{"a StatusRefused"}, p.heard())

		p.up.patch(widgets, "a", `{"status":{"ready":"very"}}`, "status")
		p.rest()
		refused(2)
		p.up.patch(widgets, "a", `{"spec":{"size":2}}`)
		p.rest()
		refused(3)
		p.down.patch(widgets, "a", `{"spec":{"local":"yes"}}`)
		p.rest()
		refused(4)
		p.up.patch(widgets, "a", `{"status":{"ready":true}}`, "status")
		p.rest()
		require.Equal(t, 5, p.down.writesBy(statusManager))
		require.Equal(t, true, field(p.down.get(widgets, "a"), "status", "ready"))
		require.Empty(t, p.problems())
		require.Equal(t, "True Synced", conditions(p.up.get(widgets, "a"))["Synced"])
	})
}

// For each code by which a server rejects the content of a status, the syncer sends the status once and reports
// StatusRefused.
func TestStatusRefusedInOtherWords(t *testing.T) {
	for _, code := range []int{http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{Types: only(widgets.GroupResource()), Discovery: time.Hour})
				p.up.create(widgets, widget)
				p.rest()
				p.reset()
				p.up.Inject(regiontest.Fault{Verb: "patch", Resource: widgets.GroupResource(), Times: -1, Do: regiontest.Refuse(code)})
				p.down.patch(widgets, "a", `{"status":{"ready":true}}`, "status")
				time.Sleep(20 * time.Minute)
				require.Equal(t, 1, p.up.writesBy(statusManager))
				require.Equal(t, []string{"a StatusRefused"}, p.heard())
			})
		})
	}
}

// A missing right to write statuses is no rejection of the status. The status is written soon after the right is granted.
func TestStatusWithoutTheRight(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		given := make(chan struct{})
		up := newSide(t, "up", regiontest.Options{Authorize: func(r regiontest.Request) error {
			select {
			case <-given:
				return nil
			default:
			}
			if r.Verb == "patch" && r.Subresource == "status" {
				return errors.New("no rule")
			}
			return nil
		}})
		p := &pair{t: t, up: up, down: newSide(t, "down", regiontest.Options{})}
		p.start(syncer.Options{Types: only(widgets.GroupResource()), Discovery: time.Hour})
		p.up.create(widgets, widget)
		p.rest()
		p.down.patch(widgets, "a", `{"status":{"ready":true}}`, "status")
		time.Sleep(10 * time.Minute)
		require.Equal(t, []string{"widgets default/a Forbidden"}, p.problems())
		close(given)
		time.Sleep(2 * time.Minute)
		require.Equal(t, true, field(p.up.get(widgets, "a"), "status", "ready"))
		require.Empty(t, p.problems())
	})
}

// An object whose status the upstream rejects can be deleted: it is deleted on both sides.
func TestRefusedStatusAndDeletion(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", choosyOnly("boolean")), down: newSide(t, "down", regiontest.Options{})}
		p.start(syncer.Options{Types: only(widgets.GroupResource()), Discovery: time.Hour})
		p.up.create(widgets, widget)
		p.rest()
		p.down.patch(widgets, "a", `{"status":{"ready":"yes"}}`, "status")
		p.rest()
		require.NoError(t, p.up.of(widgets).Delete(t.Context(), "a", metav1.DeleteOptions{}))
		p.rest()
		require.Nil(t, p.up.get(widgets, "a"))
		require.Nil(t, p.down.get(widgets, "a"))
		require.Empty(t, p.problems())
	})
}

// An object with a field that has another type downstream is reported as Refused, although servers answer with an
// internal error.
func TestRefusedForItsType(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		strict := crd("widgets", "Widget", true)
		spec := strict.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Properties = map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "string"}}
		strict.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
		p := &pair{t: t, up: newSide(t, "up", regiontest.Options{}), down: newSide(t, "down", regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{strict}})}
		p.start(syncer.Options{Types: only(widgets.GroupResource()), Discovery: time.Hour})
		p.reset()
		p.up.create(widgets, widget)
		time.Sleep(9 * time.Minute)
		require.Equal(t, []string{"widgets default/a Refused"}, p.problems())
		require.Equal(t, []string{"patch widgets a"}, p.down.writes())
	})
}
