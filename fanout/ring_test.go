// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/maintest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

var (
	serviceClusters = schema.GroupKind{Group: "kubecarrier.io", Kind: "ServiceCluster"}
	accounts        = schema.GroupKind{Group: "catalog.kubecarrier.io", Kind: "Account"}
	peers           = []region.PeerName{"ap-south", "eu-west", "us-east"}
)

// compiled returns the CRDs that all rings of these tests serve, compiled once.
var compiled = sync.OnceValues(func() (*regiontest.Definitions, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, name := range []string{"serviceclusters.kubecarrier.io", "regionclaims.kubecarrier.io", "accounts.catalog.kubecarrier.io", "peersets.fanout.atoll.dev"} {
		crd, err := config.CRD(name)
		if err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	return regiontest.Compile(crds...)
})

func definitions(t testing.TB) *regiontest.Definitions {
	t.Helper()
	d, err := compiled()
	require.NoError(t, err)
	return d
}

// newRing returns three peers in memory that are members of one ring.
func newRing(t testing.TB) *regiontest.Ring {
	t.Helper()
	r := regiontest.NewRing(peers...)
	t.Cleanup(r.Close)
	require.NoError(t, r.AddDefinitions(definitions(t)))
	require.NoError(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}).InitPeers(t.Context()))
	return r
}

// coordinator returns a Coordinator for d with short leases.
func coordinator(t testing.TB, d region.Directory, log wal.Log, opts fanout.Options) *fanout.Coordinator {
	t.Helper()
	if opts.Kinds == nil {
		opts.Kinds = account.Kinds()
	}
	if opts.LeaseTimeout == 0 {
		opts.LeaseTimeout = 30 * time.Millisecond
	}
	if opts.RemovalCap.Within == 0 {
		opts.RemovalCap.Within = -1 // sweeps judge plain deletes at once
	}
	if opts.CallTimeout == 0 {
		opts.CallTimeout = time.Minute // long enough that no call times out while the test process is paused
	}
	c, err := fanout.New(d, log, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Wait(context.WithoutCancel(t.Context()))) })
	return c
}

// requireClean fails the test unless an audit reads all peers, and reports no violation and no work
// in progress.
func requireClean(t testing.TB, c *fanout.Coordinator) {
	t.Helper()
	report, err := c.Audit(t.Context(), false)
	require.NoError(t, err)
	require.NoError(t, report.Unread.Err())
	require.Empty(t, report.Violations)
	require.Empty(t, report.Pending)
}

// requireSettled fails the test if the log has an open operation.
func requireSettled(t testing.TB, log wal.Log) {
	t.Helper()
	for e, err := range log.Open(t.Context()) {
		require.NoError(t, err)
		t.Fatalf("operation %s is open: %s", e.ID, e.State)
	}
}

func newAccount(name string, roles ...any) *unstructured.Unstructured {
	if roles == nil {
		roles = []any{"Tenant"}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "catalog.kubecarrier.io/v1alpha1",
		"kind":       "Account",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"roles": roles},
	}}
}

func newServiceCluster(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubecarrier.io/v1alpha1",
		"kind":       "ServiceCluster",
		"metadata":   map[string]any{"namespace": namespace, "name": name},
		"spec":       map[string]any{"kubeconfigSecret": map[string]any{"name": name}},
	}}
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

var names atomic.Int64

// unique returns a name that no other test uses.
func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, names.Add(1)) }

// addAccount adds the Account that owns the namespace of a test's ServiceClusters.
func addAccount(t testing.TB, c *fanout.Coordinator) string {
	t.Helper()
	name := unique("acme")
	op, err := c.Add(t.Context(), newAccount(name), fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
	return name
}

func within(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func withCancel(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}
