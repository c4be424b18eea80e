// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/router/aggregate"
)

// reader lists and watches decoded objects.
type reader interface {
	ListAll(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error)
	WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// throughJSON is a Reader that lists and watches as JSON and then decodes the objects, as a client of a server does.
type throughJSON struct{ *aggregate.Reader }

func (j throughJSON) ListAll(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	var items []unstructured.Unstructured
	list, err := j.ListJSON(ctx, aggregate.Encoding{}, opts, func(object []byte) error {
		o := unstructured.Unstructured{}
		if err := json.Unmarshal(object, &o.Object); err != nil {
			return err
		}
		if o.GetKind() == "" {
			o.SetAPIVersion("v1")
			o.SetKind("ConfigMap")
		}
		items = append(items, o)
		return nil
	})
	if err != nil {
		return nil, err
	}
	list.Items = items
	return list, nil
}

func (j throughJSON) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := j.ListAll(ctx, opts)
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (j throughJSON) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	w, err := j.WatchJSON(ctx, aggregate.Encoding{}, opts)
	if err != nil {
		cancel()
		return nil, err
	}
	d := &decoding{cancel: cancel, out: make(chan watch.Event)}
	go func() {
		defer close(d.out)
		defer cancel()
		for e := range w.ResultChan() {
			if raw, ok := e.Object.(*runtime.Unknown); ok {
				o := &unstructured.Unstructured{}
				if err := o.UnmarshalJSON(raw.Raw); err != nil {
					panic(fmt.Sprintf("%v: %s", err, raw.Raw))
				}
				e.Object = o
			}
			select {
			case d.out <- e:
			case <-ctx.Done():
			}
		}
	}()
	return d, nil
}

// decoding is a watch whose events are decoded.
type decoding struct {
	cancel context.CancelFunc
	out    chan watch.Event
}

func (d *decoding) ResultChan() <-chan watch.Event { return d.out }
func (d *decoding) Stop()                          { d.cancel() }
