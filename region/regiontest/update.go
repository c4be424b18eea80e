// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (s *Server) serveUpdate(w http.ResponseWriter, c *call) error {
	if err := c.checkOptions(); err != nil {
		return err
	}
	o, err := c.read()
	if err != nil {
		return err
	}
	if err := c.checkName(o); err != nil {
		return err
	}
	if err := c.checkPlace(o); err != nil {
		return err
	}
	for {
		live := s.store.get(c.resource.gr(), c.key())
		if live == nil {
			return s.createByUpdate(w, c, o)
		}
		if err := c.checkUID(o, live.object); err != nil {
			return err
		}
		next, err := c.track(c.liveCopy(live), runtime.DeepCopyJSON(o))
		if err != nil {
			return err
		}
		it, err := s.replace(c, live, next)
		if errors.Is(err, errRaced) {
			continue
		}
		if err != nil {
			return err
		}
		return s.writeItem(w, c, http.StatusOK, it)
	}
}

// createByUpdate serves an update of an object that does not exist.
func (s *Server) createByUpdate(w http.ResponseWriter, c *call, o object) error {
	if !c.resource.createOnUpdate || c.Subresource != "" {
		return apierrors.NewNotFound(c.resource.gr(), c.Name)
	}
	if err := c.checkUID(o, nil); err != nil {
		return err
	}
	c.Verb = "create"
	it, err := s.create(c, runtime.DeepCopyJSON(o))
	if err != nil {
		return err
	}
	return s.writeItem(w, c, http.StatusCreated, it)
}

// checkUID returns a conflict if given has a UID that is not the UID of stored. stored is nil if the object does not
// exist.
func (c *call) checkUID(given, stored object) error {
	uid, have := text(metadataOf(given)["uid"]), ""
	if stored != nil {
		have = text(metadataOf(stored)["uid"])
	}
	if uid == "" || uid == have {
		return nil
	}
	return apierrors.NewConflict(c.resource.gr(), c.Name, fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, "+
		"AdditionalErrorMsg: Precondition failed: UID in precondition: %v, UID in object meta: %v", c.registryKey(), uid, have))
}

func (c *call) registryKey() string {
	group := c.resource.group
	if !c.resource.custom() {
		group = ""
	}
	key := "/registry/"
	if group != "" {
		key += group + "/"
	}
	key += c.resource.plural + "/"
	if c.Namespace != "" {
		key += c.Namespace + "/"
	}
	return key + c.Name
}

// liveCopy returns a copy of the stored object in the version of the request.
func (c *call) liveCopy(live *item) object {
	return c.resource.served(runtime.DeepCopyJSON(live.object))
}

const optimisticLock = "the object has been modified; please apply your changes to the latest version and try again"

// replace stores next in place of live. The caller must not use next afterwards. If another write came first, replace
// returns errRaced, and the caller must start again from the stored object.
func (s *Server) replace(c *call, live *item, next object) (*item, error) {
	r := c.resource
	old := r.served(live.object)
	if err := c.checkVersion(live, next); err != nil {
		return nil, err
	}
	r.keepSystemFields(next, old)
	c.restrict(next, old)
	metadataOf(next)["resourceVersion"] = strconv.FormatUint(live.revision, 10)
	if r.generation && c.Subresource == "" && r.changed(next, old) {
		g, _ := metadataOf(old)["generation"].(int64)
		metadataOf(next)["generation"] = g + 1
	}
	if err := r.rules.validate(r, next, old, c.Subresource); err != nil {
		return nil, err
	}
	c.warnOfFinalizers(next, old)
	keepTimes(next, old)
	if deletedByUpdate(r, next, old) {
		return s.finish(c, live, next)
	}
	if reflect.DeepEqual(next, old) {
		return live, nil
	}
	next = r.stored(next)
	if c.DryRun {
		return encode(live.key, next, live.revision)
	}
	it, err := s.store.put(r.gr(), live.key, live, next)
	if err != nil {
		return nil, err
	}
	return it, s.updated(c, it)
}

// checkVersion returns nil if next has the resourceVersion of live, or if next has none and the type allows
// unconditional updates. Otherwise it returns an error.
func (c *call) checkVersion(live *item, next object) error {
	given := text(metadataOf(next)["resourceVersion"])
	if given == "" || given == "0" {
		if c.resource.unconditional {
			return nil
		}
		kind := schema.GroupKind{Group: c.resource.group, Kind: c.resource.plural}
		return apierrors.NewInvalid(kind, c.Name, field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
	}
	revision, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		return err
	}
	if revision != live.revision {
		return apierrors.NewConflict(c.resource.gr(), c.Name, errors.New(optimisticLock))
	}
	return nil
}

// keepSystemFields copies to next the metadata of old that no client can change.
func (r *resource) keepSystemFields(next, old object) {
	m, before := metadataOf(next), metadataOf(old)
	if text(m["uid"]) == "" {
		m["uid"] = before["uid"]
	}
	take(m, before, "generation")
	for _, name := range []string{"creationTimestamp", "deletionTimestamp"} {
		if before[name] != nil {
			m[name] = before[name]
		}
	}
	if m["deletionGracePeriodSeconds"] == nil {
		take(m, before, "deletionGracePeriodSeconds")
	}
	delete(m, "selfLink")
}

// restrict reverts the fields that a write to the request's resource or subresource cannot change, as a real server
// does.
func (c *call) restrict(next, old object) {
	r := c.resource
	switch {
	case c.Subresource == "status" && r.custom():
		onlyStatus(next, old)
	case c.Subresource == "status":
		take(next, old, "spec")
		if r.group == "apps" {
			take(metadataOf(next), metadataOf(old), "labels")
		}
	case c.Subresource == "finalize":
		take(next, old, "status")
	default:
		if r.status {
			take(next, old, "status")
		}
		if r.kind == "Namespace" {
			take(child(next, "spec"), child(old, "spec"), "finalizers")
		}
		r.rules.prepare(r, next, old)
	}
}

// onlyStatus makes next equal to old except for status and managed fields.
func onlyStatus(next, old object) {
	status, there := next["status"]
	fields := metadataOf(next)["managedFields"]
	clear(next)
	for k, v := range runtime.DeepCopyJSON(old) {
		next[k] = v
	}
	delete(next, "status")
	if there {
		next["status"] = status
	}
	delete(metadataOf(next), "managedFields")
	if fields != nil {
		metadataOf(next)["managedFields"] = fields
	}
}

// take sets m[name] to the value in from, or deletes m[name] if from lacks it.
func take(m, from map[string]any, name string) {
	if v, ok := from[name]; ok {
		m[name] = runtime.DeepCopyJSONValue(v)
	} else {
		delete(m, name)
	}
}

// updated establishes a CRD after a change of the CRD itself. It does nothing after a change of the status, and for
// objects of other types.
func (s *Server) updated(c *call, it *item) error {
	if c.resource.gr() == crdResource && c.Subresource == "" {
		return s.establish(it)
	}
	return nil
}
