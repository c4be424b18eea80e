// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// listen opens and closes a listener on an address. It fails while another socket is bound to the
// address.
func listen(t *testing.T, address string) error {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", address)
	if err != nil {
		return err
	}
	return listener.Close()
}

func TestStopLeavesNothing(t *testing.T) {
	planetest.SkipShort(t)
	before := goleak.IgnoreCurrent()
	p, err := plane.Start(t.Context(), plane.Options{Pods: true})
	require.NoError(t, err)
	pids, address, logs := p.PIDs(), p.Address(), p.Logs()
	require.Len(t, pids, 5)
	for _, pid := range pids {
		require.False(t, gone(pid))
	}
	require.ErrorIs(t, listen(t, address), syscall.EADDRINUSE)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, p.Stop(ended), "a context that has ended must not keep it from cleaning up")
	for _, pid := range pids {
		require.True(t, gone(pid))
	}
	require.NoError(t, listen(t, address))
	require.NoDirExists(t, logs)
	goleak.VerifyNone(t, before)

	require.NoError(t, p.Stop(t.Context()))
	require.ErrorIs(t, p.Restart(t.Context()), plane.ErrStopped)
	require.ErrorIs(t, p.Pause(t.Context()), plane.ErrStopped)
	require.ErrorIs(t, p.Kill(t.Context()), plane.ErrStopped)
}

func TestKeep(t *testing.T) {
	planetest.SkipShort(t)
	p, err := plane.Start(t.Context(), plane.Options{})
	require.NoError(t, err)
	p.Keep()
	require.NoError(t, p.Stop(t.Context()))
	require.FileExists(t, p.Logs()+"/kube-apiserver.log")
	require.NoError(t, os.RemoveAll(filepath.Dir(p.Logs())))
}

func TestRestartKeepsDataAndAddress(t *testing.T) {
	p := planetest.New(t, plane.Options{Name: "restarted"})
	namespace := planetest.Namespace(t, p)
	planetest.Apply(t, p, "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: "+namespace+"}}")
	kept := planetest.Dynamic(t, p.Config()).Resource(configMaps).Namespace(namespace)
	before, err := kept.Get(t.Context(), "kept", metav1.GetOptions{})
	require.NoError(t, err)
	server := p.Server()

	for _, test := range []struct {
		name string
		end  func(context.Context) error
	}{
		{"running", func(context.Context) error { return nil }},
		{"killed", p.Kill},
		{"paused", p.Pause},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.NoError(t, test.end(t.Context()))
			old := p.PIDs()
			require.NoError(t, p.Restart(t.Context()))
			for _, pid := range old {
				require.True(t, gone(pid))
			}
			require.Equal(t, server, p.Server())
			after, err := kept.Get(t.Context(), "kept", metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, before.GetUID(), after.GetUID())
			require.Equal(t, before.GetResourceVersion(), after.GetResourceVersion())
		})
	}
}

func TestKilledRefusesConnections(t *testing.T) {
	p := planetest.New(t, plane.Options{Name: "killed"})
	pids := p.PIDs()
	require.NoError(t, p.Kill(t.Context()))
	for _, pid := range pids {
		require.True(t, gone(pid))
	}
	require.ErrorIs(t, get(t.Context(), t, p.Config()), syscall.ECONNREFUSED)
	require.ErrorIs(t, listen(t, p.Address()), syscall.EADDRINUSE, "the port must stay reserved")
	require.ErrorContains(t, p.Pause(t.Context()), "kube-apiserver does not run")
}

func TestPausedAnswersNothing(t *testing.T) {
	p := planetest.New(t, plane.Options{Name: "paused"})
	require.NoError(t, p.Pause(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, get(ctx, t, p.Config()), context.DeadlineExceeded)
	require.NoError(t, p.Resume(t.Context()))
	require.NoError(t, get(t.Context(), t, p.Config()))
}

func TestFailedStart(t *testing.T) {
	planetest.SkipShort(t)
	dir := t.TempDir()
	planes, err := plane.StartAll(t.Context(),
		plane.Options{Name: "good"},
		plane.Options{Name: "bad", Dir: dir, APIServerFlags: []string{"--no-such-flag"}})
	require.Nil(t, planes)
	require.ErrorContains(t, err, "bad: waiting for kube-apiserver to be ready: kube-apiserver ended (exit status 1)")
	require.ErrorContains(t, err, "unknown flag: --no-such-flag")
	require.ErrorContains(t, err, dir)
	require.NotContains(t, err.Error(), "good")
	require.FileExists(t, dir+"/logs/kube-apiserver.log")
}

func TestStartRespectsContext(t *testing.T) {
	planetest.SkipShort(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := plane.Start(ctx, plane.Options{
			Name: "late", Dir: dir,
			// Nothing listens at this address, so the API server cannot become ready.
			APIServerFlags: []string{"--etcd-servers=unix://nobody:1"},
		})
		ended <- err
	}()
	defer func() { cancel(); <-ended }()
	planetest.Eventually(t, time.Minute, "the API server says something", func(context.Context) error {
		info, err := os.Stat(filepath.Join(dir, "logs", "kube-apiserver.log"))
		if err == nil && info.Size() == 0 {
			err = errors.New("its log is empty")
		}
		return err
	})
	cancel()
	err := <-ended
	ended <- err
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "late: waiting for kube-apiserver to be ready")
}
