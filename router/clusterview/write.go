// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// maxBody is the limit of kube-apiserver for the body of a request, in bytes.
const maxBody = 3 << 20

// attempts is how often a write is judged, if its object changes meanwhile.
const attempts = 5

// patches are the types of patches that are served. Any other could undo the binding to the object that was judged.
var patches = []string{string(types.ApplyYAMLPatchType), string(types.MergePatchType)}

// write judges a write by a dry run, and sends it for exactly the object that was judged.
func (q request) write(w http.ResponseWriter) error {
	whole, err := q.wholeAccepted()
	if err != nil {
		return err
	}
	body, err := q.body(w)
	if err != nil {
		return err
	}
	client, err := q.client()
	if err != nil {
		return err
	}
	in := objects(client, q)
	var result *unstructured.Unstructured
	for range attempts {
		var fixed bool
		result, fixed, err = q.judgedWrite(in, body)
		if !apierrors.IsConflict(err) || fixed {
			break
		}
	}
	if err != nil {
		return err
	}
	return answer(w, shown(result, whole))
}

// judgedWrite sends the write for the present object. fixed is true if the body itself names the resourceVersion, so that
// another attempt is pointless.
func (q request) judgedWrite(in dynamic.ResourceInterface, body map[string]any) (result *unstructured.Unstructured, fixed bool, err error) {
	before, err := q.read()
	if err != nil {
		return nil, false, err
	}
	bound, fixed, err := q.bind(body, before)
	if err != nil {
		return nil, fixed, err
	}
	after, err := q.send(in, bound, []string{metav1.DryRunAll})
	if err != nil {
		return nil, fixed, err
	}
	if field := q.difference(before, after, q.handler.opts.Fields(q.gvr().GroupResource())); field != "" {
		return nil, fixed, q.forbidden(fmt.Errorf("the syncer of a cluster does not write %s", field))
	}
	if len(q.query["dryRun"]) > 0 {
		return after, fixed, nil
	}
	result, err = q.send(in, bound, nil)
	return result, fixed, err
}

// body reads the body of a write.
func (q request) body(w http.ResponseWriter) (map[string]any, error) {
	media, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
	served := patches
	if q.Verb == "update" {
		served = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML}
	}
	if !slices.Contains(served, media) {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: fmt.Sprintf("the content type is %q; want %s", media, strings.Join(served, " or ")),
		}}
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body has more than %d bytes", maxBody))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("the body cannot be read")
	}
	if text, err = yaml.YAMLToJSON(text); err != nil { // JSON is YAML
		return nil, apierrors.NewBadRequest("the body is neither JSON nor YAML")
	}
	var body map[string]any
	if err := utiljson.Unmarshal(text, &body); err != nil || body == nil {
		return nil, apierrors.NewBadRequest("the body is no object")
	}
	return body, nil
}

// bind returns a copy of body with the UID and resourceVersion of the object. It returns a Conflict if body has others.
func (q request) bind(body map[string]any, to *unstructured.Unstructured) (bound map[string]any, fixed bool, err error) {
	bound = runtime.DeepCopyJSON(body)
	if bound["metadata"] == nil {
		bound["metadata"] = map[string]any{}
	}
	meta, ok := bound["metadata"].(map[string]any)
	if !ok {
		return nil, false, apierrors.NewBadRequest("the body: metadata is no object")
	}
	for key, present := range map[string]string{"uid": string(to.GetUID()), "resourceVersion": to.GetResourceVersion()} {
		if given, named := meta[key]; named && given != "" {
			fixed = fixed || key == "resourceVersion"
			if given != present {
				return nil, true, apierrors.NewConflict(q.gvr().GroupResource(), q.Name, fmt.Errorf("the object has another %s now", key))
			}
		}
		meta[key] = present
	}
	return bound, fixed, nil
}

// send sends the write with the given dryRun.
func (q request) send(in dynamic.ResourceInterface, body map[string]any, dry []string) (*unstructured.Unstructured, error) {
	var sub []string
	if q.Subresource != "" {
		sub = []string{q.Subresource}
	}
	query := q.URL.Query()
	if q.Verb == "update" {
		opts := metav1.UpdateOptions{}
		if err := metav1.Convert_url_Values_To_v1_UpdateOptions(&query, &opts, nil); err != nil {
			return nil, apierrors.NewBadRequest("query: " + err.Error())
		}
		opts.DryRun = dry
		o := &unstructured.Unstructured{Object: body}
		if o.GetName() != q.Name || o.GetNamespace() != "" && o.GetNamespace() != q.Namespace {
			return nil, apierrors.NewBadRequest("the body has another name or namespace than the path")
		}
		return in.Update(q.Context(), o, opts, sub...)
	}
	opts := metav1.PatchOptions{}
	if err := metav1.Convert_url_Values_To_v1_PatchOptions(&query, &opts, nil); err != nil {
		return nil, apierrors.NewBadRequest("query: " + err.Error())
	}
	opts.DryRun = dry
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
	return in.Patch(q.Context(), q.Name, types.PatchType(media), data, opts, sub...)
}
