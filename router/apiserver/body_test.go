// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/router/proxy"
)

// A typed client sends built-in types, and the options of a deletion, in protobuf.
func TestProtobufBodies(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	client, err := rest.RESTClientFor(&rest.Config{
		Host: s.server.URL + "/regions/*", BearerToken: "alice", APIPath: "/api",
		ContentConfig: rest.ContentConfig{GroupVersion: &schema.GroupVersion{Version: "v1"}, NegotiatedSerializer: clientscheme.Codecs, ContentType: runtime.ContentTypeProtobuf},
	})
	require.NoError(t, err)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a@us.loodse"}, Data: map[string]string{"value": "1", "other": "2"}}
	made := &corev1.ConfigMap{}
	require.NoError(t, client.Post().Namespace("default").Resource("configmaps").Body(config).Do(t.Context()).Into(made))
	require.Equal(t, "a@us.loodse", made.Name)
	made.Data["value"] = "3"
	changed := &corev1.ConfigMap{}
	require.NoError(t, client.Put().Namespace("default").Resource("configmaps").Name(made.Name).Body(made).Do(t.Context()).Into(changed))
	require.Equal(t, "3", s.value(t, "us.loodse", "a"))
	remove := func(uid string) error {
		opts := metav1.NewPreconditionDeleteOptions(uid)
		return client.Delete().Namespace("default").Resource("configmaps").Name(made.Name).Body(opts).Do(t.Context()).Error()
	}
	require.True(t, apierrors.IsConflict(remove("another")))
	require.NoError(t, remove(string(changed.UID)))
}

// An object in protobuf with a field that is not known here is refused, and so is a body of another form.
func TestProtobufThatIsRefused(t *testing.T) {
	var known bytes.Buffer
	serializer := protobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme)
	o := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{"k": "v"}}
	require.NoError(t, serializer.Encode(o, &known))
	_, err := fromProtobuf(known.Bytes())
	require.NoError(t, err)

	raw, err := o.Marshal()
	require.NoError(t, err)
	later := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Raw: append(raw, 0xa0, 0x06, 1)} // field 100
	text, err := later.Marshal()
	require.NoError(t, err)
	_, err = fromProtobuf(append([]byte("k8s\x00"), text...))
	require.Equal(t, metav1.StatusReasonUnsupportedMediaType, apierrors.ReasonForError(err), "%v", err)

	_, err = fromProtobuf([]byte("{}"))
	require.True(t, apierrors.IsBadRequest(err), "%v", err)

	q := request{Request: &http.Request{Header: http.Header{"Content-Type": {"application/cbor"}}}}
	_, err = q.body([]byte("x"))
	require.Equal(t, metav1.StatusReasonUnsupportedMediaType, apierrors.ReasonForError(err), "%v", err)
}

// FuzzProtobuf converts any text. Accepted texts are JSON objects.
func FuzzProtobuf(f *testing.F) {
	var seed bytes.Buffer
	o := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if err := protobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme).Encode(o, &seed); err != nil {
		f.Fatal(err)
	}
	f.Add(seed.Bytes())
	f.Add([]byte("k8s\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		data, err := fromProtobuf(text)
		require.True(t, err != nil || len(data) > 1 && data[0] == '{', "%s", data)
	})
}
