// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router/aggregate"
	"github.com/atoll-dev/atoll/router/proxy"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

func configMap(name, region string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
	if region != "" {
		o.SetAnnotations(map[string]string{aggregate.RegionAnnotation: region})
	}
	return o
}

// all returns alice's client for all regions.
func (s *scene) all(t *testing.T, gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	t.Helper()
	return s.client(t, "*").Resource(gvr).Namespace("default")
}

// value returns the value of a ConfigMap in one region.
func (s *scene) value(t *testing.T, region, name string) string {
	t.Helper()
	o, err := s.client(t, region).Resource(configMaps).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	text, _, err := unstructured.NestedString(o.Object, "data", "value")
	require.NoError(t, err)
	return text
}

// Objects are created, changed and deleted in their own regions.
func TestWrites(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	c := s.all(t, configMaps)
	made, err := c.Create(t.Context(), configMap("a", "us.loodse"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "a@us.loodse", made.GetName())
	_, err = c.Create(t.Context(), configMap("a@us.loodse", ""), metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)

	made.Object["data"] = map[string]any{"value": "1"}
	changed, err := c.Update(t.Context(), made, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "1", s.value(t, "us.loodse", "a"))
	_, err = c.Update(t.Context(), made, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "an old resourceVersion: %v", err)
	changed.Object["data"] = map[string]any{"value": "2"}
	_, err = c.Update(t.Context(), changed, metav1.UpdateOptions{})
	require.NoError(t, err)

	for i, p := range []struct {
		kind types.PatchType
		data string
	}{
		{types.MergePatchType, `{"data":{"value":%q}}`},
		{types.StrategicMergePatchType, `{"data":{"value":%q}}`},
		{types.JSONPatchType, `[{"op":"replace","path":"/data/value","value":%q}]`},
		{types.ApplyYAMLPatchType, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"value":%q}}`},
	} {
		want := fmt.Sprint("patch ", i)
		_, err = c.Patch(t.Context(), "a@us.loodse", p.kind, fmt.Appendf(nil, p.data, want), metav1.PatchOptions{FieldManager: "m", Force: forced(p.kind)})
		require.NoError(t, err, p.kind)
		require.Equal(t, want, s.value(t, "us.loodse", "a"))
	}

	err = c.Delete(t.Context(), "a@us.loodse", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.NoError(t, c.Delete(t.Context(), "a@us.loodse", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(made.GetUID())}}))
	err = c.Delete(t.Context(), "a@us.loodse", metav1.DeleteOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func forced(kind types.PatchType) *bool {
	if kind == types.ApplyYAMLPatchType {
		return new(true)
	}
	return nil
}

// A write whose region is not certain gets a 409 that says how to name the region, or a 503 that names a region that does
// not answer. It changes nothing.
func TestWritesWithoutARegion(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	c := s.all(t, configMaps)
	writes := map[string]func(name string) error{
		"update": func(name string) error {
			_, err := c.Update(t.Context(), configMap(name, ""), metav1.UpdateOptions{})
			return err
		},
		"patch": func(name string) error {
			_, err := c.Patch(t.Context(), name, types.MergePatchType, []byte(`{"data":{"value":"1"}}`), metav1.PatchOptions{})
			return err
		},
		"apply": func(name string) error {
			_, err := c.Apply(t.Context(), name, configMap(name, ""), metav1.ApplyOptions{FieldManager: "m"})
			return err
		},
		"delete": func(name string) error { return c.Delete(t.Context(), name, metav1.DeleteOptions{}) },
	}
	_, err := c.Create(t.Context(), configMap("new", ""), metav1.CreateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "set the annotation router.atoll.dev/region to one of 2, such as eu.loodse, us.loodse")
	require.ErrorContains(t, writes["apply"]("new"), "set the annotation router.atoll.dev/region")

	s.put(t, "eu.loodse", "both")
	s.put(t, "us.loodse", "both")
	for verb, write := range writes {
		err := write("both")
		require.True(t, apierrors.IsConflict(err), "%s: %v", verb, err)
		require.ErrorContains(t, err, "both@eu.loodse, both@us.loodse", verb)
	}
	s.ring.Partition("peer-b", true)
	s.put(t, "eu.loodse", "one")
	for method, media := range map[string]string{
		http.MethodPut: "application/json", http.MethodPatch: string(types.MergePatchType), http.MethodDelete: "application/json",
	} {
		code, body := s.send(t, method, "/regions/*/api/v1/namespaces/default/configmaps/one", media, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}`)
		require.Equal(t, http.StatusServiceUnavailable, code, method)
		require.Contains(t, body, "us.loodse", method)
	}
	require.NoError(t, writes["patch"]("one@eu.loodse"), "a region that is away does not matter to the others")
	require.Equal(t, "1", s.value(t, "eu.loodse", "one"))
	for _, name := range []string{"both", "one"} {
		_, err := s.client(t, "eu.loodse").Resource(configMaps).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
	}
}

