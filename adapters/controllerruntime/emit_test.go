// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/atoll-dev/atoll/events"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// The manager's recorder writes an Event about a Peer of the manager's API server, and the Recorder writes one about an
// object of a peer to this peer.
func TestEmit(t *testing.T) {
	host := regiontest.NewServer(regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{newEvents()}})
	t.Cleanup(host.Close)
	plane, err := region.APIFor(host.Config())
	require.NoError(t, err)
	ring := regiontest.NewRing("eu")
	t.Cleanup(ring.Close)
	eu, err := ring.Conn("eu")
	require.NoError(t, err)
	mgr, err := manager.New(host.Config(), manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	recorder := events.New(events.Options{Emit: Emit(mgr.GetEventRecorder("my-operator"), plane)})
	require.NoError(t, mgr.Add(Loop(recorder.Start)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-done)
	}()
	inHost, err := client.New(host.Config(), client.Options{})
	require.NoError(t, err)
	inEU, err := client.New(ring.Server("eu").Config(), client.Options{})
	require.NoError(t, err)

	observer := recorder.Peers(plane, nil)
	eventually(t, func() error { // until the Recorder runs
		observer.Ready(ctx, central.ReadyEvent{Peer: "eu", UID: "1", Before: metav1.ConditionTrue, Status: metav1.ConditionFalse, Reason: "Unreachable", Message: "dial: 100% lost"})
		var list eventsv1.EventList
		if err := inHost.List(t.Context(), &list); err != nil || len(list.Items) == 0 {
			return fmt.Errorf("no Event: %w", err)
		}
		e := list.Items[0]
		require.Equal(t, []string{"Peer", "eu", "1"}, []string{e.Regarding.Kind, e.Regarding.Name, string(e.Regarding.UID)})
		require.Equal(t, []string{"Warning", "Unreachable", "Reconcile", "dial: 100% lost"}, []string{e.Type, e.Reason, e.Action, e.Note})
		require.Equal(t, "my-operator", e.ReportingController)
		return nil
	})
	recorder.Record(eu, events.Event{
		About: events.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "c"}, Type: events.Normal, Reason: "Bound", Message: "m",
	})
	eventually(t, func() error {
		var list corev1.EventList
		if err := inEU.List(t.Context(), &list); err != nil || len(list.Items) == 0 {
			return fmt.Errorf("no Event: %w", err)
		}
		require.Equal(t, "Bound", list.Items[0].Reason)
		return nil
	})
}

// newEvents is a CRD in place of the resource of events.k8s.io/v1, which the server lacks.
func newEvents() *apiextensionsv1.CustomResourceDefinition {
	open := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "events.events.k8s.io", Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "events.k8s.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "events", Singular: "event", Kind: "Event", ListKind: "EventList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open}},
			}},
		},
	}
}
