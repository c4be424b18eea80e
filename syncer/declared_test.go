// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region/regiontest"
	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
	"github.com/atoll-dev/atoll/syncer"
)

// A Widget has the replicas spec.size. A Gadget scales a Widget, or by default a Deployment.
var declaredTypes = []splitterv1alpha1.WorkloadTypeSpec{
	{
		Resource: splitterv1alpha1.WorkloadResource{Group: "example.org", Version: "v1", Resource: "widgets", Kind: "Widget"},
		Replicas: "spec.size", Status: splitterv1alpha1.WorkloadStatusPaths{Available: "status.available"},
	},
	{
		Resource: splitterv1alpha1.WorkloadResource{Group: "example.org", Version: "v1", Resource: "gadgets", Kind: "Gadget"},
		Division: splitterv1alpha1.DivideNone, ScaleTarget: &splitterv1alpha1.WorkloadScaleTarget{Path: "spec.target", APIVersion: "apps/v1", Kind: "Deployment"},
	},
}

const (
	scaledWidget  = "{apiVersion: example.org/v1, kind: Widget, metadata: {name: web}, spec: {size: 2, color: red}}"
	scalingGadget = "{apiVersion: example.org/v1, kind: Gadget, metadata: {name: web}, spec: {target: {name: web}}}"
)

func declaredPair(t *testing.T, opts syncer.Options) *pair {
	served := regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd("widgets", "Widget", true), crd("gadgets", "Gadget", true)}}
	p := &pair{t: t, up: newSide(t, "up", served), down: newSide(t, "down", served)}
	p.start(opts)
	return p
}

// A synced object of a declared type owns the replicas of its target downstream, as a HorizontalPodAutoscaler does.
// When it goes, and without the declarations, the replicas are those of the upstream. No other field is left to the
// downstream, and nothing goes up.
func TestDeclaredAutoscalers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := declaredPair(t, syncer.Options{WorkloadTypes: declaredTypes})
		p.up.create(deployments, deployment)
		p.up.create(widgets, scaledWidget)
		p.up.create(gadgets, scalingGadget)
		p.rest()
		p.down.patch(deployments, "web", `{"spec":{"replicas":7}}`)
		p.down.patch(widgets, "web", `{"spec":{"size":7}}`)
		p.rest()
		require.EqualValues(t, 7, p.replicas("web"), "by the default of the declaration")
		require.EqualValues(t, 2, field(p.down.get(widgets, "web"), "spec", "size"), "nothing scales it")
		require.EqualValues(t, 2, field(p.up.get(deployments, "web"), "spec", "replicas"), "nothing goes up")

		p.up.patch(gadgets, "web", `{"spec":{"target":{"apiVersion":"example.org/v1","kind":"Widget"}}}`)
		p.rest()
		require.EqualValues(t, 2, p.replicas("web"))
		p.down.patch(widgets, "web", `{"spec":{"size":7,"color":"blue"}}`)
		p.rest()
		require.EqualValues(t, 7, field(p.down.get(widgets, "web"), "spec", "size"))
		require.Equal(t, "red", field(p.down.get(widgets, "web"), "spec", "color"), "only the replicas are the autoscaler's")
		require.EqualValues(t, 2, field(p.up.get(widgets, "web"), "spec", "size"), "nothing goes up")

		p.up.delete(gadgets, "web")
		p.rest()
		require.EqualValues(t, 2, field(p.down.get(widgets, "web"), "spec", "size"))

		p.up.create(autoscalers, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web},
			spec: {maxReplicas: 10, scaleTargetRef: {apiVersion: example.org/v1, kind: Widget, name: web}}}`)
		p.rest()
		p.down.patch(widgets, "web", `{"spec":{"size":5}}`)
		p.rest()
		require.EqualValues(t, 5, field(p.down.get(widgets, "web"), "spec", "size"), "a HorizontalPodAutoscaler of a declared type")

		p.stop()
		p.start(syncer.Options{})
		p.rest()
		require.EqualValues(t, 2, field(p.down.get(widgets, "web"), "spec", "size"), "without declarations")
	})
}

// A declaration selects no type: a type that Options.Types leaves out, or that needs a Power, is not synced because it is
// declared. It cannot replace a built-in declaration either.
func TestDeclarationsWidenNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := declaredPair(t, syncer.Options{Types: func(gr schema.GroupResource) bool { return gr == configMaps.GroupResource() }, WorkloadTypes: declaredTypes})
		p.up.create(widgets, scaledWidget)
		p.rest()
		require.Nil(t, p.down.get(widgets, "web"))

		up, down := p.up, p.down
		_, err := syncer.New(up.api, down.api, syncer.Options{Target: "edge", WorkloadTypes: []splitterv1alpha1.WorkloadTypeSpec{workload.BuiltinType("deployments").Spec()}})
		require.ErrorContains(t, err, "WorkloadTypes[0] (deployments): spec.resource: deployments.apps is built in")
		_, err = syncer.New(up.api, down.api, syncer.Options{Target: "edge", WorkloadTypes: []splitterv1alpha1.WorkloadTypeSpec{{}}})
		require.ErrorContains(t, err, "WorkloadTypes[0] (): spec.resource.version: must be set")
	})
}
