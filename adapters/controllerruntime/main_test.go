// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	// After a shutdown, the queue of controller-runtime v0.24.1 may wait forever to give an item to a worker that has ended.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue.(*priorityqueue[...]).handleReadyItems"))
}

// start runs the Clusters until the test ends.
func start(t *testing.T, c *Clusters) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

// eventually requires that check succeeds within a minute.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	require.NoError(t, err)
}

// engaged requires that the peer has a cluster.
func engaged(t *testing.T, c *Clusters, peer region.PeerName) {
	t.Helper()
	eventually(t, func() error {
		_, err := c.Get(peer)
		return err
	})
}

// names returns the names of the ConfigMaps that a reader lists.
func names(t *testing.T, r client.Reader, opts ...client.ListOption) []string {
	t.Helper()
	var list corev1.ConfigMapList
	require.NoError(t, r.List(t.Context(), &list, append(opts, client.InNamespace("default"))...))
	var all []string
	for _, o := range list.Items {
		all = append(all, o.Name)
	}
	slices.Sort(all)
	return all
}

// want returns an error unless the reader lists the ConfigMaps of these names.
func want(t *testing.T, r client.Reader, expected ...string) func() error {
	t.Helper()
	return func() error {
		if got := names(t, r); !slices.Equal(expected, got) {
			return fmt.Errorf("it lists %v, want %v", got, expected)
		}
		return nil
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"of": strings.Split(name, "@")[0]}}}
}

// count returns how many requests with the verb for ConfigMaps the server has received.
func count(s *regiontest.Server, verb string) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Verb == verb && r.Resource == "configmaps" {
			n++
		}
	}
	return n
}
