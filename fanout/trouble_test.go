// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// texts returns the text of err and the texts of the errors in op's Peers.
func texts(op *fanout.Operation, err error) string {
	var lines []string
	if err != nil {
		lines = append(lines, err.Error())
	}
	if op != nil {
		if err := op.Peers.Err(); err != nil {
			lines = append(lines, err.Error())
		}
	}
	return strings.Join(lines, "; ")
}

// A peer fails in one of six ways. The error or the Operation of each operation on an object names
// the peer, the object and the cause in one line. A leave, a sweep, Traces and an audit name the
// peer and the cause.
func TestEveryFailureNamesPeerAndCause(t *testing.T) {
	refuse := func(code int) func(*regiontest.Ring, region.PeerName) {
		return func(r *regiontest.Ring, p region.PeerName) {
			r.Server(p).Inject(regiontest.Fault{Times: -1, Do: regiontest.Refuse(code)})
		}
	}
	for _, tc := range []struct {
		name  string
		fault func(*regiontest.Ring, region.PeerName)
		want  region.Cause
	}{
		{"refused", func(r *regiontest.Ring, p region.PeerName) { r.Partition(p, true) }, region.CauseRefused},
		{"frozen", func(r *regiontest.Ring, p region.PeerName) {
			r.Server(p).Inject(regiontest.Fault{Times: -1, Do: regiontest.Hang()})
		}, region.CauseTimeout},
		{"lost", func(r *regiontest.Ring, p region.PeerName) {
			r.Server(p).Inject(regiontest.Fault{Times: -1, Do: regiontest.DropRequest()})
		}, region.CauseLost},
		{"credentials", refuse(401), region.CauseUnauthorized},
		{"right", refuse(403), region.CauseForbidden},
		{"server", refuse(500), region.CauseServer},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const away = region.PeerName("ap-south")
				r := newRing(t)
				c := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: 15 * time.Second, CallTimeout: 2 * time.Second})
				acme := addAccount(t, c)
				_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
				require.NoError(t, err)
				_, err = clusters(t, r, "us-east", acme).Create(t.Context(), newServiceCluster(acme, "applied"), metav1.CreateOptions{})
				require.NoError(t, err)
				tc.fault(r, away)
				soon := func() context.Context { return within(t, 5*time.Second) }
				for what, tell := range map[string]func() string{
					"add": func() string {
						return texts(c.Add(soon(), newServiceCluster(acme, "one"), fanout.AddOptions{Target: "us-east"}))
					},
					"add there": func() string {
						return texts(c.Add(soon(), newServiceCluster(acme, "two"), fanout.AddOptions{Target: away}))
					},
					"patient add": func() string {
						return texts(c.Add(soon(), newServiceCluster(acme, "three"), fanout.AddOptions{Target: "us-east", Unreachable: fanout.Wait}))
					},
					"adopt": func() string { return texts(c.Adopt(soon(), "us-east", serviceClusters, key(acme, "applied"))) },
					"update": func() string {
						return texts(c.Update(soon(), newAccount(acme, "Provider"), fanout.AddOptions{}))
					},
					"move": func() string {
						return texts(c.Move(soon(), accounts, key("", acme), "eu-west", fanout.MoveOptions{}))
					},
					"remove": func() string {
						return texts(c.Remove(soon(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{}))
					},
					"remove an account": func() string {
						return texts(c.Remove(soon(), accounts, key("", acme), fanout.RemoveOptions{Unreachable: fanout.Wait}))
					},
				} {
					text := tell()
					require.Contains(t, text, "peer "+string(away)+": ", what)
					require.Contains(t, text, string(tc.want), what)
					require.Contains(t, text, acme, what)
					require.NotContains(t, text, "\n", what)
				}
				for what, tell := range map[string]func() error{
					"leave":  func() error { _, err := c.Leave(soon(), away); return err },
					"sweep":  func() error { _, err := c.Sweep(t.Context()); return err },
					"traces": func() error { _, err := c.Traces(soon()); return err },
					"audit": func() error {
						report, err := c.Audit(soon(), false)
						require.NoError(t, err)
						return report.Unread.Err()
					},
				} {
					text := tell().Error()
					require.Contains(t, text, "peer "+string(away)+": ", what)
					require.Contains(t, text, string(tc.want), what)
				}
			})
		})
	}
}

