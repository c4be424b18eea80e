// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

func (s *session) account() *cobra.Command {
	c := &cobra.Command{
		Use:     "account",
		Aliases: []string{"accounts", "acc"},
		Short:   "Add, update, adopt, move, remove, release, list and compare Accounts, which are the same in all peers",
	}
	c.AddCommand(
		s.writeAccount("add", "Add an Account in all peers", (*fanout.Coordinator).Add),
		s.writeAccount("update", "Replace an Account's content in all peers", (*fanout.Coordinator).Update),
		s.adopt(account.Kind()),
		s.moveAccount(),
		s.removeAccount(),
		s.releaseAccount(),
		s.listObjects(account.Kind()),
		s.compareAccount(),
	)
	return c
}

// write is the type of the Coordinator methods Add and Update.
type write func(*fanout.Coordinator, context.Context, fanout.Object, fanout.AddOptions) (*fanout.Operation, error)

func (s *session) writeAccount(verb, short string, do write) *cobra.Command {
	var opts change
	var target, file, dryRun string
	c := &cobra.Command{
		Use:   verb + " -f FILE",
		Short: short,
		Args:  cobra.NoArgs,
		RunE: s.run(func(ctx context.Context, _ []string) error {
			kind := account.Kind()
			obj, err := s.readAccount(file, kind)
			if err != nil {
				return err
			}
			mode, err := opts.mode(addModes...)
			if err != nil {
				return err
			}
			about := subject{kind, types.NamespacedName{Name: obj.GetName()}}
			add := fanout.AddOptions{Target: region.PeerName(target), IdempotencyKey: opts.key, Unreachable: mode}
			dry, err := rehearsed(dryRun)
			if err != nil {
				return err
			}
			if dry {
				return s.plan(ctx, about, obj, add)
			}
			return s.change(ctx, "--target", target, func(c *fanout.Coordinator) error {
				op, err := do(c, ctx, obj, add)
				if is(err, fanout.ErrNotFound) {
					return badInput(fmt.Sprintf("add it first: %q", s.program+" account add -f "+file), "%w", err)
				}
				if err != nil {
					return err
				}
				return s.printOperation(about, op)
			})
		}),
	}
	opts.flags(c, addModes...)
	if verb == "add" {
		dryRunFlag(c, &dryRun)
		s.peerFlag(c, &target, "target", "`peer` whose object decides (default: one is picked)")
	}
	fileFlag(c, &file)
	return c
}

func (s *session) readAccount(file string, kind fanout.Kind) (*unstructured.Unstructured, error) {
	obj, err := s.readObject(file, kind)
	if err != nil {
		return nil, err
	}
	if ns := obj.GetNamespace(); ns != "" {
		return nil, badInput("remove it", "%s: sets metadata.namespace, and an Account has none", file)
	}
	return obj, checkAccountName(obj.GetName())
}

func (s *session) moveAccount() *cobra.Command {
	var opts change
	var to string
	c := &cobra.Command{
		Use:   "move NAME --to PEER",
		Short: "Change which peer's object decides about an Account",
		Long: `Change which peer's object decides about an Account, because the present peer is to
leave the ring, or because another one is nearer. The Account's content does not change
in any peer. The present peer and the next one must be reachable; the others follow. An
interrupted move is finished by the next run, or by "audit --repair".`,
		Args: oneArg,
		RunE: s.run(func(ctx context.Context, args []string) error {
			if err := checkAccountName(args[0]); err != nil {
				return err
			}
			mode, err := opts.mode(addModes...)
			if err != nil {
				return err
			}
			if to == "" {
				return badInput("use --to PEER", "no peer to move to is given")
			}
			about := subject{account.Kind(), types.NamespacedName{Name: args[0]}}
			return s.change(ctx, "--to", to, func(c *fanout.Coordinator) error {
				op, err := c.Move(ctx, about.kind.GroupKind(), about.key, region.PeerName(to), fanout.MoveOptions{
					IdempotencyKey: opts.key, Unreachable: mode,
				})
				if err != nil {
					return err
				}
				return s.printOperation(about, op)
			})
		}),
	}
	opts.flags(c, addModes...)
	s.peerFlag(c, &to, "to", "`peer` whose object is to decide")
	return c
}

func (s *session) removeAccount() *cobra.Command {
	var opts removal
	c := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove an Account, which no ServiceCluster may use, from all peers",
		Args:  oneArg,
		RunE: s.run(func(ctx context.Context, args []string) error {
			if err := checkAccountName(args[0]); err != nil {
				return err
			}
			return s.remove(ctx, opts, subject{account.Kind(), types.NamespacedName{Name: args[0]}})
		}),
	}
	opts.flags(c)
	return c
}
