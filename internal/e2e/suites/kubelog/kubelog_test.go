// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelog_test tests the contract of the central log on a real API server.
package kubelog_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/recordtest"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/kubelog"
	"github.com/atoll-dev/atoll/wal/waltest"
)

func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }

// connect returns a connection to the plane with the least rights of a coordinator.
func connect(t *testing.T, p *plane.Plane) *region.Conn {
	t.Helper()
	role, err := yaml.Marshal(rights.CoordinateCentral())
	require.NoError(t, err)
	kubeconfig, err := p.RunAs(t.Context(), role)
	require.NoError(t, err)
	credentials, err := region.ParseKubeconfig(kubeconfig, region.Trust{})
	require.NoError(t, err)
	conn, err := region.NewConn(region.Peer{Name: "log", Credentials: credentials}, region.ConnOptions{})
	require.NoError(t, err)
	return conn
}

// empty removes all entries of the plane's log.
func empty(t *testing.T, p *plane.Plane) {
	t.Helper()
	api, err := region.APIFor(p.Config())
	require.NoError(t, err)
	operations := api.Dynamic().Resource(v1alpha1.GroupVersion.WithResource("operations"))
	require.NoError(t, operations.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.Eventually(t, func() bool {
		left, err := operations.List(t.Context(), metav1.ListOptions{Limit: 1})
		return err == nil && len(left.Items) == 0
	}, time.Minute, 10*time.Millisecond)
}

func TestLog(t *testing.T) {
	p := planetest.Shared(t, 1)[0]
	api, err := region.APIFor(p.Config())
	require.NoError(t, err)
	_, err = config.InstallCRDs(t.Context(), api, config.InstallOptions{})
	require.NoError(t, err)
	conn := connect(t, p)
	waltest.Run(t, func(t *testing.T) waltest.Opener {
		empty(t, p)
		return func(*testing.T) (wal.Log, error) { return kubelog.New(conn, kubelog.Options{}) }
	})

	t.Run("limits", func(t *testing.T) {
		empty(t, p)
		log, err := kubelog.New(conn, kubelog.Options{})
		require.NoError(t, err)
		e, err := log.Begin(t.Context(), wal.Entry{ID: "large", Key: "k", Data: make([]byte, wal.MaxData)})
		require.NoError(t, err)
		require.NoError(t, log.End(t.Context(), e, make([]byte, wal.MaxOutcome)))
		got, err := log.Find(t.Context(), "k")
		require.NoError(t, err)
		require.Len(t, got.Data, wal.MaxData)
		require.Len(t, got.Outcome, wal.MaxOutcome)
		_, err = log.Advance(t.Context(), got)
		require.ErrorIs(t, err, wal.ErrStale)
	})

	// The log can read the decision of a record of the first release. Ending the entry removes the
	// record.
	t.Run("a record of the first release", func(t *testing.T) {
		empty(t, p)
		log, err := kubelog.New(conn, kubelog.Options{})
		require.NoError(t, err)
		records := recordtest.In(conn)
		pending, err := records.Propose(t.Context(), wal.Entry{ID: "a", Owner: "them/1", Began: time.Now()})
		require.NoError(t, err)
		d, err := log.Decision(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, pending.UID, d.UID)
		require.False(t, d.Decided)
		_, err = records.Decide(t.Context(), "a", pending.Version, "eu", "u1")
		require.NoError(t, err)
		require.ErrorIs(t, log.End(t.Context(), wal.Entry{ID: "a", Version: d.Version}, nil), wal.ErrStale)
		d, err = log.Decision(t.Context(), "a")
		require.NoError(t, err)
		require.True(t, d.Decided)
		require.Equal(t, "u1", d.TargetUID)
		require.NoError(t, log.End(t.Context(), wal.Entry{ID: "a", Version: d.Version}, nil))
		_, err = log.Decision(t.Context(), "a")
		require.ErrorIs(t, err, wal.ErrNotFound)
	})
}
