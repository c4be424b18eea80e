// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// every is how long a user thinks between two steps.
const every = 400 * time.Millisecond

// user creates, reads, changes and deletes objects in one region, and reads them in all regions.
type user struct {
	name, region string
	clients      atomic.Pointer[clients]
	figures      *figures
	steps        atomic.Int64
	done         atomic.Bool

	mu   sync.Mutex
	want map[string]string // the objects that were acknowledged, with their value
}

// clients are those of a user with one certificate: for the user's region, and for all regions.
type clients struct{ here, all dynamic.ResourceInterface }

// load is the users at work.
type load struct {
	w         *world
	namespace string
	users     []*user
	ends      map[string]chan struct{} // by region; closed when its users are to go
	work      sync.WaitGroup
}

// credentials writes a new certificate for each user, by the present authority.
func (w *world) credentials() {
	w.t.Helper()
	for _, name := range w.users {
		certificate, key := w.clients.Client(w.t, name, "dev")
		w.write("users/"+name+".pem", slices.Concat(certificate, key))
	}
}

// config returns the client configuration of a user, for a path of the gateways. It follows the file of the certificate.
func (w *world) config(name, path string) *rest.Config {
	file := w.path("users/" + name + ".pem")
	return &rest.Config{
		Host: w.balancer.address() + "/regions/" + path, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: w.servers.PEM(), CertFile: file, KeyFile: file},
	}
}

// clientsOf returns clients of a user with the present certificate.
func (l *load) clientsOf(u *user) *clients {
	l.w.t.Helper()
	certificate, err := os.ReadFile(l.w.path("users/" + u.name + ".pem"))
	require.NoError(l.w.t, err)
	to := func(path string) dynamic.ResourceInterface {
		c := l.w.config(u.name, path)
		c.CertFile, c.KeyFile, c.CertData, c.KeyData = "", "", certificate, certificate
		return planetest.Dynamic(l.w.t, c).Resource(configMaps).Namespace(l.namespace)
	}
	return &clients{to(u.region), to("*")}
}

// renew lets each user work with a new certificate, and waits until all do.
func (l *load) renew() {
	l.w.t.Helper()
	l.w.credentials()
	for _, u := range l.users {
		u.clients.Store(l.clientsOf(u))
	}
	l.goesOn(2) // the first step may have begun before
}

// startLoad puts the users to work, in the given regions.
func (w *world) startLoad(f *figures, namespace string, regions ...string) *load {
	w.t.Helper()
	l := &load{w: w, namespace: namespace, ends: map[string]chan struct{}{}}
	requests, abort := context.WithCancel(context.WithoutCancel(w.t.Context()))
	for _, r := range regions {
		l.ends[r] = make(chan struct{})
	}
	for i, name := range w.users {
		u := &user{name: name, region: regions[i%len(regions)], figures: f, want: map[string]string{}}
		u.clients.Store(l.clientsOf(u))
		l.users = append(l.users, u)
		l.work.Go(func() { u.work(requests, l.ends[u.region], i) })
	}
	w.t.Cleanup(func() {
		abort()
		f.comeback(regions...)
		l.stop(regions...)
	})
	return l
}

// stop lets the users of the regions end their present step, and go. It waits for them if no others are left.
func (l *load) stop(regions ...string) {
	for _, r := range regions {
		if end, ok := l.ends[r]; ok {
			close(end)
			delete(l.ends, r)
		}
	}
	if len(l.ends) == 0 {
		l.work.Wait()
	}
}

// goesOn waits until each user of a region that is not away has made n more steps.
func (l *load) goesOn(n int64, away ...string) {
	l.w.t.Helper()
	before := map[*user]int64{}
	for _, u := range l.users {
		before[u] = u.steps.Load()
	}
	planetest.Eventually(l.w.t, soon, "the users go on", func(context.Context) error {
		for _, u := range l.users {
			if !u.done.Load() && !slices.Contains(away, u.region) && u.steps.Load() < before[u]+n {
				return fmt.Errorf("%s made %d steps; %s", u.name, u.steps.Load()-before[u], u.figures.problems())
			}
		}
		return nil
	})
}

// left waits until the users of a region have gone.
func (l *load) left(region string) {
	l.w.t.Helper()
	planetest.Eventually(l.w.t, soon, "the users of "+region+" go", func(context.Context) error {
		for _, u := range l.users {
			if u.region == region && !u.done.Load() {
				return fmt.Errorf("%s is still at work", u.name)
			}
		}
		return nil
	})
}