// Subresources are those of the object's own region.
func TestSubresources(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	c := s.all(t, deployments)
	made, err := c.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web@eu.loodse"},
		"spec": map[string]any{
			"replicas": int64(2), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}},
		},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedField(made.Object, int64(2), "status", "replicas"))
	_, err = c.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = c.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"status":{"readyReplicas":1}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	o, err := c.Get(t.Context(), "web@eu.loodse", metav1.GetOptions{}, "status")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"replicas": int64(2), "readyReplicas": int64(1)}, o.Object["status"])
}

// The regions see the caller, and the caller's program as the field manager.
func TestWritesAreTheCallers(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	code, body := s.send(t, http.MethodPost, "/regions/*/api/v1/namespaces/default/configmaps", "application/yaml",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a@us.loodse}\ndata: {value: \"1\"}\n")
	require.Equal(t, http.StatusCreated, code, body)
	requests := s.ring.Server("peer-b").Requests()
	last := requests[len(requests)-1]
	require.Equal(t, "create", last.Verb)
	require.Equal(t, "alice", last.User.Name)
	o, err := s.client(t, "us.loodse").Resource(configMaps).Namespace("default").Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "test", o.GetManagedFields()[0].Manager)
	require.NotContains(t, o.GetAnnotations(), aggregate.RegionAnnotation, "it is not stored")
}

// JavaScript's client sends no kind: an API server takes it from the path.
func TestABodyWithoutAKind(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	const types = "/regions/*/api/v1/namespaces/default/configmaps"
	code, body := s.send(t, http.MethodPost, types, "application/json", `{"metadata":{"name":"a@us.loodse"},"data":{"value":"1"}}`)
	require.Equal(t, http.StatusCreated, code, body)
	require.Contains(t, body, `"kind":"ConfigMap"`)
	code, body = s.send(t, http.MethodPut, types+"/a@us.loodse", "application/json", `{"metadata":{"name":"a"},"data":{"value":"2"}}`)
	require.Equal(t, http.StatusOK, code, body)
	o, err := s.client(t, "us.loodse").Resource(configMaps).Namespace("default").Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	value, _, _ := unstructured.NestedString(o.Object, "data", "value")
	require.Equal(t, "2", value)
}