// If a peer answers reads but no creates, the error of an add has the cause CauseWriteTimeout, and
// not the cause of a frozen peer.
func TestASilentWriteIsNoFrozenPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: 15 * time.Second, CallTimeout: 2 * time.Second})
		acme := addAccount(t, c)
		r.Server("ap-south").Inject(regiontest.Fault{Verb: "create", Times: -1, Do: regiontest.Hang()})
		for _, mode := range []fanout.Unreachable{fanout.Fail, fanout.Wait} {
			_, err := c.Add(within(t, 9*time.Second), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Unreachable: mode})
			require.ErrorIs(t, err, fanout.ErrAborted)
			require.Equal(t, region.CauseWriteTimeout, region.CauseOf(err), "%v", err)
			require.Regexp(t, `peer ap-south: create ServiceCluster `+acme+`/db: no answer to the write in time, while reads are answered: .* \(\d attempts since .*\): check the API server's admission webhooks`, err.Error())
		}
	})
}

// The error of an operation that missed its deadline names the peers for which it waited, and no
// other requests that were in flight. Several peers are in one line, in order.
func TestALateOperationNamesWhomItWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: 2 * time.Second, CallTimeout: 2 * time.Second})
		acme := addAccount(t, c)
		r.Partition("ap-south", true)
		r.Server("eu-west").Inject(regiontest.Fault{Times: -1, Do: regiontest.Hang()})
		r.Server("us-east").Inject(regiontest.Fault{Times: -1, Do: regiontest.Delay(200 * time.Millisecond)})
		_, err := c.Add(within(t, 9*time.Second), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Unreachable: fanout.Wait})
		require.ErrorIs(t, err, fanout.ErrAborted)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Regexp(t, `it waited for answers: 2 of 2 peers failed: peer ap-south: .*connection refused.*; peer eu-west: .*no answer in time`, err.Error())
		require.NotContains(t, err.Error(), "peer us-east")
		require.NotContains(t, err.Error(), "\n")
	})
}

// A program whose deadline is shorter than a call gets an error that names the peer for which
// it waited, although no operation began.
func TestATimeShorterThanACallNamesThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: 15 * time.Second})
		acme := addAccount(t, c)
		r.Server("ap-south").Inject(regiontest.Fault{Times: -1, Do: regiontest.Hang()})
		for what, tell := range map[string]func(context.Context, *fanout.Coordinator) string{
			"add": func(ctx context.Context, c *fanout.Coordinator) string {
				return texts(c.Add(ctx, newServiceCluster(acme, "one"), fanout.AddOptions{Target: "us-east"}))
			},
			"patient add": func(ctx context.Context, c *fanout.Coordinator) string {
				return texts(c.Add(ctx, newServiceCluster(acme, "two"), fanout.AddOptions{Target: "us-east", Unreachable: fanout.Wait}))
			},
			"add under a key": func(ctx context.Context, c *fanout.Coordinator) string {
				return texts(c.Add(ctx, newServiceCluster(acme, "three"), fanout.AddOptions{Target: "us-east", IdempotencyKey: "k"}))
			},
			"update": func(ctx context.Context, c *fanout.Coordinator) string {
				return texts(c.Update(ctx, newAccount(acme, "Provider"), fanout.AddOptions{}))
			},
			"move": func(ctx context.Context, c *fanout.Coordinator) string {
				return texts(c.Move(ctx, accounts, key("", acme), "eu-west", fanout.MoveOptions{}))
			},
			"remove": func(ctx context.Context, c *fanout.Coordinator) string {
				return texts(c.Remove(ctx, accounts, key("", acme), fanout.RemoveOptions{}))
			},
			"leave": func(ctx context.Context, c *fanout.Coordinator) string {
				_, err := c.Leave(ctx, "us-east")
				return texts(nil, err)
			},
			"init": func(ctx context.Context, c *fanout.Coordinator) string { return texts(nil, c.InitPeers(ctx)) },
			"plan": func(ctx context.Context, c *fanout.Coordinator) string {
				_, err := c.Plan(ctx, newServiceCluster(acme, "four"), fanout.AddOptions{Target: "us-east"})
				return texts(nil, err)
			},
		} {
			text := tell(within(t, 4*time.Second), coordinator(t, unacquainted(t, r), waltest.NewMemory(), fanout.Options{LeaseTimeout: 15 * time.Second}))
			assert.Regexp(t, `peer ap-south: .*`+string(region.CauseTimeout), text, what)
			assert.NotContains(t, text, "peer us-east", what)
		}
	})
}

