// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const (
	// SchemaVersionLabel is a label of every CRD of this module. It
	// distinguishes them from CRDs of the same names that other software
	// installs.
	SchemaVersionLabel = "atoll.dev/schema-version"

	// SchemaVersion is the value of SchemaVersionLabel on the CRDs of this
	// release: an integer that increases when a schema changes. A marker of the
	// Go types sets it in the generated YAML, too.
	SchemaVersion = "1"
)

//go:embed crd/*.yaml
var files embed.FS

// CRDs returns the CustomResourceDefinitions of this module, sorted by group
// and then by name, each with the label SchemaVersionLabel. The caller may
// modify the objects. It does no I/O and is safe for concurrent use.
func CRDs() ([]*unstructured.Unstructured, error) {
	paths, err := fs.Glob(files, "crd/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list embedded CRDs: %w", err)
	}
	crds := make([]*unstructured.Unstructured, 0, len(paths))
	for _, path := range paths {
		crd, err := read(path)
		if err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

func read(path string) (*unstructured.Unstructured, error) {
	data, err := files.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read embedded CRD: %w", err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &crd.Object); err != nil {
		return nil, fmt.Errorf("embedded CRD %s: %w", path, err)
	}
	return crd, nil
}

// TypedCRDs returns the CRDs as Go values: for servers in memory and for
// programs that change a CRD before they install it. It does no I/O and is safe
// for concurrent use.
func TypedCRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := CRDs()
	if err != nil {
		return nil, err
	}
	typed := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(crds))
	for _, crd := range crds {
		t, err := typedCRD(crd)
		if err != nil {
			return nil, err
		}
		typed = append(typed, t)
	}
	return typed, nil
}

func typedCRD(crd *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	typed := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(crd.Object, typed, true); err != nil {
		return nil, fmt.Errorf("embedded CRD %s: %w", crd.GetName(), err)
	}
	return typed, nil
}

// CRD returns one CRD of TypedCRDs by its name, such as
// accounts.catalog.kubecarrier.io, or an error if this release has no such CRD.
func CRD(name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	plural, group, _ := strings.Cut(name, ".")
	crd, err := read("crd/" + group + "_" + plural + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("no CRD %q in this release", name)
	}
	return typedCRD(crd)
}
