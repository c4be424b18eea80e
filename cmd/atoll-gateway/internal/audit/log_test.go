// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEvent(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://gateway/regions/eu-1.loodse/apis/apps/v1/namespaces/n/deployments/d/scale?token=secret", http.NoBody)
	r.Header.Set("User-Agent", "kubectl")
	r.RemoteAddr = "[2001:db8::1]:4711"
	received := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := EventOf(Request{
		HTTP: r, Received: received, User: &user.DefaultInfo{Name: "system:serviceaccount:ci:d", Groups: []string{"g"}}, Acting: router.User{Name: "hub:d"},
		Event: proxy.Event{
			Region: region.Key{Provider: "loodse", Name: "eu-1"}, AuditID: "id", Verb: "get", Code: 403, Elapsed: time.Second,
			Resource:  schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			Namespace: "n", Name: "d", Subresource: "scale",
		},
	})
	data, err := json.Marshal(e)
	require.NoError(t, err)
	require.NotContains(t, string(data), "secret")
	require.JSONEq(t, `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"id","stage":"ResponseComplete",
		"requestURI":"/regions/eu-1.loodse/apis/apps/v1/namespaces/n/deployments/d/scale","verb":"get",
		"user":{"username":"system:serviceaccount:ci:d","groups":["g"]},"impersonatedUser":{"username":"hub:d"},
		"sourceIPs":["2001:db8::1"],"userAgent":"kubectl",
		"objectRef":{"resource":"deployments","namespace":"n","name":"d","apiGroup":"apps","apiVersion":"v1","subresource":"scale"},
		"responseStatus":{"metadata":{},"code":403},
		"requestReceivedTimestamp":"2026-01-02T03:04:05.000000Z","stageTimestamp":"2026-01-02T03:04:06.000000Z",
		"annotations":{"gateway.atoll.dev/latency":"1s","gateway.atoll.dev/region":"eu-1.loodse"}}`, string(data))

	// The client has disconnected, and the caller is not known.
	e = EventOf(Request{HTTP: r, Received: received, Event: proxy.Event{All: true, Verb: "list"}})
	require.Nil(t, e.ResponseStatus)
	require.Nil(t, e.ImpersonatedUser)
	require.Nil(t, e.ObjectRef)
	require.Equal(t, "*", e.Annotations[RegionAnnotation])
}

func event(id string) *auditv1.Event {
	return &auditv1.Event{TypeMeta: metav1.TypeMeta{Kind: "Event"}, AuditID: types.UID(id)}
}

// ids returns the IDs of the events in files.
func ids(t *testing.T, paths ...string) string {
	t.Helper()
	var all []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := bufio.NewScanner(strings.NewReader(string(data)))
		for lines.Scan() {
			var e auditv1.Event
			require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
			all = append(all, string(e.AuditID))
		}
	}
	return strings.Join(all, " ")
}

// start starts l. The returned func ends it and waits.
func start(t *testing.T, l *Log, logger logr.Logger) func() {
	t.Helper()
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), logger))
	ended := make(chan error, 1)
	go func() { ended <- l.Start(ctx) }()
	return sync.OnceFunc(func() { cancel(); require.NoError(t, <-ended) })
}

// Events are appended, go on into a new file after the file was renamed, and are all written before the end.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	synctest.Test(t, func(t *testing.T) {
		for _, id := range []string{"a", "b"} {
			l, err := Open(path, nil)
			require.NoError(t, err)
			end := start(t, l, logr.Discard())
			l.Add(event(id))
			end()
			l.Add(event("late"))
			require.EqualValues(t, 1, l.Failed())
		}
		require.Equal(t, "a b", ids(t, path))

		l, err := Open(path, nil)
		require.NoError(t, err)
		end := start(t, l, logr.Discard())
		require.NoError(t, os.Rename(path, path+".1"))
		l.Add(event("c"))
		time.Sleep(2 * rotation)
		l.Add(event("d"))
		end()
		require.Equal(t, "a b c", ids(t, path+".1"))
		require.Equal(t, "d", ids(t, path))
	})
	_, err := Open(t.TempDir(), nil)
	require.Error(t, err)
}

// gate is a Writer that waits, or fails.
type gate struct {
	open chan struct{}
	mu   sync.Mutex
	err  error
	n    int
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.n++
	}
	return len(p), g.err
}

// If events come faster than they are written, requests wait, and no event is dropped.
func TestEventsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{})}
		l, err := Open("-", g)
		require.NoError(t, err)
		end := start(t, l, logr.Discard())
		added := 0
		go func() {
			for added = range 2 * waiting {
				l.Add(event("x"))
			}
		}()
		synctest.Wait()
		require.Less(t, added, waiting+2, "further events wait")
		close(g.open)
		synctest.Wait()
		end()
		require.Equal(t, 2*waiting, g.n)
		require.Zero(t, l.Failed())
	})
}

// Events that cannot be written are counted, and logged once.
func TestFailures(t *testing.T) {
	g := &gate{open: make(chan struct{}), err: errors.New("no space left on device")}
	close(g.open)
	l, err := Open("-", g)
	require.NoError(t, err)
	lines := logtest.New()
	end := start(t, l, lines.Logger())
	l.Add(event("a"))
	l.Add(event("b"))
	require.Eventually(t, func() bool { return l.Failed() == 2 }, time.Minute, time.Millisecond)
	g.mu.Lock()
	g.err = nil
	g.mu.Unlock()
	l.Add(event("c"))
	lines.Await(t, "written again", `"lost"=2`)
	end()
	failures := 0
	for _, line := range lines.List() {
		if strings.Contains(line, "no space left") {
			failures++
		}
	}
	require.Equal(t, 1, failures)
}

func TestNoLog(t *testing.T) {
	l, err := Open("", nil)
	require.NoError(t, err)
	require.Nil(t, l)
	l.Add(event("a"))
	require.NoError(t, l.Start(t.Context()))
	require.NoError(t, l.Close())
	require.Zero(t, l.Failed())
}
