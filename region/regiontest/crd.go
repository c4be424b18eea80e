// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/util/jsonpath"
)

// AddCRD creates crd, or replaces the present CRD of this name. It serves the types of crd at once, unless another type
// has one of their names. It returns the error that a client would get for the same write.
func (s *Server) AddCRD(crd *apiextensionsv1.CustomResourceDefinition) error {
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return err
	}
	r := s.catalogue.find(crdResource.WithVersion("v1"))
	c := &call{Request: Request{Verb: "create", FieldManager: "regiontest", Name: crd.Name}, resource: r}
	o["apiVersion"], o["kind"] = r.gv().String(), r.kind
	normal, _, err := r.rules.normalize(o)
	if err != nil {
		return err
	}
	live := s.store.get(crdResource, objectKey{name: crd.Name})
	if live == nil {
		_, err = s.create(c, normal)
		return err
	}
	c.Verb = "update"
	metadataOf(normal)["resourceVersion"] = metadataOf(live.object)["resourceVersion"]
	_, err = s.replace(c, live, normal)
	return err
}

// shareCRD adds crd to s without compiling it: it copies the CRD object of other, gives the copy a new UID, and serves
// the types with the rules that other has compiled. It returns false, and changes nothing, if s already has the CRD or
// cannot accept its names, or if other does not have the CRD. The caller then calls AddCRD.
func (s *Server) shareCRD(other *Server, crd *apiextensionsv1.CustomResourceDefinition) bool {
	key := objectKey{name: crd.Name}
	theirs := other.store.get(crdResource, key)
	if s == other || theirs == nil || s.store.get(crdResource, key) != nil || s.nameConflict(crd) != nil {
		return false
	}
	o := runtime.DeepCopyJSON(theirs.object)
	fillSystemFields(metadataOf(o))
	if _, err := s.store.put(crdResource, key, nil, o); err != nil {
		return false
	}
	gr := crdGroupResource(crd)
	for _, r := range other.catalogue.all() {
		if r.gr() == gr {
			s.catalogue.add(r)
		}
	}
	return true
}

// decodeCRD decodes a stored CRD.
func decodeCRD(o object) (*apiextensionsv1.CustomResourceDefinition, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, json.Unmarshal(data, crd)
}

// establish accepts the names of a CRD unless another type has one of them, writes the conditions NamesAccepted and
// Established, and serves the versions of an established CRD, as the controllers of a real server do.
func (s *Server) establish(it *item) error {
	crd, err := decodeCRD(it.object)
	if err != nil {
		return err
	}
	status := crd.Status.DeepCopy()
	conflict := s.nameConflict(crd)
	setCondition := func(kind apiextensionsv1.CustomResourceDefinitionConditionType, ok bool, reason, message string) {
		state := apiextensionsv1.ConditionFalse
		if ok {
			state = apiextensionsv1.ConditionTrue
		}
		for i := range status.Conditions {
			if c := &status.Conditions[i]; c.Type == kind {
				if c.Status != state {
					c.Status, c.Reason, c.Message = state, reason, message
					_ = c.LastTransitionTime.UnmarshalQueryParameter(now())
				}
				return
			}
		}
		c := apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Status: state, Reason: reason, Message: message}
		_ = c.LastTransitionTime.UnmarshalQueryParameter(now())
		status.Conditions = append(status.Conditions, c)
	}
	if conflict == nil {
		status.AcceptedNames = crd.Spec.Names
		setCondition(apiextensionsv1.NamesAccepted, true, "NoConflicts", "no conflicts found")
		setCondition(apiextensionsv1.Established, true, "InitialNamesAccepted", "the initial names have been accepted")
	} else {
		setCondition(apiextensionsv1.NamesAccepted, false, conflict.reason, conflict.message)
		setCondition(apiextensionsv1.Established, false, "NotAccepted", "not all names are accepted")
	}
	for _, v := range crd.Spec.Versions {
		if v.Storage && !slices.Contains(status.StoredVersions, v.Name) {
			status.StoredVersions = append(status.StoredVersions, v.Name)
		}
	}
	if err := s.serve(crd, status); err != nil {
		return err
	}
	if reflect.DeepEqual(&crd.Status, status) {
		return nil
	}
	decoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return err
	}
	next := runtime.DeepCopyJSON(it.object)
	next["status"] = decoded
	if _, err = s.store.put(crdResource, it.key, it, next); !errors.Is(err, errRaced) {
		return err
	}
	live := s.store.get(crdResource, it.key)
	if live == nil {
		return nil
	}
	return s.establish(live)
}

