// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/atoll-dev/atoll/internal/requestinfo"
)

const (
	watchTimeout   = 30 * time.Minute // for a client that sets no timeout
	bookmarkPeriod = time.Minute
)

// watcher is one watch in progress.
type watcher struct {
	s         *Server
	w         http.ResponseWriter
	c         *call
	filter    *filter
	bookmarks bool
	headed    bool   // the table's columns were sent
	at        uint64 // all changes up to this revision were sent
}

func (s *Server) serveWatch(w http.ResponseWriter, c *call) error {
	filter, err := c.filter()
	if err != nil {
		return err
	}
	initial, err := c.checkWatchOptions()
	if err != nil {
		return err
	}
	at, err := c.minimum()
	if err != nil {
		return err
	}
	timeout, err := c.timeout()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.http.Context())
	defer cancel()
	defer s.faults.watching(cancel)()
	if s.cut.Load() { // the partition began after the request was accepted
		s.abort(c, errPartitioned)
	}
	watch := &watcher{s: s, w: w, c: c, filter: filter, at: at, bookmarks: requestinfo.IsTrue(c.query["allowWatchBookmarks"])}
	t, now, compacted := s.store.watched(c.resource.gr())
	fresh := c.query.Get("resourceVersion") == "" || at == 0
	if !fresh && at < compacted && !initial {
		s.failWatch(w, c, tooOld(at, compacted))
		return nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	watch.flush()
	switch {
	case initial:
		watch.at = watch.present(now)
		watch.initialEnd(watch.at)
	case fresh && c.query.Get("sendInitialEvents") == "":
		watch.at = watch.present(now)
	case fresh:
		watch.at = now
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	watch.run(ctx, t, timer.C)
	if s.cut.Load() {
		s.abort(c, errPartitioned)
	}
	return nil
}

// timeout returns how long the watch lasts.
func (c *call) timeout() (time.Duration, error) {
	given := c.query.Get("timeoutSeconds")
	if given == "" {
		return watchTimeout, nil
	}
	seconds, err := strconv.ParseInt(given, 10, 32)
	if err != nil {
		return 0, apierrors.NewBadRequest(err.Error())
	}
	if seconds <= 0 {
		return watchTimeout, nil
	}
	return time.Duration(seconds) * time.Second, nil
}

func tooOld(at, compacted uint64) error {
	return apierrors.NewResourceExpired("too old resource version: " + strconv.FormatUint(at, 10) + " (" + strconv.FormatUint(compacted, 10) + ")")
}

// checkWatchOptions validates the options of a watch. initial reports whether the client requests the
// current state as initial events that end with a bookmark.
func (c *call) checkWatchOptions() (initial bool, err error) {
	path := field.NewPath("resourceVersionMatch")
	match, send := c.query.Get("resourceVersionMatch"), c.query.Get("sendInitialEvents")
	var errs field.ErrorList
	if send != "" && match != "NotOlderThan" {
		errs = append(errs, field.Forbidden(path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
	}
	if match != "" {
		if send == "" {
			errs = append(errs, field.Forbidden(path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
		}
		if match != "NotOlderThan" {
			errs = append(errs, field.NotSupported(path, match, []string{"NotOlderThan"}))
		}
		if c.query.Get("continue") != "" {
			errs = append(errs, field.Forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
		}
	}
	return requestinfo.IsTrue(c.query["sendInitialEvents"]), invalidListOptions(errs)
}

// failWatch responds with an ERROR event, as a real server does for an accepted watch.
func (s *Server) failWatch(w http.ResponseWriter, c *call, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	watch := &watcher{s: s, w: w, c: c}
	watch.send("ERROR", statusOf(err))
}

// present sends the objects of revision at that match the filter as ADDED events; the current objects
// if that revision is compacted. It returns the revision of these objects.
func (w *watcher) present(at uint64) uint64 {
	items, revision, ok := w.s.store.list(w.c.resource.gr(), w.c.Namespace, at)
	if !ok {
		items, revision, _ = w.s.store.list(w.c.resource.gr(), w.c.Namespace, 0)
	}
	for _, it := range items {
		if w.filter.matches(it) && !w.item("ADDED", it) {
			break
		}
	}
	return revision
}

// initialEnd sends the bookmark that ends the initial events, if the client accepts bookmarks.
func (w *watcher) initialEnd(revision uint64) {
	if w.bookmarks {
		w.bookmark(revision, map[string]any{metav1.InitialEventsAnnotationKey: "true"})
	}
}

// run sends the changes after w.at. It returns when ctx ends, the timeout passes, the server is
// closed, the resource is no longer served, a change that the client has not received is compacted,
// or a write to the client fails.
func (w *watcher) run(ctx context.Context, t *table, timeout <-chan time.Time) {
	ticker := time.NewTicker(bookmarkPeriod)
	defer ticker.Stop()
	for {
		changes, now, next, ok, open := w.s.store.since(w.c.resource.gr(), t, w.at)
		if !ok {
			w.send("ERROR", statusOf(tooOld(w.at, now)))
			return
		}
		for _, c := range changes {
			if ctx.Err() != nil || !w.change(c) {
				return
			}
		}
		w.at = max(w.at, now)
		if !open {
			return
		}
		select {
		case <-next:
		case <-ticker.C:
			if w.bookmarks && !w.bookmark(now, nil) {
				return
			}
		case <-timeout:
			if w.bookmarks {
				w.bookmark(now, nil)
			}
			return
		case <-ctx.Done():
			return
		case <-w.s.closed:
			return
		}
	}
}

// change sends c as a client with this filter sees it: an object that no longer matches is DELETED.
// It returns false if a write to the client fails.
func (w *watcher) change(c change) bool {
	before, after := w.filter.matches(c.old), !c.gone && w.filter.matches(c.item)
	switch {
	case after && !before:
		return w.item("ADDED", c.item)
	case after:
		return w.item("MODIFIED", c.item)
	case !before:
		return true
	case c.gone:
		return w.item("DELETED", c.item)
	default:
		left, err := encode(c.old.key, withRevision(c.old.object), c.item.revision)
		if err != nil {
			return false
		}
		return w.item("DELETED", left)
	}
}

// withRevision returns a copy of o whose resourceVersion the caller may change. The copy shares all
// other fields with o.
func withRevision(o object) object {
	other := make(object, len(o))
	for k, v := range o {
		other[k] = v
	}
	m := make(map[string]any, 8)
	for k, v := range metadataOf(o) {
		m[k] = v
	}
	other["metadata"] = m
	return other
}

// item sends one event in the form that the client requested.
func (w *watcher) item(event string, it *item) bool {
	switch w.c.form() {
	case formTable:
		table := w.c.resource.table([]*item{it}, it.revision, "", w.c)
		if w.headed {
			table.ColumnDefinitions = nil
		}
		w.headed = true
		return w.send(event, table)
	case formPartial, formPartialList:
		return w.send(event, partial(it.object))
	default:
		raw, err := w.c.resource.encoded(it)
		if err != nil {
			return false
		}
		return w.send(event, json.RawMessage(raw))
	}
}

// bookmark sends a bookmark: the client has received everything up to revision.
func (w *watcher) bookmark(revision uint64, annotations map[string]any) bool {
	m := map[string]any{"resourceVersion": strconv.FormatUint(revision, 10)}
	if annotations != nil {
		m["annotations"] = annotations
	}
	gv, kind := w.c.resource.gv(), w.c.resource.kind
	switch w.c.form() {
	case formTable:
		it := &item{object: object{"metadata": m}, revision: revision}
		table := w.c.resource.table([]*item{it}, revision, "", w.c)
		if w.headed {
			table.ColumnDefinitions = nil
		}
		w.headed = true
		return w.send("BOOKMARK", table)
	case formPartial, formPartialList:
		gv, kind = schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"}, "PartialObjectMetadata"
	}
	return w.send("BOOKMARK", object{"kind": kind, "apiVersion": gv.String(), "metadata": m})
}

func (w *watcher) send(event string, o any) bool {
	data, err := json.Marshal(struct {
		Type   string `json:"type"`
		Object any    `json:"object"`
	}{event, o})
	if err == nil {
		_, err = w.w.Write(append(data, '\n'))
	}
	if err == nil {
		w.flush()
	}
	return err == nil
}

func (w *watcher) flush() {
	if f, ok := w.w.(http.Flusher); ok {
		f.Flush()
	}
}
