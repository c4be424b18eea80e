// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"errors"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io"

func crdGroupResource(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupResource {
	return schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
}

// markCRD adds the condition Terminating to a CRD, and the finalizer that keeps the CRD until all its objects are gone.
func markCRD(o object) {
	m := metadataOf(o)
	held := finalizers(o)
	if !slices.Contains(held, any(cleanupFinalizer)) {
		m["finalizers"] = append(slices.Clone(held), cleanupFinalizer)
	}
	status := child(o, "status")
	conditions, _ := status["conditions"].([]any)
	status["conditions"] = append(slices.Clone(conditions), map[string]any{
		"type": "Terminating", "status": "True", "lastTransitionTime": now(), "reason": "InstanceDeletionPending",
		"message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
	})
}

// emptyCRD deletes the objects of a CRD that is being deleted, including objects that clients create meanwhile. Then it
// calls endCRD, which removes the CRD if no object is left. If objects with finalizers are left, the removal of the
// last one calls endCRD again.
func (s *Server) emptyCRD(it *item) {
	crd, err := decodeCRD(it.object)
	if err != nil {
		return
	}
	gr := crdGroupResource(crd)
	for {
		r := s.served(crd)
		var left []*item
		if r != nil {
			items, _, _ := s.store.list(gr, "", 0)
			left = slices.DeleteFunc(slices.Clone(items), func(one *item) bool { return terminating(one.object) })
		}
		for _, one := range left {
			c := &call{Request: Request{Verb: "delete", Namespace: one.key.namespace, Name: one.key.name}, resource: r}
			_, _, _ = s.delete(c, one.key, nil) // another client may have deleted the object
		}
		s.endCRD(it.key.name)
		if len(left) == 0 {
			return
		}
	}
}

// served returns a served version of crd's type, or nil if the server no longer serves the type.
func (s *Server) served(crd *apiextensionsv1.CustomResourceDefinition) *resource {
	for _, v := range crd.Spec.Versions {
		if found := s.catalogue.find(crdGroupResource(crd).WithVersion(v.Name)); found != nil {
			return found
		}
	}
	return nil
}

// endCRD does nothing unless the CRD is being deleted and has no objects. Otherwise it removes the finalizer of
// markCRD, and the CRD itself if it has no other finalizer.
func (s *Server) endCRD(name string) {
	live := s.store.get(crdResource, objectKey{name: name})
	if live == nil || !terminating(live.object) {
		return
	}
	crd, err := decodeCRD(live.object)
	if err != nil {
		return
	}
	if items, _, _ := s.store.list(crdGroupResource(crd), "", 0); len(items) > 0 {
		return
	}
	next := runtime.DeepCopyJSON(live.object)
	m := metadataOf(next)
	held := slices.DeleteFunc(slices.Clone(finalizers(next)), func(f any) bool { return f == cleanupFinalizer })
	if len(held) > 0 {
		m["finalizers"] = held
		_, err = s.store.put(crdResource, live.key, live, next)
	} else {
		delete(m, "finalizers")
		var gone *item
		if gone, err = s.store.remove(crdResource, live, next); err == nil {
			s.withdraw(gone)
		}
	}
	if errors.Is(err, errRaced) {
		s.endCRD(name)
	}
}

// withdraw stops serving the type of a deleted CRD, and ends the watches of its objects.
func (s *Server) withdraw(it *item) {
	crd, err := decodeCRD(it.object)
	if err != nil {
		return
	}
	gr := crdGroupResource(crd)
	s.catalogue.remove(gr)
	s.store.close(gr)
}
