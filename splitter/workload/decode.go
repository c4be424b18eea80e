// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// maxFile and maxDocuments bound a file of declarations.
const (
	maxFile      = 1 << 20
	maxDocuments = 256
)

// Decode reads the WorkloadTypes of a file in YAML or JSON, with one document for each. Unknown fields, and fields that
// are given twice, are errors. Decode does not check the specs: see Compile.
func Decode(data []byte) ([]v1alpha1.WorkloadType, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("a file of %d bytes; accepted: at most %d", len(data), maxFile)
	}
	var all []v1alpha1.WorkloadType
	for i, document := range bytes.Split(append([]byte("\n"), data...), []byte("\n---")) {
		if strings.TrimSpace(string(document)) == "" {
			continue
		}
		if len(all) == maxDocuments {
			return nil, fmt.Errorf("more than %d documents", maxDocuments)
		}
		var one v1alpha1.WorkloadType
		if err := yaml.UnmarshalStrict(document, &one); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		if one.APIVersion != v1alpha1.GroupVersion.String() || one.Kind != "WorkloadType" {
			return nil, fmt.Errorf("document %d: is %s %s; accepted: %s WorkloadType", i+1, one.APIVersion, one.Kind, v1alpha1.GroupVersion)
		}
		all = append(all, one)
	}
	if all == nil {
		return nil, errors.New("no document")
	}
	return all, nil
}
