// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// env is the environment of a case.
type env struct {
	testing.TB
	Ctx       context.Context //nolint:containedctx // lives as long as the case
	Config    *rest.Config
	Dynamic   dynamic.Interface
	Metadata  metadata.Interface
	Namespace string // of this case, created by the first call of e.widgets or e.in
	Group     string // of this case

	name    string
	kind    Kind
	compact compactor
	differs func(fact string)
	http    *http.Client
	made    bool
}

func newEnv(ctx context.Context, t testing.TB, name string, config *rest.Config, kind Kind, compact compactor, differs func(string)) *env {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = "conformance/1"
	config.WarningHandler = rest.NoWarnings{}
	id := rand.String(6)
	e := &env{TB: t, Ctx: ctx, Config: config, Namespace: "c-" + id, Group: "c" + id + ".conformance.example.org", name: name, kind: kind, compact: compact, differs: differs}
	var err error
	e.http, err = rest.HTTPClientFor(config)
	require.NoError(t, err)
	e.Dynamic, err = dynamic.NewForConfigAndClient(config, e.http)
	require.NoError(t, err)
	e.Metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), e.http)
	require.NoError(t, err)
	return e
}

// fact asserts that the observed value got equals real, the value that a real server shows. If differences.go
// declares the fact, the server in memory must show the declared value instead.
func (e *env) fact(name string, real, got any) {
	e.Helper()
	want := real
	for _, d := range differences() {
		if d.name == e.name && d.Fact == name {
			e.differs(name)
			if e.kind == Memory {
				want = d.Memory
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		e.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// errorText returns code, reason and message of err, with the case's namespace and API group replaced by fixed
// names.
func (e *env) errorText(err error) string {
	if err == nil {
		return "OK"
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return e.plain(fmt.Sprintf("%T %v", err, err))
	}
	s := status.Status()
	return e.plain(fmt.Sprintf("%d %s: %s", s.Code, s.Reason, s.Message))
}

func (e *env) plain(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, e.Namespace, "NS"), e.Group, "GROUP")
}

// causes returns the causes in err's details.
func (e *env) causes(err error) []string {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var causes []string
	for _, c := range status.Status().Details.Causes {
		causes = append(causes, e.plain(fmt.Sprintf("%s %s: %s", c.Type, c.Field, c.Message)))
	}
	return causes
}

// in returns a client of a built-in resource in the case's namespace.
func (e *env) in(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	e.Helper()
	e.namespace()
	return e.Dynamic.Resource(gvr).Namespace(e.Namespace)
}

func (e *env) namespace() {
	e.Helper()
	if e.made {
		return
	}
	e.made = true
	_, err := e.Dynamic.Resource(namespaces).Create(e.Ctx, object("v1", "Namespace", e.Namespace), metav1.CreateOptions{})
	require.NoError(e, err)
}

// widgets creates the CRD of widgets in the case's group, after change has edited it, and returns a client of widgets
// in the case's namespace.
func (e *env) widgets(change ...func(crd map[string]any)) dynamic.ResourceInterface {
	e.Helper()
	e.namespace()
	e.crd(change...)
	return e.Dynamic.Resource(e.gvr()).Namespace(e.Namespace)
}

// gvr returns the resource of the CRD that the method widgets creates.
func (e *env) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: e.Group, Version: "v1", Resource: "widgets"}
}

// crd creates the CRD and waits until it is established and served. A real server serves it as soon as its names are
// accepted, and sets the condition Established slightly later.
func (e *env) crd(change ...func(crd map[string]any)) {
	e.Helper()
	crd := widgetCRD(e.Group)
	for _, c := range change {
		c(crd.Object)
	}
	_, err := e.Dynamic.Resource(crds).Create(e.Ctx, crd, metav1.CreateOptions{})
	require.NoError(e, err)
	e.Cleanup(func() {
		_ = e.Dynamic.Resource(crds).Delete(context.WithoutCancel(e.Ctx), crd.GetName(), metav1.DeleteOptions{})
	})
	e.until("the CRD is established", func() bool {
		made, err := e.Dynamic.Resource(crds).Get(e.Ctx, crd.GetName(), metav1.GetOptions{})
		return err == nil && strings.HasPrefix(condition(made, "Established"), "True ")
	})
	e.served(e.Group, "widgets")
}

// served waits until the server serves version v1 of a custom type.
func (e *env) served(group, plural string) {
	e.Helper()
	e.until("the CRD is served", func() bool {
		_, err := e.Dynamic.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}).List(e.Ctx, metav1.ListOptions{})
		return err == nil
	})
}

// until waits until holds returns true. It fails the case if the case's context ends first. what describes the
// condition in the failure.
func (e *env) until(what string, holds func() bool) {
	e.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-e.Ctx.Done():
			require.Fail(e, "waiting until "+what, e.Ctx.Err().Error())
		}
	}
}

// answer is the response to a raw request.
type answer struct {
	Code   int
	Header http.Header
	Body   map[string]any // nil if it is not an object
	Text   string
}

// do sends a raw request. path begins with a slash. header lists names, each followed by its value.
func (e *env) do(method, path string, body any, header ...string) answer {
	e.Helper()
	var payload []byte
	switch b := body.(type) {
	case nil:
	case string:
		payload = []byte(b)
	default:
		var err error
		payload, err = json.Marshal(b)
		require.NoError(e, err)
	}
	host, _, err := rest.DefaultServerUrlFor(e.Config)
	require.NoError(e, err)
	request, err := http.NewRequestWithContext(e.Ctx, method, strings.TrimSuffix(host.String(), "/")+path, bytes.NewReader(payload))
	require.NoError(e, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "conformance/1")
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := e.http.Do(request)
	require.NoError(e, err)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	require.NoError(e, err)
	reply := answer{Code: response.StatusCode, Header: response.Header, Text: string(data)}
	_ = json.Unmarshal(data, &reply.Body)
	return reply
}

// path returns the path of the widget name in the case's namespace, or of all widgets if name is empty.
func (e *env) path(name string) string {
	path := "/apis/" + e.Group + "/v1/namespaces/" + e.Namespace + "/widgets"
	if name != "" {
		path += "/" + name
	}
	return path
}

// field returns one field of o; nil if it is absent.
func field(o *unstructured.Unstructured, path ...string) any {
	v, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil || !found {
		return nil
	}
	return v
}
