// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEngage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := newCluster("one", "a", "b"), newCluster("two", "a")
		src := newScripted()
		r := startRing(t, src)
		events := make(chan string, 100)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		failures := 2
		go func() {
			ended <- Engage(ctx, r, func(ctx context.Context, c *Conn) error {
				events <- fmt.Sprintf("begin %s", c.Peer())
				if c.Peer() == "us" && failures > 0 {
					failures--
					return errors.New("not yet")
				}
				<-ctx.Done()
				events <- fmt.Sprintf("end %s", c.Peer())
				return nil
			})
		}()
		next := func() string {
			synctest.Wait()
			select {
			case e := <-events:
				return e
			default:
				return ""
			}
		}
		src.publish(t, Peer{Name: "eu", Credentials: one.credentials(t, "a")})
		require.Equal(t, "begin eu", next())
		// A rotation does not end the engagement.
		src.publish(t, Peer{Name: "eu", Credentials: one.credentials(t, "b")})
		require.EqualValues(t, 2, connOf(t, r, "eu").Health().Generation)
		require.Empty(t, next())
		// A func that fails is started again, with a growing backoff.
		src.publish(t, Peer{Name: "eu", Credentials: one.credentials(t, "b")}, Peer{Name: "us", Credentials: two.credentials(t, "a")})
		require.Equal(t, "begin us", next())
		require.Empty(t, next())
		time.Sleep(1200 * time.Millisecond)
		require.Equal(t, "begin us", next())
		time.Sleep(1200 * time.Millisecond)
		require.Empty(t, next())
		time.Sleep(1200 * time.Millisecond)
		require.Equal(t, "begin us", next())
		src.publish(t, Peer{Name: "us", Credentials: two.credentials(t, "a")})
		require.Equal(t, "end eu", next())
		src.publish(t, Peer{Name: "eu", Credentials: one.credentials(t, "b")}, Peer{Name: "us", Credentials: two.credentials(t, "a")})
		require.Equal(t, "begin eu", next())
		cancel()
		require.NoError(t, <-ended)
		require.Len(t, events, 2)
	})
}

// Engagements that end at once are started again after pauses that double, up to a minute. One that lasted longer than
// a minute counts as a success: the next pause is a second.
func TestEngagePauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newScripted()
		r := startRing(t, src)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		var pauses []float64
		last := time.Now()
		go func() {
			ended <- Engage(ctx, r, func(context.Context, *Conn) error {
				pauses = append(pauses, time.Since(last).Seconds())
				if len(pauses) == 10 {
					time.Sleep(2 * engageMaxBackoff)
				}
				last = time.Now()
				return errors.New("not yet")
			})
		}()
		src.publish(t, Peer{Name: "eu", Credentials: newCluster("one", "a").credentials(t, "a")})
		time.Sleep(10 * time.Minute)
		cancel()
		require.NoError(t, <-ended)
		want := []float64{0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 1, 2}
		require.GreaterOrEqual(t, len(pauses), len(want))
		for i := range want {
			require.InDelta(t, want[i], pauses[i], 0.11*want[i], "%d: %v", i, pauses)
		}
	})
}

// A peer that left and joined again between two snapshots is engaged anew, even if it had no connection at first.
func TestEngageAfterAPeerCameBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		creds := newCluster("one", "a").credentials(t, "a")
		first, err := NewConn(Peer{Name: "eu", Credentials: creds}, ConnOptions{})
		require.NoError(t, err)
		second, err := NewConn(Peer{Name: "eu", Credentials: creds}, ConnOptions{})
		require.NoError(t, err)
		d := &revolving{snapshots: make(chan *Snapshot)}
		ctx, cancel := context.WithCancel(t.Context())
		var with []*Conn
		ended := make(chan error, 1)
		go func() {
			ended <- Engage(ctx, d, func(ctx context.Context, c *Conn) error {
				with = append(with, c)
				<-ctx.Done()
				return nil
			})
		}()
		s, err := NewSnapshot(Peer{Name: "eu"})
		require.NoError(t, err)
		for _, conn := range []*Conn{nil, first, second} {
			d.conn.Store(conn)
			d.snapshots <- s
			// Longer than the longest pause between two attempts, even with its jitter.
			time.Sleep(2 * engageMaxBackoff)
			synctest.Wait()
		}
		require.Equal(t, []*Conn{first, second}, with)
		cancel()
		require.NoError(t, <-ended)
	})
}

// revolving is a Directory of one peer whose connection is replaced.
type revolving struct {
	snapshots chan *Snapshot
	conn      atomic.Pointer[Conn]
}

func (d *revolving) Snapshot() *Snapshot { return emptySnapshot() }

func (d *revolving) Watch(ctx context.Context) iter.Seq[*Snapshot] {
	return func(yield func(*Snapshot) bool) {
		for {
			select {
			case s := <-d.snapshots:
				if !yield(s) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (d *revolving) Conn(PeerName) (*Conn, error) {
	if c := d.conn.Load(); c != nil {
		return c, nil
	}
	return nil, ErrUnknownPeer
}
