// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
)

// forbidden returns a 403 with the message that kube-apiserver writes.
func forbidden(group, resource, name, words string) metav1.Status {
	return statusOf(apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, name, errors.New(words)))
}

func statusOf(err *apierrors.StatusError) metav1.Status {
	s := err.Status()
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return s
}

// encodings are the encodings of a Status that API servers offer.
var encodings = map[string]func(metav1.Status) ([]byte, error){
	"application/json": func(s metav1.Status) ([]byte, error) { return json.Marshal(s) },
	"application/cbor": func(s metav1.Status) ([]byte, error) {
		data, err := cbor.Marshal(s)
		return append([]byte{0xd9, 0xd9, 0xf7}, bytes.TrimPrefix(data, []byte{0xd9, 0xd9, 0xf7})...), err
	},
	"application/vnd.kubernetes.protobuf": func(s metav1.Status) ([]byte, error) {
		raw, err := s.Marshal()
		if err != nil {
			return nil, err
		}
		unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Status"}, Raw: raw}
		data, err := unknown.Marshal()
		return append([]byte("k8s\x00"), data...), err
	},
}

// If a peer refuses the caller, the caller gets the peer's answer unchanged. If it refuses the router's own
// credentials, the caller gets only ErrCredentials.
func TestWhoIsRefused(t *testing.T) {
	unauthorized := statusOf(apierrors.NewUnauthorized("Unauthorized"))
	const us, at = `User "system:serviceaccount:a:gateway" cannot `, ` at the cluster scope`
	const configMaps, exec = "/api/v1/namespaces/n/configmaps", "/api/v1/namespaces/n/pods/p/exec"
	for name, tt := range map[string]struct {
		path   string
		status metav1.Status
		ours   bool // an impersonated user gets ErrCredentials
	}{
		"the credentials": {configMaps, unauthorized, true},
		"a user":          {configMaps, forbidden("", "users", "alice", us+`impersonate resource "users" in API group ""`+at), true},
		"a user, because": {configMaps, forbidden("", "users", "alice", us+`impersonate resource "users" in API group ""`+at+`: RBAC: role "x" not found`), true},
		"a group":         {configMaps, forbidden("", "groups", "dev", us+`impersonate resource "groups" in API group ""`+at), true},
		"an extra value":  {configMaps, forbidden("authentication.k8s.io", "userextras", "view", us+`impersonate resource "userextras/scopes" in API group "authentication.k8s.io"`+at), true},
		"a service account": {
			configMaps, forbidden("", "serviceaccounts", "a", us+`impersonate resource "serviceaccounts" in API group "" in the namespace "ci"`), true,
		},
		"constrained, whom": {configMaps, forbidden("authentication.k8s.io", "users", "alice", us+`impersonate:user-info resource "users" in API group "authentication.k8s.io"`+at), true},
		"constrained, what": {configMaps, forbidden("", "configmaps", "", us+`impersonate-on:user-info:list resource "configmaps" in API group "" in the namespace "n"`), true},
		"constrained, where": {
			"/version", forbidden("", "", "", us+`impersonate-on:user-info:get path "/version"`), true,
		},
		"upgraded":                               {exec, unauthorized, true},
		"the API server, of a service behind it": {"/api/v1/namespaces/n/services/s/proxy/login", unauthorized, true},
		"the API server's words with a quote": {
			configMaps, forbidden("", "users", `a"b`, `User "sys\"tem" cannot impersonate resource "users" in API group ""`+at), true,
		},

		"the user":                 {configMaps, forbidden("", "configmaps", "", `User "alice" cannot list resource "configmaps" in API group "" in the namespace "n"`), false},
		"the user, of users":       {"/api/v1/users/alice", forbidden("", "users", "alice", `User "alice" cannot get resource "users" in API group ""`+at), false},
		"the user, of no resource": {"/metrics", forbidden("", "", "", `User "alice" cannot get path "/metrics"`), false},
		"an admission policy": {
			configMaps, forbidden("", "configmaps", "a", `ValidatingAdmissionPolicy 'p' with binding 'b' denied request: User "alice" cannot impersonate resource "users"`), false,
		},
		"the user, by a resource's name that is made of the words": {
			"/apis/g/v1/r", forbidden("g", `x is forbidden: User "alice" cannot impersonate resource "users`, "n", `User "alice" cannot get resource "x"`), false,
		},
		"the user, by a name that is made of the words": {
			configMaps, forbidden("", "configmaps", `x" is forbidden: User "alice" cannot impersonate resource "users"`, `User "alice" cannot get resource "configmaps" in API group ""`), false,
		},
		"the user, by a user's name that is made of the words": {
			configMaps, forbidden("", "configmaps", "a", fmt.Sprintf("User %q cannot get resource", `alice" cannot impersonate resource "users"`)), false,
		},
		"an object that is not there": {configMaps, statusOf(apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "a")), false},
	} {
		for mediaType, encode := range encodings {
			t.Run(name+"/"+mediaType, func(t *testing.T) {
				body, err := encode(tt.status)
				require.NoError(t, err)
				resp := func() *http.Response {
					return &http.Response{
						StatusCode: int(tt.status.Code), Header: http.Header{"Content-Type": {mediaType}},
						Body: io.NopCloser(bytes.NewReader(body)), Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, tt.path, http.NoBody),
					}
				}
				for id, ours := range map[string]bool{
					"impersonated": tt.ours, "self": tt.ours && tt.status.Code == http.StatusUnauthorized, "caller": false,
				} {
					who := map[string]Identity{"impersonated": alice, "self": Self(), "caller": Caller("t")}[id]
					r := resp() //nolint:bodyclose // the response has no connection
					err := accepted(who, r)
					if ours {
						require.ErrorIs(t, err, ErrCredentials, id)
						require.ErrorContains(t, err, tt.status.Message)
						var status apierrors.APIStatus
						require.NotErrorAs(t, err, &status)
						continue
					}
					require.NoError(t, err, id)
					got, err := io.ReadAll(r.Body)
					require.NoError(t, err)
					require.Equal(t, body, got, "the answer is whole")
				}
			})
		}
	}
}

