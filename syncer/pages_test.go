// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer"
)

type paging func(*http.Request) (*http.Response, error)

func (f paging) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// paged makes each page of a list have one object only, for the next syncer that is started.
func (s *side) paged() {
	s.t.Helper()
	config := s.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return paging(func(r *http.Request) (*http.Response, error) {
			if query := r.URL.Query(); query.Has("limit") {
				query.Set("limit", "1")
				r = r.Clone(r.Context())
				r.URL.RawQuery = query.Encode()
			}
			return next.RoundTrip(r)
		})
	})
	var err error
	s.api, err = region.APIFor(config)
	require.NoError(s.t, err)
}

// finalizersOf returns the finalizers of these ConfigMaps upstream.
func (p *pair) finalizersOf(names ...string) (all []string) {
	p.t.Helper()
	for _, name := range names {
		all = append(all, p.up.get(configMaps, name).GetFinalizers()...)
	}
	return all
}

// If the labels of objects were removed while no syncer ran, the next syncer finds the objects on all pages of a list,
// and removes our finalizer from them.
func TestObjectsThatLeftAreFoundOnAllPages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.numbered(3)
		p.rest()
		p.stop()
		names := []string{"c-000", "c-001", "c-002"}
		require.Len(t, p.finalizersOf(names...), 3)
		for _, name := range names {
			p.down.delete(configMaps, name)
			p.up.patch(configMaps, name, `{"metadata":{"labels":{"workloads.kcp.io/cluster":null}}}`)
		}
		p.up.paged()
		p.start(syncer.Options{})
		p.rest()
		require.Empty(t, p.finalizersOf(names...))
	})
}

// Detach removes our finalizer from the objects on all pages.
func TestDetachReadsAllPages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.numbered(3)
		p.rest()
		p.stop()
		p.up.paged()
		s, err := syncer.New(p.up.api, p.down.api, syncer.Options{Target: target})
		require.NoError(t, err)
		require.NoError(t, s.Detach(t.Context()))
		require.Empty(t, p.finalizersOf("c-000", "c-001", "c-002"))
	})
}

// A namespace stays downstream if it has an object of another client, also if that object is not on the first page of
// a list.
func TestObjectsOfOthersAreFoundOnAllPages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, opts := shops(t, true, syncer.Options{NamespaceSync: syncer.NamespaceOptions{Finish: true, Delete: true}})
		for _, name := range []string{"kube-root-ca.crt", "theirs"} {
			p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: acme-shop, labels: {theirs: 'yes'}}}")
		}
		p.stop()
		p.down.paged()
		p.start(opts)
		p.up.delete(namespaces, "shop")
		time.Sleep(10 * time.Minute)
		require.Nil(t, p.up.get(namespaces, "shop"))
		require.NotNil(t, p.down.get(namespaces, ofShops))
	})
}
