// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Writes to an outdated version wait twice as long each time. Another version, or another object, is written at once.
func TestOutdated(t *testing.T) {
	object := func(uid types.UID, version string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetUID(uid)
		o.SetResourceVersion(version)
		return o
	}
	old, now := object("u", "1"), noon
	var o outdated
	require.Zero(t, o.wait(usEast1, old, now))
	for _, pause := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute} {
		require.Equal(t, pause, o.prove(usEast1, old, now))
		require.Equal(t, pause, o.wait(usEast1, old, now))
		require.Equal(t, time.Millisecond, o.wait(usEast1, old, now.Add(pause-time.Millisecond)))
		now = now.Add(pause)
		require.Zero(t, o.wait(usEast1, old, now))
	}
	for _, other := range []*unstructured.Unstructured{object("u", "2"), object("v", "1")} {
		o.prove(usEast1, old, now)
		require.Zero(t, o.wait(usEast1, other, now))
		require.Zero(t, o.wait(usEast1, old, now), "the cache went on")
		require.Equal(t, firstPause, o.prove(usEast1, old, now))
	}
	o.forget(usEast1)
	require.Zero(t, o.wait(usEast1, old, now))
}
