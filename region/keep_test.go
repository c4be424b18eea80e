// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// manual is a Source that publishes when a test wants.
type manual struct{ next chan *Snapshot }

func (s *manual) Run(ctx context.Context, publish func(*Snapshot)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case next := <-s.next:
			publish(next)
		}
	}
}

func snapshot(t *testing.T, peers ...Peer) *Snapshot {
	t.Helper()
	s, err := NewSnapshot(peers...)
	require.NoError(t, err)
	return s
}

// keep runs a Kept of a manual Source. It returns a func that publishes in the source, one that returns the last
// Snapshot of the Kept after some time, and one that ends it.
func keep(t *testing.T, path string) (k *Kept, publish func(...Peer), last func() *Snapshot, end func()) {
	t.Helper()
	source := &manual{make(chan *Snapshot)}
	k, err := Keep(source, path, KeepOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var latest atomic.Pointer[Snapshot]
	go func() { ended <- k.Run(ctx, latest.Store) }()
	return k,
		func(peers ...Peer) { source.next <- snapshot(t, peers...) },
		func() *Snapshot { synctest.Wait(); return latest.Load() },
		func() { cancel(); require.NoError(t, <-ended) }
}

func tokenCredentials(t *testing.T, token string) Credentials {
	t.Helper()
	creds, err := FromConfig(&rest.Config{Host: "https://10.0.0.1:6443/path", BearerToken: token, TLSClientConfig: rest.TLSClientConfig{ServerName: "eu.example.com"}})
	require.NoError(t, err)
	return creds
}

func TestKeptPeers(t *testing.T) {
	euWest := Key{Provider: "loodse", Name: "eu-west-1"}
	full := Peer{Name: "eu", UID: "uid-eu", Regions: []Key{euWest}, Labels: map[string]string{"zone": "a"}}
	path := filepath.Join(t.TempDir(), "peers.json")
	synctest.Test(t, func(t *testing.T) {
		full.Credentials = tokenCredentials(t, "secret")
		refused := Peer{Name: "us", Credentials: Withheld(errors.New("is a master"))}

		_, publish, last, end := keep(t, path)
		time.Sleep(time.Hour)
		require.Nil(t, last(), "there is no file yet: nothing is published before the source")
		publish(full, refused)
		require.Equal(t, 2, last().Len())
		end()

		k, publish, last, end := keep(t, path)
		_, stale := k.Since()
		require.False(t, stale)
		time.Sleep(9 * time.Second)
		require.Nil(t, last(), "the source may still publish")
		time.Sleep(2 * time.Second)
		require.True(t, last().equal(snapshot(t, full, refused)), "the kept peers are complete")
		kept, _ := last().Peer("us")
		require.True(t, kept.Credentials.withheld)
		at, stale := k.Since()
		require.True(t, stale)
		require.Equal(t, 11*time.Second, time.Since(at))

		// The source can be read again; it cannot read the credentials of one peer.
		unread := full
		unread.Credentials = Unread(errors.New("the Secret cannot be read"))
		publish(unread)
		require.True(t, last().equal(snapshot(t, full)), "the kept credentials stay in use, and the other peer is gone")
		_, stale = k.Since()
		require.False(t, stale)
		publish(unread)
		require.True(t, last().equal(snapshot(t, full)))
		end()

		// Neither another cluster nor a refused one gets kept credentials.
		for _, changed := range []Peer{
			{Name: "eu", UID: "another", Credentials: unread.Credentials},
			{Name: "eu", Credentials: unread.Credentials},
			{Name: "eu", UID: "uid-eu", Credentials: Withheld(errors.New("is a master"))},
		} {
			_, publish, last, end := keep(t, path)
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			publish(changed)
			require.True(t, last().equal(snapshot(t, changed)), "%v", changed)
			end()
			write(t, path, before)
		}
	})
}

// A source that publishes in time is not mixed with the file.
func TestKeptPeersAreNotUsedBesideTheSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peers.json")
	synctest.Test(t, func(t *testing.T) {
		old, present := Peer{Name: "old", Credentials: tokenCredentials(t, "a")}, Peer{Name: "new", Credentials: tokenCredentials(t, "b")}
		_, publish, last, end := keep(t, path)
		publish(old)
		last()
		end()
		_, publish, last, end = keep(t, path)
		publish(present)
		time.Sleep(time.Hour)
		require.True(t, last().equal(snapshot(t, present)))
		end()
	})
}

