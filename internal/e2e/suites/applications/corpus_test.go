// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package applications_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// application is one file of testdata. Its namespace has the same name.
type application struct {
	name    string
	objects []*unstructured.Unstructured
}

// corpus returns the applications of testdata, sorted by name.
func corpus(t *testing.T) []application {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	var all []application
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		a := application{name: strings.TrimSuffix(filepath.Base(path), ".yaml")}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			obj := &unstructured.Unstructured{}
			if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: document %d: %v", path, len(a.objects)+1, err)
			}
			a.objects = append(a.objects, obj)
		}
		all = append(all, a)
	}
	return all
}

// The corpus has at least 40 applications with at least 400 objects of at least 40 kinds. In an application, each object
// has a kind and a name of its own.
func TestCorpus(t *testing.T) {
	all := corpus(t)
	require.GreaterOrEqual(t, len(all), 40)
	objects, kinds := 0, map[string]bool{}
	for _, a := range all {
		known := map[string]bool{}
		for _, obj := range a.objects {
			key := obj.GroupVersionKind().GroupKind().String() + " " + obj.GetName()
			require.NotEmpty(t, obj.GetKind(), a.name)
			require.NotEmpty(t, obj.GetName(), a.name)
			require.Empty(t, obj.GetNamespace(), "%s: %s: the namespace is that of the application", a.name, key)
			require.False(t, known[key], "%s: %s appears twice", a.name, key)
			known[key] = true
			kinds[obj.GetKind()] = true
		}
		objects += len(a.objects)
	}
	require.GreaterOrEqual(t, objects, 400)
	require.GreaterOrEqual(t, len(kinds), 40)
	t.Logf("%d applications, %d objects, %d kinds", len(all), objects, len(kinds))
}
