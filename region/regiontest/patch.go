// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

func (s *Server) servePatch(w http.ResponseWriter, c *call) error {
	media, _, _ := mime.ParseMediaType(c.http.Header.Get("Content-Type"))
	kind := types.PatchType(media)
	switch kind {
	case types.JSONPatchType, types.MergePatchType, types.ApplyYAMLPatchType:
	case types.StrategicMergePatchType:
		if !c.resource.custom() {
			break
		}
		fallthrough
	default:
		return c.unsupportedPatch()
	}
	if err := c.checkPatchOptions(kind); err != nil {
		return err
	}
	data, err := c.body()
	if err != nil {
		return err
	}
	for {
		code, it, err := s.patch(c, kind, data)
		if errors.Is(err, errRaced) {
			continue
		}
		if err != nil {
			return err
		}
		return s.writeItem(w, c, code, it)
	}
}

func (c *call) unsupportedPatch() error {
	accepted := "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
	if !c.resource.custom() {
		accepted = "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml"
	}
	return unsupportedMedia(accepted)
}

func unsupportedMedia(accepted string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + accepted,
	}}
}

// patch applies a patch to the object that is stored now, stores the result, and returns it with the
// HTTP status code. It returns errRaced if another write came first.
func (s *Server) patch(c *call, kind types.PatchType, data []byte) (int, *item, error) {
	c.warnings = nil
	live := s.store.get(c.resource.gr(), c.key())
	var next object
	var err error
	switch {
	case kind == types.ApplyYAMLPatchType && (live != nil || c.Subresource == ""):
		next, err = c.apply(live, data)
	case live == nil:
		return 0, nil, apierrors.NewNotFound(c.resource.gr(), c.Name)
	default:
		if next, err = c.merged(live, kind, data); err == nil {
			next, err = c.track(c.liveCopy(live), next)
		}
	}
	if err != nil {
		return 0, nil, err
	}
	if live == nil {
		if uid := text(metadataOf(next)["uid"]); uid != "" {
			return 0, nil, apierrors.NewConflict(c.resource.gr(), c.Name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
		}
	}
	if err := c.checkPlace(next); err != nil {
		return 0, nil, err
	}
	if err := c.checkName(next); err != nil {
		return 0, nil, err
	}
	if live == nil {
		it, err := s.create(c, next)
		if apierrors.IsAlreadyExists(err) {
			err = errRaced
		}
		return http.StatusCreated, it, err
	}
	if text(metadataOf(next)["resourceVersion"]) == "" {
		metadataOf(next)["resourceVersion"] = metadataOf(live.object)["resourceVersion"]
	}
	it, err := s.replace(c, live, next)
	return http.StatusOK, it, err
}

// merged returns the stored object after a JSON, merge or strategic merge patch.
func (c *call) merged(live *item, kind types.PatchType, data []byte) (object, error) {
	var next object
	var err error
	switch before := c.liveCopy(live); kind {
	case types.JSONPatchType:
		next, err = applyJSONPatch(before, data)
	case types.MergePatchType:
		var patch any
		if err := utiljson.Unmarshal(data, &patch); err != nil {
			return nil, apierrors.NewBadRequest("error decoding patch: " + err.Error())
		}
		changes, ok := patch.(map[string]any)
		if !ok {
			return nil, apierrors.NewBadRequest("Invalid JSON Patch")
		}
		next = mergePatch(before, changes)
	default:
		next, err = c.strategic(before, data)
	}
	if err != nil {
		return nil, err
	}
	if _, ok := next["metadata"].(map[string]any); !ok && next["metadata"] != nil {
		return nil, c.invalidPatch(next, errors.New("metadata: expected a map"))
	}
	if err := c.resource.checkKind(next); err != nil {
		return nil, err
	}
	next, unknown, err := c.resource.rules.normalize(next)
	if err != nil {
		return nil, c.invalidPatch(next, err)
	}
	if c.query.Get("fieldValidation") == "Strict" && len(unknown) > 0 {
		errs := make([]error, len(unknown))
		for i, u := range unknown {
			errs[i] = errors.New(u)
		}
		return nil, c.invalidPatch(next, runtime.NewStrictDecodingError(errs))
	}
	return next, c.report(unknown)
}

func (c *call) invalidPatch(next object, err error) error {
	shown, _ := json.Marshal(next)
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), string(shown), err.Error())})
}

// mergePatch applies an RFC 7386 patch.
func mergePatch(target, patch map[string]any) map[string]any {
	if target == nil {
		target = map[string]any{}
	}
	for name, value := range patch {
		switch v := value.(type) {
		case nil:
			delete(target, name)
		case map[string]any:
			inner, _ := target[name].(map[string]any)
			target[name] = mergePatch(inner, v)
		default:
			target[name] = v
		}
	}
	return target
}

func (c *call) strategic(before object, data []byte) (object, error) {
	patch := map[string]any{}
	if err := utiljson.Unmarshal(data, &patch); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	t, ok := c.resource.rules.(*typed)
	if !ok {
		return nil, c.unsupportedPatch()
	}
	reference, err := t.scheme.New(t.gvk)
	if err != nil {
		return nil, err
	}
	next, err := strategicpatch.StrategicMergeMapPatch(before, patch, reference)
	switch {
	case err == nil:
		return next, nil
	case errors.Is(err, mergepatch.ErrBadJSONDoc), errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList), errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys), errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList), errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return nil, apierrors.NewBadRequest(err.Error())
	default:
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
}

// apply returns the object after a server-side apply; live is nil if the apply creates the object.
func (c *call) apply(live *item, data []byte) (object, error) {
	patch := map[string]any{}
	asJSON, err := yaml.YAMLToJSON(data)
	if err == nil {
		err = utiljson.Unmarshal(asJSON, &patch)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if _, ok := patch["metadata"].(map[string]any); !ok && patch["metadata"] != nil {
		return nil, apierrors.NewBadRequest("error decoding YAML: metadata is not a map")
	}
	before := c.resource.empty()
	if live != nil {
		before = c.liveCopy(live)
	}
	manager, err := c.resource.fieldManager(c.Subresource)
	if err != nil {
		return nil, err
	}
	force := c.query.Get("force") == "true" || c.query.Get("force") == "1"
	applied, err := manager.Apply(&unstructured.Unstructured{Object: before}, &unstructured.Unstructured{Object: patch}, c.FieldManager, force)
	if err != nil {
		return nil, err
	}
	next, _, err := c.resource.rules.normalize(contentOf(applied, before))
	if err != nil {
		return nil, asBadRequest(err)
	}
	return next, nil
}