// Bodies that are no object, or another object than the one on the URL, are refused, and change nothing.
func TestBodiesThatAreRefused(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	s.put(t, "eu.loodse", "a")
	s.put(t, "eu.loodse", "b")
	const (
		types = "/regions/*/api/v1/namespaces/default/configmaps"
		one   = types + "/a@eu.loodse"
	)
	object := func(name, more string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"` + more + `}}`
	}
	for name, c := range map[string]struct {
		method, path, media, body string
		code                      int
		says                      string
	}{
		"another name":      {http.MethodPut, one, "application/json", object("b", ""), 400, "the name of the object (b) does not match the name on the URL (a@eu.loodse)"},
		"another region":    {http.MethodPut, one, "application/json", object("a@us.loodse", ""), 400, "does not match the name on the URL"},
		"no name":           {http.MethodPut, one, "application/json", object("", ""), 400, "does not match"},
		"another namespace": {http.MethodPost, types, "application/json", object("c@eu.loodse", `,"namespace":"kube-system"`), 400, "the namespace of the object (kube-system) does not match the namespace on the URL (default)"},
		"a list":            {http.MethodPost, types, "application/json", `{"apiVersion":"v1","kind":"ConfigMapList","items":[]}`, 400, "the body is a list"},
		"no object":         {http.MethodPost, types, "application/json", `"text"`, 400, "the body is no object"},
		"no JSON":           {http.MethodPost, types, "application/json", `{`, 400, "neither JSON nor YAML"},
		"null":              {http.MethodPost, types, "application/json", `null`, 400, "the body is no object"},
		"cbor":              {http.MethodPost, types, "application/cbor", "\xa0", 415, "want application/json or application/yaml"},
		"cbor, delete":      {http.MethodDelete, one, "application/cbor", "\xa0", 415, "want application/json or application/yaml"},
		"protobuf":          {http.MethodPost, types, "application/vnd.kubernetes.protobuf", "k8s\x00", 400, "no protobuf of a built-in type"},
		"no patch":          {http.MethodPatch, one, "application/json", `{}`, 415, "want application/apply-patch+yaml or "},
		"no options":        {http.MethodDelete, one, "application/json", `[]`, 400, "the body is no DeleteOptions"},
		"too large":         {http.MethodPost, types, "application/json", object("c@eu.loodse", `,"x":"`+strings.Repeat("x", maxBody)+`"`), 413, "the body has more than 3145728 bytes"},
		"a bad option":      {http.MethodPost, types + "?dryRun=Some", "application/json", object("c@eu.loodse", ""), 422, ""},
	} {
		code, body := s.send(t, c.method, c.path, c.media, c.body)
		require.Equal(t, c.code, code, "%s: %s", name, body)
		require.Contains(t, body, c.says, name)
	}
	for _, peer := range []string{"eu.loodse", "us.loodse"} {
		list, err := s.client(t, peer).Resource(configMaps).Namespace("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, map[string]int{"eu.loodse": 2}[peer])
		for _, o := range list.Items {
			require.Empty(t, o.GetManagedFields(), "a write of a field has an entry here")
		}
	}
}

// A write is sent once. If the answer is lost, the caller gets an error, although the write was carried out.
func TestALostAnswerIsAnError(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	server := s.ring.Server("peer-b")
	server.Inject(regiontest.Fault{Verb: "create", Resource: configMaps.GroupResource(), Do: regiontest.DropReply()})
	code, body := s.send(t, http.MethodPost, "/regions/*/api/v1/namespaces/default/configmaps", "application/json",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a@us.loodse"}}`)
	require.Equal(t, http.StatusServiceUnavailable, code, body)
	require.NotContains(t, body, "peer-")
	creates := 0
	for _, r := range server.Requests() {
		if r.Verb == "create" && r.Resource == configMaps.Resource {
			creates++
		}
	}
	require.Equal(t, 1, creates)
	require.Empty(t, s.value(t, "us.loodse", "a"), "the object is there")
}

// The objects of all regions are deleted together, also by a selector.
func TestDeleteCollection(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	c := s.all(t, configMaps)
	for _, name := range []string{"a@eu.loodse", "b@us.loodse"} {
		o := configMap(name, "")
		o.SetLabels(map[string]string{"app": name[:1]})
		_, err := c.Create(t.Context(), o, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, c.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=a"}))
	list, err := c.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, "b@us.loodse", list.Items[0].GetName())
}

// send sends a request as alice, whose program is called test.
func (s *scene) send(t *testing.T, method, path, media, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.server.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer alice")
	req.Header.Set("Content-Type", media)
	req.Header.Set("User-Agent", "test/v1")
	resp, err := s.server.Client().Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(data)
}
