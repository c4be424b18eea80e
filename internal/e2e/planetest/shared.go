// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package planetest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
)

// pool holds the planes of one kind that the tests of one package share.
type pool struct {
	mu      sync.Mutex
	open    bool // true between the beginning and the end of Run
	options plane.Options
	planes  []*plane.Plane
}

// The pools outlive any one test, hence these two globals; Run owns them.
var (
	bare = &pool{}
	pods = &pool{options: plane.Options{Pods: true}}
)

// Run runs the tests of a package, stops their shared planes, and returns the exit code for
// os.Exit.
func Run(m *testing.M) int {
	pools := []*pool{bare, pods}
	for _, p := range pools {
		p.setOpen(true)
	}
	code := m.Run()
	for _, p := range pools {
		p.setOpen(false)
		if err := p.stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "stopping shared control planes:", err)
			code = max(code, 1)
		}
	}
	return code
}

// Shared returns n planes without controllers that all tests of the package share: eu-west,
// us-east, ap-south, peer-4 and so on. The first test that needs a plane starts it.
func Shared(t testing.TB, n int) []*plane.Plane {
	t.Helper()
	return bare.get(t, n)
}

// SharedPods is like [Shared], for planes with controllers, a node, and running pods. Shared never
// returns these planes.
func SharedPods(t testing.TB, n int) []*plane.Plane {
	t.Helper()
	return pods.get(t, n)
}

func (p *pool) get(t testing.TB, n int) []*plane.Plane {
	t.Helper()
	SkipShort(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open {
		t.Fatal("shared control planes need TestMain: func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }")
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	var missing []plane.Options
	for _, name := range plane.Names(n)[min(n, len(p.planes)):] {
		o := p.options
		o.Name = name
		missing = append(missing, o)
	}
	started, err := plane.StartAll(ctx, missing...)
	if err != nil {
		t.Fatalf("starting shared control planes: %v", err)
	}
	p.planes = append(p.planes, started...)
	planes := append([]*plane.Plane(nil), p.planes[:n]...)
	t.Cleanup(func() {
		for _, plane := range planes {
			reportFailure(t, plane)
		}
	})
	return planes
}

func (p *pool) setOpen(open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = open
}

func (p *pool) stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	planes := p.planes
	p.planes = nil
	return plane.StopAll(ctx, planes...)
}
