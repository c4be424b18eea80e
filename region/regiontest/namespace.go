// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	namespaceResource = schema.GroupResource{Resource: "namespaces"}
	crdResource       = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
)

// admitCreate rejects new content in namespaces that do not exist or are being deleted.
func (s *Server) admitCreate(c *call, name string) error {
	if !c.resource.namespaced {
		return nil
	}
	ns := s.store.get(namespaceResource, objectKey{name: c.Namespace})
	if ns == nil {
		return apierrors.NewNotFound(namespaceResource, c.Namespace)
	}
	if !terminating(ns.object) {
		return nil
	}
	err := apierrors.NewForbidden(c.resource.gr(), name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", c.Namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: "NamespaceTerminating", Message: fmt.Sprintf("namespace %s is being terminated", c.Namespace), Field: "metadata.namespace",
	})
	return err
}

// admitDelete rejects the deletion of the namespaces default, kube-system and kube-public, as a
// real server does.
func (s *Server) admitDelete(c *call, live *item) error {
	if c.resource.gr() != namespaceResource {
		return nil
	}
	switch live.key.name {
	case "default", "kube-system", "kube-public":
		return apierrors.NewForbidden(namespaceResource, live.key.name, errors.New("this namespace may not be deleted"))
	}
	return nil
}

// emptyNamespace deletes the content of a namespace that is being deleted. Then it calls
// endNamespace, which removes the namespace if no object is left. If objects with finalizers are
// left, the removal of the last one calls endNamespace again.
func (s *Server) emptyNamespace(name string) {
	for _, r := range s.catalogue.namespacedResources() {
		items, _, _ := s.store.list(r.gr(), name, 0)
		for _, it := range items {
			c := &call{Request: Request{Verb: "delete", Namespace: name, Name: it.key.name}, resource: r}
			_, _, _ = s.delete(c, it.key, nil) // another client may have deleted the object
		}
	}
	s.endNamespace(name)
}

// removed runs after an object was removed from the store. If a namespace or CRD is being deleted
// and has lost its last object, removed completes the deletion of the namespace or CRD. With
// Options.KeepNamespaceContent it does nothing for namespaces.
func (s *Server) removed(r *resource, it *item) {
	if r.namespaced && !s.opts.KeepNamespaceContent {
		s.endNamespace(it.key.namespace)
	}
	if r.custom() {
		s.endCRD(r.plural + "." + r.group)
	}
}

// endNamespace does nothing unless the namespace is being deleted and is empty. Otherwise it
// removes spec.finalizers, and the namespace itself if its metadata has no finalizer.
func (s *Server) endNamespace(name string) {
	ns := s.store.get(namespaceResource, objectKey{name: name})
	if ns == nil || !terminating(ns.object) {
		return
	}
	for _, r := range s.catalogue.namespacedResources() {
		if items, _, _ := s.store.list(r.gr(), name, 0); len(items) > 0 {
			return
		}
	}
	next := runtime.DeepCopyJSON(ns.object)
	unstructured.RemoveNestedField(next, "spec", "finalizers")
	var err error
	if len(finalizers(next)) > 0 {
		_, err = s.store.put(namespaceResource, ns.key, ns, next)
	} else {
		_, err = s.store.remove(namespaceResource, ns, next)
	}
	if errors.Is(err, errRaced) {
		s.endNamespace(name)
	}
}
