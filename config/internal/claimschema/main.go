// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command claimschema prints, in JSON, the OpenAPI schema of spec.fanout in the
// generated CRD at the given path. go generate stores it beside the Go type,
// for programs with CRDs of their own.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "claimschema:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the path of one CRD, got %d arguments", len(args))
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	for _, v := range crd.Spec.Versions {
		if fanout, ok := v.Schema.OpenAPIV3Schema.Properties["spec"].Properties["fanout"]; ok {
			out := json.NewEncoder(os.Stdout)
			out.SetIndent("", "  ")
			out.SetEscapeHTML(false)
			return out.Encode(fanout)
		}
	}
	return fmt.Errorf("%s has no spec.fanout", args[0])
}
