// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// An object that is labelled for the target and whose type is not synced is reported in Status, to the Observer and in the
// condition ObjectsUnsynced, with the cause. The report ends when the label is removed or the type is synced.
func TestObjectsOfTypesThatAreNotSynced(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		own, err := config.CRD("synctargets.workload.kcp.io")
		require.NoError(t, err)
		scoped := crd("gadgets", "Gadget", false)
		scoped.Spec.Scope = apiextensionsv1.ClusterScoped
		p := &pair{t: t, up: newSide(t, "up", regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{own, crd("widgets", "Widget", true), crd("gadgets", "Gadget", false)}}),
			down: newSide(t, "down", regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{scoped}})}
		p.register()
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}")
		p.up.create(gadgets, "{apiVersion: example.org/v1, kind: Gadget, metadata: {name: a, labels: {state.workload.kcp.io/my-cluster: Sync}}, spec: {size: 1}}")
		p.up.create(configMaps, a)
		p.up.create(deployments, deployment)
		opts := syncer.Options{Heartbeat: 20 * time.Second, Types: func(gr schema.GroupResource) bool {
			return gr.Group == "example.org" || gr == configMaps.GroupResource()
		}, Report: func(gr schema.GroupResource) bool { return gr == deployments.GroupResource() }}
		p.start(opts)
		time.Sleep(2 * time.Minute)
		require.ElementsMatch(t, []string{"deployments default/web Excluded", "gadgets default/a Scope", "widgets default/a NotServedDownstream"}, p.problems())
		require.ElementsMatch(t, []string{"web Excluded", "a Scope", "a NotServedDownstream"}, p.heard())
		state, message := p.condition("ObjectsUnsynced")
		require.Equal(t, "True TypeNotSynced", state)
		require.Contains(t, message, "1 deployments.apps (default/web): objects of this type are not synced: the program leaves the type out: add it to Options.Types")
		require.Contains(t, message, "1 widgets.example.org (default/a): objects of this type are not synced: the downstream does not serve it")
		require.Contains(t, message, "1 gadgets.example.org (default/a): objects of this type are not synced: it is namespaced on one side only")
		require.NotNil(t, p.down.get(configMaps, "a"))

		before := p.heard()
		p.up.Reset()
		time.Sleep(8 * time.Minute)
		lists := 0
		for _, r := range p.up.Requests() {
			if r.Verb == "list" && r.Resource == "deployments" || r.Verb == "watch" && r.Resource == "deployments" {
				lists++
			}
		}
		require.LessOrEqual(t, lists, 2, "one list every ten minutes, and no watch")
		require.Equal(t, before, p.heard(), "nothing is reported again")

		require.NoError(t, p.down.AddCRD(crd("widgets", "Widget", true)))
		p.up.patch(deployments, "web", `{"metadata":{"labels":{"workloads.kcp.io/cluster":null}}}`)
		p.up.patch(gadgets, "a", `{"metadata":{"labels":{"state.workload.kcp.io/my-cluster":null}}}`)
		time.Sleep(11 * time.Minute)
		require.NotNil(t, p.down.get(widgets, "a"))
		require.Empty(t, p.problems())
		require.Subset(t, p.heard(), []string{"web", "a"})
		state, message = p.condition("ObjectsUnsynced")
		require.Equal(t, "False NothingUnsynced", state)
		require.Empty(t, message)
	})
}

// The syncer does not report an object that has a controller, since the controller has copied the label. It skips
// types that it may not list. Without Conditions and without a Heartbeat it lists no objects of types that are not
// synced.
func TestObjectsThatDoNotAsk(t *testing.T) {
	for _, conditions := range []bool{true, false} {
		t.Run(fmt.Sprintf("conditions=%t", conditions), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := &pair{t: t, up: newSide(t, "up", regiontest.Options{}), down: newSide(t, "down", regiontest.Options{})}
				web := p.up.create(deployments, deployment)
				labelled := fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: made, labels: {workloads.kcp.io/cluster: my-cluster},
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: %s, controller: true}]}}`, web.GetUID())
				_, err := p.up.of(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Create(t.Context(), parse(t, labelled), metav1.CreateOptions{})
				require.NoError(t, err)
				p.up.create(jobs, "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}")
				p.up.Inject(regiontest.Fault{Verb: "list", Resource: jobs.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusForbidden)})
				p.start(syncer.Options{
					Conditions: conditions, Types: func(gr schema.GroupResource) bool { return gr == configMaps.GroupResource() },
					Report: func(schema.GroupResource) bool { return true },
				})
				time.Sleep(time.Minute)
				if conditions {
					require.Equal(t, []string{"deployments default/web Excluded"}, p.problems())
				} else {
					require.Empty(t, p.problems())
				}
				for _, r := range p.up.Requests() {
					require.False(t, !conditions && r.Verb == "list" && r.Resource == "deployments")
				}
			})
		})
	}
}
