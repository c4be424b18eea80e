// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// schedules is the number of gentle schedules and of other schedules that TestModel runs, unless ATOLL_SCHEDULES is
// set.
const schedules = 60

const actions = 40 // per schedule

// seeds yields n consecutive seeds, or a quarter of n with -short. By default the first seed is 1. ATOLL_SCHEDULES
// sets n and makes the first seed random. ATOLL_SEED sets the first seed. The test logs the first seed.
func seeds(t *testing.T, n int) iter.Seq[uint64] {
	t.Helper()
	first := uint64(1)
	if given := os.Getenv("ATOLL_SCHEDULES"); given != "" {
		var err error
		n, err = strconv.Atoi(given)
		require.NoError(t, err)
		first = rand.Uint64() >> 1
	}
	if given := os.Getenv("ATOLL_SEED"); given != "" {
		var err error
		first, err = strconv.ParseUint(given, 10, 64)
		require.NoError(t, err)
	}
	if testing.Short() {
		n = max(1, n/4)
	}
	t.Logf("%d seeds from %d", n, first)
	return func(yield func(uint64) bool) {
		for i := range uint64(n) {
			if !yield(first + i) {
				return
			}
		}
	}
}

// TestModel runs a consumer of lists and watches during random schedules of writes and faults. Each event fits the
// objects that a consumer holds. In the end, these are the union of the regions' objects, apart from objects of
// regions that have left. In a gentle schedule, the consumer also receives each event once, in the order of its
// region.
func TestModel(t *testing.T) {
	for seed := range seeds(t, schedules) {
		for _, gentle := range []bool{true, false} {
			if !runSchedule(t, seed, gentle) {
				t.Fatalf("seed %d, gentle %t", seed, gentle)
			}
		}
	}
}

func runSchedule(t *testing.T, seed uint64, gentle bool) bool {
	return t.Run(fmt.Sprintf("gentle=%t/seed=%d", gentle, seed), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			newSchedule(t, seed, gentle).run()
		})
	})
}

// schedule is one run of the model.
type schedule struct {
	*world
	*journal
	t         *testing.T
	rng       *rand.Rand
	gentle    bool // the schedule has no faults after which events may be merged
	json      bool // the consumer lists and watches without decoding
	qualify   bool
	mu        sync.Mutex
	process   process // guarded by mu
	shares    bool    // several consumers share the watches of the regions
	withhold  bool
	room      int64 // SharingOptions.Bytes
	tokens    *aggregate.Keyring
	present   []region.Key
	cut       map[region.Key]bool
	saved     map[region.Key]regiontest.Saved
	history   map[region.Key][]string
	consumers []*consumer
}

// process is a process that serves the consumers. Its end ends their watches.
type process struct {
	ctx context.Context //nolint:containedctx // the life of the process
	api *aggregate.API
	end func()
}

// start starts the process, in place of the one before it.
func (s *schedule) start(ctx context.Context) {
	if before := s.serving(); before.end != nil {
		before.end()
	}
	opts := aggregate.Options{Withhold: s.withhold, Qualify: s.qualify, Observer: s.observer(), Keys: s.tokens}
	ctx, cancel := context.WithCancel(ctx)
	p := process{ctx: ctx, end: cancel}
	if s.shares {
		sharing, err := aggregate.NewSharing(aggregate.SharingOptions{Bytes: s.room})
		require.NoError(s.t, err)
		done := make(chan error)
		go func() { done <- sharing.Start(ctx) }()
		<-sharing.Started()
		opts.Sharing, opts.Identity = sharing, "user"
		p.end = func() {
			cancel()
			require.NoError(s.t, <-done)
		}
	}
	p.api = s.world.api(opts)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = p
}

// serving returns the present process.
func (s *schedule) serving() process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// reader returns a reader of the present process, and a context that ends with the process.
func (s *schedule) reader() (context.Context, reader) {
	p := s.serving()
	if s.json {
		return p.ctx, throughJSON{p.api.Reader("", configMaps)}
	}
	return p.ctx, p.api.Reader("", configMaps)
}

