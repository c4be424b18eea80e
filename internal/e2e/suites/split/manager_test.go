// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/clusterdaemonset"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/crds"
	"github.com/atoll-dev/atoll/syncer/targets"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

const (
	// managed is the environment variable that makes the test binary the manager: its value is the
	// directory of the kubeconfigs.
	managed = "ATOLL_SPLIT_MANAGER"
	// placed is the environment variable that, if not empty, makes the manager place parents by
	// PlacementPolicies.
	placed = "ATOLL_SPLIT_PLACED"
	// graced is the environment variable with the grace period for unreachable clusters.
	graced = "ATOLL_SPLIT_GRACE"
	// beats is the environment variable with the period of the heartbeat.
	beats = "ATOLL_SPLIT_HEARTBEAT"
)

// The periods are shorter than in production. While replicas are counted, the grace period is long,
// so that a cluster that is only slow on a busy machine does not count as lost. In chaos, clusters
// must count as lost.
const (
	heartbeat    = time.Second
	grace        = 20 * time.Second
	graceInChaos = 5 * time.Second
	rejoin       = 2 * time.Second
)

// manage runs splitter, syncers, types and, if configured, placement. It ends on SIGTERM, or when
// the test process ends.
func manage(dir string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop() // the test process has ended
	}()
	log := funcr.New(func(prefix, args string) {
		_, _ = fmt.Fprintln(os.Stderr, time.Now().Format("15:04:05.000"), os.Getpid(), prefix, args)
	}, funcr.Options{})
	log.Info(ready)
	if err := runManager(logr.NewContext(ctx, log), dir); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runManager(ctx context.Context, dir string) error {
	up, err := connect(dir, "upstream")
	if err != nil {
		return err
	}
	defer up.Close()
	var learnFrom []crds.Target
	for _, name := range clusterNames {
		conn, err := connect(dir, name)
		if err != nil {
			return err
		}
		defer conn.Close()
		learnFrom = append(learnFrom, crds.Target{Name: name, API: conn})
	}
	types, err := crds.New(crds.Options{
		Upstream: up, Interval: 2 * time.Second, Timeout: 5 * time.Second,
		Targets: func() []crds.Target { return learnFrom },
		Policy: crds.Policy{
			{Group: "apps", Resource: "deployments", Direction: crds.Pull},
			{Group: "apps", Resource: "statefulsets", Direction: crds.Pull},
			{Group: "apps", Resource: "daemonsets", Direction: crds.Pull},
		},
	})
	if err != nil {
		return err
	}
	period, err := time.ParseDuration(os.Getenv(beats))
	if err != nil {
		return err
	}
	clusters, err := targets.New(up, targets.Options{
		Heartbeat: period,
		Configure: func(target *syncerv1alpha1.SyncTarget, opts *syncer.Options) {
			opts.Observer = observe(target.Name)
			opts.Discovery, opts.Unscheduled, opts.Capacity = 2*time.Second, 2*time.Second, 2*time.Second
			opts.DeleteCap = syncer.DeleteCap{Objects: -1}
		},
	})
	if err != nil {
		return err
	}
	starts := []func(context.Context) error{types.Start, clusters.Start}
	silence, err := time.ParseDuration(os.Getenv(graced))
	if err != nil {
		return err
	}
	place, periods := splitter.Everywhere, splitter.Periods{Grace: silence, Rejoin: rejoin}
	if os.Getenv(placed) != "" {
		controller, err := placement.New(up, splitter.SyncTargets(up), placement.Options{
			Workloads: []schema.GroupVersionResource{deployments, statefulSets, daemonSets},
			Periods:   periods, Linger: time.Second,
			Observer: &placement.Observer{Placed: func(ctx context.Context, e placement.PlacedEvent) {
				logr.FromContextOrDiscard(ctx).Info("placed", "what", fmt.Sprintf("%+v", e))
			}},
		})
		if err != nil {
			return err
		}
		place, starts = placement.Place, append(starts, controller.Start)
	}
	daemons, err := clusterdaemonset.New(up, splitter.SyncTargets(up), clusterdaemonset.Options{
		Observer: &clusterdaemonset.Observer{Carried: func(ctx context.Context, e clusterdaemonset.CarriedEvent) {
			logr.FromContextOrDiscard(ctx).Info("carried", "what", fmt.Sprintf("%+v", e))
		}},
	})
	if err != nil {
		return err
	}
	split, err := splitter.New(up, splitter.SyncTargets(up), splitter.Options{
		Kinds:     []splitter.Kind{splitter.Deployments(), splitter.StatefulSets(), splitter.DaemonSets(), splitter.Jobs(), splitter.CronJobs()},
		Followers: []splitter.Follower{splitter.DisruptionBudgets(), splitter.Autoscalers()}, Turn: 10 * time.Second,
		Place: place, Grace: periods.Grace, Rejoin: periods.Rejoin,
		Finalize: os.Getenv(placed) != "", // TestChaos runs with it, TestSplit without
		Observer: &splitter.Observer{Divided: func(ctx context.Context, e splitter.DividedEvent) {
			logr.FromContextOrDiscard(ctx).Info("divided", "kind", e.Kind, "parent", e.Parent.Name, "plan", fmt.Sprint(e.Plan.Shards), "written", e.Written, "removed", e.Removed, "err", fmt.Sprint(e.Err))
		}},
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, start := range append(starts, daemons.Start, split.Start) {
		group.Go(func() error { return start(ctx) })
	}
	return group.Wait()
}

// observe returns an observer that logs a syncer's writes.
func observe(target string) *syncer.Observer {
	log := func(ctx context.Context, event string, e any) {
		logr.FromContextOrDiscard(ctx).Info("synced", "to", target, "event", event, "what", fmt.Sprintf("%+v", e))
	}
	return &syncer.Observer{
		Wrote:     func(ctx context.Context, e syncer.WriteEvent) { log(ctx, "wrote", e) },
		Problem:   func(ctx context.Context, e syncer.ProblemEvent) { log(ctx, "problem", e) },
		Overruled: func(ctx context.Context, e syncer.OverruledEvent) { log(ctx, "overruled", e) },
	}
}

func connect(dir, name string) (*region.Conn, error) {
	data, err := os.ReadFile(filepath.Join(dir, name+".kubeconfig"))
	if err != nil {
		return nil, err
	}
	credentials, err := region.ParseKubeconfig(data, region.Trust{})
	if err != nil {
		return nil, err
	}
	return region.NewConn(region.Peer{Name: region.PeerName(name), Credentials: credentials}, region.ConnOptions{})
}

// ready is logged when the process handles SIGTERM.
const ready = "Waits for SIGTERM"

// manager is the process under test.
type manager struct {
	dir       string
	policies  bool // place parents
	grace     time.Duration
	heartbeat time.Duration
	log       *os.File
	cmd       *exec.Cmd
}

func (m *manager) start(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	m.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), self)
	m.cmd.Env = append(os.Environ(), managed+"="+m.dir, graced+"="+m.grace.String(), beats+"="+m.heartbeat.String())
	if m.policies {
		m.cmd.Env = append(m.cmd.Env, placed+"=true")
	}
	m.cmd.Stdout, m.cmd.Stderr = m.log, m.log
	_, err = m.cmd.StdinPipe() // its other end closes when this process ends
	require.NoError(t, err)
	require.NoError(t, m.cmd.Start())
}

