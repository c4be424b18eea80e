// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-multierror"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// peersOf returns a Directory of peers that receive no request.
func peersOf(t *testing.T, names ...PeerName) Directory {
	t.Helper()
	var conns []*Conn
	for _, name := range names {
		c, err := NewConn(Peer{Name: name, Credentials: newCluster(string(name), "a").credentials(t, "a")}, ConnOptions{})
		require.NoError(t, err)
		conns = append(conns, c)
	}
	return Fixed(conns...)
}

func TestEachPolicies(t *testing.T) {
	broken := errors.New("broken")
	// a responds after 1 s, b fails after 2 s, c responds after 3 s, d never does.
	behave := func(ctx context.Context, c *Conn) (string, error) {
		wait := map[PeerName]time.Duration{"a": 1, "b": 2, "c": 3, "d": 1000}[c.Peer()] * time.Second
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if c.Peer() == "b" {
			return "", broken
		}
		return "from " + string(c.Peer()), nil
	}
	for _, tt := range []struct {
		policy Policy
		peers  []PeerName
		after  time.Duration
		want   map[PeerName]string // the response of each peer, or its error
		err    string
	}{
		{All(), []PeerName{"a", "c"}, 3 * time.Second, map[PeerName]string{"a": "from a", "c": "from c"}, ""},
		{All(), []PeerName{"a", "b", "c"}, 3 * time.Second, map[PeerName]string{"a": "from a", "b": "peer b: list: broken", "c": "from c"},
			"list: 1 of 3 peers failed: peer b: broken"},
		{FailFast(), []PeerName{"a", "b", "c"}, 2 * time.Second,
			map[PeerName]string{"a": "from a", "b": "peer b: list: broken", "c": "peer c: list: canceled: peer b failed first"},
			"list: 2 of 3 peers failed: peer b: broken; peer c: canceled: peer b failed first"},
		{BestEffort(), []PeerName{"a", "d"}, 10 * time.Second, map[PeerName]string{"a": "from a", "d": "peer d: list: context deadline exceeded"}, ""},
		{BestEffort(), nil, 0, map[PeerName]string{}, ""},
		{All(), nil, 0, map[PeerName]string{}, "list: 1 of 0 peers failed: no peers are known"},
		{Require("a", "c"), []PeerName{"a", "b", "c"}, 3 * time.Second, map[PeerName]string{"a": "from a", "b": "peer b: list: broken", "c": "from c"}, ""},
		{Require("b"), []PeerName{"a", "b"}, 2 * time.Second, map[PeerName]string{"a": "from a", "b": "peer b: list: broken"}, "list: 1 of 2 peers failed: peer b: broken"},
		{Require("a", "x"), []PeerName{"a"}, time.Second, map[PeerName]string{"a": "from a", "x": "peer x: list: unknown peer"}, "list: 1 of 2 peers failed: peer x: unknown peer"},
		{Quorum(2), []PeerName{"a", "b", "c", "d"}, 3 * time.Second, map[PeerName]string{
			"a": "from a", "b": "peer b: list: broken", "c": "from c", "d": "peer d: list: canceled: enough peers responded"}, ""},
		{Quorum(3), []PeerName{"a", "c"}, 3 * time.Second, map[PeerName]string{"a": "from a", "c": "from c"},
			"list: 1 of 2 peers failed: 2 peers answered, which does not meet quorum of 3"},
		{Quorum(0), []PeerName{"a", "c"}, time.Second, map[PeerName]string{"a": "from a", "c": "peer c: list: canceled: enough peers responded"}, ""},
	} {
		t.Run(tt.policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				results, err := Each(ctx, peersOf(t, tt.peers...), "list", tt.policy, behave)
				require.Equal(t, tt.after, time.Since(began))
				got := make(map[PeerName]string)
				var order []PeerName
				for o := range results.All() {
					order = append(order, o.Peer)
					got[o.Peer] = o.Value
					if o.Err != nil {
						require.Empty(t, o.Value)
						got[o.Peer] = o.Err.Error()
					}
				}
				require.Empty(t, cmp.Diff(tt.want, got), "(-want +got)")
				require.IsNonDecreasing(t, order)
				if tt.err == "" {
					require.NoError(t, err)
					return
				}
				require.EqualError(t, err, tt.err)
				require.False(t, results.Complete() && tt.policy.kind != kindQuorum)
			})
		})
	}
}

