// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account"
)

func (s *session) compareAccount() *cobra.Command {
	return &cobra.Command{
		Use:   "compare NAME",
		Short: "Show which peers' copies of an Account differ, and in which fields",
		Long: `Read an Account in all peers and show, field by field, which peers differ from the
peer that decides. If one differs the exit code is 5, if a peer cannot be read 4.
If all are equal, one line on standard error says so.`,
		Args: oneArg,
		RunE: s.run(func(ctx context.Context, args []string) error {
			about := subject{account.Kind(), types.NamespacedName{Name: args[0]}}
			if err := checkSubject(about); err != nil {
				return err
			}
			d, err := s.connect(ctx)
			if err != nil {
				return err
			}
			found, err := account.Compare(ctx, d, about.kind, about.key)
			if err != nil {
				return err
			}
			if err := s.printDifferences(about, found); err != nil {
				return err
			}
			if err := s.unread(found.Unread.Err()); err != nil {
				return err
			}
			switch {
			case found.Reference == "":
				return badInput(fmt.Sprintf("see %q", s.program+" account list"), "no peer holds an Account %s", about.key.Name)
			case len(found.Differences) > 0:
				return &problem{code: exitViolations, remedy: fmt.Sprintf("see %q", s.program+" operation explain account/"+about.key.Name),
					err: fmt.Errorf("account %s is not the same in all peers", about.key.Name)}
			}
			if err := s.allNamed(ctx); err != nil {
				return err
			}
			fmt.Fprintf(s.errOut, "account %s is the same in all peers\n", about.key.Name)
			return nil
		}),
	}
}

func (s *session) printDifferences(about subject, found *account.Comparison) error {
	l := listing{columns: []string{"Peer", "Field", "Has", "Instead Of"}}
	for _, d := range found.Differences {
		field := d.Field
		if field == "" {
			field = "(no copy)"
		}
		l.items = append(l.items, item{
			cells: []any{string(d.Peer), field, or(d.Got), or(d.Want)},
			object: object("Difference", about.key.Name, map[string]any{
				"peer": string(d.Peer), "reference": string(found.Reference), "field": d.Field, "got": d.Got, "want": d.Want,
			}),
		})
	}
	if len(l.items) == 0 && s.output == formatTable {
		return nil
	}
	return s.print(l)
}
