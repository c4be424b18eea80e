// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-dev/atoll/fanout"
)

const dryRunServer = "server"

func dryRunFlag(c *cobra.Command, mode *string) {
	c.Flags().StringVar(mode, "dry-run", "", "\"server\" shows the result that all peers report, and writes nothing")
	c.Flags().Lookup("dry-run").NoOptDefVal = dryRunServer
	_ = c.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{dryRunServer}, cobra.ShellCompDirectiveNoFileComp))
}

// rehearsed reports whether the value of --dry-run requests a dry run.
func rehearsed(mode string) (bool, error) {
	switch mode {
	case "", "none":
		return false, nil
	case dryRunServer:
		return true, nil
	default:
		return false, badInput("use server or none", "--dry-run %q is not known", mode)
	}
}

// plan prints the outcome that adding obj would have. It returns the error that adding obj would
// return.
func (s *session) plan(ctx context.Context, about subject, obj fanout.Object, opts fanout.AddOptions) error {
	if _, err := s.connect(ctx); err != nil {
		return err
	}
	if opts.Target != "" {
		if err := s.peers.known("--target", string(opts.Target)); err != nil {
			return err
		}
	}
	return s.observe(ctx, func(c *fanout.Coordinator) error {
		plan, err := c.Plan(ctx, obj, opts)
		if plan == nil {
			return err
		}
		return errors.Join(s.printPlan(about, plan), err)
	})
}

func (s *session) printPlan(about subject, plan *fanout.Plan) error {
	gk := about.kind.GroupKind()
	if s.output == formatName {
		_, err := fmt.Fprintf(s.out, "%s.%s/%s\n", strings.ToLower(gk.Kind), gk.Group, about.key.Name)
		return err
	}
	l := listing{columns: []string{"Peer", "Would Hold", "Round Trip", "Leftover", "Problem"}}
	var peers []any
	for o := range plan.Peers.All() {
		peer := map[string]any{"peer": string(o.Peer), "state": string(o.Value)}
		trip, problem := "-", "-"
		if o.Elapsed > 0 {
			trip = o.Elapsed.Round(time.Millisecond).String()
			peer["roundTrip"] = o.Elapsed.String()
		}
		if o.Err != nil {
			problem = oneLine(o.Err)
			peer["error"] = problem
		}
		leftover := plan.Leftovers[o.Peer]
		if leftover != "" {
			peer["leftover"] = leftover
		}
		peers = append(peers, peer)
		l.items = append(l.items, item{cells: []any{string(o.Peer), string(o.Value), trip, or(leftover), problem}})
	}
	if s.output == formatTable {
		if err := s.print(l); err != nil {
			return err
		}
		s.summarize(about, plan)
		return nil
	}
	fields := map[string]any{
		"state": string(plan.State), "primary": string(plan.Primary), "alreadyDone": plan.AlreadyDone, "peers": peers,
		"object": map[string]any{"group": gk.Group, "kind": gk.Kind, "namespace": about.key.Namespace, "name": about.key.Name},
	}
	if plan.Latency > 0 {
		fields["latency"] = plan.Latency.String()
	}
	return s.print(listing{items: []item{{object: object("Plan", about.key.Name, fields)}}, single: true})
}

// summarize prints the outcome of a plan on standard error.
func (s *session) summarize(about subject, plan *fanout.Plan) {
	name := about.kind.Kind + " " + strings.TrimPrefix(about.key.String(), "/")
	switch {
	case plan.AlreadyDone:
		fmt.Fprintf(s.errOut, "dry run: %s exists, decided by peer %s; nothing would be changed\n", name, plan.Primary)
	case plan.State == fanout.Done:
		fmt.Fprintf(s.errOut, "dry run: %s would be added, with its primary in %s, in about %s\n", name, plan.Primary, plan.Latency.Round(time.Millisecond))
	default:
		fmt.Fprintf(s.errOut, "dry run: %s would not be added\n", name)
	}
}
