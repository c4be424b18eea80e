// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// A crash stops a coordinator at one moment: no command begins after it, and no answer arrives.
// Requests in flight still reach the peer. The goroutines block until the test releases them.
type crash struct {
	after    bool                        // crash after the command, whose answer is lost
	at       int                         // the number of the command
	of       func(fanout.StepEvent) bool // if set, it selects the command, and the number in at does not count
	mu       sync.Mutex
	count    int
	inFlight int
	happened bool
	stopped  chan struct{}
	release  chan struct{}
}

func newCrash(at int, after bool) *crash {
	return &crash{at: at, after: after, stopped: make(chan struct{}), release: make(chan struct{})}
}

func (c *crash) step(_ context.Context, e fanout.StepEvent) {
	c.mu.Lock()
	if e.Done {
		c.inFlight--
	}
	if e.Done == c.after {
		c.happened = c.happened || c.of == nil && c.count == c.at || c.of != nil && c.of(e)
		c.count++
	}
	if !e.Done && !c.happened {
		c.inFlight++
	}
	happened := c.happened
	if happened && c.inFlight == 0 {
		select {
		case <-c.stopped:
		default:
			close(c.stopped)
		}
	}
	c.mu.Unlock()
	if happened {
		<-c.release
	}
}

// crashCase is an operation under test. prepare creates the objects that the operation needs, and
// returns the key of its object; run runs the operation.
type crashCase struct {
	name    string
	prepare func(t *testing.T, c *fanout.Coordinator, acme string) types.NamespacedName
	run     func(ctx context.Context, c *fanout.Coordinator, key types.NamespacedName) error
	// effect reports whether obj, nil if the peer has none, shows that the operation is in
	// effect.
	effect func(obj *unstructured.Unstructured) bool
}

func present(obj *unstructured.Unstructured) bool { return obj != nil }
func absent(obj *unstructured.Unstructured) bool  { return obj == nil }
func revised(obj *unstructured.Unstructured) bool {
	roles, _, _ := unstructured.NestedStringSlice(obj.Object, "spec", "roles")
	return slices.Equal(roles, []string{"Provider"})
}

func movedTo(peer string) func(*unstructured.Unstructured) bool {
	return func(obj *unstructured.Unstructured) bool {
		home, _, _ := unstructured.NestedString(obj.Object, "spec", "fanout", "home", "peer")
		return home == peer
	}
}

var crashCases = []crashCase{
	{
		name:   "add ServiceCluster",
		effect: present,
		prepare: func(_ *testing.T, _ *fanout.Coordinator, acme string) types.NamespacedName {
			return key(acme, unique("db"))
		},
		run: func(ctx context.Context, c *fanout.Coordinator, key types.NamespacedName) error {
			_, err := c.Add(ctx, newServiceCluster(key.Namespace, key.Name), fanout.AddOptions{Target: "us-east", Durable: true})
			return err
		},
	},
	{
		name:   "remove ServiceCluster",
		effect: absent,
		prepare: func(t *testing.T, c *fanout.Coordinator, acme string) types.NamespacedName {
			t.Helper()
			name := unique("db")
			_, err := c.Add(t.Context(), newServiceCluster(acme, name), fanout.AddOptions{Target: "us-east", Durable: true})
			require.NoError(t, err)
			return key(acme, name)
		},
		run: func(ctx context.Context, c *fanout.Coordinator, key types.NamespacedName) error {
			_, err := c.Remove(ctx, serviceClusters, key, fanout.RemoveOptions{})
			return err
		},
	},
	{
		name:   "add Account",
		effect: present,
		prepare: func(*testing.T, *fanout.Coordinator, string) types.NamespacedName {
			return key("", unique("acme"))
		},
		run: func(ctx context.Context, c *fanout.Coordinator, key types.NamespacedName) error {
			_, err := c.Add(ctx, newAccount(key.Name), fanout.AddOptions{})
			return err
		},
	},
	{
		name:   "update Account",
		effect: revised,
		prepare: func(t *testing.T, c *fanout.Coordinator, _ string) types.NamespacedName {
			t.Helper()
			return key("", addAccount(t, c))
		},
		run: func(ctx context.Context, c *fanout.Coordinator, key types.NamespacedName) error {
			_, err := c.Update(ctx, newAccount(key.Name, "Provider"), fanout.AddOptions{})
			return err
		},
	},
	{
		name:   "move Account",
		effect: movedTo("eu-west"),
		prepare: func(t *testing.T, c *fanout.Coordinator, _ string) types.NamespacedName {
			t.Helper()
			return key("", addAccount(t, c))
		},
		run: func(ctx context.Context, c *fanout.Coordinator, key types.NamespacedName) error {
			_, err := c.Move(ctx, accounts, key, "eu-west", fanout.MoveOptions{})
			return err
		},
	},
	{
		name:   "remove Account",
		effect: absent,
		prepare: func(t *testing.T, c *fanout.Coordinator, _ string) types.NamespacedName {
			t.Helper()
			return key("", addAccount(t, c))
		},
		run: func(ctx context.Context, c *fanout.Coordinator, key types.NamespacedName) error {
			_, err := c.Remove(ctx, accounts, key, fanout.RemoveOptions{})
			return err
		},
	},
}