// List and Watch make the schedule a source for informers.
func (s *schedule) List(opts metav1.ListOptions) (runtime.Object, error) {
	ctx, reader := s.reader()
	list, err := reader.ListAll(ctx, opts)
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (s *schedule) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	ctx, reader := s.reader()
	return reader.WatchWithContext(ctx, opts)
}

func newSchedule(t *testing.T, seed uint64, gentle bool) *schedule {
	t.Helper()
	s := &schedule{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), gentle: gentle, world: newWorld(t, 4), journal: newJournal(t),
		cut: map[region.Key]bool{}, saved: map[region.Key]regiontest.Saved{}, history: map[region.Key][]string{},
		json: seed%2 == 1, shares: seed%4 == 1, tokens: aggregate.RandomKeyring(),
	}
	if s.shares && s.rng.IntN(4) == 0 {
		s.room = 2000 // a cache may have no room
	}
	s.present = slices.Clone(s.keys[:3])
	require.NoError(t, s.set.Put(s.members(s.present...)...))
	return s
}

func (s *schedule) run() {
	defer s.close()
	s.withhold = !s.gentle && s.rng.IntN(3) == 0
	ctx, cancel := context.WithCancel(s.t.Context())
	s.start(ctx)
	for range s.rng.IntN(6) {
		s.write(s.any(s.keys))
	}
	if s.gentle {
		clear(s.history) // the watch begins with the present objects
	}
	s.consumers = []*consumer{{streaming: s.rng.IntN(2) == 0, paged: s.gentle, resumes: !s.gentle && s.rng.IntN(3) == 0}}
	if s.shares {
		s.consumers = append(s.consumers, &consumer{streaming: true, resumes: true}, &consumer{paged: s.gentle, resumes: true}, &consumer{resumes: true})
	}
	var running sync.WaitGroup
	for i, c := range s.consumers {
		c.t, c.journal, c.schedule, c.rng, c.held = s.t, s.journal, s, rand.New(rand.NewPCG(s.rng.Uint64(), 2)), map[string]*unstructured.Unstructured{}
		if i > 0 {
			c.journal = newJournal(s.t)
		}
		running.Go(func() { c.run(ctx) })
	}
	if s.gentle {
		time.Sleep(time.Second)
		synctest.Wait()
		s.consumers[0].seen = nil
	}
	for range actions {
		s.act(ctx)
		if s.rng.IntN(3) == 0 {
			time.Sleep(time.Duration(s.rng.Int64N(int64(5 * time.Second))))
		}
	}
	for _, k := range s.keys {
		s.partition(k, false)
	}
	time.Sleep(15 * time.Minute)
	synctest.Wait()
	s.check()
	cancel()
	running.Wait()
	s.serving().end()
}

// check compares the consumer's objects with those of the regions. If the schedule is gentle, it also compares the
// events.
func (s *schedule) check() {
	want := map[string]string{}
	for _, k := range s.present {
		objects, err := s.servers[k].Objects(configMaps.GroupResource())
		require.NoError(s.t, err)
		for _, o := range objects {
			u := &unstructured.Unstructured{Object: o}
			want[k.String()+"/"+u.GetName()] = text(u)
		}
	}
	for i, c := range s.consumers {
		got := map[string]string{}
		for at, o := range c.held {
			if k, _ := aggregate.RegionOf(o); slices.Contains(s.present, k) { // Options.Withhold keeps the objects of regions that have left
				got[at] = text(o)
			}
		}
		require.Empty(s.t, cmp.Diff(want, got), "consumer %d", i)
	}
	if !s.gentle {
		return
	}
	for _, k := range s.keys {
		require.Empty(s.t, cmp.Diff(s.history[k], s.consumers[0].seen[k]), "every event of %s, once, in order", k)
	}
}

