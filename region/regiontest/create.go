// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (s *Server) serveCreate(w http.ResponseWriter, c *call) error {
	if err := c.checkOptions(); err != nil {
		return err
	}
	o, err := c.read()
	if err != nil {
		return err
	}
	m := metadataOf(o)
	if text(m["resourceVersion"]) != "" {
		return errors.New("resourceVersion should not be set on objects to be created")
	}
	var it *item
	if text(m["name"]) == "" && text(m["generateName"]) != "" {
		it, err = s.createGenerated(c, o)
	} else {
		it, err = s.create(c, o)
	}
	if err != nil {
		return err
	}
	return s.writeItem(w, c, http.StatusCreated, it)
}

// createGenerated creates o under a generated name. If the name is taken it tries other names, eight
// in all, as a real server does.
func (s *Server) createGenerated(c *call, o object) (it *item, err error) {
	const attempts = 8
	for range attempts {
		next := runtime.DeepCopyJSON(o)
		m := metadataOf(next)
		m["name"] = generateName(text(m["generateName"]))
		if it, err = s.create(c, next); !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return it, err
}

// read decodes the body into an object of the request's type, with defaults.
func (c *call) read() (object, error) {
	data, err := c.body()
	if err != nil {
		return nil, err
	}
	if isProtobuf(data) {
		return nil, unsupportedMedia("application/json, application/yaml")
	}
	o, err := decodeObject(data)
	if err != nil {
		return nil, err
	}
	if err := c.resource.checkKind(o); err != nil {
		return nil, err
	}
	o, unknown, err := c.resource.rules.normalize(o)
	if err != nil {
		return nil, asBadRequest(err)
	}
	return o, c.report(append(duplicateFields(data), unknown...))
}

func asBadRequest(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return err
	}
	return apierrors.NewBadRequest(err.Error())
}

// report handles dropped fields as the query parameter fieldValidation requires: it ignores them for
// Ignore, returns an error for Strict, and otherwise adds a warning for each field.
func (c *call) report(dropped []string) error {
	if len(dropped) == 0 {
		return nil
	}
	switch c.query.Get("fieldValidation") {
	case "Ignore":
		return nil
	case "Strict":
		errs := make([]error, len(dropped))
		for i, d := range dropped {
			errs[i] = errors.New(d)
		}
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", c.resource.kind, c.resource.version, c.resource.kind, runtime.NewStrictDecodingError(errs)))
	default:
		c.warnings = append(c.warnings, dropped...)
		return nil
	}
}

// create stores o as a new object; in a dry run it stores nothing. The caller must not use o
// afterwards.
func (s *Server) create(c *call, o object) (*item, error) {
	r := c.resource
	m := metadataOf(o)
	if err := c.checkPlace(o); err != nil {
		return nil, err
	}
	if err := s.admitCreate(c, text(m["name"])); err != nil {
		return nil, err
	}
	fillSystemFields(m)
	delete(m, "resourceVersion")
	if c.Verb == "create" {
		tracked, err := c.track(r.empty(), o)
		if err != nil {
			return nil, err
		}
		o, m = tracked, metadataOf(tracked)
	}
	if r.custom() && r.status {
		delete(o, "status")
	}
	r.rules.prepare(r, o, nil)
	if r.generation {
		m["generation"] = int64(1)
	}
	if err := r.rules.validate(r, o, nil, ""); err != nil {
		return nil, err
	}
	c.warnOfFinalizers(o, nil)
	key := objectKey{name: text(m["name"])}
	if r.namespaced {
		key.namespace = c.Namespace
	}
	stored := r.stored(o)
	if c.DryRun {
		if s.store.get(r.gr(), key) != nil {
			return nil, s.exists(c, key, o)
		}
		raw, err := json.Marshal(stored)
		return &item{key: key, object: stored, raw: raw}, err
	}
	it, err := s.store.put(r.gr(), key, nil, stored)
	if errors.Is(err, errExists) {
		return nil, s.exists(c, key, o)
	}
	if err != nil {
		return nil, err
	}
	return it, s.created(c, it)
}

// exists returns the error for a name that is already used.
func (s *Server) exists(c *call, key objectKey, o object) error {
	err := apierrors.NewAlreadyExists(c.resource.gr(), key.name)
	if text(metadataOf(o)["generateName"]) != "" {
		err = apierrors.NewGenerateNameConflict(c.resource.gr(), key.name, 1)
	}
	if there := s.store.get(c.resource.gr(), key); there != nil && terminating(there.object) {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// stored returns o with the apiVersion of the version that the server stores. It modifies o.
func (r *resource) stored(o object) object {
	o["apiVersion"] = schema.GroupVersion{Group: r.group, Version: r.storage}.String()
	return o
}

// created establishes a CRD that was created. It does nothing for objects of other types.
func (s *Server) created(c *call, it *item) error {
	if c.resource.gr() == crdResource {
		return s.establish(it)
	}
	return nil
}

// mustCreate creates an object that every server has from the start. It panics on an error.
func (s *Server) mustCreate(plural, version string, o object) {
	c := &call{Request: Request{Verb: "create", FieldManager: "kube-apiserver"}, resource: s.catalogue.find(schema.GroupVersionResource{Version: version, Resource: plural})}
	normal, _, err := c.resource.rules.normalize(o)
	if err == nil {
		_, err = s.create(c, normal)
	}
	if err != nil {
		panic(fmt.Sprintf("regiontest: %s: %v", plural, err))
	}
}
