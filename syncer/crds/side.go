// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/schema"
)

var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// side is one API server with its cached types. While its method read runs, only the goroutine of read uses the
// side.
type side struct {
	name string
	api  region.API

	err      error // of the last read
	crds     map[string]*apiextensionsv1.CustomResourceDefinition
	served   map[runtimeschema.GroupResource]served
	unknown  map[string]bool // the groups whose discovery failed
	contents map[string]content
}

// served is a type as in discovery. It is in the preferred version of its group if that version has the type.
type served struct {
	list     *metav1.APIResourceList
	resource metav1.APIResource
}

// content is an OpenAPI document and the URL from which it was read. The URL usually contains a hash of the document.
type content struct {
	url      string
	document *schema.Document
}

func newSide(name string, api region.API) *side {
	return &side{name: name, api: api, crds: map[string]*apiextensionsv1.CustomResourceDefinition{}, contents: map[string]content{}}
}

func (s *side) client() dynamic.ResourceInterface { return s.api.Dynamic().Resource(definitions) }

// read reads the types that the side serves and defines. It reads unchanged definitions only once.
func (s *side) read(ctx context.Context) {
	s.err = s.lookDefinitions(ctx)
	if s.err == nil {
		s.err = s.lookDiscovery()
	}
}

func (s *side) lookDefinitions(ctx context.Context) error {
	names := map[string]bool{}
	next := ""
	for {
		list, err := s.api.Metadata().Resource(definitions).List(ctx, metav1.ListOptions{Limit: 500, Continue: next})
		if err != nil {
			return fmt.Errorf("%s: list definitions: %w", s.name, err)
		}
		for i := range list.Items {
			item := &list.Items[i]
			names[item.Name] = true
			if known := s.crds[item.Name]; known != nil && known.ResourceVersion == item.ResourceVersion {
				continue
			}
			object, err := s.client().Get(ctx, item.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				delete(names, item.Name)
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: get definition %s: %w", s.name, item.Name, err)
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
				return fmt.Errorf("%s: definition %s: %w", s.name, item.Name, err)
			}
			s.crds[item.Name] = crd
		}
		if next = list.Continue; next == "" {
			break
		}
	}
	for name := range s.crds {
		if !names[name] {
			delete(s.crds, name)
		}
	}
	return nil
}

// lookDiscovery reads which types are served with the verbs create and list. Groups whose discovery failed are unknown.
func (s *side) lookDiscovery() error {
	groups, lists, err := s.api.Discovery().ServerGroupsAndResources()
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return fmt.Errorf("%s: discovery: %w", s.name, err)
	}
	s.served, s.unknown = map[runtimeschema.GroupResource]served{}, map[string]bool{}
	for gv := range failed {
		s.unknown[gv.Group] = true
	}
	preferred := map[string]bool{}
	for _, g := range groups {
		preferred[g.PreferredVersion.GroupVersion] = true
	}
	for _, list := range lists {
		gv, err := runtimeschema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "create") || !slices.Contains(r.Verbs, "list") {
				continue
			}
			gr := runtimeschema.GroupResource{Group: gv.Group, Resource: r.Name}
			if _, ok := s.served[gr]; !ok || preferred[list.GroupVersion] {
				s.served[gr] = served{list: list, resource: r}
			}
		}
	}
	return nil
}

// knows reports whether discovery of a group succeeded.
func (s *side) knows(group string) bool { return s.err == nil && !s.unknown[group] }

// document returns the OpenAPI document of a group and version.
func (s *side) document(groupVersion string) (*schema.Document, error) {
	paths, err := s.api.Discovery().OpenAPIV3().Paths()
	if err != nil {
		return nil, fmt.Errorf("%s: OpenAPI: %w", s.name, err)
	}
	name := "apis/" + groupVersion
	if !strings.Contains(groupVersion, "/") {
		name = "api/" + groupVersion
	}
	path, ok := paths[name]
	if !ok {
		return nil, fmt.Errorf("%s: OpenAPI has no document %s", s.name, name)
	}
	if known, ok := s.contents[name]; ok && known.url == path.ServerRelativeURL() && strings.Contains(known.url, "hash=") {
		return known.document, nil
	}
	data, err := path.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, fmt.Errorf("%s: OpenAPI %s: %w", s.name, name, err)
	}
	document, err := schema.ReadDocument(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", s.name, name, err)
	}
	s.contents[name] = content{url: path.ServerRelativeURL(), document: document}
	return document, nil
}

// definition returns the side's own definition of the type, or one converted from its OpenAPI schema.
func (s *side) definition(gr runtimeschema.GroupResource) (*apiextensionsv1.CustomResourceDefinition, error) {
	if crd := s.crds[gr.String()]; crd != nil {
		return portable(crd), nil
	}
	t := s.served[gr]
	r, err := schema.ResourceOf(t.list, gr.Resource)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	document, err := s.document(t.list.GroupVersion)
	if err != nil {
		return nil, err
	}
	crd, err := document.CustomResourceDefinition(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return crd, nil
}