// work makes steps until end is closed. The requests end with ctx.
func (u *user) work(ctx context.Context, end <-chan struct{}, n int) {
	defer u.done.Store(true)
	pause := time.NewTicker(every)
	defer pause.Stop()
	for {
		select {
		case <-end:
			return
		case <-pause.C:
			n++
			u.step(ctx, n)
			u.steps.Add(1)
		}
	}
}

// step creates an object, changes it, and reads all of its own; the oldest of more than three is deleted. Now and then it
// reads all of its own in all regions.
func (u *user) step(ctx context.Context, n int) {
	c := u.clients.Load()
	name := fmt.Sprintf("%s-%06d", u.name, n)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "labels": map[string]any{"load": "story", "user": u.name}}, "data": map[string]any{"value": "first"},
	}}
	u.do(ctx, u.region, "create", apierrors.IsAlreadyExists, func() error {
		_, err := c.here.Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	u.note(name, "first")
	u.do(ctx, u.region, "patch", nil, func() error {
		_, err := c.here.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"value":"second"}}`), metav1.PatchOptions{})
		return err
	})
	u.note(name, "second")
	mine := metav1.ListOptions{LabelSelector: "user=" + u.name}
	u.do(ctx, u.region, "list", nil, func() error { return u.finds(c.here.List(ctx, mine)) })
	if n%5 == 0 {
		u.do(ctx, "*", "list", nil, func() error { return u.finds(c.all.List(ctx, mine)) })
	}
	if names := slices.Sorted(maps.Keys(u.objects())); len(names) > 3 {
		u.do(ctx, u.region, "delete", apierrors.IsNotFound, func() error { return c.here.Delete(ctx, names[0], metav1.DeleteOptions{}) })
		u.note(names[0], "")
	}
}

// do repeats a request until it succeeds; a request to all regions is not repeated while one of them is away. already reports
// that an earlier try, whose answer was lost, has succeeded.
func (u *user) do(ctx context.Context, region, what string, already func(error) bool, request func() error) {
	for try := 0; ; try++ {
		began := time.Now()
		err := request()
		if ctx.Err() != nil {
			return
		}
		if err == nil || try > 0 && already != nil && already(err) {
			u.figures.succeeded(time.Since(began))
			return
		}
		switch back := u.figures.failed(region, u.name+" "+what, err); {
		case back == nil:
		case region == "*":
			return
		default:
			<-back
		}
	}
}

// finds requires that a list has exactly the objects that were acknowledged.
func (u *user) finds(list *unstructured.UnstructuredList, err error) error {
	if err != nil {
		return err
	}
	if want := u.objects(); len(list.Items) != len(want) {
		return apierrors.NewInternalError(fmt.Errorf("a list of %s has %d objects instead of %d", u.name, len(list.Items), len(want)))
	}
	return nil
}

// note records an object's value in u.want; "" removes the entry.
func (u *user) note(name, value string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.want[name] = value
	if value == "" {
		delete(u.want, name)
	}
}

func (u *user) objects() map[string]string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.want)
}

// check requires that each region has exactly the objects that were acknowledged, and returns their values by NAME@REGION.
func (l *load) check(namespace string, planes map[string]*rest.Config) map[string]string {
	l.w.t.Helper()
	want, got := map[string]string{}, map[string]string{}
	for _, u := range l.users {
		for name, value := range u.objects() {
			want[name+"@"+u.region] = value
		}
	}
	for r, config := range planes {
		list, err := planetest.Dynamic(l.w.t, config).Resource(configMaps).Namespace(namespace).List(l.w.t.Context(), metav1.ListOptions{LabelSelector: "load=story"})
		require.NoError(l.w.t, err)
		for _, o := range list.Items {
			got[o.GetName()+"@"+r] = valueOf(&o)
		}
	}
	require.Equal(l.w.t, want, got)
	return got
}

func valueOf(o *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(o.Object, "data", "value")
	return value
}

// counted counts the lists of a client, which include watches that begin with one.
type counted struct {
	lists *atomic.Int64
	next  http.RoundTripper
}

// RoundTrip counts the lists that succeed.
func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(r)
	if q := r.URL.Query(); err == nil && resp.StatusCode == http.StatusOK && (q.Get("watch") == "" || q.Get("sendInitialEvents") == "true") {
		c.lists.Add(1)
	}
	return resp, err
}
