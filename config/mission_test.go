// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// TestProposals checks the manifests in testdata/mission: unchanged copies of the examples in the
// KubeCarrier proposals and in the demonstration of transparent multi-cluster. Each must be valid by
// our schemas, have no unknown field, and decode strictly into our types.
func TestProposals(t *testing.T) {
	want := map[string]int{"regionclaims.yaml": 2, "peers.yaml": 3, "kubecarrier.yaml": 1, "synctarget.yaml": 1}
	paths, err := filepath.Glob("testdata/mission/*.yaml")
	require.NoError(t, err)
	require.Len(t, paths, len(want))
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			manifests := split(t, data)
			require.Len(t, manifests, want[filepath.Base(path)])
			for _, manifest := range manifests {
				var obj map[string]any
				require.NoError(t, sigsyaml.UnmarshalStrict(manifest, &obj))
				obj, _ = integers(obj).(map[string]any)
				kind := schema.FromAPIVersionAndKind(obj["apiVersion"].(string), obj["kind"].(string))
				v := validatorFor(t, strings.ToLower(kind.Kind)+"s."+kind.Group, nil)
				require.Empty(t, v.create(t, obj))

				s := scheme(t)
				strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, json.SerializerOptions{Yaml: true, Strict: true})
				decoded, got, err := strict.Decode(manifest, nil, nil)
				require.NoError(t, err)
				require.Equal(t, kind, *got)
				require.NotPanics(t, func() { decoded.DeepCopyObject() })
			}
		})
	}
}

// split returns the documents of a YAML stream.
func split(t *testing.T, data []byte) [][]byte {
	t.Helper()
	var documents [][]byte
	lines := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return documents
		}
		require.NoError(t, err)
		documents = append(documents, document)
	}
}
