// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
)

// change runs f with a Coordinator that writes to the peers. First it checks that peer, the value
// of the flag, is a configured peer. An empty peer passes this check; the Coordinator then chooses
// a peer.
func (s *session) change(ctx context.Context, flag, peer string, f func(*fanout.Coordinator) error) error {
	if _, err := s.connect(ctx); err != nil {
		return err
	}
	if peer != "" {
		if err := s.peers.known(flag, peer); err != nil {
			return err
		}
	}
	return s.coordinate(ctx, f)
}

// removal holds the flags of commands that remove an object.
type removal struct {
	change
	uid            string
	ignoreNotFound bool
}

func (o *removal) flags(c *cobra.Command) {
	o.change.flags(c, removeModes...)
	c.Flags().StringVar(&o.uid, "uid", "", "remove it only if its primary has this `uid`")
	c.Flags().BoolVar(&o.ignoreNotFound, "ignore-not-found", false, "exit 0 if no peer holds it")
}

func (s *session) remove(ctx context.Context, opts removal, about subject) error {
	mode, err := opts.mode(removeModes...)
	if err != nil {
		return err
	}
	return s.coordinate(ctx, func(c *fanout.Coordinator) error {
		op, err := c.Remove(ctx, about.kind.GroupKind(), about.key, fanout.RemoveOptions{
			UID: types.UID(opts.uid), IdempotencyKey: opts.key, Unreachable: mode,
		})
		if opts.uid != "" && is(err, fanout.ErrNotFound) {
			err = fmt.Errorf("with UID %s: %w", opts.uid, err)
		}
		if opts.ignoreNotFound && is(err, fanout.ErrNotFound) {
			s.warn("%s %s: %v", about.kind.Kind, about.key.Name, err)
			return nil
		}
		if err != nil {
			return err
		}
		return s.printOperation(about, op)
	})
}