// Only credentials that a kubeconfig expresses completely are kept: others would reach their cluster in another way.
func TestCredentialsThatCannotBeKept(t *testing.T) {
	ca := newAuthority(t).pem
	plain := kubeconfig(t, "https://10.0.0.1:6443", ca, nil)
	parsed, err := ParseKubeconfig(plain, Trust{})
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		config *rest.Config
		kept   bool
	}{
		"token":            {&rest.Config{Host: "https://10.0.0.1", BearerToken: "a"}, true},
		"kubeconfig":       {parsed.config, true},
		"token file":       {&rest.Config{Host: "https://10.0.0.1", BearerToken: "a", BearerTokenFile: "/token"}, false},
		"another protocol": {&rest.Config{Host: "http://10.0.0.1", BearerToken: "a"}, false},
		"password":         {&rest.Config{Host: "https://10.0.0.1", Username: "a", Password: "b"}, false},
		"impersonation":    {&rest.Config{Host: "https://10.0.0.1", BearerToken: "a", Impersonate: rest.ImpersonationConfig{UserName: "b"}}, false},
		"transport":        {&rest.Config{Host: "https://10.0.0.1", BearerToken: "a", Transport: http.DefaultTransport}, false},
		"wrapped": {&rest.Config{Host: "https://10.0.0.1", BearerToken: "a", WrapTransport: func(rt http.RoundTripper) http.RoundTripper {
			return rt
		}}, false},
		"anonymous": {&rest.Config{Host: "https://10.0.0.1"}, false},
	} {
		creds, err := FromConfig(tt.config)
		require.NoError(t, err, name)
		if tt.config == parsed.config {
			creds = parsed
		}
		data, err := encodePeers(snapshot(t, Peer{Name: "eu", Credentials: creds}), Trust{}, time.Now())
		require.NoError(t, err, name)
		back, _, err := decodePeers(data, Trust{})
		require.NoError(t, err, name)
		peer, _ := back.Peer("eu")
		require.Equal(t, tt.kept, peer.Credentials.equal(creds), name)
		if !tt.kept {
			require.ErrorContains(t, peer.Credentials.check(), "could not be kept", name)
			require.NotContains(t, string(data), "BearerToken", name)
		}
	}
}

func TestKeptFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "peers.json")
	source := &manual{}
	good, err := encodePeers(snapshot(t, Peer{Name: "eu", Credentials: tokenCredentials(t, "a")}), Trust{}, time.Now())
	require.NoError(t, err)

	for _, damage := range []string{"", "{", `{"format":"else"}`, strings.Replace(string(good), "10.0.0.1", "10.0.0.9", 1), string(good[:len(good)/2])} {
		write(t, path, []byte(damage))
		k, err := Keep(source, path, KeepOptions{})
		require.NoError(t, err)
		require.Equal(t, path+".damaged", k.damaged, damage)
		require.Nil(t, k.file)
	}
	write(t, path, []byte(strings.Replace(string(good), `"version":1`, `"version":2`, 1)))
	_, err = Keep(source, path, KeepOptions{})
	require.ErrorContains(t, err, "later version")
	require.FileExists(t, path, "a file of a later version stays")

	for name, call := range map[string]func() (*Kept, error){
		"source is nil":    func() (*Kept, error) { return Keep(nil, path, KeepOptions{}) },
		"path is empty":    func() (*Kept, error) { return Keep(source, "", KeepOptions{}) },
		"Wait is negative": func() (*Kept, error) { return Keep(source, path, KeepOptions{Wait: -1}) },
		"no such file":     func() (*Kept, error) { return Keep(source, filepath.Join(dir, "none", "x"), KeepOptions{}) },
		"is no directory":  func() (*Kept, error) { return Keep(source, filepath.Join(path, "x"), KeepOptions{}) },
		"is a directory":   func() (*Kept, error) { return Keep(source, dir, KeepOptions{}) },
	} {
		_, err := call()
		require.ErrorContains(t, err, name)
	}
	k, err := Keep(source, filepath.Join(dir, "new"), KeepOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, k.Run(t.Context(), nil), "publish is nil")
	k.Refresh() // the source is no Refresher
}

// The content of the file is checked as the source's kubeconfigs are.
func TestKeptKubeconfigsAreNotTrusted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peers.json")
	insecure, err := FromConfig(&rest.Config{Host: "https://10.0.0.1", BearerToken: "a", TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	require.NoError(t, err)
	data, err := encodePeers(snapshot(t, Peer{Name: "eu", Credentials: insecure}), Trust{Insecure: true}, time.Now())
	require.NoError(t, err)
	for _, trust := range []Trust{{}, {Insecure: true}} {
		write(t, path, data)
		k, err := Keep(&manual{}, path, KeepOptions{Trust: trust})
		require.NoError(t, err)
		peer, _ := k.file.Peer("eu")
		if trust.Insecure {
			require.True(t, peer.Credentials.equal(insecure))
		} else {
			require.ErrorContains(t, peer.Credentials.check(), "insecure-skip-tls-verify")
		}
	}
}

// A file that cannot be written does not stop the source, and is written later.
func TestKeptFileIsWrittenAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	require.NoError(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "peers.json")
	synctest.Test(t, func(t *testing.T) {
		peer := Peer{Name: "eu", Credentials: tokenCredentials(t, "a")}
		_, publish, last, end := keep(t, path)
		require.NoError(t, os.Remove(dir))
		publish(peer)
		require.Equal(t, 1, last().Len())
		require.NoError(t, os.Mkdir(dir, 0o700))
		time.Sleep(2 * saveRetry)
		synctest.Wait()
		require.FileExists(t, path)
		end()
	})
}

func FuzzDecodePeers(f *testing.F) {
	good, err := encodePeers(must(NewSnapshot(Peer{Name: "eu", UID: "u", Regions: []Key{{Provider: "p", Name: "n"}}})), Trust{}, time.Unix(0, 0))
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"format":"atoll.dev/peers","version":1,"sha256":"` + sumOf([]byte("[]")) + `","peers":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, at, err := decodePeers(data, Trust{})
		if err != nil {
			return
		}
		again, err := encodePeers(s, Trust{}, at)
		require.NoError(t, err)
		back, _, err := decodePeers(again, Trust{})
		require.NoError(t, err)
		require.Equal(t, s.Len(), back.Len())
		for p := range s.Peers() {
			q, ok := back.Peer(p.Name)
			require.True(t, ok)
			require.Equal(t, p.Regions, q.Regions)
			require.True(t, maps.Equal(p.Labels, q.Labels))
			require.Equal(t, p.UID, q.UID)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
