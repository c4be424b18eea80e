// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/account"
	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
)

// TestCoordinator adds an Account to three peers, with a log on disk.
func TestCoordinator(t *testing.T) {
	ring := regiontest.NewRing("ap-south", "eu-west", "us-east")
	defer ring.Close()
	crds, err := config.TypedCRDs()
	require.NoError(t, err)
	require.NoError(t, ring.AddCRDs(crds...))

	m, registry := newMetrics(t, Options{Directory: func() region.Directory { return ring }})
	log, err := wal.Open(filepath.Join(t.TempDir(), "log"), wal.Options{Observer: m.WAL(nil)})
	require.NoError(t, err)
	defer func() { require.NoError(t, log.Close()) }()
	coordinator, err := fanout.New(ring, log, fanout.Options{Kinds: account.Kinds(), Observer: m.Fanout(nil)})
	require.NoError(t, err)
	require.NoError(t, coordinator.InitPeers(t.Context()))

	acme := &accountv1alpha1.Account{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	acme.Spec.Roles = []accountv1alpha1.AccountRole{accountv1alpha1.AccountTenant}
	op, err := coordinator.Add(t.Context(), acme, fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)

	text := exposition(t, registry)
	kind := accounts.String()
	for _, line := range []string{
		`atoll_fanout_operation_duration_seconds_count{kind="` + kind + `",state="` + string(op.State) + `"} 1`,
		`atoll_fanout_operations_in_flight{kind="` + kind + `"} 0`,
		`atoll_fanout_commands_total{code="OK",peer="",verb="begin"} 1`,
		`atoll_fanout_commands_total{code="OK",peer="us-east",verb="create"} 1`,
		`atoll_fanout_commands_in_flight{peer="eu-west"} 0`,
		`atoll_peer_healthy{peer="ap-south"} 0`,
	} {
		require.Contains(t, text, line+"\n")
	}
	for _, peer := range []string{"ap-south", "eu-west", "us-east", ""} {
		require.Contains(t, text, `atoll_fanout_command_duration_seconds_count{peer="`+peer+`"}`)
	}
	require.Regexp(t, `atoll_wal_calls_total{outcome="success"} [1-9]`, text)
	require.NotContains(t, text, "acme")
	require.NotContains(t, text, op.ID)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)

	// While no operation is open, the metric of the oldest one has no value.
	m.Fanout(nil).Backlog(t.Context(), fanout.BacklogEvent{Open: 1, Oldest: time.Now(), Operation: op.ID})
	require.Contains(t, exposition(t, registry), "atoll_fanout_oldest_open_operation_timestamp_seconds ")
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { require.NoError(t, coordinator.Start(ctx)) })
	require.Eventually(t, func() bool {
		text := exposition(t, registry)
		return strings.Contains(text, "atoll_fanout_open_operations 0\n") && !strings.Contains(text, "atoll_fanout_oldest_open_operation_timestamp_seconds ")
	}, time.Minute, time.Millisecond)
	stop()
	running.Wait()

	// An add of other content fails: the name is taken.
	acme.Spec.Metadata.DisplayName = "another"
	_, err = coordinator.Add(t.Context(), acme, fanout.AddOptions{Target: "us-east"})
	require.Error(t, err)
	text = exposition(t, registry, "atoll_fanout_operation_duration_seconds", "atoll_fanout_operations_in_flight")
	require.Contains(t, text, `atoll_fanout_operations_in_flight{kind="`+kind+`"} 0`+"\n")
	require.Equal(t, 2, strings.Count(text, "_count{"), text)
}
