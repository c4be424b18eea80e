// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command claimschema prints the OpenAPI schema of spec.fanout, as it stands in
// the generated CRDs, in JSON. go generate stores it beside the Go type, where
// programs with CRDs of their own take it from.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/atoll-dev/atoll/config"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "claimschema:", err)
		os.Exit(1)
	}
}

func run() error {
	crd, err := config.CRD("serviceclusters.kubecarrier.io")
	if err != nil {
		return err
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(spec.Properties["fanout"])
}