// A service behind a peer's API server authenticates its own callers: its 401 reaches the caller unchanged. A 401 for
// any other path yields ErrCredentials.
func TestAServicesOwnRefusal(t *testing.T) {
	for path, ours := range map[string]bool{
		"/api/v1/namespaces/n/services/s/proxy":       false,
		"/api/v1/namespaces/n/pods/p:80/proxy/login":  false,
		"/api/v1/nodes/n/proxy/logs/":                 false,
		"/api/v1/namespaces/n/services/s":             true, // an authenticating proxy in front of the API server
		"/api/v1/namespaces/proxy-team/pods/proxying": true,
	} {
		body := "log in first"
		resp := &http.Response{StatusCode: http.StatusUnauthorized, Body: io.NopCloser(bytes.NewBufferString(body)), Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)}
		err := accepted(alice, resp)
		require.Equal(t, ours, errors.Is(err, ErrCredentials), "%s: %v", path, err)
		if !ours {
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, body, string(got))
		}
	}
}

// cutShort is a body that fails after its first bytes.
type cutShort struct{ sent bool }

func (b *cutShort) Read(p []byte) (int, error) {
	if b.sent {
		return 0, io.ErrUnexpectedEOF
	}
	b.sent = true
	return copy(p, `{"kind":"Sta`), nil
}

func (b *cutShort) Close() error { return nil }

// After accepted has inspected a body, the caller still reads all bytes and the same error, also if the body is longer
// than maxStatus.
func TestAnAnswerThatWasLookedAt(t *testing.T) {
	resp := &http.Response{StatusCode: http.StatusForbidden, Body: &cutShort{}, Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", http.NoBody)}
	require.NoError(t, accepted(alice, resp))
	got, err := io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, `{"kind":"Sta`, string(got)) //nolint:testifylint // the body is cut and therefore not JSON

	long := bytes.Repeat([]byte("x"), 3*maxStatus)
	resp.Body = io.NopCloser(bytes.NewReader(long))
	require.NoError(t, accepted(alice, resp))
	got, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, long, got)
}

// If a peer refuses the router's own credentials, the error is ErrCredentials and no 401, and it names the peer and
// the region. If the peer refuses them for a stream, Accepted calls ConnOptions.Refresh, so that the Source looks for
// newer credentials. If the peer refuses the caller's own token, Accepted does not call it.
func TestRefusedCredentialsOfAClient(t *testing.T) {
	refuse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(statusOf(apierrors.NewUnauthorized("Unauthorized")))
	}))
	defer refuse.Close()
	creds, err := region.FromConfig(&rest.Config{Host: refuse.URL, BearerToken: "old"})
	require.NoError(t, err)
	refreshed := 0
	conn, err := region.NewConn(region.Peer{Name: "a", Regions: []region.Key{eu}, Credentials: creds}, region.ConnOptions{Refresh: func() { refreshed++ }, Await: 1})
	require.NoError(t, err)
	defer conn.Close()
	pinned, err := region.NewConn(region.Peer{Name: "b", UID: "1", Regions: []region.Key{us}, Credentials: creds}, region.ConnOptions{})
	require.NoError(t, err)
	defer pinned.Close()
	routes := newRouter(t, region.Fixed(conn, pinned), Options{})
	list := func(ctx context.Context, k region.Key, id Identity) error {
		c, err := routes.Client(k, id)
		require.NoError(t, err)
		_, err = c.Dynamic().Resource(configMaps).List(ctx, metav1.ListOptions{})
		return err
	}
	for _, id := range []Identity{alice, Self()} {
		err = list(t.Context(), eu, id)
		require.ErrorIs(t, err, ErrCredentials)
		require.ErrorContains(t, err, "peer a: region eu-west-1.loodse: GET: the peer refuses the router's own credentials: 401 Unauthorized")
		require.False(t, apierrors.IsUnauthorized(err), "%v", err)
		c, err := routes.Client(eu, id)
		require.NoError(t, err)
		_, err = c.Dynamic().Resource(configMaps).Watch(t.Context(), metav1.ListOptions{})
		require.ErrorIs(t, err, ErrCredentials)
	}
	require.True(t, apierrors.IsUnauthorized(list(t.Context(), eu, Caller("theirs"))), "the caller's own")
	// Before the first request to a peer with a UID, the router reads the cluster's identity with its own
	// credentials.
	for _, id := range []Identity{alice, Caller("theirs")} {
		err = list(t.Context(), us, id)
		require.ErrorIs(t, err, ErrCredentials)
		require.False(t, apierrors.IsUnauthorized(err), "%v", err)
	}

	before := refreshed
	c, err := routes.Client(eu, alice)
	require.NoError(t, err)
	refusal := func() *http.Response {
		return &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody, Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/exec", http.NoBody)}
	}
	err = c.Accepted(refusal()) //nolint:bodyclose // the response has no connection
	require.ErrorIs(t, err, ErrCredentials)
	require.ErrorContains(t, err, "peer a: region eu-west-1.loodse: stream: ")
	require.Equal(t, before+1, refreshed)
	c, err = routes.Client(eu, Caller("theirs"))
	require.NoError(t, err)
	require.NoError(t, c.Accepted(refusal())) //nolint:bodyclose // the response has no connection
	require.Equal(t, before+1, refreshed)
}
