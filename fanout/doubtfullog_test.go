// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// TestLogInDoubtBeforeTheCommit lets the log fail, with an unknown result, when it is to store that
// a commit may be sent. An update or a removal is then in doubt and not aborted, since recovery
// sends the commit if the log stored this. An add is aborted, since recovery never commits an add.
func TestLogInDoubtBeforeTheCommit(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(c *fanout.Coordinator, acme string) (*fanout.Operation, error){
		"update": func(c *fanout.Coordinator, acme string) (*fanout.Operation, error) {
			return c.Update(t.Context(), newAccount(acme, "Provider"), fanout.AddOptions{})
		},
		"remove": func(c *fanout.Coordinator, acme string) (*fanout.Operation, error) {
			return c.Remove(t.Context(), accounts, key("", acme), fanout.RemoveOptions{})
		},
		"add": func(c *fanout.Coordinator, acme string) (*fanout.Operation, error) {
			return c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		},
	} {
		for _, applied := range []bool{true, false} {
			r, log := newRing(t), waltest.NewMemory()
			acme := addAccount(t, coordinator(t, r, log, fanout.Options{}))
			c := coordinator(t, r, log, fanout.Options{Observer: &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
				if e.Verb == "advance" && !e.Done {
					log.FailNext(applied, errors.New("disk on fire"))
				}
			}}})
			op, err := run(c, acme)
			_, inDoubt := errors.AsType[*fanout.InDoubtError](err)
			require.Equal(t, name != "add", inDoubt, "%s: %v", name, err)
			if inDoubt {
				require.ErrorIs(t, err, wal.ErrInDoubt)
				require.Equal(t, fanout.InDoubt, op.State)
			} else {
				require.ErrorIs(t, err, fanout.ErrAborted)
			}
			again := coordinator(t, r, log.Reopen(), fanout.Options{})
			_, err = again.Recover(t.Context())
			require.NoError(t, err)
			settled, err := again.Outcome(t.Context(), op.ID)
			switch {
			case name == "add", !applied:
				require.True(t, errors.Is(err, fanout.ErrAborted) || errors.Is(err, fanout.ErrEnded), "%s: %v", name, err)
			default:
				require.NoError(t, err)
				require.Equal(t, fanout.Done, settled.State, name)
			}
			requireClean(t, again)
		}
	}
}
