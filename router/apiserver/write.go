// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/internal/apistatus"
)

var errUnaddressed = errors.New("name its region: NAME@REGION")

// maxBody is the limit of kube-apiserver for the body of a request, in bytes.
const maxBody = 3 << 20

// write sends a write to the object's own region.
func (q request) write(w http.ResponseWriter) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxBody))
	if err != nil {
		return bodyError(err)
	}
	switch q.Verb {
	case "create":
		return q.create(w, body)
	case "update":
		return q.update(w, body)
	case "patch":
		return q.patch(w, body)
	case "delete", "deletecollection":
		return q.delete(w, body)
	default:
		return apierrors.NewMethodNotSupported(q.gvr().GroupResource(), q.Verb+" over all regions")
	}
}

// bodyError returns the error of a body that could not be read.
func bodyError(err error) error {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body has more than %d bytes", maxBody))
	}
	return bad("the body cannot be read")
}

func (q request) create(w http.ResponseWriter, body []byte) error {
	query, opts := q.URL.Query(), metav1.CreateOptions{}
	if err := metav1.Convert_url_Values_To_v1_CreateOptions(&query, &opts, nil); err != nil {
		return bad("query: %v", err)
	}
	o, err := q.object(body)
	if err != nil {
		return err
	}
	opts.FieldManager = q.manager(opts.FieldManager)
	made, err := q.resource().Create(q.Context(), o, opts, q.sub()...)
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, made)
}

func (q request) update(w http.ResponseWriter, body []byte) error {
	query, opts := q.URL.Query(), metav1.UpdateOptions{}
	if err := metav1.Convert_url_Values_To_v1_UpdateOptions(&query, &opts, nil); err != nil {
		return bad("query: %v", err)
	}
	o, err := q.object(body)
	if err != nil {
		return err
	}
	opts.FieldManager = q.manager(opts.FieldManager)
	changed, err := q.resource().Update(q.Context(), o, opts, q.sub()...)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, changed)
}

func (q request) patch(w http.ResponseWriter, body []byte) error {
	query, opts := q.URL.Query(), metav1.PatchOptions{}
	if err := metav1.Convert_url_Values_To_v1_PatchOptions(&query, &opts, nil); err != nil {
		return bad("query: %v", err)
	}
	kind := q.media()
	if !slices.Contains(patchTypes, kind) {
		return unsupported(kind, patchTypes)
	}
	if types.PatchType(kind) != types.ApplyYAMLPatchType { // an apply must name its manager
		opts.FieldManager = q.manager(opts.FieldManager)
	}
	o, err := q.resource().Patch(q.Context(), q.Name, types.PatchType(kind), body, opts, q.sub()...)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, o)
}

// delete deletes one object, or the selected objects of all regions.
func (q request) delete(w http.ResponseWriter, body []byte) error {
	query, opts := q.URL.Query(), metav1.DeleteOptions{}
	if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&query, &opts, nil); err != nil {
		return bad("query: %v", err)
	}
	if len(body) > 0 {
		text, err := q.body(body)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &opts); err != nil {
			return bad("the body is no DeleteOptions: %v", err)
		}
	}
	done := &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: q.Name, Group: q.Group, Kind: q.Resource},
	}
	if q.Verb == "delete" {
		err := q.resource().Delete(q.Context(), q.Name, opts, q.sub()...)
		switch {
		case errors.Is(err, errLeft):
			done.Message = errLeft.Error()
			return answer(w, http.StatusAccepted, done)
		case err != nil:
			return err
		}
		return answer(w, http.StatusOK, done)
	}
	which, err := q.listOptions()
	if err != nil {
		return err
	}
	if err := q.resource().DeleteCollection(q.Context(), opts, which); err != nil {
		return err
	}
	return answer(w, http.StatusOK, done)
}

func (q request) resource() dynamic.ResourceInterface {
	return q.client.Resource(q.gvr()).Namespace(q.Namespace)
}

// object decodes the object of a create or an update. If the path names an object, the body must be that object.
func (q request) object(body []byte) (*unstructured.Unstructured, error) {
	body, err := q.body(body)
	if err != nil {
		return nil, err
	}
	// An API server takes a missing kind from the path, as clients of some languages expect. So the region decides about it.
	o := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(body, &o.Object); err != nil || o.Object == nil {
		return nil, bad("the body is no object")
	}
	plain, at, _ := strings.Cut(o.GetName(), "@")
	elsewhere := at != "" && q.region != nil && at != q.region.String()
	switch {
	case o.IsList():
		return nil, bad("the body is a list; want one object")
	case q.Name != "" && (elsewhere || plain != q.plain && (plain != "" || q.Subresource == "")):
		return nil, bad("the name of the object (%s) does not match the name on the URL (%s)", o.GetName(), q.Name)
	case o.GetNamespace() != "" && o.GetNamespace() != q.Namespace:
		return nil, bad("the namespace of the object (%s) does not match the namespace on the URL (%s)", o.GetNamespace(), q.Namespace)
	case q.Name != "" && at == "":
		o.SetName(q.Name) // which may name the region
	}
	return o, nil
}

// manager returns the field manager of a write. As for an API server, it is by default the caller's program.
func (q request) manager(given string) string {
	if given != "" {
		return given
	}
	program, _, _ := strings.Cut(q.UserAgent(), "/")
	const longest = 128
	return program[:min(len(program), longest)]
}

func answer(w http.ResponseWriter, code int, o any) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	apistatus.Header(w, code)
	_, _ = w.Write(data) // an error means that the client has gone
	return nil
}
