// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
	"github.com/atoll-dev/atoll/wal"
)

// serverFields are the fields that a file must not set, because an API server, a controller or
// Atoll writes them.
var serverFields = [][]string{
	{"spec", "fanout"}, {"status"},
	{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "creationTimestamp"},
	{"metadata", "deletionTimestamp"}, {"metadata", "managedFields"}, {"metadata", "selfLink"},
}

// readObject reads an object of the kind from the file at path, or from standard input if path is
// "-". It returns an error unless the input holds exactly one object, with only fields that the
// kind has and without any of serverFields.
func (s *session) readObject(path string, kind fanout.Kind) (*unstructured.Unstructured, error) {
	data, err := s.readFile(path)
	if err != nil {
		return nil, err
	}
	doc, err := onlyDocument(data)
	if err != nil {
		return nil, badInput("", "%s: %w", path, err)
	}
	var header metav1.TypeMeta
	if err := yaml.Unmarshal(doc, &header); err != nil {
		return nil, badInput("", "%s: %w", path, err)
	}
	want := kind.Resource.GroupVersion().WithKind(kind.Kind)
	if header.GroupVersionKind() != want {
		return nil, badInput("", "%s: holds %s of %s, want %s of %s", path, or(header.Kind), or(header.APIVersion), want.Kind, want.GroupVersion())
	}
	// Decoding into the typed object only checks the fields. The object to send has exactly the
	// fields of the file, without the zero values of a Go struct.
	scheme := runtime.NewScheme()
	if err := errors.Join(regionv1alpha1.AddToScheme(scheme), accountv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	if _, _, err := strict.Decode(doc, nil, nil); err != nil {
		return nil, badInput("", "%s: %w", path, err)
	}
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(doc, &obj.Object); err != nil {
		return nil, badInput("", "%s: %w", path, err)
	}
	var written []string
	for _, field := range serverFields {
		if _, found, _ := unstructured.NestedFieldNoCopy(obj.Object, field...); found {
			written = append(written, strings.Join(field, "."))
		}
	}
	if len(written) > 0 {
		return nil, badInput("remove them", "%s: sets %s, which only Atoll or the API server write", path, strings.Join(written, ", "))
	}
	return obj, nil
}

func (s *session) readFile(path string) ([]byte, error) {
	if path == "" {
		return nil, badInput("use -f FILE, or -f - for standard input", "no file is named")
	}
	var from io.Reader = s.in
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, badInput("", "%w", err)
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, wal.MaxData+1))
	switch {
	case err != nil:
		return nil, badInput("", "%s: %w", path, err)
	case len(data) > wal.MaxData:
		return nil, badInput("", "%s: is larger than %d bytes", path, wal.MaxData)
	}
	return data, nil
}

// onlyDocument returns the only non-empty YAML or JSON document of data.
func onlyDocument(data []byte) ([]byte, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var found [][]byte
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		var content any
		if err := yaml.UnmarshalStrict(doc, &content); err != nil {
			return nil, err
		}
		if content != nil {
			found = append(found, doc)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("holds %d documents, want 1", len(found))
	}
	return found[0], nil
}

// settle calls set with the name or namespace from the command line, if it is given there. It
// returns an error if the file has a different one, or if neither the command line nor the file has
// one.
func settle(what, given, inFile string, set func(string)) error {
	switch {
	case given == "" && inFile == "":
		return badInput("", "no %s is given", what)
	case given != "" && inFile != "" && given != inFile:
		return badInput("", "%s is %q on the command line and %q in the file", what, given, inFile)
	case given != "":
		set(given)
	}
	return nil
}

func checkName(what, name string, check func(string) []string) error {
	if name == "" {
		return badInput("", "no %s is given", what)
	}
	if msgs := check(name); len(msgs) > 0 {
		return badInput("", "%s %q: %s", what, name, msgs[0])
	}
	return nil
}

func checkObjectName(name string) error {
	return checkName("name", name, validation.IsDNS1123Subdomain)
}

func checkAccountName(name string) error {
	return checkName("account", name, validation.IsDNS1123Label)
}
