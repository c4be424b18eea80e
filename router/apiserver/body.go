// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// The content types of the bodies of patches and of other writes.
var (
	patchTypes = []string{string(types.ApplyYAMLPatchType), string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType)}
	bodyTypes  = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}
)

// media returns the type of the body.
func (q request) media() string {
	media, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
	return media
}

// body returns the body of a write as JSON. Typed clients send built-in types in protobuf.
func (q request) body(text []byte) ([]byte, error) {
	switch media := q.media(); {
	case media != "" && !slices.Contains(bodyTypes, media):
		return nil, unsupported(media, bodyTypes)
	case media == runtime.ContentTypeProtobuf:
		return fromProtobuf(text)
	}
	text, err := yaml.YAMLToJSON(text) // JSON is YAML
	if err != nil {
		return nil, bad("the body is neither JSON nor YAML: %v", err)
	}
	return text, nil
}

// fromProtobuf converts an object of a built-in type to JSON. A field that this program does not know would be lost, so
// such an object is refused.
func fromProtobuf(text []byte) ([]byte, error) {
	serializer := protobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme)
	o, _, err := serializer.Decode(text, nil, nil)
	if err != nil {
		return nil, bad("the body is no protobuf of a built-in type: %v", err)
	}
	var again bytes.Buffer
	if err := serializer.Encode(o, &again); err != nil {
		return nil, bad("the body is no protobuf of a built-in type: %v", err)
	}
	if !bytes.Equal(text, again.Bytes()) {
		return nil, unsupported("application/vnd.kubernetes.protobuf of a later version", []string{runtime.ContentTypeJSON})
	}
	return json.Marshal(o)
}

func unsupported(media string, want []string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("the content type is %q; want %s", media, strings.Join(want, " or ")),
	}}
}