func text(o *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(o.Object, "data", "value")
	return string(o.GetUID()) + " " + value
}

func (s *schedule) any(keys []region.Key) region.Key { return keys[s.rng.IntN(len(keys))] }

func (s *schedule) act(ctx context.Context) {
	k := s.any(s.keys)
	server := s.servers[k]
	switch n := s.rng.IntN(25); {
	case n == 24:
		s.note("the process restarts")
		s.start(ctx)
	case n < 14:
		s.write(k)
	case n < 16:
		s.partition(k, true)
	case n < 18:
		s.partition(k, false)
	case n == 18:
		s.partition(k, true)
		s.partition(k, false)
	case n == 19:
		f := regiontest.Fault{Verb: []string{"list", "watch"}[s.rng.IntN(2)], Do: s.fault()}
		s.note("%s meets %s at the next %s", k, f.Do, f.Verb)
		server.Inject(f)
	case s.gentle:
	case n == 20:
		s.note("%s compacts", k)
		server.Compact()
	case n == 21:
		s.note("%s is saved", k)
		s.saved[k] = server.Save()
	case n == 22:
		if saved, ok := s.saved[k]; ok {
			s.note("%s is restored", k)
			require.NoError(s.t, server.Load(saved))
			for range s.rng.IntN(4) {
				s.write(k) // so that versions coincide before and after the restore
			}
		}
	default:
		switch i := slices.Index(s.present, k); {
		case i >= 0 && len(s.present) == 1:
			return // without any region, a list is impossible
		case i >= 0:
			s.present = slices.Delete(s.present, i, i+1)
		default:
			s.present = append(s.present, k)
		}
		s.note("regions are %v", s.present)
		require.NoError(s.t, s.set.Put(s.members(s.present...)...))
	}
}

func (s *schedule) fault() regiontest.Action {
	return []regiontest.Action{
		regiontest.Refuse(503), regiontest.Refuse(401), regiontest.Refuse(403), regiontest.DropRequest(), regiontest.DropReply(),
		regiontest.Hang(), regiontest.Delay(3 * time.Second),
	}[s.rng.IntN(7)]
}

// write changes an object of k. If k is partitioned, it lifts the partition for the duration of the write.
func (s *schedule) write(k region.Key) {
	name := fmt.Sprintf("o%d", s.rng.IntN(6))
	was, err := s.servers[k].Objects(configMaps.GroupResource())
	require.NoError(s.t, err)
	exists := slices.ContainsFunc(was, func(o map[string]any) bool { return (&unstructured.Unstructured{Object: o}).GetName() == name })
	s.servers[k].Partition(false)
	defer func() { s.servers[k].Partition(s.cut[k]) }()
	var written *unstructured.Unstructured
	client, kind := s.clients[k].Resource(configMaps).Namespace("default"), watch.Modified
	value := s.value()
	switch {
	case !exists:
		kind = watch.Added
		written, err = client.Create(s.t.Context(), configMap(name, value), metav1.CreateOptions{})
	case s.rng.IntN(3) == 0:
		kind = watch.Deleted
		err = client.Delete(s.t.Context(), name, metav1.DeleteOptions{})
	default:
		written, err = client.Update(s.t.Context(), configMap(name, value), metav1.UpdateOptions{})
	}
	require.NoError(s.t, err)
	if written != nil {
		s.note("%s at %s: %s %s %s", k, written.GetResourceVersion(), kind, name, text(written))
	} else {
		s.note("%s: %s %s", k, kind, name)
	}
	if slices.Contains(s.present, k) {
		s.history[k] = append(s.history[k], string(kind)+" "+name)
	}
}

func (s *schedule) partition(k region.Key, cut bool) {
	s.note("%s is cut off: %t", k, cut)
	s.cut[k] = cut
	s.servers[k].Partition(cut)
}

func (s *schedule) value() string { return fmt.Sprint(s.rng.Uint32()) }

