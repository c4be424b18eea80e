// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// metadataOnly lists and watches through a metadata client, so that the content of objects is not sent. It supports
// nothing else.
type metadataOnly struct{ metadata.Interface }

var _ dynamic.Interface = metadataOnly{}

func (m metadataOnly) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return metadataResource{getter: m.Interface.Resource(gvr), client: m.Interface.Resource(gvr)}
}

type metadataResource struct {
	dynamic.NamespaceableResourceInterface // nil: only List and Watch are implemented

	getter metadata.Getter
	client metadata.ResourceInterface
}

func (r metadataResource) Namespace(namespace string) dynamic.ResourceInterface {
	return metadataResource{getter: r.getter, client: r.getter.Namespace(namespace)}
}

func (r metadataResource) List(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := r.client.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	all := &unstructured.UnstructuredList{Items: make([]unstructured.Unstructured, len(list.Items))}
	all.SetResourceVersion(list.ResourceVersion)
	all.SetContinue(list.Continue)
	for i := range list.Items {
		all.Items[i] = *identity(&list.Items[i])
	}
	return all, nil
}

func (r metadataResource) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	w, err := r.client.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	i := &identities{Interface: w, events: make(chan watch.Event), over: make(chan struct{})}
	i.done.Go(i.run)
	return i, nil
}

// identities is a watch whose objects are reduced by identity. (watch.Filter leaks a goroutine if it is stopped while
// an event waits.)
type identities struct {
	watch.Interface
	events chan watch.Event
	once   sync.Once
	over   chan struct{}
	done   sync.WaitGroup
}

func (i *identities) ResultChan() <-chan watch.Event { return i.events }

func (i *identities) Stop() {
	i.once.Do(func() { close(i.over) })
	i.Interface.Stop()
	i.done.Wait()
}

func (i *identities) run() {
	defer close(i.events)
	for {
		select {
		case e, ok := <-i.Interface.ResultChan():
			if !ok {
				return
			}
			if obj, ok := e.Object.(*metav1.PartialObjectMetadata); ok {
				e.Object = identity(obj)
			}
			select {
			case i.events <- e:
			case <-i.over:
				return
			}
		case <-i.over:
			return
		}
	}
}

// identity returns the fields that show whether an object has changed.
func identity(obj *metav1.PartialObjectMetadata) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": obj.APIVersion, "kind": obj.Kind}}
	u.SetNamespace(obj.Namespace)
	u.SetName(obj.Name)
	u.SetUID(obj.UID)
	u.SetResourceVersion(obj.ResourceVersion)
	u.SetAnnotations(initialEventsEnd(obj))
	return u
}

// initialEventsEnd returns the annotation that marks the bookmark at the end of the initial events.
func initialEventsEnd(obj *metav1.PartialObjectMetadata) map[string]string {
	if v, ok := obj.Annotations[metav1.InitialEventsAnnotationKey]; ok {
		return map[string]string{metav1.InitialEventsAnnotationKey: v}
	}
	return nil
}