// kill ends the process with SIGKILL.
func (m *manager) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, m.cmd.Process.Kill())
	require.ErrorContains(t, m.cmd.Wait(), "killed", "it had ended by itself: %s", m.log.Name())
}

// stop ends the process in an orderly way, if it runs.
func (m *manager) stop(t *testing.T) {
	t.Helper()
	if m.cmd == nil {
		return
	}
	cmd := m.cmd
	m.cmd = nil
	// A process that has just started would be killed by the signal, instead of ending in order.
	line := fmt.Sprintf(" %d ", cmd.Process.Pid)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(m.log.Name())
		require.NoError(t, err)
		for l := range strings.Lines(string(text)) {
			if strings.Contains(l, line) && strings.Contains(l, ready) {
				return true
			}
		}
		return false
	}, time.Minute, 10*time.Millisecond, "the process handles signals")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

// newManager starts the process, and ends it with the test. The log of the process is in the log
// directory of a plane.
func newManager(t *testing.T, dir, logs string, policies bool) *manager {
	t.Helper()
	log, err := os.Create(filepath.Join(logs, "manager.log"))
	require.NoError(t, err)
	m := &manager{dir: dir, policies: policies, grace: grace, heartbeat: heartbeat, log: log}
	if policies {
		m.grace = graceInChaos
	}
	m.start(t)
	t.Cleanup(func() {
		m.stop(t)
		require.NoError(t, log.Close())
	})
	return m
}