// unacquainted returns connections that have not identified their clusters yet.
func unacquainted(t *testing.T, r *regiontest.Ring) region.Directory {
	t.Helper()
	var conns []*region.Conn
	for _, peer := range peers {
		creds, err := region.FromConfig(r.Server(peer).Config())
		require.NoError(t, err)
		conn, err := region.NewConn(region.Peer{Name: peer, Credentials: creds}, region.ConnOptions{})
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		conns = append(conns, conn)
	}
	return region.Fixed(conns...)
}

// If a webhook rejects each write at once, the error names the webhook. It does not report rivals
// that change the owner of the name.
func TestAWebhookThatFailsAtOnceIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: 15 * time.Second})
		acme := addAccount(t, c)
		r.Server("ap-south").Inject(regiontest.Fault{Verb: "create", Times: -1, Do: regiontest.Refuse(500)})
		_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		require.ErrorIs(t, err, fanout.ErrAborted)
		require.Equal(t, region.CauseServer, region.CauseOf(err), "%v", err)
		require.Contains(t, err.Error(), "peer ap-south: create ServiceCluster "+acme+"/db: ")
		require.NotContains(t, err.Error(), "changed hands")
	})
}

// If a webhook takes as long as an API server's default timeout for webhooks, the API server's
// answer names the webhook, because CallTimeout is longer.
func TestAWebhookThatHangsIsNamedByItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const byDefault = 10 * time.Second // https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#timeouts
		r := newRing(t)
		c, err := fanout.New(r, waltest.NewMemory(), fanout.Options{Kinds: account.Kinds()})
		require.NoError(t, err)
		acme := addAccount(t, c)
		r.Server("ap-south").Inject(regiontest.Fault{Verb: "create", Times: -1, Do: regiontest.RefuseAfter(byDefault, 500)})
		// The deadline cuts off a call, whose error has less information than the answers
		// before it.
		_, err = c.Add(within(t, 95*time.Second), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		require.ErrorIs(t, err, fanout.ErrAborted)
		require.Equal(t, region.CauseServer, region.CauseOf(err), "%v", err)
		require.Contains(t, err.Error(), "peer ap-south: create ServiceCluster "+acme+"/db: ")
	})
}

// The error of a change of the membership names the peer that failed, and the cause.
func TestEveryFailureOfAChangeNamesPeerAndCause(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault regiontest.Action
		want  region.Cause
	}{
		{"frozen", regiontest.Hang(), region.CauseTimeout},
		{"lost", regiontest.DropRequest(), region.CauseLost},
		{"credentials", regiontest.Refuse(401), region.CauseUnauthorized},
		{"right", regiontest.Refuse(403), region.CauseForbidden},
		{"server", regiontest.Refuse(500), region.CauseServer},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := servers(t, "ap-south", "eu-west", "us-east")
				limits := fanout.Options{LeaseTimeout: 15 * time.Second, CallTimeout: 2 * time.Second}
				all := coordinator(t, r, waltest.NewMemory(), limits)
				for what, change := range map[string]struct {
					at  region.PeerName
					try func(context.Context) error
				}{
					"join of a silent peer": {"sa-east", func(ctx context.Context) error { _, err := all.Join(ctx, "sa-east"); return err }},
					"join":                  {"ap-south", func(ctx context.Context) error { _, err := all.Join(ctx, "sa-east"); return err }},
					"leave":                 {"ap-south", func(ctx context.Context) error { _, err := all.Leave(ctx, "eu-west"); return err }},
					"force remove": {"ap-south", func(ctx context.Context) error {
						_, err := all.ForceRemove(ctx, "eu-west", fanout.ForceRemoveOptions{By: "operator"})
						return err
					}},
					"comeback": {"ap-south", func(ctx context.Context) error { _, err := all.Comeback(ctx, "ap-south"); return err }},
				} {
					r.Server(change.at).Inject(regiontest.Fault{Times: -1, Do: tc.fault})
					err := change.try(within(t, 5*time.Second))
					r.Server(change.at).Reset()
					require.Error(t, err, what)
					require.Contains(t, err.Error(), "peer "+string(change.at)+": ", what)
					require.Contains(t, err.Error(), string(tc.want), what)
					require.NotContains(t, err.Error(), "\n", what)
				}
			})
		})
	}
}

