// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance_test runs the conformance tests of the in-memory API server against a real
// kube-apiserver.
package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region/regiontest/conformance"
)

func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }

func TestRealServer(t *testing.T) {
	p := planetest.New(t, plane.Options{})
	conformance.Run(t, p.Config(), conformance.Real)
}

// TestRealServerCompaction has a plane of its own, whose API server compacts etcd every second.
func TestRealServerCompaction(t *testing.T) {
	p := planetest.New(t, plane.Options{Name: "compacting", APIServerFlags: []string{"--etcd-compaction-interval=1s"}})
	client, err := dynamic.NewForConfig(p.Config())
	require.NoError(t, err)
	namespaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	conformance.RunCompactions(t, p.Config(), conformance.Real, func(ctx context.Context) error {
		first, err := namespaces.List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		planetest.Eventually(t, time.Minute, "the present is compacted", func(ctx context.Context) error {
			_, err := namespaces.List(ctx, metav1.ListOptions{Limit: 1, Continue: first.GetContinue()})
			if apierrors.IsResourceExpired(err) {
				return nil
			}
			return fmt.Errorf("a list that began before can still go on, or failed otherwise: %w", errors.Join(err, errNotYet))
		})
		return nil
	})
}

var errNotYet = errors.New("not compacted yet")
