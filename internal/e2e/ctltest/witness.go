// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package ctltest

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// Witness continuously lists and watches the ServiceClusters of one namespace in all planes. It
// uses no code of the library.
type Witness struct {
	ring      *Ring
	namespace string
	cancel    context.CancelFunc
	running   sync.WaitGroup

	mu     sync.Mutex
	owners map[string]map[string]Object // by name, by UID: every owner observed so far
	absent map[string]int               // by plane: number of Doubts without a Believe
	turns  map[string]int               // by plane: number of Doubts and Believes
	twice  []string                     // one entry per proof that a name had two owners at once
	rounds int
	events int
}

// Witness starts a witness. Stop ends it.
func (r *Ring) Witness(ctx context.Context, namespace string) *Witness {
	ctx, cancel := context.WithCancel(ctx)
	w := &Witness{ring: r, namespace: namespace, cancel: cancel, owners: map[string]map[string]Object{}, absent: map[string]int{}, turns: map[string]int{}}
	w.running.Go(func() { w.read(ctx) })
	for _, p := range r.Planes {
		w.running.Go(func() { w.watch(ctx, p.Name()) })
	}
	return w
}

// Stop ends the witness and waits for it.
func (w *Witness) Stop() {
	w.cancel()
	w.running.Wait()
}

// Doubt makes the witness ignore a plane that is about to be restored from a backup: the plane will
// show owners of the time of the backup. Believe ends the doubt.
func (w *Witness) Doubt(plane string) { w.turn(plane, 1) }

// Believe ends one Doubt of the plane. The witness counts the plane again when each Doubt of the
// plane has ended.
func (w *Witness) Believe(plane string) { w.turn(plane, -1) }

func (w *Witness) turn(plane string, by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.absent[plane] += by
	w.turns[plane]++
}

// believed reports whether the witness counts a plane, and returns the number of Doubts and
// Believes of the plane so far.
func (w *Witness) believed(plane string) (bool, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.absent[plane] == 0, w.turns[plane]
}

// Twice returns the proofs that a name had two owners at one moment. The result may have several
// proofs for one name.
func (w *Witness) Twice() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.twice...)
}

// Owners returns every owner of a name that the witness has observed.
func (w *Witness) Owners(name string) []Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []Object
	for _, o := range w.owners[name] {
		all = append(all, o)
	}
	return all
}

// Seen returns the number of rounds, in each of which the witness tried to list every plane, and
// the number of watched events.
func (w *Witness) Seen() (rounds, events int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rounds, w.events
}

// read lists the planes in turn. If two consecutive lists of a plane show the same owner, that
// object owned the name during the whole time between the lists: a UID is used once and a commit is
// never undone. The latest list of each other plane was made between these two lists. So another
// owner in such a list proves that the name had two owners.
func (w *Witness) read(ctx context.Context) {
	latest := map[string]map[string]Object{} // by plane: result of its latest list
	for ctx.Err() == nil {
		for _, p := range w.ring.Planes {
			_, turn := w.believed(p.Name())
			attempt, cancel := context.WithTimeout(ctx, time.Second)
			objects, err := w.ring.Objects(attempt, p.Name(), ServiceClusters, w.namespace)
			cancel()
			if counts, now := w.believed(p.Name()); err != nil || !counts || now != turn {
				// The plane is down, frozen or restored: a comparison needs two consecutive lists.
				delete(latest, p.Name())
				continue
			}
			w.compare(p.Name(), latest[p.Name()], objects, latest)
			latest[p.Name()] = objects
		}
		w.mu.Lock()
		w.rounds++
		w.mu.Unlock()
		pause(ctx)
	}
}

// pause leaves processor time to the processes under test.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Millisecond):
	}
}

func (w *Witness) compare(plane string, before, now map[string]Object, latest map[string]map[string]Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, o := range now {
		if !o.Owner() {
			continue
		}
		w.note(o)
		if was := before[name]; was.UID != o.UID || !was.Owner() {
			continue
		}
		for other, objects := range latest {
			if rival := objects[name]; other != plane && rival.Owner() {
				w.twice = append(w.twice, fmt.Sprintf("%s and %s", o, rival))
			}
		}
	}
}

func (w *Witness) note(o Object) {
	if w.owners[o.Name] == nil {
		w.owners[o.Name] = map[string]Object{}
	}
	w.owners[o.Name][o.UID] = o
}

// watch observes each state that a watch of the plane delivers, also states between two lists. It
// misses the states between an error and the next watch.
func (w *Witness) watch(ctx context.Context, plane string) {
	client := w.ring.clients[plane].Resource(ServiceClusters).Namespace(w.namespace)
	version := ""
	for ; ctx.Err() == nil; pause(ctx) {
		if version == "" {
			list, err := client.List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			version = list.GetResourceVersion()
		}
		stream, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			version = ""
			continue
		}
		for event := range stream.ResultChan() {
			raw, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Error {
				version = ""
				break
			}
			version = raw.GetResourceVersion()
			w.mu.Lock()
			w.events++
			if o := objectOf(plane, raw); o.Owner() && w.absent[plane] == 0 {
				w.note(o)
			}
			w.mu.Unlock()
		}
		stream.Stop()
	}
}
