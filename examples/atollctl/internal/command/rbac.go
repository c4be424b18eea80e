// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/internal/rights"
)

func (s *session) rbac() *cobra.Command {
	var install, central bool
	var name string
	c := &cobra.Command{
		Use:   "rbac",
		Short: "Print the least ClusterRole that each peer must grant",
		Long: `Print the least ClusterRole that each peer must grant to the user of its
kubeconfig. It suffices for all commands but install-crds, whose own rights are
printed with --install; what the central plane of --log must grant is printed
with --central. Apply it as it is in each peer, and bind it:

  ` + s.program + ` rbac | kubectl apply -f -
  kubectl create clusterrolebinding atoll --clusterrole=atoll --user=USER`,
		Args: cobra.NoArgs,
		RunE: s.run(func(context.Context, []string) error {
			role := rights.Coordinate()
			switch {
			case install && central:
				return badInput("print them one after the other", "--install and --central are two roles")
			case install:
				role = rights.Install()
			case central:
				role = rights.CoordinateCentral()
			}
			if name != "" {
				role.Name = name
			}
			return s.printRole(role)
		}),
	}
	c.Flags().BoolVar(&install, "install", false, "print what install-crds needs")
	c.Flags().BoolVar(&central, "central", false, "print what --log needs in the central plane")
	c.Flags().StringVar(&name, "name", "", "`name` of the ClusterRole (default atoll, atoll-install or atoll-central)")
	return c
}

// printRole prints YAML unless another format for programs was asked for.
func (s *session) printRole(role *rbacv1.ClusterRole) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(role)
	if err != nil {
		return err
	}
	obj := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(obj.Object, "metadata", "creationTimestamp")
	if s.output == formatTable {
		s.output = formatYAML
	}
	return s.print(listing{items: []item{{object: obj}}, single: true})
}