// serve replaces the CRD's versions in the catalogue by those that crd declares as served. It does nothing if status is
// not Established.
func (s *Server) serve(crd *apiextensionsv1.CustomResourceDefinition, status *apiextensionsv1.CustomResourceDefinitionStatus) error {
	established := slices.ContainsFunc(status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
	if !established {
		return nil
	}
	var served []*resource
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if !v.Served {
			continue
		}
		r, err := customResource(crd, v)
		if err != nil {
			return err
		}
		served = append(served, r)
	}
	s.catalogue.remove(crdGroupResource(crd))
	s.catalogue.add(served...)
	return nil
}

// customResource returns one version of a CRD as a resource.
func customResource(crd *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) (*resource, error) {
	names := crd.Spec.Names
	r := &resource{
		group: crd.Spec.Group, version: v.Name, plural: names.Plural, singular: names.Singular, kind: names.Kind,
		listKind: names.ListKind, short: names.ShortNames, categories: names.Categories, verbs: allVerbs,
		namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped, generation: true,
		status: v.Subresources != nil && v.Subresources.Status != nil,
	}
	for _, other := range crd.Spec.Versions {
		if other.Storage {
			r.storage = other.Name
		}
	}
	t, err := newCustom(crd, v)
	if err != nil {
		return nil, err
	}
	r.rules = t
	if r.columns, err = customColumns(v.AdditionalPrinterColumns); err != nil {
		return nil, err
	}
	for _, f := range v.SelectableFields {
		path := jsonpath.New(f.JSONPath)
		path.AllowMissingKeys(true)
		if err := path.Parse("{" + f.JSONPath + "}"); err != nil {
			return nil, err
		}
		if r.fields == nil {
			r.fields = map[string]func(object) string{}
		}
		r.fields[strings.TrimPrefix(f.JSONPath, ".")] = func(o object) string {
			found, err := path.FindResults(o)
			if err != nil || len(found) == 0 || len(found[0]) == 0 {
				return ""
			}
			return fmt.Sprint(found[0][0].Interface())
		}
	}
	return r, nil
}

type nameConflict struct{ reason, message string }

// nameConflict returns a conflict if another type of the same group already has one of crd's names, else nil.
func (s *Server) nameConflict(crd *apiextensionsv1.CustomResourceDefinition) *nameConflict {
	resources, kinds := map[string]bool{}, map[string]bool{}
	for _, r := range s.catalogue.all() {
		if r.group != crd.Spec.Group || r.plural == crd.Spec.Names.Plural {
			continue
		}
		resources[r.plural], resources[r.singular] = true, true
		for _, short := range r.short {
			resources[short] = true
		}
		kinds[r.kind], kinds[r.listKind] = true, true
	}
	var found *nameConflict
	check := func(taken map[string]bool, reason, name string) {
		if taken[name] {
			found = &nameConflict{reason, fmt.Sprintf("%q is already in use", name)}
		}
	}
	names := crd.Spec.Names
	check(resources, "PluralConflict", names.Plural)
	check(resources, "SingularConflict", names.Singular)
	for _, short := range names.ShortNames {
		check(resources, "ShortNamesConflict", short)
	}
	check(kinds, "KindConflict", names.Kind)
	check(kinds, "ListKindConflict", names.ListKind)
	return found
}

// newestFirst orders versions as discovery does: v2, v1, v1beta1, v1alpha1.
func newestFirst(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) }
