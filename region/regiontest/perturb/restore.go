// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"fmt"
	"net/http"

	"github.com/atoll-dev/atoll/region/regiontest"
)

func (r *run) backUp() map[string]regiontest.Saved {
	saved := map[string]regiontest.Saved{}
	for name, s := range r.servers {
		if s, ok := s.(Restorable); ok {
			saved[name] = s.Save()
		}
	}
	return saved
}

// stop ends all loops, and waits until all their requests are complete.
func (r *run) stop() {
	r.mu.Lock()
	for i := range r.running {
		i.end(errCrashed)
	}
	for r.flying > 0 {
		completed := r.landed
		r.mu.Unlock()
		<-completed
		r.mu.Lock()
	}
	r.mu.Unlock()
}

// sendTracked sends a request of an instance to a server, unless the instance has ended.
func (r *run) sendTracked(i *instance, next roundTripper, req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	if err := i.cause(); err != nil {
		r.mu.Unlock()
		closeBody(req)
		return nil, err
	}
	r.flying++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.flying--
		close(r.landed)
		r.landed = make(chan struct{})
	}()
	return next.RoundTrip(req)
}

// restore restores a server to the state before a step of the script. For a fault of the Kind
// Restore it first stops the loops. The users will repeat the script from that step on.
func (r *run) restore(f Fault) {
	if f.Kind == Restore {
		r.stop()
	}
	server, ok := r.servers[f.At.Server].(Restorable)
	if !ok {
		r.fail(fmt.Errorf("server %s cannot be restored", f.At.Server))
		return
	}
	r.mu.Lock()
	step := min(f.Step, len(r.backups)-1) // a disturbed run may reach this point before that step has begun
	r.mu.Unlock()
	if step < 0 {
		return
	}
	defer r.users.turns.take()()
	if err := server.Load(r.backups[step][f.At.Server]); err != nil {
		r.fail(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.redo < 0 || step < r.redo {
		r.redo = step
	}
}
