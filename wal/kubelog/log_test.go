// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/kubelog"
	"github.com/atoll-dev/atoll/wal/waltest"
)

var compiled = sync.OnceValues(func() (*regiontest.Definitions, error) {
	crd, err := config.CRD("operations.fanout.atoll.dev")
	if err != nil {
		return nil, err
	}
	return regiontest.Compile(crd)
})

// newServer starts a central plane in memory.
func newServer(t testing.TB) *regiontest.Server {
	t.Helper()
	types, err := compiled()
	require.NoError(t, err)
	s := regiontest.NewServer(regiontest.Options{Name: "central", Definitions: types})
	t.Cleanup(s.Close)
	return s
}

func open(t testing.TB, s *regiontest.Server, opts kubelog.Options) *kubelog.Log {
	t.Helper()
	return openBy(t, s, &program{}, opts)
}

// program is a user of a log. Once it is dead, all its requests get 403, which is not retried.
type program struct{ dead atomic.Bool }

type programTransport struct {
	*program
	to http.RoundTripper
}

func (p programTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !p.dead.Load() {
		return p.to.RoundTrip(r)
	}
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
	return &http.Response{
		StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

func openBy(t testing.TB, s *regiontest.Server, p *program, opts kubelog.Options) *kubelog.Log {
	t.Helper()
	c := s.Config()
	c.Wrap(func(to http.RoundTripper) http.RoundTripper { return programTransport{p, to} })
	api, err := region.APIFor(c)
	require.NoError(t, err)
	if opts.Timeout == 0 {
		// No call may time out in a test unless the test sets a timeout.
		opts.Timeout = time.Minute
	}
	if opts.Grace == 0 {
		opts.Grace = 200 * time.Millisecond
	}
	l, err := kubelog.New(api, opts)
	require.NoError(t, err)
	return l
}

// measured is a typical wrapper: it embeds the log.
type measured struct{ wal.Log }

func TestLog(t *testing.T) {
	waltest.Run(t, func(t *testing.T) waltest.Opener {
		s := newServer(t)
		return func(t *testing.T) (wal.Log, error) { return measured{open(t, s, kubelog.Options{})}, nil }
	})
}

// TestDescribe checks that an Operation describes its entry after Begin and after each Advance. The description is
// truncated to the limits in the schema.
func TestDescribe(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	l := open(t, s, kubelog.Options{Describe: func(e wal.Entry) kubelog.Description {
		return kubelog.Description{Action: "add " + e.State, Object: strings.Repeat("é", 1000)}
	}})
	e, err := l.Begin(t.Context(), wal.Entry{ID: "op-1", Key: "acme", State: "reserving"})
	require.NoError(t, err)
	said := func() (action, object string) {
		client, err := region.APIFor(s.Config())
		require.NoError(t, err)
		operations := client.Dynamic().Resource(schema.GroupVersionResource{Group: "fanout.atoll.dev", Version: "v1alpha1", Resource: "operations"})
		obj, err := operations.Get(t.Context(), "op-1", metav1.GetOptions{})
		require.NoError(t, err)
		action, _, _ = unstructured.NestedString(obj.Object, "spec", "action")
		object, _, _ = unstructured.NestedString(obj.Object, "spec", "object")
		return action, object
	}
	action, object := said()
	require.Equal(t, "add reserving", action)
	require.Equal(t, strings.Repeat("é", 512), object)
	e.State = "committing"
	_, err = l.Advance(t.Context(), e)
	require.NoError(t, err)
	action, _ = said()
	require.Equal(t, "add committing", action)
}
