// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-dev/atoll/fanout"
)

func (s *session) audit() *cobra.Command {
	var repair bool
	c := &cobra.Command{
		Use:   "audit",
		Short: "Read all peers and print every violation of the protocol's invariants",
		Long: `Read all peers and print every violation of the protocol's invariants. What is
under way, such as a reservation that is alive, is printed too and is no violation.
With --repair, mend what the protocol's rules allow; what is left is printed.`,
		Args: cobra.NoArgs,
		RunE: s.run(func(ctx context.Context, _ []string) error {
			with := s.observe
			if repair {
				with = s.coordinate
			}
			return with(ctx, func(c *fanout.Coordinator) error {
				report, err := c.Audit(ctx, repair)
				if err != nil {
					return err
				}
				err, differ := s.printReport(report), s.allNamed(ctx)
				if found, ok := find[*problem](differ); ok && err != nil {
					// Violations may be no more than what follows from this.
					s.warn("%v; %s", found.err, found.remedy)
					return err
				}
				return errors.Join(err, differ)
			})
		}),
	}
	c.Flags().BoolVar(&repair, "repair", false, "mend what the protocol's rules allow")
	return c
}

func (s *session) printReport(r *fanout.Report) error {
	l := listing{columns: []string{"Finding", "Invariant", "Peer", "Kind", "Namespace", "Name", "Text"}}
	for _, part := range []struct {
		finding string
		list    []fanout.Violation
	}{{"Violation", r.Violations}, {"Repaired", r.Repaired}, {"Pending", r.Pending}} {
		for _, v := range part.list {
			l.items = append(l.items, violationItem(part.finding, v))
		}
	}
	if len(l.items) > 0 || s.output != formatTable {
		if err := s.print(l); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.errOut, "%d objects read, %d violations, %d repaired, %d pending\n",
		r.Objects, len(r.Violations), len(r.Repaired), len(r.Pending))
	unread := s.unread(r.Unread.Err())
	if len(r.Violations) > 0 {
		if unread != nil {
			s.warn("%v", unread)
		}
		return &problem{code: exitViolations, remedy: fmt.Sprintf("run %q", s.program+" audit --repair"),
			err: fmt.Errorf("%d violations", len(r.Violations))}
	}
	return unread
}

func violationItem(finding string, v fanout.Violation) item {
	return item{
		cells: []any{finding, or(v.Invariant), or(string(v.Peer)), or(v.Kind.Kind), or(v.Key.Namespace), or(v.Key.Name), v.Text},
		object: object("Finding", v.Key.Name, map[string]any{
			"finding": finding, "invariant": v.Invariant, "peer": string(v.Peer), "text": v.Text,
			"object": map[string]any{
				"group": v.Kind.Group, "kind": v.Kind.Kind, "namespace": v.Key.Namespace, "name": v.Key.Name, "uid": string(v.UID),
			},
		}),
	}
}
