// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

func (s *session) serviceCluster() *cobra.Command {
	c := &cobra.Command{
		Use:     "servicecluster",
		Aliases: []string{"serviceclusters", "sc"},
		Short:   "Add, adopt, remove, release and list ServiceClusters, whose names are unique over all peers",
	}
	c.AddCommand(s.addServiceCluster(), s.adopt(fanout.ServiceClusters()), s.removeServiceCluster(), s.releaseServiceCluster(), s.listObjects(fanout.ServiceClusters()))
	return c
}

func (s *session) addServiceCluster() *cobra.Command {
	var opts change
	var namespace, target, file, dryRun string
	c := &cobra.Command{
		Use:   "add NAME -n ACCOUNT --target PEER -f FILE",
		Short: "Add a ServiceCluster in one peer and guard its name in the others",
		Args:  oneArg,
		RunE: s.run(func(ctx context.Context, args []string) error {
			kind := fanout.ServiceClusters()
			obj, err := s.readObject(file, kind)
			if err != nil {
				return err
			}
			if err := settle("name", args[0], obj.GetName(), obj.SetName); err != nil {
				return err
			}
			if err := settle("account", namespace, obj.GetNamespace(), obj.SetNamespace); err != nil {
				return err
			}
			if err := checkKey(obj.GetNamespace(), obj.GetName()); err != nil {
				return err
			}
			mode, err := opts.mode(addModes...)
			if err != nil {
				return err
			}
			if target == "" {
				return badInput("use --target PEER", "no target is given")
			}
			about := subject{kind, types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
			add := fanout.AddOptions{Target: region.PeerName(target), IdempotencyKey: opts.key, Unreachable: mode, Durable: true}
			dry, err := rehearsed(dryRun)
			if err != nil {
				return err
			}
			if dry {
				return s.plan(ctx, about, obj, add)
			}
			return s.change(ctx, "--target", target, func(c *fanout.Coordinator) error {
				op, err := c.Add(ctx, obj, add)
				if err != nil {
					return err
				}
				return s.printOperation(about, op)
			})
		}),
	}
	opts.flags(c, addModes...)
	accountFlag(c, &namespace)
	dryRunFlag(c, &dryRun)
	s.peerFlag(c, &target, "target", "`peer` in which to create the ServiceCluster")
	fileFlag(c, &file)
	return c
}

func (s *session) removeServiceCluster() *cobra.Command {
	var opts removal
	var namespace string
	c := &cobra.Command{
		Use:   "remove NAME -n ACCOUNT",
		Short: "Remove a ServiceCluster and its guards from all peers",
		Args:  oneArg,
		RunE: s.run(func(ctx context.Context, args []string) error {
			if namespace == "" {
				return badInput("use -n ACCOUNT", "no account is given")
			}
			if err := checkKey(namespace, args[0]); err != nil {
				return err
			}
			return s.remove(ctx, opts, subject{fanout.ServiceClusters(), types.NamespacedName{Namespace: namespace, Name: args[0]}})
		}),
	}
	opts.flags(c)
	accountFlag(c, &namespace)
	return c
}

func checkKey(namespace, name string) error {
	if err := checkAccountName(namespace); err != nil {
		return err
	}
	return checkObjectName(name)
}

func accountFlag(c *cobra.Command, namespace *string) {
	c.Flags().StringVarP(namespace, "namespace", "n", "", "`account` that the ServiceCluster belongs to, which is its namespace")
}

func fileFlag(c *cobra.Command, file *string) {
	c.Flags().StringVarP(file, "filename", "f", "", "`file` with the object, - for standard input")
}

// peerFlag adds a flag whose value is the name of a peer, with shell completion of the name.
func (s *session) peerFlag(c *cobra.Command, peer *string, flag, usage string) {
	c.Flags().StringVar(peer, flag, "", usage)
	_ = c.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return s.peerNames(), cobra.ShellCompDirectiveNoFileComp
	})
}
