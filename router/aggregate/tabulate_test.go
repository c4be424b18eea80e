// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/router/aggregate/internal/splice"
)

// Whatever a region answers in place of a table, the result is an error or a table.
func FuzzTabulated(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"b"}}]}`,
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","creationTimestamp":null}}`,
		`{"kind":"ConfigMapList","items":[null]}`, `{"kind":"List"}`, `{"items":[{}]}`, `[]`, `null`, `{"kind":"AList","metadata":null,"items":[{"metadata":7}]}`,
		`{"kind":"AList","items":[{"Metadata":{"name":"a"}}]}`, `{"kind":"AList","items":[{"metadata":{"name":["a"]}}]}`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, answer []byte, whole bool) {
		text, err := tabulated(answer, whole)
		if err != nil {
			return
		}
		require.True(t, json.Valid(text), "%s", text)
		reader := splice.Reader{Annotation: RegionAnnotation}
		if list, err := reader.List(text); err == nil {
			require.Equal(t, "Table", list.Kind)
		}
	})
}
