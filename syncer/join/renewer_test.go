// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region"
)

// renewerOf returns a Renewer with a token.
func renewerOf(t *testing.T, s *signer, change func(*RenewerOptions)) *Renewer {
	t.Helper()
	dir := t.TempDir()
	opts := RenewerOptions{Target: "a", File: filepath.Join(dir, "kubeconfig"), Token: filepath.Join(dir, "token"), Lifetime: time.Hour, Poll: time.Millisecond}
	require.NoError(t, os.WriteFile(opts.Token, s.tokenFile("token"), 0o600))
	if change != nil {
		change(&opts)
	}
	r, err := NewRenewer(opts)
	require.NoError(t, err)
	return r
}

func TestAClusterJoinsOnceAndThenRenews(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	var told []RenewEvent
	r := renewerOf(t, s, func(o *RenewerOptions) {
		o.Observer = &Observer{Renewed: func(_ context.Context, e RenewEvent) { told = append(told, e) }}
	})
	wait, err := r.Step(t.Context())
	require.NoError(t, err)
	require.Zero(t, wait)
	text, err := os.ReadFile(r.opts.File)
	require.NoError(t, err)
	_, err = region.ParseKubeconfig(text, region.Trust{})
	require.NoError(t, err, "syncers can use the file")
	info, err := os.Stat(r.opts.File)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoFileExists(t, r.pendingFile())

	wait, err = r.Step(t.Context())
	require.NoError(t, err)
	require.InDelta(t, 39*time.Minute, wait, float64(4*time.Minute), "nothing is to be done for about two thirds of the lifetime")
	require.Equal(t, []string{"token"}, s.created())

	// The certificate grows old. A restart without the token file renews it, with the certificate itself.
	s.set(func() { s.age = 50 * time.Minute })
	require.NoError(t, os.Remove(r.opts.File))
	_, err = r.Step(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Remove(r.opts.Token))
	s.set(func() { s.age = 0 })
	r, err = NewRenewer(r.opts)
	require.NoError(t, err)
	_, err = r.Step(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"token", "token", "atoll:cluster:a"}, s.created())
	renewed, err := os.ReadFile(r.opts.File)
	require.NoError(t, err)
	require.NotEqual(t, text, renewed)
	require.Len(t, told, 3)
	require.Equal(t, "a", told[2].Target)
	require.WithinDuration(t, time.Now().Add(time.Hour), told[2].Expires, time.Minute)
}

// TestACrashCostsNoToken ends the process while its request is under way.
func TestACrashCostsNoToken(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	s.decide = "wait"
	r := renewerOf(t, s, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := r.Step(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.FileExists(t, r.pendingFile())
	info, err := os.Stat(r.pendingFile())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	s.set(func() { s.decide = "approve" })
	r, err = NewRenewer(r.opts)
	require.NoError(t, err)
	_, err = r.Step(t.Context())
	require.NoError(t, err)
	require.Len(t, s.created(), 1, "the request of before is continued")
}

func TestALostAnswerCostsNoToken(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	s.lose = 1
	r := renewerOf(t, s, nil)
	for {
		if _, err := r.Step(t.Context()); err == nil {
			break
		}
	}
	require.Len(t, s.created(), 1)
}

func TestADeniedTokenIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	s.decide = "deny"
	r := renewerOf(t, s, nil)
	_, err := r.Step(t.Context())
	require.ErrorIs(t, err, ErrDenied)
	require.ErrorContains(t, err, "the token was used before")
	for range 3 {
		_, err = r.Step(t.Context())
		require.ErrorContains(t, err, "the token was denied: make a new one")
	}
	require.Len(t, s.created(), 1)
	s.set(func() { s.decide, s.tokens["second"] = "approve", true })
	require.NoError(t, os.WriteFile(r.opts.Token, s.tokenFile("second"), 0o600))
	_, err = r.Step(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"token", "second"}, s.created())
}

func TestALateToken(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	r := renewerOf(t, s, nil)
	s.set(func() { delete(s.tokens, "token") })
	_, err := r.Step(t.Context())
	require.ErrorContains(t, err, "the token has expired, or was withdrawn: make a new one")
}

func TestADeletedRequestIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	s.decide = "wait"
	r := renewerOf(t, s, nil)
	ended := make(chan error, 1)
	go func() { _, err := r.Step(t.Context()); ended <- err }()
	require.Eventually(t, func() bool { return len(s.created()) == 1 }, time.Minute, time.Millisecond)
	s.set(func() { clear(s.requests); s.decide = "approve" })
	require.ErrorIs(t, <-ended, errGone)
	_, err := r.Step(t.Context())
	require.NoError(t, err)
	require.Len(t, s.created(), 2)
}

func TestWithoutATokenThereIsNoWay(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	r := renewerOf(t, s, nil)
	require.NoError(t, os.Remove(r.opts.Token))
	_, err := r.Step(t.Context())
	require.ErrorContains(t, err, "there is no token and no certificate that is valid: make a token (atollctl cluster token a)")

	// The certificate of another cluster and a damaged file do not count.
	other := renewerOf(t, s, func(o *RenewerOptions) { o.Target = "b" })
	_, err = other.Step(t.Context())
	require.NoError(t, err)
	foreign, err := os.ReadFile(other.opts.File)
	require.NoError(t, err)
	for _, text := range []string{string(foreign), "hello", strings.Replace(string(foreign), "client-key-data", "x", 1), rand.String(100)} {
		require.NoError(t, os.WriteFile(r.opts.File, []byte(text), 0o600))
		_, err = r.Step(t.Context())
		require.ErrorContains(t, err, "there is no token and no certificate")
	}
}

// TestStart keeps the file until it is ended, and logs failures.
func TestStart(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	lines := logtest.New()
	r := renewerOf(t, s, func(o *RenewerOptions) { o.Logger, o.MaxBackoff = lines.Logger(), time.Second })
	require.NoError(t, os.Rename(r.opts.Token, r.opts.Token+".late"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	lines.Await(t, "join", "No certificate for the cluster", "there is no token")
	require.NoError(t, os.Rename(r.opts.Token+".late", r.opts.Token))
	<-r.Ready()
	require.FileExists(t, r.opts.File)
	cancel()
	require.NoError(t, <-ended)
	require.ErrorContains(t, r.Start(t.Context()), "called twice")
}
