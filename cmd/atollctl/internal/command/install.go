// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
)

func (s *session) installCRDs() *cobra.Command {
	var opts config.InstallOptions
	c := &cobra.Command{
		Use:   "install-crds",
		Short: "Install or update the types of Atoll in all peers",
		Long: `Install or update the types of Atoll in all peers, and wait until they are served.
A type of the same name that other software installed is left alone, and named
with the difference; --override replaces it.`,
		Args: cobra.NoArgs,
		RunE: s.run(func(ctx context.Context, _ []string) error {
			d, err := s.connect(ctx)
			if err != nil {
				return err
			}
			results, err := region.Each(ctx, d, "install CRDs", region.All(), func(ctx context.Context, c *region.Conn) ([]config.Installed, error) {
				return config.InstallCRDs(ctx, c, opts)
			})
			l := listing{columns: []string{"Peer", "Name", "Change"}}
			for o := range results.All() {
				for _, crd := range o.Value {
					l.items = append(l.items, item{
						cells: []any{string(o.Peer), crd.Name, string(crd.Change)},
						object: object("Installed", crd.Name, map[string]any{
							"peer": string(o.Peer), "change": string(crd.Change), "before": crd.Before,
						}),
					})
				}
			}
			if len(l.items) > 0 {
				if err := s.print(l); err != nil {
					return err
				}
			}
			return s.notInstalled(err)
		}),
	}
	c.Flags().StringSliceVar(&opts.Groups, "group", nil, "only the types of this API `group`; may be repeated")
	c.Flags().BoolVar(&opts.Override, "override", false, "replace types of the same names that other software installed")
	return c
}

// notInstalled adds an exit code and a remedy to the error of an installation.
func (s *session) notInstalled(err error) error {
	_, foreign := find[*config.ForeignCRDError](err)
	_, newer := find[*config.NewerCRDError](err)
	status, refused := find[*apierrors.StatusError](err)
	switch {
	case err == nil:
		return nil
	case foreign:
		return &problem{code: exitConflict, err: err, remedy: "if no other software needs them, use --override"}
	case newer:
		return &problem{code: exitInput, err: err}
	case refused && apierrors.IsForbidden(status):
		return &problem{code: exitInput, err: err, remedy: fmt.Sprintf("grant the peer's user what %q prints", s.program+" rbac --install")}
	}
	return &problem{code: exitFailed, err: err, remedy: "repeat it once all peers answer"}
}
