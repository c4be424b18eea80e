// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/region"
)

var resource = schema.GroupVersionResource{Version: "v1", Resource: "events"}

const (
	// timeout bounds each request.
	timeout = 5 * time.Second
	// longest is the maximum length of a message in Kubernetes, in bytes.
	longest = 1024
	// longestName is the maximum length of the object's name in the name of an Event. It leaves room
	// for the unique suffix.
	longestName = 200
)

// nameOf returns the name of the Event object for e.
func nameOf(e Event, unique int64) string {
	name := e.About.Name
	if len(name) > longestName {
		name = strings.TrimRight(name[:longestName], ".-")
	}
	return fmt.Sprintf("%s.%x", name, unique)
}

func (e Event) namespace() string {
	if e.About.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return e.About.Namespace
}

// write creates the Event of a series, or updates the existing one.
func (r *Recorder) write(ctx context.Context, s *series) error {
	if conn, ok := s.api.(*region.Conn); ok && conn.Health().State == region.Unhealthy {
		return region.ErrUnavailable
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client := s.api.Dynamic().Resource(resource).Namespace(s.event.namespace())
	if s.written > 0 {
		patch, err := json.Marshal(map[string]any{
			"count": s.count, "lastTimestamp": stamp(s.last), "message": bounded(s.event.Message),
		})
		if err != nil {
			return err
		}
		_, err = client.Patch(ctx, s.name, types.MergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return r.failed(ctx, s, err)
		}
		// The Event has expired: create it again.
	}
	_, err := client.Create(ctx, r.manifest(s), metav1.CreateOptions{})
	return r.failed(ctx, s, err)
}

func (r *Recorder) failed(ctx context.Context, s *series, err error) error {
	if err != nil {
		logging.From(ctx).V(r.level(time.Now())).Info("Event is dropped", "kind", s.event.About.Kind, "name", s.event.About.Name,
			"reason", s.event.Reason, "error", err.Error(), "dropped", r.Dropped()+1)
	}
	return err
}

// level returns the log level for a dropped Event: 0 once a minute, otherwise 1. So a missing right
// is visible without filling the log.
func (r *Recorder) level(now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.logged) < time.Minute {
		return 1
	}
	r.logged = now
	return 0
}

func (r *Recorder) manifest(s *series) *unstructured.Unstructured {
	about := s.event.About
	involved := map[string]any{"apiVersion": about.APIVersion, "kind": about.Kind, "name": about.Name, "uid": string(about.UID)}
	if about.Namespace != "" {
		involved["namespace"] = about.Namespace
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata":       map[string]any{"name": s.name, "namespace": s.event.namespace()},
		"involvedObject": involved,
		"type":           string(s.event.Type),
		"reason":         s.event.Reason,
		"message":        bounded(s.event.Message),
		"count":          s.count,
		"firstTimestamp": stamp(s.first),
		"lastTimestamp":  stamp(s.last),
		"source":         map[string]any{"component": r.opts.Controller, "host": r.opts.Instance},
	}}
	return obj
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// bounded truncates a message to the maximum length.
func bounded(message string) string {
	const dots = "..."
	if len(message) <= longest {
		return message
	}
	return strings.ToValidUTF8(message[:longest-len(dots)], "") + dots
}
