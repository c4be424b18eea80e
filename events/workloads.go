// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/syncer"
)

// Fanout returns an Observer for a fanout.Coordinator whose objects are in peers. The Observer records why the removal of
// an object does not end. It also calls next, which may be nil.
func (r *Recorder) Fanout(peers region.Directory, next *fanout.Observer) *fanout.Observer {
	if r == nil {
		return next
	}
	o := observer.Copy(next)
	o.Step = observer.Chain(func(_ context.Context, e fanout.StepEvent) {
		if event, ok := ofStep(e); ok {
			r.recordIn(peers, e.Peer, event)
		}
	}, o.Step)
	return o
}

func ofStep(e fanout.StepEvent) (Event, bool) {
	event := Event{About: Object{
		APIVersion: e.Kind.WithVersion(e.Version).GroupVersion().String(), Kind: e.Kind.Kind, Namespace: e.Key.Namespace, Name: e.Key.Name, UID: e.UID,
	}}
	switch {
	case !e.Done || e.UID == "":
		return Event{}, false
	case e.Held != "":
		event.Type, event.Reason, event.Message = Warning, "RemovalHeld", "its removal is held: "+e.Held
	case len(e.Finalizers) > 0:
		event.Type, event.Reason = Normal, "RemovalWaits"
		event.Message = "its removal waits for finalizers of other controllers: " + strings.Join(e.Finalizers, ", ")
	default:
		return Event{}, false
	}
	return event, true
}

// Splitter returns an Observer for a splitter.Splitter whose parents are in plane. The Observer records how a parent is
// divided, and changes of its conditions. It also calls next, which may be nil.
func (r *Recorder) Splitter(plane region.API, next *splitter.Observer) *splitter.Observer {
	if r == nil {
		return next
	}
	o := observer.Copy(next)
	o.Divided = observer.Chain(func(_ context.Context, e splitter.DividedEvent) {
		r.Record(plane, ofDivision(e))
	}, o.Divided)
	o.Reported = observer.Chain(func(_ context.Context, e splitter.ReportedEvent) {
		if event, ok := ofCondition(e); ok {
			r.Record(plane, event)
		}
	}, o.Reported)
	return o
}

func ofDivision(e splitter.DividedEvent) Event {
	event := Event{
		About: Object{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Parent.Namespace, Name: e.Parent.Name, UID: e.UID},
		Type:  Normal, Reason: "Divided",
	}
	if e.Err != nil {
		event.Type, event.Reason, event.Message = Warning, "DivisionFailed", fmt.Sprintf("it could not be divided: %v", e.Err)
		return event
	}
	var parts []string
	for _, s := range e.Plan.Shards {
		if s.Replicas > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", s.Cluster, s.Replicas))
		}
	}
	event.Message = "it is divided over no cluster"
	if parts != nil {
		event.Message = "it is divided over clusters: " + strings.Join(parts, ", ")
	}
	return event
}

func ofCondition(e splitter.ReportedEvent) (Event, bool) {
	event := Event{
		About: Object{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Parent.Namespace, Name: e.Parent.Name, UID: e.UID},
		Type:  Warning, Reason: e.Reason, Message: e.Message,
	}
	switch {
	case e.Condition == splitter.ConditionPlaced && e.Status == "True":
		event.Type, event.Reason = Normal, "AllPlaced"
		return event, e.Before == "False"
	case e.Condition == splitter.ConditionPlaced:
		return event, true
	case e.Condition == "Progressing": // False if a rollout does not end
		return event, e.Status == "False"
	}
	return Event{}, false
}

// Placement returns an Observer for a placement.Controller whose objects are in plane. The Observer records in which
// clusters an object is placed. It also calls next, which may be nil.
func (r *Recorder) Placement(plane region.API, next *placement.Observer) *placement.Observer {
	if r == nil {
		return next
	}
	o := observer.Copy(next)
	o.Placed = observer.Chain(func(_ context.Context, e placement.PlacedEvent) {
		if event, ok := ofPlacement(e); ok {
			r.Record(plane, event)
		}
	}, o.Placed)
	return o
}

func ofPlacement(e placement.PlacedEvent) (Event, bool) {
	event := Event{
		About: Object{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Object.Namespace, Name: e.Object.Name, UID: e.UID},
		Type:  Normal,
	}
	before, after := clusters(e.Before), clusters(e.After)
	stays := slices.DeleteFunc(slices.Clone(e.After), func(c string) bool { return slices.Contains(e.Leaving, c) })
	left := slices.DeleteFunc(slices.Clone(e.Before), func(c string) bool { return slices.Contains(e.After, c) })
	by := ""
	if e.By != "" {
		by = ", by policy " + e.By
	}
	switch {
	case e.Err != nil:
		event.Type, event.Reason, event.Message = Warning, "PlacementFailed", fmt.Sprintf("its placement on %s could not be written: %v", after, e.Err)
	case len(e.After) == 0 && len(e.Before) == 0:
		return Event{}, false
	case len(e.After) == 0: // the mode None, or no workload refers to it any longer
		event.Reason, event.Message = "NotPlaced", "it is placed on no cluster any longer; before: "+before+by
	case len(e.Before) == 0:
		event.Reason, event.Message = "Placed", "it is placed on "+after+by
	case len(e.Leaving) > 0:
		event.Reason, event.Message = "Moved", fmt.Sprintf("it moves to %s and leaves %s%s", clusters(stays), clusters(e.Leaving), by)
	case len(left) > 0:
		event.Reason, event.Message = "Left", fmt.Sprintf("it has left %s and is placed on %s%s", clusters(left), after, by)
	case before != after:
		event.Reason, event.Message = "Moved", fmt.Sprintf("it moves from %s to %s%s", before, after, by)
	default:
		return Event{}, false // the clusters are the same: only the policy or the division has changed
	}
	return event, true
}

func clusters(names []string) string {
	if len(names) == 0 {
		return "no cluster"
	}
	return strings.Join(names, ", ")
}

// Syncer returns an Observer for a syncer.Syncer whose objects are in upstream. The Observer records why an object is not
// synced, and which changes of other clients were overwritten. It also calls next, which may be nil.
func (r *Recorder) Syncer(upstream region.API, next *syncer.Observer) *syncer.Observer {
	if r == nil {
		return next
	}
	o := observer.Copy(next)
	o.Problem = observer.Chain(func(_ context.Context, e syncer.ProblemEvent) {
		if event, ok := ofProblem(e); ok {
			r.Record(upstream, event)
		}
	}, o.Problem)
	o.Overruled = observer.Chain(func(_ context.Context, e syncer.OverruledEvent) {
		r.Record(upstream, Event{
			About: Object{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Object.Namespace, Name: e.Object.Name, UID: e.UID},
			Type:  Warning, Reason: "Overwritten", Message: "fields that another client had changed in the cluster were changed back: " + strings.Join(e.Fields, "; "),
		})
	}, o.Overruled)
	return o
}

func ofProblem(e syncer.ProblemEvent) (Event, bool) {
	event := Event{
		About: Object{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Object.Namespace, Name: e.Object.Name, UID: e.UID},
		Type:  Warning, Reason: "Sync" + string(e.Reason), Message: "it is not synced: " + e.Message,
	}
	if e.Reason == "" {
		event.Type, event.Reason, event.Message = Normal, "Synced", "the problem that kept it from being synced is over"
	}
	return event, e.UID != ""
}
