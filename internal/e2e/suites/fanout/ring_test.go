// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fanout_test runs operations over real control planes.
package fanout_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }

// ring is a set of planes with CRDs and PeerSets, and connections to them with the rights of a
// coordinator and no others.
type ring struct {
	planes      []*plane.Plane
	kubeconfigs map[string][]byte // by plane, with the rights of a coordinator
	byName      map[region.PeerName]*region.Conn
	conns       region.Directory
}

// newRing makes a ring of the planes, and writes their PeerSets unless they exist.
func newRing(t *testing.T, planes []*plane.Plane) *ring {
	t.Helper()
	role, err := yaml.Marshal(rights.Coordinate())
	require.NoError(t, err)
	r := &ring{planes: planes, kubeconfigs: map[string][]byte{}, byName: map[region.PeerName]*region.Conn{}}
	var conns []*region.Conn
	for _, p := range planes {
		api, err := region.APIFor(p.Config())
		require.NoError(t, err)
		_, err = config.InstallCRDs(t.Context(), api, config.InstallOptions{})
		require.NoError(t, err)
		kubeconfig, err := p.RunAs(t.Context(), role)
		require.NoError(t, err)
		r.kubeconfigs[p.Name()] = kubeconfig
		conn := connect(t, p, kubeconfig)
		r.byName[conn.Peer()] = conn
		conns = append(conns, conn)
	}
	r.conns = region.Fixed(conns...)
	c, _ := r.coordinator(t, fanout.Options{})
	require.NoError(t, c.InitPeers(t.Context()))
	return r
}

func connect(t *testing.T, p *plane.Plane, kubeconfig []byte) *region.Conn {
	t.Helper()
	conn, err := region.NewConn(planetest.PeerAs(t, p, kubeconfig), region.ConnOptions{})
	require.NoError(t, err)
	return conn
}

// on returns the same ring with only the given connections, for a coordinator that is configured
// with these peers.
func (r *ring) on(conns ...*region.Conn) *ring {
	return &ring{planes: r.planes, kubeconfigs: r.kubeconfigs, byName: r.byName, conns: region.Fixed(conns...)}
}

func (r *ring) coordinator(t *testing.T, opts fanout.Options) (*fanout.Coordinator, *wal.File) {
	t.Helper()
	log, err := wal.Open(filepath.Join(t.TempDir(), "operations.db"), wal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	opts.Kinds = account.Kinds()
	if opts.Observer == nil {
		opts.Observer = trace(t)
	}
	c, err := fanout.New(r.conns, log, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Wait(context.WithoutCancel(t.Context()))) })
	return c, log
}

// trace logs every step with its result.
func trace(t *testing.T) *fanout.Observer {
	t.Helper()
	return &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
		if e.Done {
			t.Logf("%s %s %s %s %s %s: %s %v", time.Now().Format("05.000"), e.Operation, e.Peer, e.Verb, e.Role, e.Stage, e.Code, e.Err)
		}
	}}
}

// audited requires an audit that reads all peers, and finds no violation and no pending operation.
func (r *ring) audited(t *testing.T, c *fanout.Coordinator) {
	t.Helper()
	var report *fanout.Report
	planetest.Eventually(t, 2*time.Minute, "all peers are read", func(ctx context.Context) (err error) {
		if report, err = c.Audit(ctx, false); err != nil {
			return err
		}
		return report.Unread.Err()
	})
	require.Empty(t, report.Violations)
	require.Empty(t, report.Pending)
}

func newAccount(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "catalog.kubecarrier.io/v1alpha1",
		"kind":       "Account",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"roles": []any{"Tenant"}},
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

// unique makes a name that no other test uses.
func unique(prefix string) string { return fmt.Sprintf("%s-%x", prefix, time.Now().UnixNano()) }

func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}
