// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/dynamic"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// recorder records the queries of lists.
type recorder struct {
	http.RoundTripper
	mu    sync.Mutex
	lists []url.Values
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if query := req.URL.Query(); !query.Has("watch") {
		r.mu.Lock()
		r.lists = append(r.lists, query)
		r.mu.Unlock()
	}
	return r.RoundTripper.RoundTrip(req)
}

// The first list, its later pages and the list after a broken connection name no resourceVersion:
// with one, a server may answer with an older state.
func TestListsAreOfTheNewestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := regiontest.NewServer(regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{boxCRD()}})
		t.Cleanup(s.Close)
		r := &recorder{}
		config := s.Config()
		config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
			r.RoundTripper = rt
			return r
		})
		client, err := dynamic.NewForConfig(config)
		require.NoError(t, err)
		create(t, client.Resource(boxes).Namespace("default"), numbered(501)...)
		o := loop.NewObjects(client, boxes, loop.ObjectsOptions{})
		stop := start(t, o)
		<-o.Synced()
		s.Partition(true)
		time.Sleep(time.Second)
		s.Partition(false)
		time.Sleep(time.Minute)
		stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		require.Greater(t, len(r.lists), 3)
		for _, query := range r.lists {
			require.NotContains(t, query, "resourceVersion")
		}
	})
}
