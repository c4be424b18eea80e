// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
)

// runSource runs src in a bubble. The returned func waits until src is idle and returns its last
// Snapshot, or nil.
func runSource(t *testing.T, src Source) func() *Snapshot {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	published := make(chan *Snapshot, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- src.Run(ctx, func(s *Snapshot) {
			select {
			case <-published:
			default:
			}
			published <- s
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return func() *Snapshot {
		time.Sleep(2 * time.Second)
		synctest.Wait()
		select {
		case s := <-published:
			return s
		default:
			return nil
		}
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

func peerOf(t *testing.T, s *Snapshot, name PeerName) *Peer {
	t.Helper()
	require.NotNil(t, s)
	p, ok := s.Peer(name)
	require.True(t, ok)
	return p
}

func TestFromDir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		eu, us := filepath.Join(dir, "eu-west.yaml"), filepath.Join(dir, "us-east")
		write(t, eu, kubeconfig(t, "https://eu.example.com", nil, nil))
		write(t, us, []byte("not: [a kubeconfig"))
		write(t, filepath.Join(dir, ".hidden"), nil)
		write(t, filepath.Join(dir, "README.md"), nil)
		require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
		src, err := FromDir(dir, Trust{})
		require.NoError(t, err)
		next := runSource(t, src)

		first := next()
		require.Equal(t, 2, first.Len())
		good := peerOf(t, first, "eu-west").Credentials
		require.NoError(t, good.check())
		require.ErrorContains(t, peerOf(t, first, "us-east").Credentials.check(), "kubeconfig of peer us-east: ")
		require.Nil(t, next(), "nothing changed")

		// A bad file keeps the last good credentials; a file that becomes valid is used.
		write(t, eu, []byte("half a"))
		write(t, us, kubeconfig(t, "https://us.example.com", nil, nil))
		second := next()
		require.True(t, peerOf(t, second, "eu-west").Credentials.equal(good))
		require.NoError(t, peerOf(t, second, "us-east").Credentials.check())

		// The new content has the same length.
		write(t, eu, kubeconfig(t, "https://ue.example.com", nil, nil))
		require.Equal(t, "https://ue.example.com", peerOf(t, next(), "eu-west").Credentials.config.Host)
		require.NoError(t, os.Remove(us))
		require.Equal(t, 1, next().Len())

		// An empty directory counts as not mounted.
		require.NoError(t, os.Rename(eu, filepath.Join(dir, ".away")))
		require.Nil(t, next())
		require.NoError(t, os.RemoveAll(dir))
		require.Nil(t, next())
	})
}

func TestFromFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		list, eu := filepath.Join(dir, "peers.yaml"), filepath.Join(dir, "eu.kubeconfig")
		const inline = `
- name: us-east
  kubeconfig:
    clusters: [{name: a, cluster: {server: "https://us.example.com"}}]
    users: [{name: a, user: {token: t}}]
    contexts: [{name: a, context: {cluster: a, user: a}}]
- name: ap-south
  kubeconfig: |
    clusters: [{name: a, cluster: {server: "https://ap.example.com"}}]
    users: [{name: a, user: {tokenFile: /etc/passwd}}]
    contexts: [{name: a, context: {cluster: a, user: a}}]
`
		write(t, list, []byte("peers:\n- name: eu-west\n  kubeconfig: eu.kubeconfig\n  regions: [eu-west-1.loodse]\n  labels: {continent: europe}"+inline))
		write(t, eu, kubeconfig(t, "https://eu.example.com", nil, nil))
		src, err := FromFile(list, Trust{})
		require.NoError(t, err)
		next := runSource(t, src)
		s := next()
		p, ok := s.Locate(Key{Provider: "loodse", Name: "eu-west-1"})
		require.True(t, ok)
		require.Equal(t, "europe", p.Labels["continent"])
		require.Equal(t, "https://eu.example.com", p.Credentials.config.Host)
		require.Equal(t, "https://us.example.com", peerOf(t, s, "us-east").Credentials.config.Host)
		require.ErrorContains(t, peerOf(t, s, "ap-south").Credentials.check(), "users[0].user.tokenFile")

		// A change of a listed kubeconfig is used; its absence changes nothing.
		write(t, eu, kubeconfig(t, "https://ue.example.com", nil, nil))
		require.Equal(t, "https://ue.example.com", peerOf(t, next(), "eu-west").Credentials.config.Host)
		require.NoError(t, os.Remove(eu))
		require.Nil(t, next())
		write(t, list, []byte("peers: [{name: eu-west, kubeconfig: eu.kubeconfig, region: [a.b]}]"))
		require.Nil(t, next())
		for _, cut := range []string{"", "# peers:", "peers:"} {
			write(t, list, []byte(cut))
			require.Nil(t, next(), "a file that is being written names no peers")
		}
		write(t, list, []byte("peers: [{name: eu-west, kubeconfig: eu.kubeconfig}]"))
		require.Equal(t, "https://ue.example.com", peerOf(t, next(), "eu-west").Credentials.config.Host)
	})
}