// consumer holds the objects that its lists and watches return, and fails on any inconsistent event.
type consumer struct {
	*journal
	t         *testing.T
	schedule  *schedule
	rng       *rand.Rand
	streaming bool // requests initial events instead of a list
	paged     bool // lists in pages, so that the version has no stamp
	resumes   bool // ends each watch after some time
	held      map[string]*unstructured.Unstructured
	seen      map[region.Key][]string
	rv        string
}

func (c *consumer) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := c.follow()
		c.note("        the watch ended: %v", err)
		if err != nil && ctx.Err() == nil {
			c.rv = ""
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// follow watches until the watch ends. If the consumer has no version yet, follow lists first, or requests initial
// events.
func (c *consumer) follow() error {
	ctx, reader := c.schedule.reader()
	opts := metav1.ListOptions{AllowWatchBookmarks: true, LabelSelector: "app=test"}
	initial := false
	switch {
	case c.rv != "":
		opts.ResourceVersion = c.rv
	case c.streaming:
		opts.SendInitialEvents, opts.ResourceVersionMatch = new(true), metav1.ResourceVersionMatchNotOlderThan
		clear(c.held)
		initial = true
	default:
		if err := c.list(ctx, reader); err != nil {
			return err
		}
		opts.ResourceVersion = c.rv
	}
	if c.resumes {
		opts.TimeoutSeconds = new(1 + c.rng.Int64N(20))
	}
	w, err := reader.WatchWithContext(ctx, opts)
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			return apierrors.FromObject(e.Object)
		}
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			c.t.Errorf("event with a %T", e.Object)
			return nil
		}
		if e.Type == watch.Bookmark {
			if o.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "" {
				initial = false
			}
		} else {
			c.take(e.Type, o)
		}
		if !initial {
			c.rv = o.GetResourceVersion() // before the end of the initial events, the state is incomplete
		}
	}
	return nil
}

func (c *consumer) list(ctx context.Context, reader reader) error {
	opts := metav1.ListOptions{LabelSelector: "app=test"}
	if c.paged {
		opts.Limit = int64(1 + c.rng.IntN(4))
	}
	items := map[string]*unstructured.Unstructured{}
	for rv := ""; ; {
		list, err := reader.ListAll(ctx, opts)
		if err != nil {
			return err
		}
		for i := range list.Items {
			at := id(&list.Items[i])
			if items[at] != nil {
				c.t.Errorf("list has %s twice", at)
			}
			items[at] = &list.Items[i]
		}
		if rv == "" {
			rv = list.GetResourceVersion()
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			for _, o := range items {
				c.event("listed", o)
			}
			c.held, c.rv = items, rv
			return nil
		}
	}
}

// take applies an event to the held state, and fails if the event does not follow from that state.
func (c *consumer) take(kind watch.EventType, o *unstructured.Unstructured) {
	c.event(kind, o)
	at := id(o)
	before, held := c.held[at], c.held[at] != nil
	switch kind {
	case watch.Added:
		if held {
			c.t.Errorf("%s is ADDED twice", at)
		}
	case watch.Modified:
		if !held || before.GetUID() != o.GetUID() {
			c.t.Errorf("%s is MODIFIED and was not there", at)
		} else if before.GetResourceVersion() == o.GetResourceVersion() {
			c.t.Errorf("%s is MODIFIED to the same", at)
		}
	case watch.Deleted:
		if !held || before.GetUID() != o.GetUID() {
			c.t.Errorf("%s is DELETED and was not there", at)
		}
	}
	if kind == watch.Deleted {
		delete(c.held, at)
	} else {
		c.held[at] = o
	}
	k, ok := aggregate.RegionOf(o)
	if !ok {
		c.t.Errorf("%s has no region", o.GetName())
	}
	if c.seen == nil {
		c.seen = map[region.Key][]string{}
	}
	c.seen[k] = append(c.seen[k], string(kind)+" "+strings.TrimSpace(o.GetName()))
}