// An API server that has just started forbids requests that it allows later, until it has read its
// roles. An operation with Wait keeps waiting for it. A 403 of a server that has answered all
// earlier calls ends the operation.
func TestAServerThatHasJustBegunIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: 15 * time.Second})
		acme := addAccount(t, c)
		patiently := fanout.AddOptions{Target: "us-east", Unreachable: fanout.Wait}
		refuses := regiontest.Fault{Times: -1, Do: regiontest.Refuse(403)}

		for _, away := range []region.PeerName{"ap-south", "us-east"} {
			r.Partition(away, true)
			ended := make(chan error, 1)
			go func() {
				_, err := c.Add(t.Context(), newServiceCluster(acme, "db-"+string(away)), patiently)
				ended <- err
			}()
			time.Sleep(20 * time.Second)
			r.Server(away).Inject(refuses)
			r.Partition(away, false)
			time.Sleep(5 * time.Second)
			r.Server(away).Reset()
			require.NoError(t, <-ended)
		}

		r.Server("ap-south").Inject(refuses)
		_, err := c.Add(t.Context(), newServiceCluster(acme, "other"), patiently)
		require.ErrorIs(t, err, fanout.ErrAborted)
		require.Equal(t, region.CauseForbidden, region.CauseOf(err), "%v", err)
		require.ErrorContains(t, err, "ap-south")

		// A server that keeps answering 403 ends the operation, too.
		r.Server("ap-south").Reset()
		r.Partition("ap-south", true)
		ended := make(chan error, 1)
		go func() {
			_, err := c.Add(t.Context(), newServiceCluster(acme, "other"), patiently)
			ended <- err
		}()
		time.Sleep(20 * time.Second)
		r.Server("ap-south").Inject(refuses)
		r.Partition("ap-south", false)
		err = <-ended
		require.ErrorIs(t, err, fanout.ErrAborted)
		require.Equal(t, region.CauseForbidden, region.CauseOf(err), "%v", err)
	})
}

// The error of a change of the membership that cannot end names the cause. That holds whether the
// change used up its retries or its deadline cut a request off.
func TestAChangeThatDoesNotEndNamesTheCause(t *testing.T) {
	for _, calls := range []int64{1, math.MaxInt64} {
		synctest.Test(t, func(t *testing.T) {
			const back = region.PeerName("ap-south")
			r := newRing(t)
			c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
			addAccount(t, c)
			_, err := c.Leave(t.Context(), back)
			require.NoError(t, err)

			kinds := account.Kinds()
			var called atomic.Int64
			for i := range kinds {
				if kinds[i].Mode != fanout.Everywhere {
					continue
				}
				kinds[i].Activated = func(ctx context.Context, conn *region.Conn, _ *unstructured.Unstructured) error {
					switch {
					case conn.Peer() != back:
						return nil
					case called.Add(1) > calls:
						<-ctx.Done()
						return ctx.Err()
					}
					return errors.New("the quota is exhausted")
				}
			}
			late := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: kinds, LeaseTimeout: 15 * time.Second, CallTimeout: time.Hour})
			_, err = late.Join(within(t, 10*time.Second), back)
			_, ok := errors.AsType[*fanout.InDoubtError](err)
			require.True(t, ok, "%v", err)
			require.ErrorContains(t, err, "the quota is exhausted")
		})
	}
}