// A persistent problem is logged once, not at every read.
func TestProblemsAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "eu.yaml"), kubeconfig(t, "https://eu.example.com", nil, nil))
		src, err := FromDir(dir, Trust{})
		require.NoError(t, err)
		var lines []string
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), log))
		ended := make(chan error, 1)
		go func() { ended <- src.Run(ctx, func(*Snapshot) {}) }()
		synctest.Wait()
		write(t, filepath.Join(dir, "eu.bak"), kubeconfig(t, "https://eu.example.com", nil, nil))
		time.Sleep(10 * time.Second)
		require.NoError(t, os.Remove(filepath.Join(dir, "eu.bak")))
		time.Sleep(10 * time.Second)
		cancel()
		require.NoError(t, <-ended)
		require.Len(t, lines, 2)
		require.Contains(t, lines[0], "is listed twice")
		require.Contains(t, lines[1], "can be read again")
	})
}

func TestFilesThatCannotBeUsedAtFirst(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "peers.yaml")
	for content, want := range map[string]string{
		"peers: [{name: A, kubeconfig: a}]":                                                           "peers[0].name",
		"peers: [{name: a, kubeconfig: a, regions: [b.c, b]}]":                                        "peers[0].regions[1]",
		"peers: [{name: a}]":                                                                          "peers[0].kubeconfig",
		"peers: [{name: a, kubeconfig: [a]}]":                                                         "peers[0].kubeconfig",
		"peers: [{name: a, kubeconfig: a, color: red}]":                                               "color",
		"peers: [{name: a, kubeconfig: a}, {name: a, kubeconfig: a}]":                                 `peer "a" is listed twice`,
		"peers: [{name: a, kubeconfig: a, regions: [x.y]}, {name: b, kubeconfig: a, regions: [x.y]}]": `peer "a" and by peer "b"`,
	} {
		write(t, list, []byte(content))
		src, err := FromFile(list, Trust{})
		require.NoError(t, err)
		require.ErrorContains(t, src.Run(t.Context(), func(*Snapshot) {}), want)
	}
	src, err := FromDir(filepath.Join(dir, "absent"), Trust{})
	require.NoError(t, err)
	require.ErrorIs(t, src.Run(t.Context(), func(*Snapshot) {}), os.ErrNotExist)
	_, err = FromDir("", Trust{})
	require.Error(t, err)
	_, err = FromPeers(Peer{Name: "eu"})
	refused, ok := errors.AsType[*Error](err)
	require.True(t, ok)
	require.Equal(t, PeerName("eu"), refused.Peer)
}

// After a call of Refresh the files are read at once, not at the next tick.
func TestRefreshReadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		eu := filepath.Join(dir, "eu")
		write(t, eu, kubeconfig(t, "https://eu.example.com", nil, nil))
		src, err := FromDir(dir, Trust{})
		require.NoError(t, err)
		next := runSource(t, src)
		require.NotNil(t, next())
		write(t, eu, kubeconfig(t, "https://ue.example.com", nil, nil))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		seen := make(chan time.Duration, 1)
		began := time.Now()
		other, err := FromDir(dir, Trust{})
		require.NoError(t, err)
		ended := make(chan error, 1)
		published := 0
		go func() {
			ended <- other.Run(ctx, func(*Snapshot) {
				if published++; published == 2 {
					seen <- time.Since(began)
				}
			})
		}()
		synctest.Wait()
		write(t, eu, kubeconfig(t, "https://eu.example.com", nil, nil))
		other.(Refresher).Refresh()
		require.Zero(t, <-seen)
		cancel()
		require.NoError(t, <-ended)
	})
}