// TestCrashAtEveryCommand stops a coordinator at each of its commands, once before and once after
// the command. With -short it leaves commands out (see stride). The next process recovers from the
// log. Then an audit finds no violation and no work in progress.
func TestCrashAtEveryCommand(t *testing.T) {
	for _, tc := range crashCases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := distant(newRing(t))
				acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
				for _, after := range []bool{false, true} {
					at := 0
					for ; crashOnce(t, r, acme, tc, at, after); at += stride() {
					}
					require.Greater(t, at, 8, "an operation has more commands than that")
				}
			})
		})
	}
}

// stride is the distance between two crashes or faults: one, or 25 with -short. The runs with
// -short look only for data races.
func stride() int {
	if testing.Short() {
		return 25
	}
	return 1
}

// crashOnce crashes one operation at the command whose number is at. It returns false if the
// operation was over before that command.
func crashOnce(t *testing.T, r *regiontest.Ring, acme string, tc crashCase, at int, after bool) bool {
	t.Helper()
	key := tc.prepare(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}), acme)
	defer tidy(t, r, key)
	log := waltest.NewMemory()
	stop := newCrash(at, after)
	doomed := coordinator(t, r, log, fanout.Options{
		Observer: &fanout.Observer{Step: stop.step},
		Cleanup:  time.Millisecond,
	})
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() { returned <- tc.run(ctx, doomed, key) }()

	select {
	case err := <-returned:
		cancel()
		require.NoError(t, err)
		return false
	case <-stop.stopped:
	}
	time.Sleep(time.Millisecond) // virtual time: longer than the successor's MaxInFlight
	next := log.Reopen()
	successor := coordinator(t, r, next, fanout.Options{MaxInFlight: time.Nanosecond})
	_, err := successor.Recover(t.Context())
	require.NoError(t, err, "command %d", at)
	requireSettled(t, next)
	requireClean(t, successor)

	// The dead process must not act any longer: its calls end with its context.
	heal := cut(r)
	cancel()
	close(stop.release)
	t.Logf("the dead process would have said: %v", <-returned)
	heal()
	return true
}

// tidy removes the objects of a case, so that the next cases read fewer of them.
func tidy(t *testing.T, r *regiontest.Ring, key types.NamespacedName) {
	t.Helper()
	gk := serviceClusters
	if key.Namespace == "" {
		gk = accounts
	}
	_, err := coordinator(t, r, waltest.NewMemory(), fanout.Options{}).Remove(t.Context(), gk, key, fanout.RemoveOptions{})
	if held, ok := errors.AsType[*fanout.HeldError](err); ok && held.Operation == "" {
		// The object was not adopted, so a person deletes it.
		client := accountsIn(t, r, held.Holder)
		if key.Namespace != "" {
			client = clustersIn(t, r, held.Holder, key.Namespace)
		}
		require.NoError(t, client.Delete(t.Context(), key.Name, metav1.DeleteOptions{}))
		return
	}
	if !errors.Is(err, fanout.ErrNotFound) {
		require.NoError(t, err)
	}
}

// far delays requests in a bubble of synctest, whose clock stands still while goroutines run:
// without the delay no operation would take long enough for a heartbeat.
var far = regiontest.Fault{Times: -1, Do: regiontest.Delay(2 * time.Millisecond)}

// distant delays each request to a peer.
func distant(r *regiontest.Ring) *regiontest.Ring {
	for _, p := range peers {
		r.Server(p).Inject(far)
	}
	return r
}

// cut partitions all peers and returns the function that heals them.
func cut(r *regiontest.Ring) func() {
	for _, p := range peers {
		r.Partition(p, true)
	}
	return func() {
		for _, p := range peers {
			r.Partition(p, false)
		}
	}
}
