// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A cut link accepts no connection, and closes its open connections.
func TestLink(t *testing.T) {
	m, err := Listen(t.Context())
	require.NoError(t, err)
	defer m.Close()
	l, data, err := NewLink(m.Files[1].Data)
	require.NoError(t, err)
	defer l.Close()
	conn, err := Connect(Kubeconfig{"cluster-1", data})
	require.NoError(t, err)
	defer conn.Close()
	objects := conn.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	ask := func() error {
		_, err := objects.List(t.Context(), metav1.ListOptions{})
		return err
	}
	require.NoError(t, ask())
	watch, err := objects.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer watch.Stop()
	l.Cut(true)
	require.True(t, l.IsCut())
	for range watch.ResultChan() { //nolint:revive // until it is closed
	}
	require.Error(t, ask())
	l.Cut(false)
	require.NoError(t, ask())
}
