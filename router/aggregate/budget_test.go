// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// metered replaces the clients of the world's regions by clients that count bytes.
func (w *world) metered() *world {
	w.t.Helper()
	for _, k := range w.keys {
		api, err := region.APIFor(w.servers[k].Config())
		require.NoError(w.t, err)
		w.clients[k] = api.Dynamic()
	}
	require.NoError(w.t, w.set.Put(w.members(w.keys...)...))
	return w
}

// fat creates the given number of objects in region k, each with a value of size bytes.
func (w *world) fat(k region.Key, objects, size int) {
	w.t.Helper()
	for i := range objects {
		_, err := w.clients[k].Resource(configMaps).Namespace("default").Create(w.t.Context(), configMap(fmt.Sprintf("o%02d", i), strings.Repeat("x", size)), metav1.CreateOptions{})
		require.NoError(w.t, err)
	}
}

// hostile returns a region whose answers are small on the wire and huge when decompressed.
func hostile(t *testing.T, k region.Key) aggregate.Member {
	t.Helper()
	var packed bytes.Buffer
	out := gzip.NewWriter(&packed)
	_, _ = io.WriteString(out, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[`)
	_, err := out.Write(bytes.Repeat([]byte("{},"), 8<<20))
	require.NoError(t, err)
	require.NoError(t, out.Close())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}))
	t.Cleanup(server.Close)
	api, err := region.APIFor(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	return aggregate.Member{Region: k, Client: api.Dynamic()}
}

// A hostile answer affects only its own region, which the error names. Afterwards the budget of the answer is free
// again.
func TestAHostileAnswerIsGivenUp(t *testing.T) {
	w := newWorld(t, 1).metered()
	defer w.close()
	w.put(w.keys[0], "a")
	require.NoError(t, w.set.Put(append(w.members(w.keys[0]), hostile(t, key(1)))...))
	budget, err := aggregate.NewBudget(4 << 20)
	require.NoError(t, err)
	opts := aggregate.Options{MaxAnswer: 512 << 10, Budget: budget}
	want := "region r1.loodse: TooLarge: an answer has more than 524288 bytes: raise Options.MaxAnswer if it is to be trusted"
	for range 10 {
		ctx, report := aggregate.WithReport(t.Context())
		list, err := w.api(opts).Reader("", configMaps).ListAll(partial(ctx), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
		require.Equal(t, []string{want}, report.Warnings())
	}
	_, err = w.api(opts).Dynamic().Resource(configMaps).Namespace("default").Get(t.Context(), "b", metav1.GetOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	require.ErrorContains(t, err, want)
}

// If a page of objects does not fit into one answer, lists and watches read smaller pages, down to one object per
// page. If a single object does not fit, the region is TooLarge.
func TestLargeObjectsAreReadInSmallerPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2).metered()
		defer w.close()
		const objects = 30
		w.fat(w.keys[0], objects, 40<<10)
		w.fat(w.keys[1], 2, 10)
		api := w.api(aggregate.Options{MaxAnswer: 64 << 10})
		list, err := api.Reader("", configMaps).ListAll(t.Context(), metav1.ListOptions{LabelSelector: "app=test"})
		require.NoError(t, err)
		require.Len(t, list.Items, objects+2)
		require.Empty(t, list.GetContinue())
		pages, last := 0, metav1.ListOptions{Limit: 20, LabelSelector: "app=test"}
		for held := 0; held < objects+2; pages++ {
			page, err := api.Reader("", configMaps).ListAll(t.Context(), last)
			require.NoError(t, err)
			held += len(page.Items)
			last.Continue = page.GetContinue()
		}
		require.Equal(t, 2, pages)
		stream, err := api.Reader("", configMaps).WatchWithContext(t.Context(), initial())
		require.NoError(t, err)
		require.Len(t, arrived(stream), objects+3)
		stream.Stop()
		synctest.Wait()
		_, err = w.api(aggregate.Options{MaxAnswer: 32 << 10}).Reader("", configMaps).ListAll(t.Context(), metav1.ListOptions{})
		var partial *aggregate.PartialError
		require.ErrorAs(t, err, &partial)
		require.ErrorIs(t, partial.WrappedErrors()[0], region.ErrTooLarge)
		require.ErrorContains(t, err, "region r0.loodse: TooLarge")
	})
}

// ListJSON passes on a list that is larger than its budget. It holds at most one page of each region and the next page of
// one region.
func TestPagesAreHeldOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2).metered()
		defer w.close()
		const objects, size, share = 40, 40 << 10, 2 << 20
		for _, k := range w.keys {
			w.fat(k, objects, size)
		}
		budget, err := aggregate.NewBudget(4 * share)
		require.NoError(t, err)
		require.Greater(t, 2*objects*size, share)
		requests := func() (n int) {
			for _, s := range w.servers {
				n += len(s.Requests())
			}
			return n
		}
		items, ofPage, before := 0, 0, 0
		reader := w.api(aggregate.Options{MaxAnswer: 256 << 10, Budget: budget}).Reader("", configMaps)
		_, err = reader.ListJSON(t.Context(), aggregate.Encoding{}, metav1.ListOptions{}, func([]byte) error {
			synctest.Wait() // for the page that is read ahead
			if now := requests(); now != before {
				require.True(t, items == 0 || now == before+1, "two pages were read ahead")
				ofPage, before = 0, now
			}
			items, ofPage = items+1, ofPage+1
			require.LessOrEqual(t, ofPage*size, 2*256<<10)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 2*objects, items)
	})
}

// The next page is read ahead only if the budget has room for it. Otherwise the list goes on without.
func TestTheNextPageCountsTowardsTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1).metered()
		defer w.close()
		w.fat(w.keys[0], 20, 40<<10)
		budget, err := aggregate.NewBudget(4 << 20) // of which one API has the reserve of one answer
		require.NoError(t, err)
		items := 0
		reader := w.api(aggregate.Options{MaxAnswer: 256 << 10, Budget: budget}).Reader("", configMaps)
		_, err = reader.ListJSON(t.Context(), aggregate.Encoding{}, metav1.ListOptions{}, func([]byte) error {
			before := len(w.servers[w.keys[0]].Requests())
			time.Sleep(time.Second)
			synctest.Wait()
			require.Len(t, w.servers[w.keys[0]].Requests(), before, "a page is read ahead")
			items++
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 20, items)
	})
}

// After the first page, a list as JSON asks for as many objects as fit into a large answer. It asks for at most 500 if
// the budget has no room for a large answer, or if answers may not be large. It asks for no object above the caller's
// limit.
func TestLaterPagesAreLarge(t *testing.T) {
	const objects = 2200
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1).metered()
		defer w.close()
		w.fat(w.keys[0], objects, 500)
		small, err := aggregate.NewBudget(8 << 20) // 2 MiB for one API
		require.NoError(t, err)
		for name, test := range map[string]struct {
			opts  aggregate.Options
			limit int64
			want  int // requests
		}{
			"large":               {aggregate.Options{}, 0, 2},
			"a small budget":      {aggregate.Options{Budget: small}, 0, 5},
			"small answers":       {aggregate.Options{MaxAnswer: 1 << 20}, 0, 5},
			"pages of the caller": {aggregate.Options{}, 900, 5},
		} {
			server := w.servers[w.keys[0]]
			began, items := len(server.Requests()), 0
			reader, opts := w.api(test.opts).Reader("", configMaps), metav1.ListOptions{Limit: test.limit, LabelSelector: "app=test"}
			for more := true; more; more = opts.Continue != "" {
				list, err := reader.ListJSON(t.Context(), aggregate.Encoding{}, opts, func([]byte) error {
					items++
					return nil
				})
				require.NoError(t, err)
				opts.Continue = list.GetContinue()
			}
			require.Equal(t, objects, items)
			require.Len(t, server.Requests()[began:], test.want, name)
		}
	})
}

// Two APIs share a Budget. While the first one passes a page on, another list of the first API fails with Busy, but a
// list of the second API succeeds. Afterwards the first API can list again.
func TestABudgetIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1).metered()
		defer w.close()
		w.fat(w.keys[0], 20, 40<<10)
		budget, err := aggregate.NewBudget(4 << 20)
		require.NoError(t, err)
		greedy, other := w.api(aggregate.Options{Budget: budget}), w.api(aggregate.Options{Budget: budget})
		var items int
		list, err := greedy.Reader("", configMaps).ListJSON(t.Context(), aggregate.Encoding{}, metav1.ListOptions{LabelSelector: "app=test"}, func([]byte) error {
			items++
			_, err := greedy.Reader("", configMaps).ListAll(t.Context(), metav1.ListOptions{})
			require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
			require.ErrorContains(t, err, "region r0.loodse: Busy: the answers that are read now take 4194304 bytes, or 1048576 of one caller")
			_, err = other.Reader("", configMaps).ListAll(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 20, items)
		require.Empty(t, list.Items)
		require.Equal(t, "ConfigMapList", list.GetKind())
		_, err = greedy.Reader("", configMaps).ListAll(t.Context(), metav1.ListOptions{})
		require.NoError(t, err, "the budget was released")

		stream, err := other.Reader("", configMaps).WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		require.True(t, apierrors.IsResourceExpired(err), "it has another key: %v", err)
		require.Nil(t, stream)
	})
}

func TestBudgetsThatAreRefused(t *testing.T) {
	_, err := aggregate.NewBudget(1 << 20)
	require.ErrorContains(t, err, "aggregate: a budget of 1048576 bytes")
	w := newWorld(t, 1)
	defer w.close()
	_, err = aggregate.New(w.set, aggregate.Options{MaxAnswer: -1})
	require.ErrorContains(t, err, "Options.MaxAnswer")
}
