// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientevents "k8s.io/client-go/tools/events"

	"github.com/atoll-dev/atoll/events"
	"github.com/atoll-dev/atoll/region"
)

// Emit returns a function for events.Options.Emit, by which a recorder of a manager (GetEventRecorder) writes the Events
// about objects in the manager's API server. host is the region.API of this API server that the loops of Atoll have, such
// as the central plane. The events.Recorder itself writes the Events about objects in peers, because a manager's recorder
// writes to one API server only.
//
// The manager's recorder needs the rights to create and patch events in the group events.k8s.io.
func Emit(recorder clientevents.EventRecorder, host region.API) func(region.API, events.Event) bool {
	return func(api region.API, e events.Event) bool {
		if api != host {
			return false
		}
		about := e.About
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: about.Namespace, Name: about.Name, UID: about.UID}}
		object.SetGroupVersionKind(schema.FromAPIVersionAndKind(about.APIVersion, about.Kind))
		// The group events.k8s.io requires an action. Atoll's reasons are results of a reconcile.
		recorder.Eventf(object, nil, string(e.Type), e.Reason, "Reconcile", "%s", e.Message)
		return true
	}
}
