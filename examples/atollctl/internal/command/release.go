// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
)

func (s *session) releaseAccount() *cobra.Command {
	return &cobra.Command{
		Use:   "release NAME...",
		Short: "Let the removal of deleted Accounts go on that is held",
		Long: `Let the removal of Accounts go on that is held. An Account that was deleted with
kubectl in the peer that decides about it, or with its type there, stays in force in
all peers while something lives in it, while a peer cannot say whether something does,
and if too many were deleted at once. A release takes every replica, whatever lives in
the Account; the Account's namespaces stay until that is gone. "account list" and
"audit" show what is held and why.

To undo a deletion instead, make another peer decide: "account move NAME --to PEER".`,
		Args: cobra.MinimumNArgs(1),
		RunE: s.run(func(ctx context.Context, names []string) error {
			for _, name := range names {
				if err := checkAccountName(name); err != nil {
					return err
				}
			}
			return s.release(ctx, account.Kind(), "", names)
		}),
	}
}

func (s *session) releaseServiceCluster() *cobra.Command {
	var namespace string
	c := &cobra.Command{
		Use:   "release NAME... -n ACCOUNT",
		Short: "Give the names of lost ServiceClusters up",
		Long: `Give the names of ServiceClusters up that are lost: they were committed in a peer which
does not hold them any more, since it was restored from an older state or somebody took
our finalizer away. Their guards in the other peers hold the names until then. "audit"
shows what is lost.`,
		Args: cobra.MinimumNArgs(1),
		RunE: s.run(func(ctx context.Context, names []string) error {
			if namespace == "" {
				return badInput("use -n ACCOUNT", "no account is given")
			}
			for _, name := range names {
				if err := checkKey(namespace, name); err != nil {
					return err
				}
			}
			return s.release(ctx, fanout.ServiceClusters(), namespace, names)
		}),
	}
	accountFlag(c, &namespace)
	return c
}

func (s *session) release(ctx context.Context, kind fanout.Kind, namespace string, names []string) error {
	gk := kind.GroupKind()
	return s.coordinate(ctx, func(c *fanout.Coordinator) error {
		var errs []error
		for _, name := range names {
			key := types.NamespacedName{Namespace: namespace, Name: name}
			held, err := c.ReleaseRemoval(ctx, gk, key, "")
			if err != nil {
				errs = append(errs, err)
				continue
			}
			fmt.Fprintf(s.out, "%s released: %s\n", name, holdText(held))
			if err := c.SweepObject(ctx, gk, key); err != nil {
				// It is released: whoever sweeps next goes on.
				s.warn("%v", err)
			}
		}
		return errors.Join(errs...)
	})
}

// holdText says why the removal of an object is held.
func holdText(held fanout.Hold) string {
	switch {
	case held.Released:
		return "released before, its removal goes on with the next sweep"
	case held.Reason == "":
		return "not judged yet, a sweep does that"
	default:
		return fmt.Sprintf("held (%s): %s", held.Reason, held.Message)
	}
}
