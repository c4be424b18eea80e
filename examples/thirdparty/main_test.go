// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/account"
	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/v1alpha1"
	"github.com/atoll-dev/atoll/wal"
)

// A tenant requests two names in one region. One name is free, the other is taken in another peer.
// The program writes both outcomes as the tenant.
func TestThirdparty(t *testing.T) {
	ring := regiontest.NewRing("eu", "us")
	defer ring.Close()
	crds, err := config.TypedCRDs()
	require.NoError(t, err)
	require.NoError(t, ring.AddCRDs(crds...))
	dir := t.TempDir()
	prepare(t, ring, filepath.Join(dir, "before.db"))

	peers := "peers:\n"
	for _, name := range []region.PeerName{"eu", "us"} {
		kubeconfig, err := ring.Server(name).Listen(t.Context())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, string(name)), kubeconfig, 0o600))
		peers += fmt.Sprintf("- {name: %s, kubeconfig: %s, regions: [%s-west-1.loodse]}\n", name, name, name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "peers.yaml"), []byte(peers), 0o600))

	eu, err := ring.Conn("eu")
	require.NoError(t, err)
	maps := eu.Dynamic().Resource(configMaps).Namespace("acme")
	for _, name := range []string{"db-1", "db-2", "other"} {
		wish := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
		if name != "other" {
			wish.SetLabels(map[string]string{"example.com/wants": "cluster"})
		}
		_, err := maps.Create(t.Context(), wish, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, filepath.Join(dir, "peers.yaml"), dir, "eu-west-1.loodse") }()
	outcome := func(name string) string {
		obj, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		said, _, _ := unstructured.NestedString(obj.Object, "data", "outcome")
		return said
	}
	require.Eventually(t, func() bool { return outcome("db-1") == "yours" && outcome("db-2") == "taken" }, 3*time.Minute, 10*time.Millisecond) // a failure is retried after a minute
	require.Empty(t, outcome("other"))
	cancel()
	require.NoError(t, <-ended)
	for _, r := range ring.Server("eu").Requests() {
		if r.Verb == "patch" && r.Resource == "configmaps" {
			require.Equal(t, "tenant-acme", r.User.Name)
		}
	}
}

// prepare makes the peers a ring, and adds the Account acme and its ServiceCluster db-2. The peer
// us has db-2.
func prepare(t *testing.T, ring *regiontest.Ring, path string) {
	t.Helper()
	journal, err := wal.Open(path, wal.Options{})
	require.NoError(t, err)
	defer journal.Close()
	ops, err := fanout.New(ring, journal, fanout.Options{Kinds: account.Kinds()})
	require.NoError(t, err)
	require.NoError(t, ops.InitPeers(t.Context()))
	acme := &accountv1alpha1.Account{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	acme.Spec.Roles = []accountv1alpha1.AccountRole{accountv1alpha1.AccountTenant}
	_, err = ops.Add(t.Context(), acme, fanout.AddOptions{})
	require.NoError(t, err)
	db := &v1alpha1.ServiceCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "db-2"}}
	db.Spec.KubeconfigSecret.Name = "db-2"
	_, err = ops.Add(t.Context(), db, fanout.AddOptions{Target: "us", Durable: true})
	require.NoError(t, err)
}

// The documentation promises a short program.
func TestItIsShort(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	require.Less(t, bytes.Count(source, []byte("\n")), 120)
	for line := range strings.Lines(string(source)) {
		require.LessOrEqual(t, len(line), 180)
	}
}
