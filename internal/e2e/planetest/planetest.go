// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package planetest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
)

// startTimeout limits the start of planes. It includes the first build of the
// programs, which takes minutes.
const startTimeout = 30 * time.Minute

// SkipShort skips a test that needs real API servers if -short is set. New, NewAll, Shared and
// SharedPods call it.
func SkipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: real API servers are not started")
	}
}

// New starts a plane for the test, and stops it when the test and its subtests have ended.
func New(t testing.TB, options plane.Options) *plane.Plane {
	t.Helper()
	return NewAll(t, options)[0]
}

// NewAll starts one plane for each of the options, concurrently, and stops them when the test and
// its subtests have ended.
func NewAll(t testing.TB, options ...plane.Options) []*plane.Plane {
	t.Helper()
	SkipShort(t)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	planes, err := plane.StartAll(ctx, options...)
	if err != nil {
		t.Fatalf("starting control planes: %v", err)
	}
	for _, p := range planes {
		t.Cleanup(func() {
			reportFailure(t, p)
			if err := p.Stop(context.WithoutCancel(t.Context())); err != nil {
				t.Errorf("stopping control planes: %v", err)
			}
		})
	}
	return planes
}

// reportFailure logs the directory of the logs of a plane if the test failed, and keeps the
// directory.
func reportFailure(t testing.TB, p *plane.Plane) {
	t.Helper()
	if t.Failed() {
		p.Keep()
		t.Logf("logs of %s: %s", p.Name(), p.Logs())
	}
}

// Namespace creates a namespace with a unique name in each of the planes, and returns the name. It
// does not delete the namespace: the planes are short-lived, and without controllers a deleted namespace stays
// Terminating.
func Namespace(t testing.TB, planes ...*plane.Plane) string {
	t.Helper()
	name := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, t.Name()), "-")
	name = strings.TrimRight(name[:min(len(name), 40)], "-") + "-" + rand.String(5)
	for _, p := range planes {
		Apply(t, p, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name))
	}
	return name
}

// Apply applies manifests, see [plane.Plane.Apply].
func Apply(t testing.TB, p *plane.Plane, manifests string) {
	t.Helper()
	if err := p.Apply(t.Context(), []byte(manifests)); err != nil {
		t.Fatal(err)
	}
}

// Eventually calls probe until it returns nil, and fails the test with probe's
// last error if that takes longer than timeout. A probe that is in flight when
// the time is up is cancelled through its context.
func Eventually(t testing.TB, timeout time.Duration, what string, probe func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := probe(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, timeout, err)
		case <-ticker.C:
		}
	}
}

// Dynamic returns a client for a configuration, such as [plane.Plane.Config]'s.
func Dynamic(t testing.TB, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// WriteKubeconfig writes a kubeconfig into a file of the test's temporary
// directory, for programs that take a path, and returns the path.
func WriteKubeconfig(t testing.TB, name string, kubeconfig []byte) string {
	t.Helper()
	path := t.TempDir() + "/" + name + ".kubeconfig"
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
