// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/wal"
)

func (s *session) walRescue() *cobra.Command {
	var identity string
	c := &cobra.Command{
		Use:   "rescue",
		Short: "Find and settle the operations of a lost log in the peers",
		Long: `Find the open operations of a lost log in the peers, by the coordinator that their
claims name, and settle them: a reservation without a heartbeat for one lease is deleted,
a removal is resumed, and a committed operation is finished in every peer. The report
lists the operations found, with coordinator and time, their results, and leftovers.

Coordinators of this program are named HOST/PROCESS; the default is all of this host.
A "*" at the end matches every name that begins with the text before it.`,
		Args: cobra.NoArgs,
		RunE: s.run(func(ctx context.Context, _ []string) error {
			if identity == "" {
				host, err := os.Hostname()
				if err != nil {
					return badInput("use --identity", "the name of this host is not known: %w", err)
				}
				identity = host + "/*"
			}
			return s.observe(ctx, func(c *fanout.Coordinator) error {
				report, err := c.Rescue(ctx, fanout.RescueOptions{Identity: identity})
				if err != nil {
					return err
				}
				return s.printRescue(report)
			})
		}),
	}
	c.Flags().StringVar(&identity, "identity", "", "`coordinator` whose operations are rescued (default: those of this host)")
	return c
}

func (s *session) printRescue(r *fanout.RescueReport) error {
	l := listing{columns: []string{"Operation", "Action", "Kind", "Namespace", "Name", "Found", "Coordinator", "Did", "Left"}}
	for _, o := range r.Operations {
		it := traceItem(o.Trace)
		left := "no"
		if o.Left {
			left = "yes"
		}
		it.cells = []any{
			or(o.Operation), o.Action, o.Kind.Kind, or(o.Key.Namespace), o.Key.Name, string(o.State), or(o.Coordinator), o.Did, left,
		}
		it.object.Object["did"], it.object.Object["left"] = o.Did, o.Left
		if o.Err != nil {
			it.object.Object["error"] = oneLine(o.Err)
			s.warn("operation %s: %s", or(o.Operation), oneLine(o.Err))
		}
		l.items = append(l.items, it)
	}
	if len(l.items) > 0 || s.output != formatTable {
		if err := s.print(l); err != nil {
			return err
		}
	}
	var clusters []string
	for peer, uid := range r.Clusters {
		clusters = append(clusters, fmt.Sprintf("%s (%s)", peer, uid))
	}
	slices.Sort(clusters)
	state := "complete: no leftovers in any peer"
	if !r.Complete() {
		state = "not complete"
	}
	fmt.Fprintf(s.errOut, "rescue of the operations of %s by %s, %s to %s, in %s: %d found; %s\n",
		r.Identity, r.By, began(r.From), began(r.To), strings.Join(clusters, ", "), len(r.Operations), state)
	if err := r.Unread.Err(); err != nil {
		return s.unread(err)
	}
	if !r.Complete() {
		return &problem{code: exitDoubt, remedy: "see what holds them with \"" + s.program + " operation explain ID\", then run it again",
			err: errors.New("some operations remain")}
	}
	return nil
}

// busy reports whether err means that another process uses the log.
func busy(err error) bool {
	_, locked := find[*wal.LockedError](err)
	return locked
}
