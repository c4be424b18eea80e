// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wholetest_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/wholetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// tally counts the writes of field managers.
type tally struct {
	mu    sync.Mutex
	count map[string]int
}

func (c *tally) wrap(next http.RoundTripper) http.RoundTripper { return tallied{c, next} }

type tallied struct {
	*tally
	next http.RoundTripper
}

func (c tallied) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(r)
	manager := r.URL.Query().Get("fieldManager")
	if err != nil || !strings.HasPrefix(manager, "atoll-") {
		return response, err
	}
	parts := strings.Split(r.URL.Path, "/") // of /apis/apps/v1/namespaces/NAMESPACE/deployments/NAME/status
	what := manager + " parent"
	if strings.Contains(parts[7], "--") {
		what = manager + " shard"
	}
	what = strings.Join(append([]string{what}, parts[8:]...), " ")
	if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		what += ", all of it asked for"
	}
	if response.StatusCode >= http.StatusBadRequest {
		what += ", " + response.Status
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[what]++
	return response, nil
}

// For each parent, the splitter writes the parent, two shards and the status of the parent, each
// once, and the syncers write two downstream objects. The servers accept all these writes, and each
// write requests only the metadata of the object in the response.
func TestWritesOfEachParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10
		made := &tally{count: map[string]int{}}
		var apis []region.API
		for _, name := range []string{"upstream", "cluster-1", "cluster-2"} {
			server := regiontest.NewServer(regiontest.Options{Name: name})
			t.Cleanup(server.Close)
			config := server.Config()
			config.Wrap(made.wrap)
			api, err := region.APIFor(config)
			require.NoError(t, err)
			apis = append(apis, api)
		}
		s := wholetest.Servers{Up: apis[0], Clusters: [2]region.API{apis[1], apis[2]}}
		s.Divided(t, inAll(t, s, "whole"), n)
		require.Equal(t, map[string]int{
			"atoll-splitter parent": n, "atoll-splitter shard": 2 * n, "atoll-splitter parent status": n,
			"atoll-syncer shard": 2 * n,
		}, made.count)
	})
}
