// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"
)

// bomb serves responses that are small on the wire and have 8 MiB after decompression: the start of a JSON value that
// does not end. A watch is one event.
func bomb(t *testing.T) (config *rest.Config, sent func() int64) {
	t.Helper()
	var packed bytes.Buffer
	out := gzip.NewWriter(&packed)
	_, err := io.Copy(out, io.LimitReader(endless{}, 8<<20))
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}, func() int64 { return int64(packed.Len()) }
}

// endless is the beginning of a JSON value: {"a":[0,\n0,\n0,\n...
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	const text = "{\"a\":[0,\n"
	n := copy(p, text)
	for n < len(p) {
		n += copy(p[n:], "0,\n")
	}
	return n, nil
}

// gauge is a Meter that takes up to limit bytes.
type gauge struct{ limit, took, most, ended int }

func (c *gauge) Took(n int) error {
	if c.took += n; c.took > c.limit {
		return ErrTooLarge
	}
	c.most = max(c.most, c.took)
	return nil
}

func (c *gauge) Ended() { c.took, c.ended = 0, c.ended+1 }

// A response counts with its size after decompression, and reading stops at the limit: a list, an object, discovery,
// and an endless watch event.
func TestAnAnswerIsCountedUnpacked(t *testing.T) {
	config, sent := bomb(t)
	require.Less(t, sent(), int64(64<<10))
	api, err := clientsWithin(config, &http.Client{}, limits{answer: 4 << 20, event: 1 << 20, held: 8 << 20})
	require.NoError(t, err)
	_, err = api.Dynamic().Resource(widgets).List(t.Context(), metav1.ListOptions{})
	require.ErrorIs(t, err, ErrTooLarge)
	require.ErrorContains(t, err, "4194304 bytes: list in smaller pages")
	_, _, err = api.Discovery().ServerGroupsAndResources()
	require.ErrorIs(t, err, ErrTooLarge)

	m := &gauge{limit: 1 << 20}
	ctx := WithMeter(t.Context(), func(bool) Meter { return m })
	_, err = api.Dynamic().Resource(widgets).Get(ctx, "w", metav1.GetOptions{})
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = api.Metadata().Resource(widgets).List(ctx, metav1.ListOptions{})
	require.ErrorIs(t, err, ErrTooLarge)
	require.LessOrEqual(t, m.most, m.limit)

	m = &gauge{limit: 1 << 20}
	w, err := api.Dynamic().Resource(widgets).Watch(WithMeter(t.Context(), func(watch bool) Meter {
		require.True(t, watch)
		return m
	}), metav1.ListOptions{})
	require.NoError(t, err)
	e := <-w.ResultChan()
	require.Equal(t, watch.Error, e.Type)
	status, ok := e.Object.(*metav1.Status)
	require.True(t, ok)
	require.Contains(t, status.Message, ErrTooLarge.Error())
	w.Stop()
	require.LessOrEqual(t, m.most, m.limit)
}

// A watch has no total limit: each event is counted by itself.
func TestEventsAreCountedOneByOne(t *testing.T) {
	const events = 300
	event := `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Widget","metadata":{"name":"}]\"{","resourceVersion":"1"},"text":"` + strings.Repeat("x", 1<<10) + `"}}` + "\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.Repeat(event, events))
	}))
	defer server.Close()
	api, err := APIFor(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	m := &gauge{limit: 2 << 10}
	w, err := api.Dynamic().Resource(widgets).Watch(WithMeter(t.Context(), func(bool) Meter { return m }), metav1.ListOptions{})
	require.NoError(t, err)
	for range events {
		require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
	}
	w.Stop()
	require.GreaterOrEqual(t, m.ended, events)
}

// The end of each value is found wherever the stream is cut into pieces.
func TestEventScanner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		var ends []int
		for range rapid.IntRange(1, 5).Draw(t, "values") {
			value, err := json.Marshal(map[string]any{rapid.String().Draw(t, "key"): rapid.SliceOf(rapid.String()).Draw(t, "list")})
			require.NoError(t, err)
			stream = append(stream, value...)
			ends = append(ends, len(stream))
			stream = append(stream, rapid.SampledFrom([]string{"", "\n", " \r\n"}).Draw(t, "between")...)
		}
		var s eventScanner
		var found []int
		for at := 0; at < len(stream); {
			piece := stream[at:min(len(stream), at+rapid.IntRange(1, 20).Draw(t, "piece"))]
			size, ended := s.scan(piece)
			if at += size; ended {
				found = append(found, at)
			}
		}
		require.Equal(t, ends, found)
	})
}

// All responses of one API that are read at the same time are counted together.
func TestAnswersOfOneAPIAreCountedTogether(t *testing.T) {
	transport, ok := meteredClient(&http.Client{}, usual).Transport.(*metered)
	require.True(t, ok)
	first, second := &allowance{transport: transport, limit: usual.held}, &allowance{transport: transport, limit: usual.held}
	require.NoError(t, first.Took(int(usual.held-1)))
	require.ErrorIs(t, second.Took(2), ErrTooLarge)
	first.Ended()
	require.NoError(t, second.Took(2))
}
