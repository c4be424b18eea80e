// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

func (s *session) adopt(kind fanout.Kind) *cobra.Command {
	var namespace, peer string
	use := "adopt NAME --peer PEER"
	if kind.Namespaced {
		use = "adopt NAME -n ACCOUNT --peer PEER"
	}
	c := &cobra.Command{
		Use:   use,
		Short: fmt.Sprintf("Adopt a %s that was applied in one peer, without changing it", kind.Kind),
		Long: fmt.Sprintf(`Adopt a %s that a person or a tool applied in one peer. atollctl guards its name in
all other peers, then writes its claim, which puts it into effect. Its content and the
owners of its fields do not change. The adoption is refused, and the object stays
unchanged, if another object has the name; if two peers each have one, delete one of
them first. The command may be repeated.`, kind.Kind),
		Args: oneArg,
		RunE: s.run(func(ctx context.Context, args []string) error {
			about := subject{kind, types.NamespacedName{Namespace: namespace, Name: args[0]}}
			if err := checkSubject(about); err != nil {
				return err
			}
			if peer == "" {
				return badInput("use --peer PEER", "no peer with the object is given")
			}
			return s.change(ctx, "--peer", peer, func(c *fanout.Coordinator) error {
				op, err := c.Adopt(ctx, region.PeerName(peer), kind.GroupKind(), about.key)
				if err != nil {
					return err
				}
				return s.printOperation(about, op)
			})
		}),
	}
	if kind.Namespaced {
		accountFlag(c, &namespace)
	}
	s.peerFlag(c, &peer, "peer", "`peer` that has the object")
	return c
}

// checkSubject returns an error if no object of the kind can have the name and namespace of about.
func checkSubject(about subject) error {
	switch {
	case !about.kind.Namespaced:
		return checkAccountName(about.key.Name)
	case about.key.Namespace == "":
		return badInput("use -n ACCOUNT", "no account is given")
	}
	return checkKey(about.key.Namespace, about.key.Name)
}

// adoptLine returns the arguments with which atollctl adopts the object in peer.
func adoptLine(about subject, peer region.PeerName) string {
	line := strings.ToLower(about.kind.Kind) + " adopt " + about.key.Name
	if about.kind.Namespaced {
		line += " -n " + about.key.Namespace
	}
	return line + " --peer " + string(peer)
}
