// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// definitions reads the CRDs in the files of dir, in the order of their kinds.
func definitions(dir string) ([]apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	crds := make([]apiextensionsv1.CustomResourceDefinition, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(text, &crds[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	slices.SortFunc(crds, func(a, b apiextensionsv1.CustomResourceDefinition) int {
		return strings.Compare(a.Spec.Names.Kind, b.Spec.Names.Kind)
	})
	return crds, nil
}

// crdsPage is the text of docs/evidence/crds.md.
func crdsPage(crds []apiextensionsv1.CustomResourceDefinition, packages []source) string {
	var b strings.Builder
	b.WriteString(`# Custom resources

For those who write or read objects of Atoll's types. After this page you know each field with its type, its default and its limits, and the meaning of each condition.

` + "`make reference`" + ` writes this page from the CRDs in [config/crd](../../config/crd) and from the constants of the types. A test fails if the page is not current. ` + "`[]`" + ` after a field marks the items of a list, and ` + "`.*`" + ` the values of a map. Fields that a table has already are not repeated.

| kind | group | scope | short names |
|---|---|---|---|
`)
	for _, crd := range crds {
		names := crd.Spec.Names
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s |\n", names.Kind, strings.ToLower(names.Kind), crd.Spec.Group, crd.Spec.Scope, strings.Join(names.ShortNames, ", "))
	}
	tables := fieldTables{known: map[string]string{}}
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			b.WriteString(kindSection(crd, v, &tables))
		}
		b.WriteString(conditionSection(packages, crd.Spec.Names.Kind))
	}
	return b.String()
}

// kindSection describes one version of a kind.
func kindSection(crd apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion, tables *fieldTables) string {
	var b strings.Builder
	names, schema := crd.Spec.Names, v.Schema.OpenAPIV3Schema
	fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", names.Kind, line(schema.Description))
	fmt.Fprintf(&b, "- Version: `%s/%s`%s\n- Resource: `%s`, %s\n", crd.Spec.Group, v.Name, served(v), names.Plural, strings.ToLower(string(crd.Spec.Scope)))
	if len(names.ShortNames) > 0 {
		fmt.Fprintf(&b, "- Short names: %s\n", quoted(names.ShortNames))
	}
	if len(names.Categories) > 0 {
		fmt.Fprintf(&b, "- Categories: %s\n", quoted(names.Categories))
	}
	if columns := printed(v.AdditionalPrinterColumns); columns != "" {
		fmt.Fprintf(&b, "- Columns of `kubectl get`: %s\n", columns)
	}
	b.WriteString(tables.of(names.Kind, schema))
	return b.String()
}

// served describes how the API server treats a version and its status.
func served(v apiextensionsv1.CustomResourceDefinitionVersion) string {
	var text string
	if v.Served {
		text += ", served"
	}
	if v.Storage {
		text += ", stored"
	}
	if v.Subresources != nil && v.Subresources.Status != nil {
		text += ", with the subresource status"
	}
	return text
}

// printed lists the columns of kubectl get, with the field of each.
func printed(columns []apiextensionsv1.CustomResourceColumnDefinition) string {
	var list []string
	for _, c := range columns {
		text := c.Name + " (`" + strings.TrimPrefix(c.JSONPath, ".") + "`)"
		if c.Priority > 0 {
			text += " with `-o wide`"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

func quoted(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
