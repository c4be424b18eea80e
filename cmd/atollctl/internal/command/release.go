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
		Short: "Release the held removals of deleted Accounts",
		Long: `Release the held removals of Accounts. If an Account is deleted with kubectl in the
peer that decides about it, or with its type there, its removal is held in each of these
cases: objects exist in it, a peer cannot report whether objects exist in it, or too many
Accounts were deleted at once. The Account then stays in effect in all peers. A release
deletes every replica, also of an Account with objects; its namespaces stay until those
are gone. "account list" and "audit" show which removals are held, and why.

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
		Short: "Release the names of lost ServiceClusters",
		Long: `Release the names of lost ServiceClusters: they were committed in a peer that no longer
has them, because it was restored from an older state or our finalizer was removed. Until
their release, the guards in the other peers hold the names. "audit" lists the lost
ServiceClusters.`,
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
				// The removal stays released; the next sweep continues it.
				s.warn("%v", err)
			}
		}
		return errors.Join(errs...)
	})
}

// holdText describes the state of a held removal: released, not judged yet, or held for a reason.
func holdText(held fanout.Hold) string {
	switch {
	case held.Released:
		return "released before; the next sweep continues its removal"
	case held.Reason == "":
		return "not judged yet; a sweep does that"
	default:
		return fmt.Sprintf("held (%s): %s", held.Reason, held.Message)
	}
}
