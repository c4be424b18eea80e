// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/atoll-dev/atoll/router/aggregate"
)

// secret returns a key of a Keyring.
func secret(n int) []byte { return fmt.Appendf(nil, "key number %5d", n) }

func keyring(t *testing.T, keys ...[]byte) *aggregate.Keyring {
	t.Helper()
	k, err := aggregate.NewKeyring(keys...)
	require.NoError(t, err)
	return k
}

func TestKeyringRefuses(t *testing.T) {
	k := keyring(t, secret(1))
	for want, keys := range map[string][][]byte{
		"a keyring needs at least one key":                                nil,
		"key 2 of the keyring has 5 bytes; want at least 16 random bytes": {secret(1), []byte("short")},
		"key 3 of the keyring is a repetition of an earlier one":          {secret(1), secret(2), secret(1)},
	} {
		_, err := aggregate.NewKeyring(keys...)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, k.Replace(keys...), want)
	}
	w := newWorld(t, 1)
	defer w.close()
	w.put(w.keys[0], "a", "b")
	reader := w.api(aggregate.Options{Keys: k}).Reader("default", configMaps)
	page, err := reader.ListAll(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	_, err = w.api(aggregate.Options{Keys: keyring(t, secret(1))}).Reader("default", configMaps).ListAll(t.Context(), metav1.ListOptions{Continue: page.GetContinue()})
	require.NoError(t, err, "a refused Replace keeps the keys")
}

// A continue token outlives the rotation of its key, and is refused when its key is gone.
func TestAListAcrossARotation(t *testing.T) {
	w := newWorld(t, 2)
	defer w.close()
	w.put(w.keys[0], "a", "b")
	w.put(w.keys[1], "c", "d")
	replica := func(keys ...[]byte) *aggregate.Reader {
		return w.api(aggregate.Options{Keys: keyring(t, keys...)}).Reader("default", configMaps)
	}
	var names []string
	var token string
	for _, keys := range [][][]byte{{secret(1)}, {secret(1), secret(2)}, {secret(2), secret(1)}, {secret(2)}} {
		page, err := replica(keys...).ListAll(t.Context(), metav1.ListOptions{Limit: 1, Continue: token})
		require.NoError(t, err)
		require.Len(t, page.Items, 1)
		names, token = append(names, page.Items[0].GetName()), page.GetContinue()
	}
	require.Equal(t, []string{"a", "b", "c", "d"}, names)

	page, err := replica(secret(1)).ListAll(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	_, err = replica(secret(2)).ListAll(t.Context(), metav1.ListOptions{Continue: page.GetContinue()})
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	_, err = replica(secret(2)).Watch(metav1.ListOptions{ResourceVersion: page.GetResourceVersion()})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
}

// An informer does not list again when the process that serves it restarts or is replaced, also while the keys rotate.
func TestRollingRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		defer w.close()
		for _, k := range w.keys {
			w.put(k, "a", "b")
		}
		f := &front{}
		start := func(keys ...[]byte) {
			f.replace(w.api(aggregate.Options{Keys: keyring(t, keys...), Qualify: true}).Reader("default", configMaps))
		}
		start(secret(0))
		example := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		informer := cache.NewSharedIndexInformer(f, example, 0, cache.Indexers{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			informer.RunWithContext(ctx)
		}()
		defer func() {
			cancel()
			<-done
		}()
		time.Sleep(time.Minute)
		for round := range 21 {
			name := fmt.Sprint("new-", round)
			w.put(w.keys[round%3], name+"-before")
			now, next := secret(round/3), secret(round/3+1)
			switch round % 3 {
			case 0:
				start(now, next)
			case 1:
				start(next, now)
			case 2:
				start(next)
			}
			w.put(w.keys[(round+1)%3], name+"-after")
			time.Sleep(5 * time.Minute)
		}
		synctest.Wait()
		var expected, got []string
		for _, k := range w.keys {
			objects, err := w.servers[k].Objects(configMaps.GroupResource())
			require.NoError(t, err)
			for _, o := range objects {
				expected = append(expected, "default/"+(&unstructured.Unstructured{Object: o}).GetName()+"@"+k.String())
			}
		}
		got = informer.GetStore().ListKeys()
		slices.Sort(expected)
		slices.Sort(got)
		require.Len(t, expected, 3*2+2*21)
		require.Equal(t, expected, got)
		require.Equal(t, 1, f.lists, "lists, and watches with initial events")
		require.GreaterOrEqual(t, f.watches, 21)
	})
}

// front passes requests to the process that serves now, and counts them.
type front struct {
	mu             sync.Mutex
	reader         *aggregate.Reader
	killed         context.Context //nolint:containedctx // it stands for the life of a process
	kill           context.CancelFunc
	lists, watches int
}

// replace kills the serving process and starts another one.
func (f *front) replace(with *aggregate.Reader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kill != nil {
		f.kill()
	}
	f.killed, f.kill = context.WithCancel(context.Background())
	f.reader = with
}

func (f *front) List(metav1.ListOptions) (runtime.Object, error)   { panic("not called") }
func (f *front) Watch(metav1.ListOptions) (watch.Interface, error) { panic("not called") }

func (f *front) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	f.mu.Lock()
	f.lists++
	reader := f.reader
	f.mu.Unlock()
	return reader.ListWithContext(ctx, opts)
}

func (f *front) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	f.mu.Lock()
	if f.watches++; opts.SendInitialEvents != nil && *opts.SendInitialEvents {
		f.lists++
	}
	reader, killed := f.reader, f.killed
	f.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(killed, cancel)
	return reader.WatchWithContext(ctx, opts)
}
