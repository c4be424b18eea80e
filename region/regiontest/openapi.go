// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// serveOpenAPI serves the index of the OpenAPI documents if path is empty, and else the document at path. A document
// has the schemas of custom types only.
func (s *Server) serveOpenAPI(w http.ResponseWriter, c *call, path string) {
	documents := map[string][]*resource{}
	for _, r := range s.catalogue.all() {
		name := "apis/" + r.gv().String()
		if r.group == "" {
			name = "api/" + r.version
		}
		documents[name] = append(documents[name], r)
	}
	if path == "" {
		index := map[string]any{}
		for name, resources := range documents {
			index[name] = map[string]any{"serverRelativeURL": "/openapi/v3/" + name + "?hash=" + hashOf(resources)}
		}
		writeJSON(w, c, http.StatusOK, map[string]any{"paths": index})
		return
	}
	resources, ok := documents[path]
	if !ok {
		notFound(w)
		return
	}
	document := spec3.OpenAPI{
		Version: "3.0.0", Info: &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes", Version: "unversioned"}},
		Paths: &spec3.Paths{}, Components: &spec3.Components{Schemas: map[string]*spec.Schema{}},
	}
	for _, r := range resources {
		if t, ok := r.rules.(*custom); ok {
			document.Components.Schemas[modelName(r)] = t.openAPI(r)
		}
	}
	writeJSON(w, c, http.StatusOK, &document)
}

// hashOf returns a hash of the kinds and schemas in the OpenAPI document for resources. A client reads the document
// again when the hash changes.
func hashOf(resources []*resource) string {
	var parts []string
	for _, r := range resources {
		part := r.kind
		if t, ok := r.rules.(*custom); ok {
			part += " " + t.openAPIHash(r)
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return fmt.Sprintf("%X", sum[:16])
}

// openAPIHash returns the hash of r's schema. It computes the hash once, because the schema does not change.
func (t *custom) openAPIHash(r *resource) string {
	t.hashing.Do(func() {
		data, err := json.Marshal(t.openAPI(r))
		if err != nil {
			data = []byte(err.Error())
		}
		sum := sha256.Sum256(data)
		t.hash = fmt.Sprintf("%x", sum)
	})
	return t.hash
}

// modelName returns the name of r's schema in the OpenAPI document: the labels of the group in reverse order, the
// version and the kind.
func modelName(r *resource) string {
	labels := strings.Split(r.group, ".")
	for i, j := 0, len(labels)-1; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	return strings.Join(append(labels, r.version, r.kind), ".")
}
