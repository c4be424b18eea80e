// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// TestAJoinThatIsResumedLeavesNoDeadGuard removes an object when a join is about to create the
// object's guard in the joining peer, and kills the join after that create. The process that
// resumes the join deletes the guard.
func TestAJoinThatIsResumedLeavesNoDeadGuard(t *testing.T) {
	for _, logged := range []bool{false, true} {
		r := servers(t, "eu-west", "us-east")
		two := of(t, r, "eu-west", "us-east")
		acme := addAccount(t, two)
		_, err := two.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)

		configured := []region.PeerName{"ap-south", "eu-west", "us-east"}
		var once sync.Once
		made, release, log := make(chan struct{}), make(chan struct{}), waltest.NewMemory()
		doomed := coordinator(t, some(t, r, configured...), log, fanout.Options{Cleanup: time.Millisecond, Observer: &fanout.Observer{
			Step: func(_ context.Context, e fanout.StepEvent) {
				if e.Verb != "create" || e.Peer != "ap-south" || e.Kind.Kind != "ServiceCluster" {
					return
				}
				if e.Done {
					close(made)
					<-release
				}
				once.Do(func() {
					_, err := of(t, r, configured...).Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
					require.NoError(t, err)
				})
			},
		}})
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan error, 1)
		go func() {
			_, err := doomed.Join(ctx, "ap-south")
			returned <- err
		}()
		<-made
		next := waltest.NewMemory()
		if logged {
			next = log.Reopen()
		}
		three := coordinator(t, some(t, r, configured...), next, fanout.Options{})
		_, err = three.Recover(t.Context())
		require.NoError(t, err)
		change, err := three.Join(t.Context(), "ap-south")
		require.NoError(t, err)
		require.Equal(t, fanout.Done, change.State)
		requireClean(t, three)

		heal := cutOff(r)
		cancel()
		close(release)
		require.Error(t, <-returned)
		heal()
	}
}
