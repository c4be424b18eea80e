// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// secretKind describes a type of another project: a Secret that is generated once and the same
// in every peer.
func secretKind() fanout.Kind {
	return fanout.Kind{
		Resource:   schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
		Kind:       "Secret",
		Namespaced: true,
		Mode:       fanout.Everywhere,
		Claim:      fanout.InAnnotation("example.com/claim"),
		Inert: func(obj *unstructured.Unstructured) error {
			delete(obj.Object, "data")
			delete(obj.Object, "stringData")
			return nil
		},
	}
}

func newSecret(name, password string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Secret",
		"metadata":   map[string]any{"namespace": "default", "name": name},
		"data":       map[string]any{"password": base64.StdEncoding.EncodeToString([]byte(password))},
	}}
}

// The first coordinator decides the content, and every coordinator gets that content.
func TestAgreeOnASecret(t *testing.T) {
	r := newRing(t)
	name := unique("ca")
	const coordinators = 4
	passwords := make([]string, coordinators)
	var wg sync.WaitGroup
	for i := range coordinators {
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{fanout.Secrets()}, LeaseTimeout: 5 * time.Second})
		wg.Go(func() {
			// The coordinators begin at different peers.
			opts := fanout.AddOptions{Target: peers[i%len(peers)]}
			agreed, err := c.Agree(t.Context(), newSecret(name, fmt.Sprintf("password-%d", i)), opts)
			if err == nil {
				data, _, _ := unstructured.NestedString(agreed.Object, "data", "password")
				passwords[i] = data
			} else {
				passwords[i] = err.Error()
			}
		})
	}
	wg.Wait()
	for _, password := range passwords {
		require.Equal(t, passwords[0], password)
	}
	decoded, err := base64.StdEncoding.DecodeString(passwords[0])
	require.NoError(t, err)
	require.Regexp(t, `^password-\d$`, string(decoded))
	for _, peer := range peers {
		conn, err := r.Conn(peer)
		require.NoError(t, err)
		obj, err := conn.Dynamic().Resource(fanout.Secrets().Resource).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		data, _, _ := unstructured.NestedString(obj.Object, "data", "password")
		require.Equal(t, passwords[0], data, peer)
	}
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{fanout.Secrets()}})
	requireClean(t, c)

	op, err := c.Update(t.Context(), newSecret(name, "rotated"), fanout.AddOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, op.Revision)
	op, err = c.Remove(t.Context(), fanout.Secrets().GroupKind(), key("default", name), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
	requireClean(t, c)
}

// A reservation of a Secret has no data that a program could use.
func TestAReservedSecretIsInert(t *testing.T) {
	r := newRing(t)
	name := unique("ca")
	var reserved []*unstructured.Unstructured
	var mu sync.Mutex
	look := func(peer region.PeerName) {
		conn, err := r.Conn(peer)
		if err != nil {
			return
		}
		obj, err := conn.Dynamic().Resource(fanout.Secrets().Resource).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			reserved = append(reserved, obj)
		}
	}
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{
		Kinds: []fanout.Kind{fanout.Secrets()},
		Observer: &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
			if e.Done && e.Verb == "create" {
				look(e.Peer)
			}
		}},
	})
	_, err := c.Add(t.Context(), newSecret(name, "secret"), fanout.AddOptions{Target: "eu-west"})
	require.NoError(t, err)
	require.Len(t, reserved, len(peers))
	for _, obj := range reserved {
		require.NotContains(t, obj.Object, "data")
	}
}

func TestNewChecksItsOptions(t *testing.T) {
	r := newRing(t)
	twice := []fanout.Kind{secretKind(), secretKind()}
	_, err := fanout.New(r, waltest.NewMemory(), fanout.Options{Kinds: twice})
	require.ErrorContains(t, err, "Options.Kinds[1]")
	_, err = fanout.New(r, waltest.NewMemory(), fanout.Options{LeaseTimeout: -1})
	require.ErrorContains(t, err, "LeaseTimeout")
	_, err = fanout.New(nil, waltest.NewMemory(), fanout.Options{})
	require.ErrorContains(t, err, "directory")
	_, err = fanout.New(r, nil, fanout.Options{})
	require.ErrorContains(t, err, "log")
}
