// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

func (s *Server) serveDelete(w http.ResponseWriter, c *call) error {
	options, err := c.deleteOptions()
	if err != nil {
		return err
	}
	it, gone, err := s.delete(c, c.key(), options.Preconditions)
	if err != nil {
		return err
	}
	if gone && !c.resource.returnsDeleted {
		writeJSON(w, c, http.StatusOK, c.deleted(it))
		return nil
	}
	return s.writeItem(w, c, http.StatusOK, it)
}

// deleted returns the response to a deletion that took effect at once.
func (c *call) deleted(it *item) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name: it.key.name, Group: c.resource.group, Kind: c.resource.plural, UID: types.UID(text(metadataOf(it.object)["uid"])),
		},
	}
}

// delete removes the object at key, and returns true as gone, if the object is finalized. Otherwise
// it marks the object as being deleted. In a dry run it changes nothing.
func (s *Server) delete(c *call, key objectKey, preconditions *metav1.Preconditions) (it *item, gone bool, err error) {
	r := c.resource
	for {
		live := s.store.get(r.gr(), key)
		if live == nil {
			return nil, false, apierrors.NewNotFound(r.gr(), key.name)
		}
		if err := c.checkPreconditions(live, preconditions); err != nil {
			return nil, false, err
		}
		if err := s.admitDelete(c, live); err != nil {
			return nil, false, err
		}
		if s.finalized(r, live.object) {
			if c.DryRun {
				return live, true, nil
			}
			it, err = s.remove(c, live, nil)
			gone = true
		} else {
			it, err = s.mark(c, live)
		}
		if errors.Is(err, errRaced) {
			continue
		}
		return it, gone, err
	}
}

// finalized reports whether o can be removed at once.
func (s *Server) finalized(r *resource, o object) bool {
	if len(finalizers(o)) > 0 {
		return false
	}
	switch {
	case r.kind == "Namespace" && r.group == "":
		spec, _ := o["spec"].(map[string]any)
		held, _ := spec["finalizers"].([]any)
		return len(held) == 0
	case r.gr() == crdResource:
		return terminating(o)
	default:
		return true
	}
}

func (c *call) checkPreconditions(live *item, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	gr := c.resource.gr()
	gr.Resource = c.resource.kind
	m := metadataOf(live.object)
	if p.UID != nil && string(*p.UID) != text(m["uid"]) {
		return apierrors.NewConflict(gr, live.key.name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, m["uid"]))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != text(m["resourceVersion"]) {
		return apierrors.NewConflict(gr, live.key.name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, m["resourceVersion"]))
	}
	return nil
}

// mark sets the deletionTimestamp of an object, unless the object has one, and then deletes the
// content of a namespace or CRD (see marked). In a dry run it stores nothing.
func (s *Server) mark(c *call, live *item) (*item, error) {
	r := c.resource
	if terminating(live.object) {
		s.marked(c, live)
		return live, nil
	}
	next := runtime.DeepCopyJSON(live.object)
	m := metadataOf(next)
	m["deletionTimestamp"] = now()
	switch {
	case r.kind == "Namespace" && r.group == "":
		child(next, "status")["phase"] = "Terminating"
	case r.gr() == crdResource:
		markCRD(next)
	default:
		m["deletionGracePeriodSeconds"] = int64(0)
		if g, ok := m["generation"].(int64); ok && g > 0 {
			m["generation"] = g + 1
		}
	}
	if c.DryRun {
		return encode(live.key, next, live.revision)
	}
	it, err := s.store.put(r.gr(), live.key, live, next)
	if err != nil {
		return nil, err
	}
	s.marked(c, it)
	return it, nil
}

// marked deletes the content of a namespace or CRD that is being deleted, as the controllers of a
// real server do. It does nothing in a dry run, and for a namespace if Options.KeepNamespaceContent
// is set.
func (s *Server) marked(c *call, it *item) {
	switch {
	case c.DryRun:
	case c.resource.kind == "Namespace" && c.resource.group == "" && !s.opts.KeepNamespaceContent:
		s.emptyNamespace(it.key.name)
	case c.resource.gr() == crdResource:
		s.emptyCRD(it)
	}
}

// deletedByUpdate reports whether next removes the last finalizer of an object that is being deleted.
func deletedByUpdate(r *resource, next, old object) bool {
	if !terminating(old) || len(finalizers(next)) > 0 {
		return false
	}
	if grace, ok := metadataOf(next)["deletionGracePeriodSeconds"].(int64); ok && grace > 0 {
		return false
	}
	if r.kind == "Namespace" && r.group == "" {
		spec, _ := next["spec"].(map[string]any)
		held, _ := spec["finalizers"].([]any)
		return len(held) == 0
	}
	return true
}

// finish removes live from the store, with next as its last state, and returns that state. In a dry
// run it removes nothing.
func (s *Server) finish(c *call, live *item, next object) (*item, error) {
	next = c.resource.stored(next)
	if c.DryRun {
		return encode(live.key, next, live.revision)
	}
	answer, err := encode(live.key, runtime.DeepCopyJSON(next), live.revision)
	if err != nil {
		return nil, err
	}
	if _, err := s.remove(c, live, next); err != nil {
		return nil, err
	}
	return answer, nil
}

// remove removes live from the store, stops serving the type of a removed CRD, and completes the
// deletions that waited for the removal (see removed).
func (s *Server) remove(c *call, live *item, last object) (*item, error) {
	it, err := s.store.remove(c.resource.gr(), live, last)
	if err != nil {
		return nil, err
	}
	if c.resource.gr() == crdResource {
		s.withdraw(it)
	}
	s.removed(c.resource, it)
	return it, nil
}

func (s *Server) serveDeleteCollection(w http.ResponseWriter, c *call) error {
	options, err := c.deleteOptions()
	if err != nil {
		return err
	}
	filter, err := c.filter()
	if err != nil {
		return err
	}
	items, revision, _ := s.store.list(c.resource.gr(), c.Namespace, 0)
	var done []*item
	for _, it := range items {
		if !filter.matches(it) {
			continue
		}
		one := *c
		one.Name, one.Namespace = it.key.name, it.key.namespace
		result, _, err := s.delete(&one, it.key, options.Preconditions)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil {
			done = append(done, result)
		}
	}
	return s.writeList(w, c, done, revision, "", nil)
}
