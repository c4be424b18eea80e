// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// maxBody is the greatest size of a request body in bytes, as in a real server.
const maxBody = 3 << 20

// body reads the request body.
func (c *call) body() ([]byte, error) {
	if c.http.Body == nil {
		return nil, nil
	}
	data, err := io.ReadAll(io.LimitReader(c.http.Body, maxBody+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(data) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	return data, nil
}

// decodeObject decodes JSON or YAML into an object.
func decodeObject(data []byte) (object, error) {
	o := object{}
	if err := utiljson.Unmarshal(data, &o); err != nil {
		asJSON, yamlErr := yaml.YAMLToJSON(data)
		if yamlErr != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		o = object{}
		if err := utiljson.Unmarshal(asJSON, &o); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if o == nil {
		return nil, apierrors.NewBadRequest("the body of the request was empty")
	}
	if m, there := o["metadata"]; there {
		if _, ok := m.(map[string]any); !ok && m != nil {
			return nil, apierrors.NewBadRequest("metadata: expected a map")
		}
	}
	return o, nil
}

// fail responds with the Status of err.
func (s *Server) fail(w http.ResponseWriter, c *call, err error) {
	status := statusOf(err)
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	writeJSON(w, c, int(status.Code), status)
}

// statusOf converts err into a Status.
func statusOf(err error) *metav1.Status {
	var status metav1.Status
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	} else {
		status = metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	return &status
}

func notFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, "404 page not found\n")
}

func writeJSON(w http.ResponseWriter, c *call, code int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		code, data = http.StatusInternalServerError, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`)
	}
	writeRaw(w, c, code, data)
}

// writeRaw writes an encoded response. The caller may have set its Content-Type; the default is JSON.
func writeRaw(w http.ResponseWriter, c *call, code int, data []byte) {
	h := w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Cache-Control", "no-cache, private")
	for _, warning := range c.warnings {
		h.Add("Warning", fmt.Sprintf("299 - %q", warning))
	}
	w.WriteHeader(code)
	_, _ = w.Write(data)
}

// writeItem writes one object in the form and the version that the client requested.
func (s *Server) writeItem(w http.ResponseWriter, c *call, code int, it *item) error {
	switch form := c.form(); form {
	case formTable:
		writeJSON(w, c, code, c.resource.table([]*item{it}, it.revision, "", c))
	case formPartial:
		writeJSON(w, c, code, partial(it.object))
	default:
		raw, err := c.resource.encoded(it)
		if err != nil {
			return err
		}
		writeRaw(w, c, code, raw)
	}
	return nil
}

// encoded returns the JSON of the item in the version that r serves.
func (r *resource) encoded(it *item) ([]byte, error) {
	if r.version == r.storage {
		return it.raw, nil
	}
	return json.Marshal(r.served(it.object))
}

// encodedInList returns the JSON of the item for a list of its resource. As in kube-apiserver, the
// objects in lists of built-in types have no apiVersion and no kind.
func (r *resource) encodedInList(it *item) ([]byte, error) {
	raw, err := r.encoded(it)
	if _, builtIn := r.rules.(*typed); !builtIn || err != nil {
		return raw, err
	}
	// Fields are sorted, and quotes within strings are escaped. So the first match is the field of the
	// object itself.
	first, rest, hasVersion := bytes.Cut(raw, fmt.Appendf(nil, `"apiVersion":%q,`, r.gv().String()))
	second, rest, hasKind := bytes.Cut(rest, fmt.Appendf(nil, `"kind":%q,`, r.kind))
	if !hasVersion || !hasKind {
		return nil, fmt.Errorf("an object of %s has no type", r.gr())
	}
	return slices.Concat(first, second, rest), nil
}

// served returns o in the version that r serves. It shares all but the top level with o.
func (r *resource) served(o object) object {
	if r.version == r.storage {
		return o
	}
	other := make(object, len(o))
	for k, v := range o {
		other[k] = v
	}
	other["apiVersion"] = r.gv().String()
	return other
}

type form int

const (
	formObject form = iota
	formTable
	formPartial
	formPartialList
)

// form returns the form of the response that the Accept header requests: object, table or metadata
// only.
func (c *call) form() form {
	for part := range strings.SplitSeq(c.http.Header.Get("Accept"), ",") {
		part = strings.ReplaceAll(strings.TrimSpace(part), " ", "")
		media, params, _ := strings.Cut(part, ";")
		if media != "application/json" && media != "*/*" && media != "application/*" {
			continue
		}
		switch {
		case strings.Contains(params, "as=Table"):
			return formTable
		case strings.Contains(params, "as=PartialObjectMetadataList"):
			return formPartialList
		case strings.Contains(params, "as=PartialObjectMetadata"):
			return formPartial
		default:
			return formObject
		}
	}
	return formObject
}

// partial returns the metadata of o as a PartialObjectMetadata.
func partial(o object) object {
	return object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o["metadata"]}
}
