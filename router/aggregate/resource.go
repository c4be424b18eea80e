// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// client presents an API as a dynamic.Interface.
type client struct{ api *API }

func (c client) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return &resource{api: c.api, gvr: gvr}
}

// resource is one type in all regions.
type resource struct {
	api       *API
	gvr       schema.GroupVersionResource
	namespace string
}

var (
	_ dynamic.NamespaceableResourceInterface = (*resource)(nil)
	_ cache.ListerWatcher                    = (*Reader)(nil)
	_ cache.ListerWatcherWithContext         = (*Reader)(nil)
)

func (r *resource) Namespace(namespace string) dynamic.ResourceInterface {
	return &resource{api: r.api, gvr: r.gvr, namespace: namespace}
}

func (r *resource) reader() *Reader { return r.api.Reader(r.namespace, r.gvr) }

func (r *resource) List(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return r.reader().ListAll(ctx, opts)
}

func (r *resource) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return r.reader().WatchWithContext(ctx, opts)
}

// Reader lists and watches types in all regions as if they were one. It is a cache.ListerWatcher for unmodified
// informers and reflectors; see the package's documentation for its guarantees. It is safe for concurrent use.
type Reader struct {
	api       *API
	namespace string
	types     []schema.GroupVersionResource
}

// Reader returns a Reader of one or more types. An empty namespace means all namespaces. A list returns objects type
// by type; a watch returns events as they happen.
func (a *API) Reader(namespace string, types ...schema.GroupVersionResource) *Reader {
	return &Reader{api: a, namespace: namespace, types: types}
}

// ListAll lists the objects of all regions. If too few regions answer for the Policy of ctx, the error is a
// *PartialError; otherwise WithReport reports the regions that did not contribute. Errors about a continue token or
// resourceVersion are apierrors.APIStatus: 400 if it is invalid, 410 if it is too old or, for a resourceVersion, has
// a key that Options.Keys lacks.
func (r *Reader) ListAll(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if len(r.types) == 0 {
		return nil, errNoType
	}
	return r.api.list(ctx, newQuery(r.namespace, r.types, opts), opts)
}

// ListJSON lists like ListAll and calls fn with each object as JSON. It is for servers that pass a list on: it neither
// decodes the objects nor holds more of them than a page of each region. The argument of fn is valid until fn returns.
// The result is the list without its objects; of a table, it has the columns. An error of fn ends the list and is
// returned. An error of a region may occur after some calls of fn. If a Member has no REST for a table, the error is
// NotAcceptable. A region that cannot make tables gets a table with the columns Name and Created At.
func (r *Reader) ListJSON(ctx context.Context, enc Encoding, opts metav1.ListOptions, fn func(object []byte) error) (*unstructured.UnstructuredList, error) {
	if fn == nil {
		return nil, apierrors.NewBadRequest("the func is nil; give one that receives the objects")
	}
	if len(r.types) == 0 {
		return nil, errNoType
	}
	q := newQuery(r.namespace, r.types, opts)
	q.form = enc.Form
	l := r.api.listing(q, opts)
	l.readAhead, l.encoder = false, r.api.encoder(q, enc, fn)
	return l.run(ctx, opts, nil)
}

// Row asks the region of o, an object from an answer of the API, for the table with the row of o, and returns it as
// JSON. Errors: those of the region; NotFound if the region has left the Set; NotAcceptable as for ListJSON.
func (r *Reader) Row(ctx context.Context, enc Encoding, o *unstructured.Unstructured) ([]byte, error) {
	if len(r.types) != 1 {
		return nil, errNoType
	}
	if o == nil {
		return nil, errObjectNil
	}
	return r.api.row(ctx, query{namespace: r.namespace, types: r.types, form: enc.Form}, enc, o)
}

// ListWithContext calls ListAll.
func (r *Reader) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := r.ListAll(ctx, opts)
	if err != nil {
		return nil, err // a nil *UnstructuredList in the interface would not equal nil
	}
	return list, nil
}

// WatchWithContext watches all regions. It does not block on any region. The watch ends when ctx ends, when Stop is
// called, when the timeout in opts passes, or when its consumer does not receive an event within Options.Patience. It
// also ends after an event of type Error: then list again.
func (r *Reader) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if len(r.types) == 0 {
		return nil, errNoType
	}
	return r.api.watch(ctx, newQuery(r.namespace, r.types, opts), nil, opts)
}

// WatchJSON watches like WatchWithContext, for servers that pass the events on. The object of an event is a
// *runtime.Unknown with the object as JSON, or a *metav1.Status in an event of type Error. An event of a table has one
// row, and all columns.
func (r *Reader) WatchJSON(ctx context.Context, enc Encoding, opts metav1.ListOptions) (watch.Interface, error) {
	if len(r.types) == 0 {
		return nil, errNoType
	}
	q := newQuery(r.namespace, r.types, opts)
	q.form = enc.Form
	return r.api.watch(ctx, q, &enc, opts)
}

// List calls ListWithContext without a context.
func (r *Reader) List(opts metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(context.Background(), opts)
}

// Watch calls WatchWithContext without a context: only Stop and the timeout in opts end the watch early.
func (r *Reader) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return r.WatchWithContext(context.Background(), opts)
}
