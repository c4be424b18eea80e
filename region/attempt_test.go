// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/boxtest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// The HTTP/2 transport itself repeats some requests. The response to a repeated request does not show the outcome of
// the first one.
func TestRepeatedByTheTransport(t *testing.T) {
	server := regiontest.NewServer(regiontest.Options{})
	t.Cleanup(server.Close)
	kubeconfig, err := server.Listen(t.Context())
	require.NoError(t, err)
	box, err := boxtest.New(kubeconfig)
	require.NoError(t, err)
	t.Cleanup(box.Close)
	credentials, err := region.ParseKubeconfig(box.Kubeconfig(), region.Trust{})
	require.NoError(t, err)
	conn, err := region.NewConn(region.Peer{Name: "eu", Credentials: credentials}, region.ConnOptions{})
	require.NoError(t, err)
	namespaces := conn.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})

	for i, tc := range []struct {
		fault  boxtest.Fault
		sent   []int // how often the transport sends the request: releases of golang.org/x/net differ
		exists bool
	}{
		{boxtest.GoAway(), []int{1}, false},
		{boxtest.GoAwayBefore(), []int{2}, false},
		{boxtest.Refuse(), []int{2}, false},
		{boxtest.ProtocolError(), []int{1, 2}, true},
	} {
		box.Arm(func(r boxtest.Request) bool { return r.Method == http.MethodPost }, 0, tc.fault)
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("v1")
		object.SetKind("Namespace")
		object.SetName(fmt.Sprintf("n-%d", i))
		var attempt region.Attempt
		_, err := namespaces.Create(region.WithAttempt(t.Context(), &attempt), object, metav1.CreateOptions{})
		require.Equal(t, tc.exists, err != nil, "%s: %v", tc.fault, err)
		sent := len(box.Requests())
		require.Contains(t, tc.sent, sent, tc.fault.String())
		require.Equal(t, sent > 1, attempt.Repeated(), tc.fault.String())
		require.True(t, attempt.Sent())
	}
}