// One NotFound among several peers must not look like a NotFound of the whole call.
func TestPartialErrorIsOpaque(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "w")
	results, err := Each(t.Context(), peersOf(t, "b", "a"), "get", All(), func(_ context.Context, c *Conn) (int, error) {
		if c.Peer() == "a" {
			return 0, notFound
		}
		return 0, errors.New("two\nlines")
	})
	require.False(t, apierrors.IsNotFound(err))
	require.NotErrorIs(t, err, notFound)
	require.EqualError(t, err, `get: 2 of 2 peers failed: peer a: widgets "w" not found; peer b: two lines`)
	require.EqualError(t, results.Err(), err.Error())
	partial, ok := errors.AsType[*PartialError](err)
	require.True(t, ok)
	members := partial.WrappedErrors()
	require.Len(t, members, 2)
	require.True(t, apierrors.IsNotFound(members[0]))
	require.False(t, apierrors.IsNotFound(members[1]))
	require.Equal(t, PeerName("a"), members[0].(*Error).Peer) //nolint:errorlint // each is one
	// The members can be appended to another error of go-multierror, and stay separate errors there.
	require.Len(t, multierror.Append(nil, partial.WrappedErrors()...).Errors, 2)
}

func TestLateAnswerIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		results, err := Each(ctx, peersOf(t, "a"), "get", BestEffort(), func(context.Context, *Conn) (int, error) {
			time.Sleep(2 * time.Second)
			return 0, nil
		})
		require.NoError(t, err)
		require.False(t, results.Complete())
		require.ErrorIs(t, results.Err().(*PartialError).WrappedErrors()[0], context.DeadlineExceeded) //nolint:errorlint // its type is the point
	})
}

// A peer whose call was canceled, because enough peers responded or because another peer failed, is
// not unavailable.
func TestGivenUpIsNotUnavailable(t *testing.T) {
	for name, policy := range map[string]Policy{"quorum": Quorum(1), "fail fast": FailFast()} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{})
			slow := newCluster("slow", "a")
			slow.answer = func(_ http.ResponseWriter, r *http.Request) {
				close(asked)
				<-r.Context().Done()
			}
			server := httptest.NewServer(slow)
			defer server.Close()
			creds, err := FromConfig(&rest.Config{Host: server.URL, BearerToken: "a", Transport: server.Client().Transport})
			require.NoError(t, err)
			b := newConn(t, creds, ConnOptions{})
			a, err := NewConn(Peer{Name: "a", Credentials: newCluster("a", "a").credentials(t, "a")}, ConnOptions{})
			require.NoError(t, err)
			results, _ := Each(t.Context(), Fixed(a, b), "list", policy, func(ctx context.Context, c *Conn) (int, error) {
				if c == a {
					<-asked
					if name == "fail fast" {
						return 0, errors.New("broken")
					}
					return 1, nil
				}
				_, err := c.Dynamic().Resource(widgets).List(ctx, metav1.ListOptions{})
				return 0, err
			})
			for o := range results.All() {
				if o.Peer == "eu" {
					require.Error(t, o.Err)
					require.NotErrorIs(t, o.Err, ErrUnavailable)
				}
			}
		})
	}
}

func TestResultsOfAnyError(t *testing.T) {
	broken := errors.New("broken")
	err := ResultsOf("list", Outcome[int]{Peer: "a", Err: broken}).Err()
	require.EqualError(t, err, "list: 1 of 1 peers failed: peer a: broken")
}
