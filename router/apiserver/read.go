// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/internal/apistatus"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// serve serves a request to all regions. It returns an error only if it has not written an answer.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, id router.Identity) error {
	rest, _ := cutAll(r.URL.Path)
	t, err := targetOf(r, rest)
	switch {
	case err != nil:
		return err
	case !t.IsResource:
		return apierrors.NewServiceUnavailable("no regions are known")
	case t.streams():
		return apierrors.NewConflict(t.gvr().GroupResource(), t.Name, errUnaddressed)
	}
	types, err := h.typesOf(t)
	if err != nil {
		return err
	}
	if kind, ok := h.writesJointly(t, h.regions()...); ok {
		return h.together(w, r, id, t, kind, nil)
	}
	policy, err := aggregate.PolicyOf(r)
	if err != nil {
		return err
	}
	regions, err := aggregate.Regions(h.routes, id, nil)
	if err != nil {
		return err
	}
	if merge := merging(t.gvr()); merge != nil && t.Verb == "create" && t.Namespace == "" && t.Subresource == "" {
		return h.review(w, request{Request: r, target: t}, regions.Members(), merge)
	}
	api, err := aggregate.New(regions, aggregate.Options{
		Qualify: true, Map: h.opts.Map, Budget: h.opts.Budget, Keys: h.opts.Keys, Sharing: h.opts.Sharing, Identity: id.Fingerprint(),
		Observer: h.opts.Observer,
	})
	if err != nil {
		return err
	}
	ctx, report := aggregate.WithReport(aggregate.WithPolicy(r.Context(), policy))
	q := request{Request: r.WithContext(ctx), target: t, types: types, api: api, client: api.Dynamic(), report: report, packs: h.packs}
	switch t.Verb {
	case "get":
		return q.get(w)
	case "list":
		return q.list(w)
	case "watch":
		return q.watch(w)
	default:
		return q.write(w)
	}
}

// request is a request to all regions.
type request struct {
	*http.Request
	target
	types  []schema.GroupVersionResource
	api    *aggregate.API
	client dynamic.Interface
	report *aggregate.Report
	packs  *sync.Pool
}

func (q request) get(w http.ResponseWriter) error {
	query, opts := q.URL.Query(), metav1.GetOptions{}
	if err := metav1.Convert_url_Values_To_v1_GetOptions(&query, &opts, nil); err != nil {
		return bad("query: %v", err)
	}
	enc, err := q.encoding()
	if err != nil {
		return err
	}
	o, err := q.resource().Get(q.Context(), q.Name, opts, q.sub()...)
	warn(w, q.report)
	if err != nil {
		return err
	}
	switch {
	case q.Subresource != "" || enc.Form == aggregate.Objects:
		return answer(w, http.StatusOK, o)
	case enc.Form == aggregate.Metadata:
		return answer(w, http.StatusOK, aggregate.MetadataOf(o))
	}
	table, err := q.reader().Row(q.Context(), enc, o)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, json.RawMessage(table))
}

// list passes the list on object by object.
func (q request) list(w http.ResponseWriter) error {
	opts, err := q.listOptions()
	if err != nil {
		return err
	}
	enc, err := q.encoding()
	if err != nil {
		return err
	}
	out := &listWriter{key: "items", body: body{w: w, report: q.report}}
	if enc.Form == aggregate.Table || enc.Form == aggregate.TableWithObjects {
		out.key = "rows"
	}
	if enc.Compressed {
		out.packs = q.packs
	}
	list, err := q.reader().ListJSON(q.Context(), enc, opts, out.object)
	if err == nil {
		err = out.finish(list)
	}
	switch {
	case err != nil && out.begun:
		panic(http.ErrAbortHandler) // aborts the answer, so that the client does not take it for complete
	case err != nil:
		warn(w, q.report)
	}
	return err
}

// watch serves a watch until the watch or the request ends.
func (q request) watch(w http.ResponseWriter) error {
	opts, err := q.listOptions()
	if err != nil {
		return err
	}
	enc, err := q.encoding()
	if err != nil {
		return err
	}
	stream, err := q.reader().WatchJSON(q.Context(), enc, opts)
	if err != nil {
		return err
	}
	defer func() {
		stream.Stop()
		for range stream.ResultChan() { // until all its goroutines have ended
		}
	}()
	apistatus.Header(w, http.StatusOK)
	var line []byte
	out := http.NewResponseController(w)
	for err = out.Flush(); err == nil; err = out.Flush() {
		e, ok := <-stream.ResultChan()
		if !ok {
			break
		}
		if line, err = appendEvent(line[:0], e); err != nil {
			break // no event has a type that cannot be encoded
		}
		if _, err = w.Write(line); err != nil {
			break
		}
	}
	return nil
}

// appendEvent appends the line of an event. An object that is JSON is copied as it is.
func appendEvent(line []byte, e watch.Event) ([]byte, error) {
	line = append(append(append(line, `{"type":"`...), e.Type...), `","object":`...)
	if o, raw := e.Object.(*runtime.Unknown); raw {
		return append(append(line, o.Raw...), "}\n"...), nil
	}
	object, err := json.Marshal(e.Object)
	return append(append(line, object...), "}\n"...), err
}

func (q request) listOptions() (opts metav1.ListOptions, err error) {
	query := q.URL.Query()
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&query, &opts, nil); err != nil {
		return opts, bad("query: %v", err)
	}
	return opts, nil
}

func (q request) reader() *aggregate.Reader { return q.api.Reader(q.Namespace, q.types...) }

// encoding returns the encoding of the answer. Several types have neither columns nor metadata of one kind.
func (q request) encoding() (aggregate.Encoding, error) {
	if len(q.types) > 1 {
		return encodingOf(q.Request, aggregate.Objects)
	}
	return encodingOf(q.Request, aggregate.Objects, aggregate.Metadata, aggregate.Table, aggregate.TableWithObjects)
}
