// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package planetest_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
)

func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }

func TestNamespaceIsInAllPlanes(t *testing.T) {
	planes := planetest.Shared(t, 2)
	name := planetest.Namespace(t, planes...)
	require.Regexp(t, "^testnamespaceisinallplanes-[a-z0-9]{5}$", name)
	require.NotEqual(t, name, planetest.Namespace(t, planes...))
	for _, p := range planes {
		client, err := dynamic.NewForConfig(p.Config())
		require.NoError(t, err)
		_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
	}
}

func TestPeer(t *testing.T) {
	p := planetest.Shared(t, 1)[0]
	key := region.Key{Provider: "loodse", Name: "eu-west-1"}
	conn, err := region.NewConn(planetest.Peer(t, p, key), region.ConnOptions{})
	require.NoError(t, err)
	require.Equal(t, region.PeerName("eu-west"), conn.Peer())
	_, err = conn.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
}

func TestEventuallyFails(t *testing.T) {
	record := &recorder{TB: t}
	func() {
		defer func() { _ = recover() }()
		planetest.Eventually(record, time.Millisecond, "the impossible", func(context.Context) error {
			return errors.New("still not")
		})
	}()
	require.Equal(t, "%s: not within %s: %v", record.format)
}

// recorder is a test that records its failure instead of failing.
type recorder struct {
	testing.TB
	format string
}

func (r *recorder) Fatalf(format string, _ ...any) {
	r.format = format
	panic(format)
}
